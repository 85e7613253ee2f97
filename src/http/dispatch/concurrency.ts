/** How many exchanges a Channel serves at once; a bounded queue waits in order. Knows no upstream. */
import type { Clock } from '../../streams/clock.ts';
import { goneBecause } from '../errors.ts';

export interface Slots {
  readonly max: number;
  readonly maxQueue: number;
  readonly queueMs: number;
}

interface Waiter {
  readonly grant: () => void;
}

interface Lane {
  running: number;
  /** As the last request knew it: a reload counts for those who wait already. */
  max: number;
  readonly queue: Set<Waiter>;
}

/** Called once when the exchange with the Channel is over. */
export type Release = () => void;

export class Concurrency {
  readonly #clock: Clock;
  readonly #lanes = new Map<string, Lane>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  running(channelId: string): number {
    return this.#lanes.get(channelId)?.running ?? 0;
  }

  /** Undefined when the queue is full or the wait was too long. Rejects when the client leaves while it waits. */
  async take(channelId: string, slots: Slots, signal: AbortSignal): Promise<Release | undefined> {
    if (signal.aborted) throw goneBecause(signal);
    const lane = this.#laneOf(channelId);
    lane.max = slots.max;
    admitWaiting(lane);
    if (lane.running < lane.max) return this.#grant(channelId, lane);
    const { queue } = lane;
    if (queue.size >= slots.maxQueue) return undefined;
    return await new Promise<Release | undefined>((resolve, reject) => {
      const leave = (): void => {
        queue.delete(waiter);
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => {
        leave();
        reject(goneBecause(signal));
      };
      const waiter: Waiter = {
        grant: () => {
          leave();
          resolve(this.#grant(channelId, lane));
        },
      };
      const timer = this.#clock.setTimeout(() => {
        leave();
        resolve(undefined);
      }, slots.queueMs);
      signal.addEventListener('abort', onAbort);
      queue.add(waiter);
    });
  }

  #laneOf(channelId: string): Lane {
    const known = this.#lanes.get(channelId);
    if (known !== undefined) return known;
    const lane = { running: 0, max: 0, queue: new Set<Waiter>() };
    this.#lanes.set(channelId, lane);
    return lane;
  }

  #grant(channelId: string, lane: Lane): Release {
    lane.running += 1;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      lane.running -= 1;
      admitWaiting(lane);
      if (lane.running === 0) this.#lanes.delete(channelId);
    };
  }
}

/** In their order, as many as there is room for. */
function admitWaiting(lane: Lane): void {
  for (const waiter of lane.queue) {
    if (lane.running >= lane.max) return;
    waiter.grant();
  }
}
