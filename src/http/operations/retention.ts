/**
 * Deletes rows of the request log that are older than `log.retention_days`. The ledger and its journal are never touched. What is
 * deleted is gone, and a clock may be wrong (a machine that starts in the year 2099, until its time server answers): a row is old
 * only where the time that has passed says so, too, counted from the newest row that was there at the start. A machine that
 * rested keeps its rows for longer by the rest, until the next start.
 */
import type { Logger } from 'pino';
import type { Store } from '../../store/store.ts';
import type { Clock, Timer } from '../../streams/clock.ts';
import type { ConfigSource } from '../config/source.ts';

export interface RetentionOptions {
  readonly config: ConfigSource;
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Not at the start, which has more urgent work. */
const FIRST_MS = 60_000;
/** When a store that could not be read at the start is asked again. What is newest much later may be of this process. */
const AGAIN_MS = 1_000;
const INTERVAL_MS = 60 * 60_000;
/** Clocks of machines differ by less. */
const AHEAD_MS = 60 * 60_000;
const DAY_MS = 24 * 60 * 60_000;

/**
 * Prunes once an hour; several processes on one store may all do it. The returned function stops it and resolves when no run is
 * in progress.
 */
export function startRetention({ config, store, clock, log }: RetentionOptions): () => Promise<void> {
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  let timer: Timer;
  let again: Timer | undefined;
  let anchor: Promise<Anchor | undefined>;
  let isAhead = false;
  /** Before requests may write rows under a clock that is wrong. */
  const look = (): void => {
    anchor = newestRow(store, clock).catch(() => {
      if (!stopped) again = clock.setTimeout(look, AGAIN_MS);
      return undefined;
    });
  };
  look();
  const prune = async (): Promise<void> => {
    try {
      const known = (await anchor) ?? (await newestRow(store, clock));
      anchor = Promise.resolve(known);
      if (known !== undefined)
        await pruneAt(Math.min(clock.now(), known.loggedAtMs + Math.floor(clock.monotonic() - known.readAt)));
      tellAhead((await newestRow(store, clock))?.loggedAtMs ?? 0);
    } catch (error) {
      log.error({ err: error }, 'the request log could not be pruned; the next try is in an hour');
    }
    if (!stopped) arm(INTERVAL_MS);
  };
  const pruneAt = async (nowMs: number): Promise<void> => {
    const removed = await store.requestLog.prune(nowMs - config.current().log.retentionDays * DAY_MS);
    if (removed > 0) log.info({ removed }, 'old rows of the request log removed');
  };
  /** Times never go back along the log: all that is logged after such a row has its time, and is found and forgotten by that. */
  const tellAhead = (newestMs: number): void => {
    const wasAhead = isAhead;
    isAhead = newestMs > clock.now() + AHEAD_MS;
    if (isAhead && !wasAhead)
      log.warn(
        { logged_at: new Date(newestMs).toISOString() },
        'the request log is ahead of the clock: rows are logged under that time until it has come, and none of them is removed',
      );
  };
  const arm = (ms: number): void => {
    timer = clock.setTimeout(() => {
      running = prune();
    }, ms);
  };
  arm(FIRST_MS);
  return async () => {
    stopped = true;
    timer.cancel();
    again?.cancel();
    await anchor;
    await running;
  };
}

/** A time that a row names, and when that was read, by the clock that does not jump. */
interface Anchor {
  readonly loggedAtMs: number;
  readonly readAt: number;
}

/** Undefined where there is no row. */
async function newestRow(store: Store, clock: Clock): Promise<Anchor | undefined> {
  const [newest] = await store.requestLog.list({ limit: 1 });
  return newest === undefined ? undefined : { loggedAtMs: newest.loggedAtMs, readAt: clock.monotonic() };
}
