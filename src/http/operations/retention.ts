/** Deletes rows of the request log that are older than `log.retention_days`. The ledger and its journal are never touched. */
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
const INTERVAL_MS = 60 * 60_000;
const DAY_MS = 24 * 60 * 60_000;

/**
 * Prunes once an hour; several processes on one store may all do it. The returned function stops it and resolves when no run is
 * in progress.
 */
export function startRetention({ config, store, clock, log }: RetentionOptions): () => Promise<void> {
  let stopped = false;
  let running: Promise<void> = Promise.resolve();
  let timer: Timer;
  const prune = async (): Promise<void> => {
    try {
      const removed = await store.requestLog.prune(clock.now() - config.current().log.retentionDays * DAY_MS);
      if (removed > 0) log.info({ removed }, 'old rows of the request log removed');
    } catch (error) {
      log.error({ err: error }, 'the request log could not be pruned; the next try is in an hour');
    }
    if (!stopped) arm(INTERVAL_MS);
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
    await running;
  };
}
