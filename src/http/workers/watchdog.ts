/**
 * A worker that lives and does nothing: its event loop never turns again, or somebody stopped its process. Nothing ends it by
 * itself, whatever it holds waits, and neither a drain nor a renewal would ever be over. Each worker says every second that its
 * loop turns; one that has been silent for too long is killed by its primary, which then starts another as for any death.
 *
 * Silence is counted in looks and not by a clock: where the primary itself stood still (a laptop that slept, a container that was
 * frozen, Ctrl-Z), it has looked once and not a thousand times.
 */
import type { Logger } from 'pino';
import type { Clock } from '../../streams/clock.ts';

/** How often a worker says that it lives, and how often its primary looks. */
const LOOK_MS = 1_000;

/**
 * Between two kills. Others may only have waited for the one that was killed first, such as for the lock of the store that it
 * held.
 */
const LOOKS_BETWEEN_KILLS = 5;

/** In a worker, from when it serves: tells the primary that its event loop turns. Keeps no process alive. */
export function beat(): void {
  setInterval(() => {
    // The primary may be gone.
    if (process.connected) process.send?.({ 'mizu:beat': true }, undefined, undefined, () => undefined);
  }, LOOK_MS).unref();
}

/** What the primary needs of a worker. */
export interface Watched {
  readonly process: { readonly pid?: number | undefined; kill(signal: 'SIGKILL'): unknown };
}

export interface WatchdogOptions {
  /** The longest silence. 0: nobody is killed. */
  readonly silenceMs: () => number;
  readonly clock: Clock;
  readonly log: Pick<Logger, 'error'>;
}

/** In the primary. A worker is watched from when it listens, since its start may take long, until it has ended. */
export class Watchdog {
  readonly #options: WatchdogOptions;
  /** How many looks found that the worker had said nothing. */
  readonly #silentLooks = new Map<Watched, number>();
  #looksToNextKill = 0;

  constructor(options: WatchdogOptions) {
    this.#options = options;
  }

  begin(worker: Watched): void {
    this.#silentLooks.set(worker, 0);
  }

  /** Any message is a sign of life: a beat may stand behind a large one. */
  heard(worker: Watched): void {
    if (this.#silentLooks.has(worker)) this.#silentLooks.set(worker, 0);
  }

  ended(worker: Watched): void {
    this.#silentLooks.delete(worker);
  }

  /** Looks every second until `stop` is called. */
  start(): { stop(): void } {
    const { clock } = this.#options;
    const look = (): void => {
      this.#look();
      timer = clock.setTimeout(look, LOOK_MS);
    };
    let timer = clock.setTimeout(look, LOOK_MS);
    return { stop: () => timer.cancel() };
  }

  #look(): void {
    for (const [worker, looks] of this.#silentLooks) this.#silentLooks.set(worker, looks + 1);
    if (this.#looksToNextKill > 0) this.#looksToNextKill -= 1;
    const silenceMs = this.#options.silenceMs();
    if (silenceMs === 0 || this.#looksToNextKill > 0) return;
    const [first] = [...this.#silentLooks].toSorted(([, one], [, other]) => other - one);
    // One more look than seconds: the first may come right after a beat.
    if (first === undefined || first[1] * LOOK_MS <= silenceMs) return;
    const [worker, looks] = first;
    const facts = { pid: worker.process.pid, silent_ms: looks * LOOK_MS };
    this.#options.log.error(facts, 'a worker lives and says nothing: it is killed');
    this.#looksToNextKill = LOOKS_BETWEEN_KILLS;
    worker.process.kill('SIGKILL');
  }
}
