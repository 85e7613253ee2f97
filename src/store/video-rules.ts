/**
 * What must hold before a video task is created or changed, and when the worker takes it up. Pure; shared by every engine, which
 * only fetches what these rules ask about and writes what they answer.
 */
import type { AccountRecord } from './accounts.ts';
import type { KeyRecord } from './keys.ts';
import type { HoldEvent } from './ledger.ts';
import { done, type Invalid, invalid, refused, type Result } from './result.ts';
import { storable } from './storable.ts';
import { nextTask } from './video-task.ts';
import {
  type ListedVideo,
  type NewVideo,
  type NotChanged,
  type NotCreated,
  VIDEO,
  VIDEO_HOLD,
  type VideoChange,
  type VideoEvent,
  type VideoPage,
  type VideoTask,
} from './videos.ts';

/** "Never by itself": later than every time, and still an exact integer. */
export const UNDUE = Number.MAX_SAFE_INTEGER - 2;
/**
 * A task that is due later than this was given its time by a clock that had jumped, and is due now. No worker waits for a day.
 */
export const FAR_MS = 24 * 3_600_000;
/** What `all` and `list` give at the most. */
export const MAX_LIST = 1000;
/** Why a task that was in submission under an earlier lease is `unknown`. */
export const ABANDONED = 'the gateway stopped between submission and answer';

const ID = /^[\x21-\x7e]{1,200}$/;
/** What the endpoint takes. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;

/** 1 to 255 printable ASCII characters. No task was ever made under any other words. */
export function isIdempotencyKey(words: string): boolean {
  return IDEMPOTENCY_KEY.test(words);
}

/** Whose tasks they are: an account's, by one key of it. */
export interface TaskOwner {
  readonly accountId: string;
  readonly keyId: string;
}

/** 1 to 200 printable ASCII characters without spaces. */
export function isTaskId(id: string): boolean {
  return ID.test(id);
}

export function isOwned(task: VideoTask | undefined, { accountId, keyId }: TaskOwner): task is VideoTask {
  return task?.accountId === accountId && task.keyId === keyId;
}

/** Refuses what no engine can keep: an id or a key that is none, a negative price. */
export function checkNewVideo(video: NewVideo): Result<true, Invalid> {
  if (!isTaskId(video.id)) return invalid('id', 'is not an id');
  if (!isIdempotencyKey(video.idempotencyKey)) return invalid('idempotencyKey', 'must be 1 to 255 printable ASCII characters');
  return video.priceNanos < 0n ? invalid('priceNanos', 'must not be negative') : done(true);
}

/** What is remembered of a creation under its idempotency key. */
export interface Earlier {
  readonly taskId: string;
  readonly bodyHash: string;
  readonly task: VideoTask | undefined;
}

/** What a repeated creation gets: the task that the same request made, or that another request had this key. */
export function repeated(
  earlier: Earlier,
  { bodyHash }: Pick<NewVideo, 'bodyHash'>,
): Result<VideoTask, Extract<NotCreated, { readonly reason: 'idempotency_key_reused' }>> {
  const { task, taskId } = earlier;
  return earlier.bodyHash === bodyHash && task !== undefined ? done(task) : refused({ reason: 'idempotency_key_reused', taskId });
}

/** A key and its account as they are now, not as they were when the request was admitted. */
export function activePayer<Key extends Pick<KeyRecord, 'disabled'>, Account extends Pick<AccountRecord, 'disabled'>>(
  key: Key | undefined,
  account: Account | undefined,
): Result<{ readonly key: Key; readonly account: Account }, NotCreated> {
  if (key === undefined || account === undefined || key.disabled || account.disabled)
    return refused({ reason: 'key_not_active' });
  return done({ key, account });
}

/** The task as it begins. */
export function queuedTask(video: NewVideo, number: number): VideoTask {
  const { id, principal, model, requestJson, nowMs, priceNanos, dueAtMs = nowMs } = video;
  return {
    id,
    number,
    accountId: principal.account.id,
    keyId: principal.key.id,
    model,
    requestJson: storable(requestJson),
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    frozenNanos: priceNanos,
    state: 'queued',
    dueAtMs,
  };
}

