/** Why a commit failed, as lmdb-js tells it: its general error has a second promise, which rejects with the cause and must be handled too. */
import type { Clock } from '../store.ts';

/**
 * How long the cause is waited for. lmdb-js rejects that promise with the next failure it sees: where the disk was well again by then, it
 * stays open for ever, and whoever waited would never try the disk again.
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
