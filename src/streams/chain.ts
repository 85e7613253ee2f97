/** Fuses two stages into one. Law: the same output as piping them, endings included; it only saves the promises in between. */
import { empty } from './empty.ts';
import type { SealingStage, Stage } from './stage.ts';

/**
 * Feeds the output of `first` to `second`. When `first` throws, its output before that goes through `second`, then the failure is
 * thrown; when `first.end` throws, `second.end` is not called. When `first` has ended, `second` is ended too; once `second` has
 * ended, later input and later failures are ignored.
 */
export function chain<A, B, C>(first: Stage<A, B>, second: Stage<B, C>): Stage<A, C> {
  return new Chain(first, second);
}

/** {@link chain} onto a sealing stage: `fail` goes to that stage alone. */
export function chainSealed<A, B, C, F>(first: Stage<A, B>, second: SealingStage<B, C, F>): SealingStage<A, C, F> {
  return new SealedChain(first, second);
}

class Chain<A, B, C, Second extends Stage<B, C>> implements Stage<A, C> {
  readonly #first: Stage<A, B>;
  protected readonly second: Second;
  readonly #between: B[] = [];
  #closed = false;

  constructor(first: Stage<A, B>, second: Second) {
    this.#first = first;
    this.second = second;
  }

  get ended(): boolean {
    return this.#closed || this.second.ended;
  }

  push(input: A, out: C[]): void {
    if (this.ended) return;
    try {
      this.#first.push(input, this.#between);
    } catch (reason) {
      this.#failed(reason, out);
      return;
    }
    this.#pass(out);
    if (this.#first.ended) this.#close(out);
  }

  end(out: C[]): void {
    if (this.ended) return;
    try {
      this.#first.end(this.#between);
    } catch (reason) {
      this.#failed(reason, out);
      return;
    }
    this.#pass(out);
    this.#close(out);
  }

  #pass(out: C[]): void {
    if (this.#between.length > 1 && this.second.pushAll !== undefined && !this.second.ended) {
      this.whole(out, 'second');
      this.second.pushAll(this.#between, out);
    } else this.#passEach(out);
    // Nothing of one input is kept while the next is awaited.
    empty(this.#between);
  }

  #passEach(out: C[]): void {
    for (const value of this.#between) {
      if (this.second.ended) break;
      this.whole(out, 'second');
      this.second.push(value, out);
    }
  }

  #failed(reason: unknown, out: C[]): void {
    this.#pass(out);
    if (this.second.ended) return;
    this.whole(out, 'first');
    throw reason;
  }

  #close(out: C[]): void {
    if (this.second.ended) return;
    this.whole(out, 'second');
    this.second.end(out);
    this.#closed = true;
  }

  /** Called when everything in `out` is whole, with the stage that may throw next. */
  protected whole(_out: readonly C[], _next: 'first' | 'second'): void {
    // A plain stage's output before a throw is good, so there is nothing to cut.
  }
}

class SealedChain<A, B, C, F> extends Chain<A, B, C, SealingStage<B, C, F>> implements SealingStage<A, C, F> {
  #length = 0;
  #next: 'first' | 'second' = 'first';

  fail(failure: F, out: C[]): void {
    this.second.fail(failure, out);
  }

  get kept(): number {
    return (this.#next === 'second' ? this.second.kept : undefined) ?? this.#length;
  }

  protected override whole(out: readonly C[], next: 'first' | 'second'): void {
    this.#length = out.length;
    this.#next = next;
  }
}
