/**
 * The one door for failure. Above it a failure is thrown; below it a failure is output in the client's own protocol, and the
 * stream ends in order. Every stream that reaches a client passes exactly one seal, as its last step.
 */
import { createHop } from './hop.ts';
import type { SealingStage } from './stage.ts';

/**
 * A sealed step without streams, for callers that pump by hand. Its methods throw only what `fail` threw, against its contract.
 */
export interface Sealed<In, Out> {
  /** True once the ending was written: the source can be cancelled. Input after that is ignored. */
  readonly over: boolean;
  push(batch: readonly In[], out: Out[]): void;
  /** The input ended. Afterwards `over` is true; does nothing where it was before. */
  end(out: Out[]): void;
  /** The input failed. Afterwards `over` is true. */
  abort(reason: unknown, out: Out[]): void;
}

/**
 * Turns abort, premature end and the stage's own throw into `stage.fail`. What the failing event had half-written is cut off
 * first; the frames of earlier events stay.
 */
export function sealed<In, Out, F>(stage: SealingStage<In, Out, F>, toFailure: (reason: unknown) => F): Sealed<In, Out> {
  return new Seal(stage, toFailure);
}

class Seal<In, Out, F> implements Sealed<In, Out> {
  readonly #stage: SealingStage<In, Out, F>;
  readonly #toFailure: (reason: unknown) => F;
  #over = false;

  constructor(stage: SealingStage<In, Out, F>, toFailure: (reason: unknown) => F) {
    this.#stage = stage;
    this.#toFailure = toFailure;
  }

  get over(): boolean {
    return this.#over;
  }

  push(batch: readonly In[], out: Out[]): void {
    const stage = this.#stage;
    let mark = out.length;
    try {
      for (const input of batch) {
        if (this.#over || stage.ended) break;
        mark = out.length;
        stage.push(input, out);
      }
      this.#over ||= stage.ended;
    } catch (reason) {
      out.length = stage.kept ?? mark;
      this.#fail(reason, out);
    }
  }

  end(out: Out[]): void {
    if (this.#over) return;
    const stage = this.#stage;
    const mark = out.length;
    try {
      if (!stage.ended) stage.end(out);
      this.#over = true;
    } catch (reason) {
      out.length = stage.kept ?? mark;
      this.#fail(reason, out);
    }
  }

  abort(reason: unknown, out: Out[]): void {
    if (!this.#over) this.#fail(reason, out);
  }

  #fail(reason: unknown, out: Out[]): void {
    this.#over = true;
    const mark = out.length;
    try {
      this.#stage.fail(this.#toFailure(reason), out);
    } catch (broken) {
      out.length = mark;
      throw broken;
    }
  }
}

/**
 * Carries a sealing stage in a pair of Web Streams, as `to-transform.ts` carries others. Whatever happens above, its readable
 * ends in order, with exactly one ending. A reader that cancels errors the writable, so that the source is cancelled; it gets no
 * more output. When `fail` itself throws, `finalFrames` (the dialect's constant error frame) are enqueued and the readable fails.
 */
export function seal<In, Out, F>(
  stage: SealingStage<In, Out, F>,
  toFailure: (reason: unknown) => F,
  finalFrames: readonly Out[] = [],
): { readonly readable: ReadableStream<readonly Out[]>; readonly writable: WritableStream<readonly In[]> } {
  return createHop(sealed(stage, toFailure), finalFrames);
}
