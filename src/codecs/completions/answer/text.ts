/** What a legacy completion can say of an answer: its text, and why it ended. */
import { notRepresentable } from '../../canonical/error.ts';
import type { ItemHead } from '../../canonical/event.ts';
import type { Outcome } from '../../canonical/outcome.ts';

/** Throws `response_not_representable` for calls and media. */
export function checkText(kind: ItemHead['kind']): void {
  if (kind === 'toolCall') throw notRepresentable('The answer calls a tool, which legacy completions cannot say.');
  if (kind === 'media') throw notRepresentable('The answer holds media, which legacy completions cannot say.');
}

export function finishReason(outcome: Outcome): 'stop' | 'length' | 'content_filter' {
  if (outcome.status === 'completed') return 'stop';
  if (outcome.status !== 'incomplete') throw outcome.error;
  switch (outcome.reason) {
    case 'content_filter':
      return 'content_filter';
    case 'pause':
    case 'compaction':
      return 'stop';
    default:
      return 'length';
  }
}
