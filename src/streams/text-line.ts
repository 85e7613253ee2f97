/**
 * Texts that leave one after another, each piece of a long one in a turn of its own: nothing may come between the pieces of a
 * message.
 */
import { textPieces } from './text-pieces.ts';

export interface TextLineOptions {
  /** Waits for the next turn; undefined: at once. Throws or rejects once nobody reads any more. */
  readonly enter: () => Promise<void> | undefined;
  readonly put: (piece: string, isLast: boolean) => void;
  /** Where too much waits for the reader, settles when more may follow. */
  readonly drained: () => Promise<void> | undefined;
}

export class TextLine {
  readonly #options: TextLineOptions;
  /** Settles when the last one is out. */
  #last: Promise<void> | undefined;

  constructor(options: TextLineOptions) {
    this.#options = options;
  }

  /** Something is on its way, and what follows must stand in line. */
  get isBusy(): boolean {
    return this.#last !== undefined;
  }

  /** After what stands in line already. Settles when more may follow. */
  add(texts: readonly string[]): Promise<void> {
    const out = (this.#last ?? Promise.resolve()).then(() => this.#write(texts));
    this.#last = out;
    const leave = (): void => {
      if (this.#last === out) this.#last = undefined;
    };
    out.then(leave, leave);
    return out;
  }

  async #write(texts: readonly string[]): Promise<void> {
    const { enter, put, drained } = this.#options;
    for (const text of texts) {
      const pieces = textPieces(text);
      let rest = text.length;
      do {
        // The first piece of a text that was put together copies all of it: it is made in its own turn, too.
        const entered = enter();
        if (entered !== undefined) await entered;
        const piece = pieces.next().value ?? '';
        rest -= piece.length;
        put(piece, rest === 0);
        const waiting = drained();
        if (waiting !== undefined) await waiting;
      } while (rest > 0);
    }
  }
}
