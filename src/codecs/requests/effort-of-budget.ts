import type { Effort } from '../canonical/request.ts';

/** The effort for an explicit thinking budget, for protocols that have efforts only (semantics 6.7.3). */
export function effortOfBudget(budget: number): Effort {
  if (budget <= 0) return 'none';
  if (budget <= 1024) return 'low';
  if (budget <= 4096) return 'medium';
  return budget <= 16_384 ? 'high' : 'xhigh';
}
