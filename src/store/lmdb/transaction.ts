import { StoreError } from '../store-error.ts';
import type { LmdbBooks } from './books.ts';

/**
 * A change and what came of it, apart from the callback that runs it: lmdb-js keeps its callbacks in a list in which each knows
 * the next, so what a callback holds outlives its commit until V8's next full collection.
 */
export class Transaction<T> {
  #change: ((work: LmdbBooks) => T) | undefined;
  #done: { readonly result: T } | undefined;

  constructor(change: (work: LmdbBooks) => T) {
    this.#change = change;
  }

  run(work: LmdbBooks): void {
    const change = this.#change;
    this.#change = undefined;
    if (change === undefined) throw new StoreError('corrupt', 'a change was to be made twice');
    const result = change(work);
    work.finish();
    this.#done = { result };
  }

  /** Once, after the commit. */
  result(): T {
    const done = this.#done;
    this.#done = undefined;
    if (done === undefined) throw new StoreError('unavailable', 'a change was committed and not made');
    return done.result;
  }
}
