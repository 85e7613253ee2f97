/** The deadline of every call to the store. */
import { StoreError } from '../store/store-error.ts';
import { type Clock, within } from '../streams/clock.ts';

/** A store answers within this time, or counts as broken. Its own statements end sooner. */
export const STORE_MS = 10_000;

/**
 * The store's answer where it answers at once; else a promise, which rejects with StoreError where it does not answer in time.
 */
export function fromStore<T>(clock: Clock, asked: PromiseLike<T>): Promise<T>;
export function fromStore<T>(clock: Clock, asked: T | Promise<T>): T | Promise<T>;
export function fromStore<T>(clock: Clock, asked: T | PromiseLike<T>): T | Promise<T> {
  if (!isThenable(asked)) return asked;
  return within(clock, STORE_MS, asked, () => new StoreError('unavailable', `the store did not answer within ${STORE_MS} ms`));
}

function isThenable<T>(asked: T | PromiseLike<T>): asked is PromiseLike<T> {
  return typeof asked === 'object' && asked !== null && 'then' in asked;
}
