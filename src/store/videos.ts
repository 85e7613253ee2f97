/**
 * Video tasks: long, expensive, asynchronous work that is never lost and charged once. This file decides which event may
 * follow which, and what each does to the hold. Knows no upstream, no wire shape and no poll interval.
 */
import type { HoldEvent, HoldState } from './ledger.ts';
import type { Principal } from './keys.ts';
import type { Invalid, Result } from './result.ts';
import { illegal as no, type Transitions } from './transitions.ts';

export type VideoState = 'queued' | 'submitting' | 'running' | 'succeeded' | 'failed' | 'cancelled' | 'unknown';
/**
 * - `submit`: submission begins; durable before the first byte goes upstream
 * - `retry`: this attempt was refused for certain, nothing was accepted; the next attempt begins
 * - `accept`: the upstream gave its id
 * - `poll`: nothing was decided (no Channel may be asked yet, still in progress, or the query failed)
 * - `lose`: the outcome is unclear
 */
export type VideoEvent = 'cancel' | 'submit' | 'retry' | 'accept' | 'poll' | 'succeed' | 'fail' | 'lose';

export const VIDEO = {
  queued: {
    cancel: 'cancelled',
    submit: 'submitting',
    retry: no,
    accept: no,
    poll: 'queued',
    succeed: no,
    fail: 'failed',
    lose: no,
  },
  submitting: {
    cancel: no,
    submit: no,
    retry: 'submitting',
    accept: 'running',
    poll: no,
    succeed: 'succeeded',
    fail: 'failed',
    lose: 'unknown',
  },
  running: {
    cancel: no,
    submit: no,
    retry: no,
    accept: no,
    poll: 'running',
    succeed: 'succeeded',
    fail: 'failed',
    lose: 'unknown',
  },
  unknown: { cancel: no, submit: no, retry: no, accept: no, poll: 'unknown', succeed: 'succeeded', fail: 'failed', lose: no },
  succeeded: { cancel: no, submit: no, retry: no, accept: no, poll: no, succeed: no, fail: no, lose: no },
  failed: { cancel: no, submit: no, retry: no, accept: no, poll: no, succeed: no, fail: no, lose: no },
  cancelled: { cancel: no, submit: no, retry: no, accept: no, poll: no, succeed: no, fail: no, lose: no },
} as const satisfies Transitions<VideoState, VideoEvent>;

/** What a task's event does to its hold, in the same transaction. */
export const VIDEO_HOLD = {
  cancel: 'refund',
  submit: null,
  retry: null,
  accept: null,
  poll: null,
  succeed: 'settle',
  fail: 'refund',
  lose: 'keep',
} as const satisfies Record<VideoEvent, HoldEvent | null>;

/** Where that leaves the hold of a task in each state. */
export const HOLD_OF_TASK = {
  queued: 'held',
  submitting: 'held',
  running: 'held',
  unknown: 'held',
  succeeded: 'settled',
  failed: 'refunded',
  cancelled: 'refunded',
} as const satisfies Record<VideoState, HoldState>;

interface TaskCore {
  readonly id: string;
  /** Rises with creation: the order of the list. */
  readonly number: number;
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  /** The checked request, as JSON text. */
  readonly requestJson: string;
  readonly createdAtMs: number;
  readonly updatedAtMs: number;
  /** Held at creation; what success charges. */
  readonly frozenNanos: bigint;
}

/** Where an attempt was sent. Attempt-scoped, so that a later attempt can never read an earlier one's id. */
export interface VideoSubmission {
  readonly attempt: number;
  readonly channelId: string;
  readonly upstreamModel: string;
  readonly startedAtMs: number;
}

export interface VideoError {
  readonly code: string;
  readonly message: string;
  /** What the upstream itself wrote when it refused the task, bounded in length; for operators only. */
  readonly upstreamText?: string;
}

/** Each state carries only what is true in it. `dueAtMs`: when the worker takes it up again. */
export type VideoTask = TaskCore &
  (
    | { readonly state: 'queued'; readonly dueAtMs: number }
    | { readonly state: 'submitting'; readonly submission: VideoSubmission; readonly leaseToken: number }
    | {
        readonly state: 'running';
        readonly submission: VideoSubmission;
        readonly upstreamId: string;
        readonly dueAtMs: number;
        readonly deadlineAtMs?: number;
        readonly polls: number;
      }
    | {
        readonly state: 'unknown';
        readonly submission: VideoSubmission;
        /** Absent when the answer to the submission was lost: it cannot be polled, only resolved by hand. */
        readonly upstreamId?: string;
        readonly reason: string;
        readonly dueAtMs?: number;
        readonly polls: number;
      }
    | {
        readonly state: 'succeeded';
        readonly submission: VideoSubmission;
        readonly upstreamId?: string;
        readonly outputUrl: string;
        readonly detailsJson?: string;
        readonly endedAtMs: number;
      }
    | {
        readonly state: 'failed';
        readonly submission?: VideoSubmission;
        readonly upstreamId?: string;
        readonly error: VideoError;
        readonly endedAtMs: number;
      }
    | { readonly state: 'cancelled'; readonly endedAtMs: number }
  );
export type VideoTaskIn<State extends VideoState> = Extract<VideoTask, { readonly state: State }>;

export interface NewVideo {
  readonly id: string;
  readonly principal: Principal;
  readonly model: string;
  readonly requestJson: string;
  readonly priceNanos: bigint;
  readonly idempotencyKey: string;
  /** Hash of the canonical body (key order and white space taken out), made by the caller. */
  readonly bodyHash: string;
  readonly nowMs: number;
  readonly dueAtMs?: number;
}

