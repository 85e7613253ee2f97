/**
 * An answer of which nothing reaches the client: all that it holds are items that only its upstream's protocol has (a call of a shell, a
 * program). As a completed answer it would look like silence.
 */
import { notRepresentable } from '../canonical/error.ts';
import { isSaid } from '../canonical/answer-features.ts';
import type { Dialect } from '../canonical/dialect.ts';
import type { OutputItem } from '../canonical/item.ts';
import type { Outcome } from '../canonical/outcome.ts';

export class Unsaid {
  readonly #dialect: Dialect;
  #isSaid = false;
  /** Something was left out. */
  #isLeftOut = false;

  /** `dialect`: the client's. */
  constructor(dialect: Dialect) {
    this.#dialect = dialect;
  }

  /** Notes an item that has ended. */
  note(item: OutputItem): void {
    if (item.kind !== 'native') this.#isSaid ||= isSaid(item);
    else if (item.dialect === this.#dialect) this.#isSaid = true;
    else this.#isLeftOut = true;
  }

  /** Throws `response_not_representable` for a completed answer that says nothing and of which something was left out. */
  check({ status }: Outcome): void {
    if (status !== 'completed' || this.#isSaid || !this.#isLeftOut) return;
    throw notRepresentable('The answer holds nothing that this protocol can say.');
  }
}