/** Under which a task is changed. */
export interface Circumstance {
  readonly nowMs: number;
  /** That of the worker; 0 when it is not the worker who changes it. */
  readonly leaseToken: number;
  /** Who decided, as in the journal; absent: the gateway itself. */
  readonly by?: { readonly by: string; readonly note?: string };
}

/** The one funnel: the table decides, the new record is made; what the hold does follows from the event. */
export function decide(
  task: VideoTask | undefined,
  what: VideoChange | { readonly event: 'cancel' },
  { nowMs, leaseToken }: Circumstance,
): Result<{ readonly before: VideoTask; readonly next: VideoTask; readonly hold: HoldEvent | null }, NotChanged> {
  if (task === undefined) return refused({ reason: 'not_found' });
  const event: VideoEvent = what.event;
  const next = VIDEO[task.state][event] === null ? undefined : nextTask(task, what, nowMs, leaseToken);
  return next === undefined ? refused({ reason: 'illegal', task, event }) : done({ before: task, next, hold: VIDEO_HOLD[event] });
}

/** Where each of the worker's events leads that may not be repeated. */
const LEADS_TO: Partial<Record<VideoEvent, VideoTask['state']>> = {
  submit: 'submitting',
  accept: 'running',
  succeed: 'succeeded',
  fail: 'failed',
  lose: 'unknown',
};

/**
 * The task that an earlier try of a refused change has made, where the store failed to answer that try: it is where the change
 * leads. Undefined where it was not made. Only the holder of the lease makes such changes, one at a time.
 */
export function madeBefore(refusal: NotChanged): VideoTask | undefined {
  return refusal.reason === 'illegal' && LEADS_TO[refusal.event] === refusal.task.state ? refusal.task : undefined;
}

/** Only what is unclear is a person's to decide. */
export function checkResolvable(task: VideoTask | undefined, event: VideoEvent): Result<VideoTask, NotChanged> {
  if (task === undefined) return refused({ reason: 'not_found' });
  return task.state === 'unknown' ? done(task) : refused({ reason: 'illegal', task, event });
}

/**
 * Whether an operator gave the task this very verdict before, under the same cause; `row` is the journal's of the end of its
 * hold.
 */
export function isRepeatedResolution(
  task: VideoTask,
  verdict: Extract<VideoChange, { readonly event: 'succeed' | 'fail' }>,
  cause: { readonly id: string },
  row: { readonly note?: string } | undefined,
): boolean {
  const causeId = storable(cause.id);
  if (row?.note !== causeId && row?.note?.startsWith(`${causeId}: `) !== true) return false;
  if (verdict.event === 'succeed') return task.state === 'succeeded' && task.outputUrl === storable(verdict.outputUrl);
  return task.state === 'failed' && task.error.message === storable(verdict.error.message);
}

/** Who resolved it, and under which cause, as in the journal. */
export function resolver(cause: { readonly id: string; readonly by: string; readonly note?: string }): {
  readonly by: string;
  readonly note: string;
} {
  return { by: cause.by, note: cause.note === undefined ? cause.id : `${cause.id}: ${cause.note}` };
}

/** When the worker should take it up (`UNDUE`: never by itself), or undefined when it never has to. */
export function dueAt(task: VideoTask): number | undefined {
  switch (task.state) {
    case 'queued':
    case 'running':
      return task.dueAtMs;
    case 'submitting':
      return UNDUE;
    case 'unknown':
      return task.dueAtMs ?? UNDUE;
    default:
      return undefined;
  }
}

export function listed({ requestJson: _request, ...task }: VideoTask): ListedVideo {
  return task;
}

/** How many tasks a page holds: what was asked for, from 1 to the most that there may be. */
export function pageSize(limit: number): number {
  return Math.min(Math.max(Math.trunc(limit), 1), MAX_LIST);
}

/** A page of `size`, from what was found when one more was asked for. */
export function pageOf(found: readonly ListedVideo[], size: number): VideoPage {
  const tasks = found.slice(0, size);
  const nextCursor = found.length > size ? tasks.at(-1)?.id : undefined;
  return { tasks, hasMore: nextCursor !== undefined, ...(nextCursor === undefined ? {} : { nextCursor }) };
}
