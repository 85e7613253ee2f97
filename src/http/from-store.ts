/** The deadline of every call to the store. */
import { StoreError } from '../store/store-error.ts';
import { type Clock, within } from '../streams/clock.ts';

/** A store answers within this time, or counts as broken. Its own statements end sooner. */
export const STORE_MS = 10_000;

/** Rejects with StoreError where the store does not answer in time. */
export function fromStore<T>(clock: Clock, asked: PromiseLike<T>): Promise<T> {
  return within(clock, STORE_MS, asked, () => new StoreError('unavailable', `the store did not answer within ${STORE_MS} ms`));
}