export type NotCreated =
  | Invalid
  | { readonly reason: 'idempotency_key_reused'; readonly taskId: string }
  | { readonly reason: 'insufficient_balance'; readonly source: 'wallet' | 'sub_account' }
  | { readonly reason: 'spend_limit_reached'; readonly window: 'total' | 'hourly' | 'daily' }
  | { readonly reason: 'key_not_active' };

/** What happened to a task, with what the new state must know. */
export type VideoChange =
  | { readonly event: 'submit'; readonly channelId: string; readonly upstreamModel: string }
  | { readonly event: 'retry'; readonly channelId: string; readonly upstreamModel: string }
  | { readonly event: 'accept'; readonly upstreamId: string; readonly dueAtMs: number; readonly deadlineAtMs?: number }
  | { readonly event: 'poll'; readonly dueAtMs: number }
  | { readonly event: 'succeed'; readonly outputUrl: string; readonly detailsJson?: string }
  | { readonly event: 'fail'; readonly error: VideoError }
  | { readonly event: 'lose'; readonly why: string; readonly dueAtMs?: number };

export type NotChanged =
  | { readonly reason: 'not_found' }
  /** The table forbids it in the state the task is in now. Nothing was changed. */
  | { readonly reason: 'illegal'; readonly task: VideoTask; readonly event: VideoEvent }
  /** Another process holds the worker's lease now. Nothing was changed; stop. */
  | { readonly reason: 'lease_lost' };

/** When a task is due again of which nothing was decided. */
export interface NextPoll {
  readonly id: string;
  readonly dueAtMs: number;
}

export interface DueQuery {
  /** Default: every state in which a worker takes tasks up. */
  readonly states?: readonly DueState[];
  /** Ids of what it has in hand already. */
  readonly inHand?: Iterable<string>;
}

/** To be submitted, to be asked for, to be asked for slowly. */
export const DUE_STATES = ['queued', 'running', 'unknown'] as const;
export type DueState = (typeof DUE_STATES)[number];

/** Without the request, which may be a megabyte: a page of them would be a hundred. */
export type ListedVideo = VideoTask extends infer Task ? (Task extends VideoTask ? Omit<Task, 'requestJson'> : never) : never;

export interface VideoPage {
  readonly tasks: readonly ListedVideo[];
  readonly hasMore: boolean;
  /** The id to give as `after` for the next page, when there is one. */
  readonly nextCursor?: string;
}

/** Owner = account and key. Every promise that changes something resolves when it is on disk. */
export interface Videos {
  /** Holds the price and creates the task in one transaction. `created: false`: the same request was made before. */
  create(video: NewVideo): Promise<Result<{ readonly task: VideoTask; readonly created: boolean }, NotCreated>>;
  /** The task that this very request made before, if it did: its answer depends on nothing that has changed since. */
  earlier(
    request: Pick<NewVideo, 'principal' | 'idempotencyKey' | 'bodyHash'>,
  ): Promise<Result<VideoTask | undefined, Extract<NotCreated, { readonly reason: 'idempotency_key_reused' }>>>;
  /** Undefined when it does not exist or belongs to another. */
  find(id: string, owner: { readonly accountId: string; readonly keyId: string }): Promise<VideoTask | undefined>;
  list(
    owner: { readonly accountId: string; readonly keyId: string },
    page: { readonly limit: number; readonly after?: string },
  ): Promise<Result<VideoPage, { readonly reason: 'unknown_cursor' }>>;
  /** Before submission only. */
  cancel(
    id: string,
    owner: { readonly accountId: string; readonly keyId: string },
    nowMs: number,
  ): Promise<Result<VideoTask, NotChanged>>;
  /** The worker's changes: fenced by its lease in the same transaction. */
  change(id: string, change: VideoChange, leaseToken: number, nowMs: number): Promise<Result<VideoTask, NotChanged>>;
  /**
   * Tasks of which nothing was decided, in one transaction: when each is due again. A task that is over, or in submission, is
   * passed over. Gives how many were rescheduled.
   */
  reschedule(
    polls: readonly NextPoll[],
    leaseToken: number,
    nowMs: number,
  ): Promise<Result<number, { readonly reason: 'lease_lost' }>>;
  /**
   * An operator's decision about an `unknown` task; journaled with who made it. Repeated under the same cause it gives the task
   * again.
   */
  resolve(
    id: string,
    verdict: Extract<VideoChange, { readonly event: 'succeed' | 'fail' }>,
    cause: { readonly id: string; readonly by: string; readonly note?: string },
    nowMs: number,
  ): Promise<Result<VideoTask, NotChanged>>;
  /** Tasks that the worker should take up, the most overdue first. */
  due(nowMs: number, limit: number, query?: DueQuery): Promise<VideoTask[]>;
  /**
   * Tasks left in `submitting` by an earlier lease: their outcome is unclear, so they become `unknown`. Call after taking the
   * lease.
   */
  loseAbandoned(leaseToken: number, nowMs: number): Promise<VideoTask[]>;
  /** For the operator. */
  inspect(id: string): Promise<VideoTask | undefined>;
  /** How many tasks are in each state that is not over; states without any are absent. From the index of what is due. */
  openByState(): Promise<ReadonlyMap<string, number>>;
  all(query?: { readonly state?: VideoState; readonly limit?: number }): Promise<VideoTask[]>;
}
