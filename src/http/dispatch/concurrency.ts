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

/** Called once when the exchange with the Channel is over. */
export type Release = () => void;

export class Concurrency {
  readonly #clock: Clock;
  readonly #running = new Map<string, number>();
  readonly #queues = new Map<string, Set<Waiter>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  running(channelId: string): number {
    return this.#running.get(channelId) ?? 0;
  }

  /** Undefined when the queue is full or the wait was too long. Rejects when the client leaves while it waits. */
  async take(channelId: string, slots: Slots, signal: AbortSignal): Promise<Release | undefined> {
    if (this.running(channelId) < slots.max) return this.#grant(channelId);
    const queue = this.#queues.get(channelId) ?? new Set<Waiter>();
    this.#queues.set(channelId, queue);
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
          resolve(this.#grant(channelId));
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

  #grant(channelId: string): Release {
    this.#running.set(channelId, this.running(channelId) + 1);
    let released = false;
    return () => {
      if (released) return;
      released = true;
      const left = this.running(channelId) - 1;
      if (left > 0) this.#running.set(channelId, left);
      else this.#running.delete(channelId);
      const [next] = this.#queues.get(channelId) ?? [];
      next?.grant();
    };
  }
}
