/** The one text of a legacy completion, from items of any kind. Refuses what is no text. */
import { notRepresentable } from '../canonical/error.ts';
import type { ItemHead } from '../canonical/event.ts';
import type { Outcome } from '../canonical/outcome.ts';

/** Between texts that something else parted. */
const SEPARATOR = '\n\n';

/** Follows the items as they begin, and says what must stand before the next text. */
export class TextJoin {
  #hasText = false;
  #last: ItemHead['kind'] | undefined;
  #phase: string | undefined;

  /** Throws `response_not_representable` for calls and media. */
  begin(head: { readonly kind: ItemHead['kind']; readonly phase?: string | undefined }): string {
    if (head.kind === 'toolCall') throw notRepresentable('The answer calls a tool, which legacy completions cannot say.');
    if (head.kind === 'media') throw notRepresentable('The answer holds media, which legacy completions cannot say.');
    const last = this.#last;
    this.#last = head.kind;
    if (head.kind !== 'text' && head.kind !== 'refusal') return '';
    const parted = this.#hasText && (last !== head.kind || this.#phase !== head.phase);
    this.#phase = head.phase;
    return parted ? SEPARATOR : '';
  }

  said(): void {
    this.#hasText = true;
  }
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
