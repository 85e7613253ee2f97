/**
 * The texts of an answer as one, for clients whose protocol has one content: each follows the one before it as it is, or after an
 * empty line where something stood between them or where their phases differ. An empty text adds nothing.
 */
import type { ItemHead } from '../canonical/event.ts';

/** Between texts that something else parted. */
export const TEXT_SEPARATOR = '\n\n';

/** Follows the items as they begin, and gives what must stand before the text of each. */
export class TextJoin {
  #hasText = false;
  #isParted = false;
  #last: ItemHead['kind'] | undefined;
  #phase: string | undefined;

  begin(kind: ItemHead['kind'], phase?: string): void {
    const last = this.#last;
    this.#last = kind;
    if (kind !== 'text' && kind !== 'refusal') return;
    this.#isParted ||= last !== kind || this.#phase !== phase;
    this.#phase = phase;
  }

  /** What must stand before the text that began last. */
  separator(): string {
    const separator = this.#hasText && this.#isParted ? TEXT_SEPARATOR : '';
    this.#hasText = true;
    this.#isParted = false;
    return separator;
  }
}
