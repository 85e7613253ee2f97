/**
 * Which Channels have refused members that their server does not know, so that later requests are not refused for them first.
 * Vendors learn new members, so what was learnt is forgotten. State of one process.
 */
import type { Refusable } from '../../codecs/canonical/request.ts';
import type { Clock } from '../../streams/clock.ts';

const FORGOTTEN_AFTER_MS = 600_000;
const CACHING: ReadonlySet<Refusable> = new Set(['breakpoints']);
const NOTHING: ReadonlySet<Refusable> = new Set();

export class UnknownMembers {
  readonly #clock: Clock;
  /** When it is forgotten, by Channel and upstream model: both are names of the configuration. */
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What a request to this model goes without from the start. */
  of(channelId: string, model: string): ReadonlySet<Refusable> {
    if (this.#until.size === 0) return NOTHING;
    const until = this.#until.get(keyOf(channelId, model));
    return until !== undefined && this.#clock.monotonic() < until ? CACHING : NOTHING;
  }

  /** Opaque values and raw reasoning are refused one by one, and tell nothing about the next request. */
  refused(channelId: string, model: string, what: Refusable): void {
    if (CACHING.has(what)) this.#until.set(keyOf(channelId, model), this.#clock.monotonic() + FORGOTTEN_AFTER_MS);
  }

  keepOnly(channelIds: ReadonlySet<string>): void {
    for (const key of this.#until.keys()) if (!channelIds.has(key.split('\n', 1)[0] ?? '')) this.#until.delete(key);
  }
}

function keyOf(channelId: string, model: string): string {
  return `${channelId}\n${model}`;
}
