/**
 * What the attempt loop is given: the Channels and bounds of one exchange, how one attempt is made, and what all exchanges share.
 */
import type { Refusable } from '../../codecs/canonical/request.ts';
import type { Clock } from '../../streams/clock.ts';
import type { Channel } from '../config/config.ts';
import type { Affinity } from './affinity.ts';
import type { Concurrency } from './concurrency.ts';
import type { Health } from './health.ts';
import type { RetryBudget } from './retry-budget.ts';
import type { UnknownMembers } from './unknown-members.ts';

/** What one attempt is given. */
export interface Target {
  readonly channel: Channel;
  readonly upstreamModel: string;
  /**
   * The name that clients know it by: the model that was asked for, or a fallback of it. Absent where no client reads what goes
   * wrong.
   */
  readonly model?: string;
  /** What this upstream has just refused: its one retry goes without. */
  readonly without: ReadonlySet<Refusable>;
  /** Aborted when the client leaves, or must be told to come again. */
  readonly signal: AbortSignal;
  /** For the request log; the attempt fills in what it learns. */
  readonly note: AttemptNote;
}

export interface AttemptNote {
  upstreamStatus?: number;
  upstreamRequestId?: string;
}

/** Sends one request and resolves once its answer is one that may be shown. Rejecting means that nothing was shown. */
export type Attempt<Answer> = (target: Target) => Promise<Answer>;

export interface Plan {
  readonly channels: readonly Channel[];
  readonly model: string;
  /** It is tried because another model's Channels have failed: its attempts name it. */
  readonly isFallback?: boolean;
  /**
   * What its circuits are kept under, for an endpoint or a tier that a Channel may lack while its models are fine: the model's
   * name with something behind it. Absent: the model.
   */
  readonly circuit?: string;
  /** {@link Affinity}; undefined where an endpoint has no conversations. */
  readonly conversation?: string;
  /** Asked first, whatever answered the conversation before. */
  readonly preferred?: string;
  /** Whose request it is: what a Channel refuses of it is kept from that account's later requests alone. */
  readonly account?: string;
  /** What of the request a Channel may refuse that can do without it; absent: nothing. */
  readonly carries?: ReadonlySet<Refusable>;
  readonly maxAttempts: number;
  readonly maxRetryWaitMs: number;
  readonly signal: AbortSignal;
  /**
   * Awaited before each attempt, when its Channel has a place for it: what must be on disk before the first byte is sent. If it
   * rejects, nothing is sent, and the exchange ends with its error.
   */
  readonly beforeAttempt?: (channel: Channel, upstreamModel: string) => Promise<void>;
}

export interface Dispatcher {
  readonly clock: Clock;
  readonly random: () => number;
  readonly health: Health;
  readonly affinity: Affinity;
  readonly concurrency: Concurrency;
  readonly retries: RetryBudget;
  readonly unknown: UnknownMembers;
}
