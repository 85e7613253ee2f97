/**
 * Work on a large body is done in steps (read as text, scanned, parsed, decoded, encoded): in a turn of the event loop as many as
 * take a few milliseconds, whosever they are. So what others wait for is neither the whole of a body nor the sum over many of
 * them.
 */
import { atOnce, type Steps } from '../../codecs/steps.ts';
import { LoopTurns } from '../../streams/loop-turns.ts';

/** Characters or bytes. All steps on less take a few milliseconds at most. */
const LARGE = 32 * 1024;

export const isLarge = ({ length }: { readonly length: number }): boolean => length >= LARGE;

export class LargeWork {
  readonly #turns = new LoopTurns();

  /** Bodies that wait for their next turn. */
  get waiting(): number {
    return this.#turns.waiting;
  }

  /** The steps of the work on a body of this length: at once where it is small. Throws and rejects as {@link run} does. */
  of<Result>(body: { readonly length: number }, steps: Steps<Result>, signal?: AbortSignal): Result | Promise<Result> {
    return isLarge(body) ? this.run(steps, signal) : atOnce(steps);
  }

  /** Rejects with what a step throws, and with the reason of `signal` once that is aborted. */
  async run<Result>(steps: Steps<Result>, signal?: AbortSignal): Promise<Result> {
    for (;;) {
      const entered = this.#turns.enter();
      if (entered !== undefined) await entered;
      signal?.throwIfAborted();
      do {
        const step = steps.next();
        if (step.done !== true) continue;
        // What is done with the result is large, too: it has a turn that this work has not used up.
        const left = this.#turns.enter();
        if (left !== undefined) await left;
        signal?.throwIfAborted();
        return step.value;
      } while (!this.#turns.isOver);
    }
  }
}
