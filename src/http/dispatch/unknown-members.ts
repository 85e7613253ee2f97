/**
 * Which Channels have refused what their server does not know or take, members of a request, the stream of a picture or a cap,
 * so that later requests are not refused for it first. What a client writes is learnt for its account alone: one that puts a
 * member where no server takes it would otherwise take it from everybody's requests. Vendors learn, so what was learnt is
 * forgotten. State of one process.
 */
import { LRUCache } from 'lru-cache';
import { LOWER_CAPS, type LowerCap, type Refusable } from '../../codecs/canonical/request.ts';
import type { Clock } from '../../streams/clock.ts';
import { atMost } from '../lru.ts';

const FORGOTTEN_AFTER_MS = 600_000;
const MAX_KNOWN = 10_000;
const CAPS: readonly LowerCap[] = LOWER_CAPS.map((cap) => `cap_${cap}` as const);
/** Opaque values and raw reasoning are refused one by one, and tell nothing about the next request. */
const LASTING: readonly Refusable[] = ['breakpoints', 'picture_stream', 'both_samplings', ...CAPS];
/** No client asks for it: a Channel that does not stream its pictures does so for nobody, nor takes it the gateway's own cap. */
const OF_ALL: readonly Refusable[] = ['picture_stream', ...CAPS];
const NOTHING: ReadonlySet<Refusable> = new Set();

export class UnknownMembers {
  readonly #clock: Clock;
  /** When it is forgotten, by Channel, account (empty: all), upstream model and what was refused. */
  readonly #until = new LRUCache<string, number>(atMost(MAX_KNOWN));

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What a request to this model goes without from the start. */
  of(channelId: string, model: string, account = ''): ReadonlySet<Refusable> {
    if (this.#until.size === 0) return NOTHING;
    const now = this.#clock.monotonic();
    return new Set(LASTING.filter((what) => now < (this.#until.get(keyOf(channelId, account, model, what)) ?? 0)));
  }

  /** To be called once the request went well without it: a request that is wrong by itself may only speak of such a member. */
  refused(channelId: string, model: string, what: Refusable, account = ''): void {
    if (!LASTING.includes(what)) return;
    this.#until.set(keyOf(channelId, account, model, what), this.#clock.monotonic() + FORGOTTEN_AFTER_MS);
  }

  keepOnly(channelIds: ReadonlySet<string>): void {
    for (const key of [...this.#until.keys()]) if (!channelIds.has(key.split('\n', 1)[0] ?? '')) this.#until.delete(key);
  }
}

function keyOf(channelId: string, account: string, model: string, what: Refusable): string {
  return `${channelId}\n${OF_ALL.includes(what) ? '' : account}\n${model}\n${what}`;
}
