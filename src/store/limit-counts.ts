/**
 * What gateways on one store tell each other of their limits by time: what each has taken of each bucket, in all. Nothing of it
 * need outlive a minute, and nothing is lost for long where some is lost: limits are no money.
 */

/** A bucket as one member has used it since it began to count it. */
export interface LimitCount {
  /** `key:ID`, `account:ID`, `model:NAME`, `class:NAME` */
  readonly bucket: string;
  /** Changes when the member begins to count the bucket anew, from nothing. */
  readonly since: number;
  readonly requests: number;
  readonly tokens: number;
  /** Being answered now. */
  readonly inFlight: number;
  /** The rates at which it drains, for those who have not met it. */
  readonly requestsPerMinute?: number;
  readonly tokensPerMinute?: number;
}

export interface ForeignCount extends LimitCount {
  readonly member: string;
  /** How long ago it was written. */
  readonly ageMs: number;
}

/** Counts that were not written for this long are not given any more; after twice the time they are removed. */
export const HEARD_MS = 30_000;

export interface LimitCounts {
  /** Writes counts of one member, and gives those of all others. */
  exchange(member: string, counts: readonly LimitCount[]): Promise<readonly ForeignCount[]>;
}
