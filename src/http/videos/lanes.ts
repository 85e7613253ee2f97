/**
 * What the video worker has in hand. Submissions and polls go in lanes of their own, so that upstreams which take minutes to
 * accept a task do not stop the polls of others; and no Channel may have all the polls, so that one which answers nothing does
 * not stop the rest.
 */
import type { DueState, VideoTask } from '../../store/videos.ts';

interface Lane {
  readonly states: readonly DueState[];
  readonly size: number;
}

const SUBMISSIONS: Lane = { states: ['queued'], size: 32 };
const POLLS: Lane = { states: ['running', 'unknown'], size: 64 };
/** Polls of one Channel at once. */
const PER_CHANNEL = 32;

export class Lanes {
  readonly #work = new Map<string, { readonly lane: Lane; readonly done: Promise<void> }>();
  readonly #used = new Map<Lane, number>();
  readonly #polled = new Map<string, number>();

  /** Lanes with room for at least one more, and for how many. */
  *open(): Generator<{ readonly states: readonly DueState[]; readonly room: number }> {
    for (const lane of [SUBMISSIONS, POLLS]) {
      const room = lane.size - (this.#used.get(lane) ?? 0);
      if (room > 0) yield { states: lane.states, room };
    }
  }

  /** Ids of the tasks that are being worked on. */
  get inHand(): Iterable<string> {
    return this.#work.keys();
  }

  /** `onRoom` is called when the lane was full until this work was done. `work` never rejects. */
  enter(task: VideoTask, work: Promise<void>, onRoom: () => void): void {
    const lane = task.state === 'queued' ? SUBMISSIONS : POLLS;
    const left = (): void => {
      this.#work.delete(task.id);
      if (add(this.#used, lane, -1) === lane.size - 1) onRoom();
    };
    add(this.#used, lane, 1);
    this.#work.set(task.id, { lane, done: work.then(left) });
  }

  admits(channelId: string): boolean {
    return (this.#polled.get(channelId) ?? 0) < PER_CHANNEL;
  }

  async poll<T>(channelId: string, ask: () => Promise<T>): Promise<T> {
    add(this.#polled, channelId, 1);
    try {
      return await ask();
    } finally {
      add(this.#polled, channelId, -1);
    }
  }

  /** Resolves when nothing is in hand any more. `flush` is called for what waits to be written. */
  async empty(flush: () => void): Promise<void> {
    while (this.#work.size > 0) {
      flush();
      await Promise.race([...this.#work.values()].map(({ done }) => done));
    }
  }
}

/** The new count. */
function add<Key>(counts: Map<Key, number>, key: Key, by: number): number {
  const count = (counts.get(key) ?? 0) + by;
  if (count === 0) counts.delete(key);
  else counts.set(key, count);
  return count;
}
