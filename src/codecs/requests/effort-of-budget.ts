import type { Effort } from '../canonical/request.ts';

/** The effort that an explicit thinking budget stands for where a protocol has words only (semantics 6.7.3). */
export function effortOfBudget(budget: number): Effort {
  if (budget <= 0) return 'none';
  if (budget <= 1024) return 'low';
  if (budget <= 4096) return 'medium';
  return budget <= 16_384 ? 'high' : 'xhigh';
}
