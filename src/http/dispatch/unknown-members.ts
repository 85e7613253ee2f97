/**
 * Which Channels have refused what their server does not know, members of a request or the stream of a picture, so that later
 * requests are not refused for it first. Vendors learn, so what was learnt is forgotten. State of one process.
 */
import type { Refusable } from '../../codecs/canonical/request.ts';
import type { Clock } from '../../streams/clock.ts';

const FORGOTTEN_AFTER_MS = 600_000;
/** Opaque values and raw reasoning are refused one by one, and tell nothing about the next request. */
const LASTING: readonly Refusable[] = ['breakpoints', 'picture_stream'];
const NOTHING: ReadonlySet<Refusable> = new Set();

export class UnknownMembers {
  readonly #clock: Clock;
  /** When it is forgotten, by Channel, upstream model and what was refused: all are names of the configuration. */
  readonly #until = new Map<string, number>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** What a request to this model goes without from the start. */
  of(channelId: string, model: string): ReadonlySet<Refusable> {
    if (this.#until.size === 0) return NOTHING;
    const now = this.#clock.monotonic();
    return new Set(LASTING.filter((what) => now < (this.#until.get(keyOf(channelId, model, what)) ?? 0)));
  }

  refused(channelId: string, model: string, what: Refusable): void {
    if (LASTING.includes(what)) this.#until.set(keyOf(channelId, model, what), this.#clock.monotonic() + FORGOTTEN_AFTER_MS);
  }

  keepOnly(channelIds: ReadonlySet<string>): void {
    for (const key of this.#until.keys()) if (!channelIds.has(key.split('\n', 1)[0] ?? '')) this.#until.delete(key);
  }
}

function keyOf(channelId: string, model: string, what: Refusable): string {
  return `${channelId}\n${model}\n${what}`;
}
