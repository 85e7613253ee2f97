/** How many exchanges a Channel serves at once; a bounded queue waits in order. Knows no upstream. */
import type { Clock } from '../../streams/clock.ts';
import { goneBecause } from '../errors.ts';

export interface Slots {
  readonly max: number;
  readonly maxQueue: number;
  readonly queueMs: number;
}

/** The exchanges of one Channel. */
interface Room {
  /** As whoever asked last has it configured. */
  max: number;
  running: number;
  /** Those who wait, first come first: called when it is their turn. */
  readonly queue: Set<() => void>;
}

/** Called once when the exchange with the Channel is over. */
export type Release = () => void;

export class Concurrency {
  readonly #clock: Clock;
  /** Of Channels that are busy. */
  readonly #rooms = new Map<string, Room>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  running(channelId: string): number {
    return this.#rooms.get(channelId)?.running ?? 0;
  }

  /** Undefined when the queue is full or the wait was too long. Rejects when the client has left, or leaves while it waits. */
  async take(channelId: string, { max, maxQueue, queueMs }: Slots, signal: AbortSignal): Promise<Release | undefined> {
    if (signal.aborted) throw goneBecause(signal);
    const room = this.#rooms.get(channelId) ?? { max, running: 0, queue: new Set() };
    this.#rooms.set(channelId, room);
    room.max = max;
    // A limit that was raised lets those in who wait since before it was.
    letIn(room);
    if (room.running < max) return this.#enter(channelId, room);
    if (room.queue.size >= maxQueue) return undefined;
    return await new Promise<Release | undefined>((resolve, reject) => {
      const leave = (): void => {
        room.queue.delete(onTurn);
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
      };
      const onAbort = (): void => {
        leave();
        reject(goneBecause(signal));
      };
      const onTurn = (): void => {
        leave();
        resolve(this.#enter(channelId, room));
      };
      const timer = this.#clock.setTimeout(() => {
        leave();
        resolve(undefined);
      }, queueMs);
      signal.addEventListener('abort', onAbort);
      room.queue.add(onTurn);
    });
  }

  #enter(channelId: string, room: Room): Release {
    room.running += 1;
    let released = false;
    return () => {
      if (released) return;
      released = true;
      room.running -= 1;
      letIn(room);
      if (room.running === 0) this.#rooms.delete(channelId);
    };
  }
}

function letIn(room: Room): void {
  for (const onTurn of room.queue) {
    if (room.running >= room.max) return;
    onTurn();
  }
}
