/**
 * Why a commit failed, as lmdb-js tells it: its general error has a second promise, which rejects with the cause and must be
 * handled too. And what the numbers mean that such errors carry.
 */
import { StoreError } from '../store-error.ts';
import type { Clock } from '../store.ts';

/**
 * How long the cause is waited for. lmdb-js rejects that promise with the next failure it sees: where the disk was well again by
 * then, it stays open for ever, and whoever waited would never try the disk again.
 */
const CAUSE_MS = 1_000;

/** The cause, or the error itself where there is none to be had. Never rejects. */
export async function commitErrorOf(error: unknown, clock: Pick<Clock, 'after'>): Promise<unknown> {
  if (!(error instanceof Error) || !('commitError' in error)) return error;
  const { promise: given, resolve } = Promise.withResolvers<unknown>();
  const stop = clock.after(CAUSE_MS, () => resolve(error));
  try {
    await Promise.race([error.commitError, given]);
    return error;
  } catch (cause) {
    return cause;
  } finally {
    stop();
  }
}

const ENOSPC = 28;
/** What LMDB makes of a write that was cut short. */
export const EIO = 5;
const EDQUOT = 122;
const MAP_FULL = -30792;

export function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

export function isDiskFull(error: unknown): boolean {
  const code = codeOf(error);
  return code === ENOSPC || code === EDQUOT || code === MAP_FULL || code === 'ENOSPC';
}

/** Errors of LMDB itself carry a numeric code; a `StoreError` or a bug of ours does not. */
export function isEngineError(error: unknown): boolean {
  return !(error instanceof StoreError) && typeof codeOf(error) === 'number';
}

/**
 * LMDB's message about an environment that it has given up. A read reports it under its own error number: only the text is the
 * same.
 */
export function isGivenUp(error: unknown): boolean {
  return error instanceof Error && error.message.includes('MDB_PANIC');
}
