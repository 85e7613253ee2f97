/**
 * The life of what a request takes of its limits: taken at its admission, corrected when it is settled, and its place given back
 * before the end of its answer is sent. A request that was never dispatched gives everything back.
 */
import type { Clock } from '../../streams/clock.ts';
import { type Claim, type Demand, LimitBuckets, type Taking } from './buckets.ts';

export interface Taken extends Taking {
  /** Who has counted it, and gets back what is given back. Absent: who was asked. */
  readonly by?: Limits;
}

/** The buckets of this gateway, wherever they are. */
export interface Limits {
  take(claims: readonly Claim[], demand: Demand): Taken | Promise<Taken>;
  adjust(claims: readonly Claim[], demand: Demand): void;
  leave(claims: readonly Claim[]): void;
}

/** The buckets of one process. */
export function localLimits(clock: Clock, buckets = new LimitBuckets()): Limits {
  const now = (): number => Math.floor(clock.monotonic());
  return {
    take: (claims, demand) => buckets.take(claims, demand, now()),
    adjust: (claims, demand) => buckets.adjust(claims, demand, now()),
    leave: (claims) => buckets.leave(claims),
  };
}

/** What one request has taken. */
export class LimitTicket {
  readonly #limits: Limits;
  readonly #claims: readonly Claim[];
  readonly #demand: Demand;
  /** Of the tokens that were taken: those that no exchange has accounted for. */
  #thought: number;
  #isDispatched = false;
  #hasLeft = false;

  constructor(limits: Limits, claims: readonly Claim[], demand: Demand) {
    this.#limits = limits;
    this.#claims = claims;
    this.#demand = demand;
    this.#thought = demand.tokens;
  }

  /** An exchange of the request is settled: its input and output tokens. */
  used(tokens: number): void {
    this.#isDispatched = true;
    const more = tokens - this.#thought;
    this.#thought = 0;
    if (more !== 0) this.#limits.adjust(this.#claims, { requests: 0, tokens: more });
  }

  /** The end of the answer is about to be sent: the client may send its next request before this one is settled. */
  leave(): void {
    if (this.#hasLeft) return;
    this.#hasLeft = true;
    this.#limits.leave(this.#claims);
  }

  /** The request is over. */
  release(): void {
    this.leave();
    if (this.#isDispatched) return;
    this.#isDispatched = true;
    this.#limits.adjust(this.#claims, { requests: -this.#demand.requests, tokens: -this.#demand.tokens });
  }
}
