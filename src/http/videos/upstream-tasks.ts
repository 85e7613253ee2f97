/**
 * Which task of ours has which task of an upstream, as far as this worker has asked about them. An answer to a submission that
 * names a task which another has (from a cache, or a proxy that mixed two up) would show one client what is made for another, and
 * charge both for it. In memory, since whatever is under way is asked about again after a start.
 */
import { LRUCache } from 'lru-cache';
import type { VideoTask } from '../../store/videos.ts';
import { atMost } from '../lru.ts';

const MAX_KNOWN = 10_000;

export class UpstreamTasks {
  readonly #known = new LRUCache<string, string>(atMost(MAX_KNOWN));
  readonly #inspect: (id: string) => Promise<VideoTask | undefined>;

  constructor(inspect: (id: string) => Promise<VideoTask | undefined>) {
    this.#inspect = inspect;
  }

  /** The task that has it already; undefined where this one has it from now on. Never rejects. */
  async claim(id: string, channelId: string, upstreamId: string): Promise<string | undefined> {
    const name = `${channelId} ${upstreamId}`;
    const before = this.#known.get(name);
    if (before === id) return undefined;
    if (before !== undefined && (await this.#mayHave(before, channelId, upstreamId))) return before;
    // Another may have claimed it meanwhile.
    const now = this.#known.get(name);
    if (now !== before) return now;
    this.#known.set(name, id);
    return undefined;
  }

  /** It is asked about under this name. */
  asked(id: string, channelId: string, upstreamId: string): void {
    const name = `${channelId} ${upstreamId}`;
    if (!this.#known.has(name)) this.#known.set(name, id);
  }

  /** One that is over has no claim: servers that number their tasks begin anew. */
  async #mayHave(id: string, channelId: string, upstreamId: string): Promise<boolean> {
    let task: VideoTask | undefined;
    try {
      task = await this.#inspect(id);
    } catch {
      // What cannot be known is not given away: the later task waits for an operator, with its hold.
      return true;
    }
    // One in submission was answered a moment ago, and is being written.
    if (task?.state === 'submitting') return true;
    if (task?.state !== 'running' && task?.state !== 'unknown') return false;
    return task.upstreamId === upstreamId && task.submission.channelId === channelId;
  }
}
