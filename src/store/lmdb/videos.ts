/** Video tasks on LMDB: each change of a task, what it does to the hold and the journal row are one transaction. */
import { done, invalid, refused } from '../result.ts';
import { reachedWindow, spendAt } from '../spend-windows.ts';
import { VIDEO_WORKER } from '../leases.ts';
import type { Reservations } from '../reservations.ts';
import {
  type NewVideo,
  type NotChanged,
  type NotCreated,
  VIDEO,
  VIDEO_HOLD,
  type VideoChange,
  type VideoEvent,
  type Videos,
  type VideoTask,
} from '../videos.ts';
import { nextTask, UNDUE } from '../video-task.ts';
import { payerOf } from '../payer.ts';
import type { Environment } from './environment.ts';
import { holdsLease } from './leases.ts';
import { openHold, resolveHold } from './money-moves.ts';
import { metaOf, type Tables } from './tables.ts';
import type { Work } from './work.ts';

const ID = /^[\x21-\x7e]{1,200}$/;
/** What the endpoint takes. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;
const POLLED = ['queued', 'running', 'unknown'] as const;
const MAX_LIST = 1000;

interface Owner {
  readonly accountId: string;
  readonly keyId: string;
}

export function createVideos(environment: Environment, reservations: Reservations): Videos {
  const owned = (tables: Tables, id: string, owner: Owner): VideoTask | undefined => {
    const task = ID.test(id) ? tables.videos.get(id) : undefined;
    return task?.accountId === owner.accountId && task.keyId === owner.keyId ? task : undefined;
  };

  return {
    async create(video) {
      if (!ID.test(video.id)) return invalid('id', 'is not an id');
      if (!IDEMPOTENCY_KEY.test(video.idempotencyKey))
        return invalid('idempotencyKey', 'must be 1 to 255 printable ASCII characters');
      if (video.priceNanos < 0n) return invalid('priceNanos', 'must not be negative');
      environment.requireHealth();
      return environment.transact((work) => create(work, video, reservations));
    },

    find: (id, owner) => environment.read((tables) => owned(tables, id, owner)),

    list: (owner, { limit, after }) =>
      environment.read((tables) => {
        const last = after === undefined ? undefined : owned(tables, after, owner);
        if (after !== undefined && last === undefined) return refused({ reason: 'unknown_cursor' } as const);
        const size = Math.min(Math.max(Math.trunc(limit), 1), MAX_LIST);
        const newest = (last?.number ?? Number.MAX_SAFE_INTEGER) - 1;
        const { accountId, keyId } = owner;
        const range = tables.videoOwners.getRange({
          start: [accountId, keyId, newest],
          end: [accountId, keyId, 0],
          reverse: true,
          limit: size + 1,
        });
        const found = [...range].map(({ value }) => tables.videos.get(value)).filter((task) => task !== undefined);
        const tasks = found.slice(0, size);
        const nextCursor = found.length > size ? tasks.at(-1)?.id : undefined;
        return done({ tasks, hasMore: nextCursor !== undefined, ...(nextCursor === undefined ? {} : { nextCursor }) });
      }),

    cancel: (id, owner, nowMs) =>
      environment.transact((work) => {
        if (owned(work.tables, id, owner) === undefined) return refused<NotChanged>({ reason: 'not_found' });
        return change(work, id, { event: 'cancel' }, { nowMs, leaseToken: 0 });
      }),

    change: (id, what, leaseToken, nowMs) =>
      environment.transact((work) => {
        if (!holdsLease(work.tables, VIDEO_WORKER, leaseToken)) return refused<NotChanged>({ reason: 'lease_lost' });
        return change(work, id, what, { nowMs, leaseToken });
      }),

    resolve: (id, verdict, cause, nowMs) =>
      environment.transact((work) => {
        const task = ID.test(id) ? work.tables.videos.get(id) : undefined;
        if (task === undefined) return refused<NotChanged>({ reason: 'not_found' });
        // Only what is unclear is a person's to decide.
        if (task.state !== 'unknown') return refused<NotChanged>({ reason: 'illegal', task, event: verdict.event });
        const note = cause.note === undefined ? cause.id : `${cause.id}: ${cause.note}`;
        return change(work, id, verdict, { nowMs, leaseToken: 0, by: { by: cause.by, note } });
      }),

    due: (nowMs, limit) =>
      environment.read((tables) => {
        const entries = POLLED.flatMap((state) => [
          ...tables.videoDue.getKeys({ start: [state, 0, ''], end: [state, nowMs + 1, ''], limit }),
        ]);
        const sorted = entries.sort(([, a], [, b]) => a - b).slice(0, limit);
        return sorted.map(([, , id]) => tables.videos.get(id)).filter((task) => task !== undefined);
      }),

    loseAbandoned: (leaseToken, nowMs) =>
      environment.transact((work) => {
        if (!holdsLease(work.tables, VIDEO_WORKER, leaseToken)) return [];
        const lost: VideoTask[] = [];
        for (const [, , id] of [
          ...work.tables.videoDue.getKeys({ start: ['submitting', 0, ''], end: ['submitting', UNDUE + 1, ''] }),
        ]) {
          const task = work.tables.videos.get(id);
          if (task?.state !== 'submitting' || task.leaseToken === leaseToken) continue;
          const why = 'the gateway stopped between submission and answer';
          const changed = change(work, id, { event: 'lose', why }, { nowMs, leaseToken });
          if (changed.ok) lost.push(changed.value);
        }
        return lost;
      }),

    inspect: (id) => environment.read((tables) => (ID.test(id) ? tables.videos.get(id) : undefined)),

    all: (query = {}) =>
      environment.read((tables) => {
        const all = [...tables.videos.getRange()].map(({ value }) => value);
        const wanted = query.state === undefined ? all : all.filter(({ state }) => state === query.state);
        return wanted.sort((a, b) => b.number - a.number).slice(0, query.limit ?? MAX_LIST);
      }),
  };
}

function create(work: Work, video: NewVideo, reservations: Reservations) {
  const { tables } = work;
  const { id, principal, nowMs, priceNanos, idempotencyKey, bodyHash } = video;
  const [accountId, keyId] = [principal.account.id, principal.key.id];

  const earlier = tables.idempotency.get([accountId, keyId, idempotencyKey]);
  if (earlier !== undefined) {
    const task = tables.videos.get(earlier.taskId);
    if (earlier.bodyHash !== bodyHash || task === undefined) {
      return refused<NotCreated>({ reason: 'idempotency_key_reused', taskId: earlier.taskId });
    }
    return done({ task, created: false });
  }
  if (tables.videos.doesExist(id)) return invalid('id', 'is taken');

  // The key as it is now, not as it was when the request was admitted.
  const key = tables.keys.get(keyId);
  const account = tables.accounts.get(accountId);
  if (key === undefined || account === undefined || key.disabled || account.disabled)
    return refused<NotCreated>({ reason: 'key_not_active' });
  const from = payerOf(key, account.unlimited);
  if (!from.startsWith('house:') && work.balance(from) - reservations.ofPayer(from) < priceNanos) {
    return refused<NotCreated>({ reason: 'insufficient_balance', source: from.startsWith('sub:') ? 'sub_account' : 'wallet' });
  }
  // A fixed price is known to the last digit, so it must fit: a limit that it would exactly fill is not exceeded.
  const window = reachedWindow(key.limits, spendAt(work.spend(keyId), nowMs), reservations.ofKey(keyId) + priceNanos - 1n);
  if (window !== undefined) return refused<NotCreated>({ reason: 'spend_limit_reached', window });

  const number = (metaOf(tables, 'videoNumber') ?? 0) + 1;
  const task: VideoTask = {
    id,
    number,
    accountId,
    keyId,
    model: video.model,
    requestJson: video.requestJson,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    frozenNanos: priceNanos,
    state: 'queued',
    dueAtMs: video.dueAtMs ?? nowMs,
  };
  openHold(work, { id, accountId, keyId, from, nanos: priceNanos, openedAtMs: nowMs });
  work.put(tables.meta, 'videoNumber', number);
  work.put(tables.videoOwners, [accountId, keyId, number], id);
  work.put(tables.idempotency, [accountId, keyId, idempotencyKey], { taskId: id, bodyHash });
  store(work, undefined, task);
  return done({ task, created: true });
}

interface Circumstance {
  readonly nowMs: number;
  readonly leaseToken: number;
  readonly by?: { readonly by: string; readonly note?: string };
}

/** The one funnel: the table decides, the new record is made, the hold follows. Every check is before the first write. */
function change(
  work: Work,
  id: string,
  what: VideoChange | { readonly event: 'cancel' },
  { nowMs, leaseToken, by }: Circumstance,
) {
  const task = ID.test(id) ? work.tables.videos.get(id) : undefined;
  if (task === undefined) return refused<NotChanged>({ reason: 'not_found' });
  const event: VideoEvent = what.event;
  const next = VIDEO[task.state][event] === null ? undefined : nextTask(task, what, nowMs, leaseToken);
  if (next === undefined) return refused<NotChanged>({ reason: 'illegal', task, event });
  const holdEvent = VIDEO_HOLD[event];
  if (holdEvent !== null) resolveHold(work, id, holdEvent, nowMs, by);
  store(work, task, next);
  return done(next);
}

/** Writes the task and moves it in the index of what the worker should look at. */
function store(work: Work, before: VideoTask | undefined, task: VideoTask): void {
  const old = before === undefined ? undefined : dueKey(before);
  const now = dueKey(task);
  if (old !== undefined) work.remove(work.tables.videoDue, old);
  if (now !== undefined) work.put(work.tables.videoDue, now, true);
  work.put(work.tables.videos, task.id, task);
}

export function dueKey(task: VideoTask): [string, number, string] | undefined {
  switch (task.state) {
    case 'queued':
    case 'running':
      return [task.state, task.dueAtMs, task.id];
    case 'submitting':
      return [task.state, UNDUE, task.id];
    case 'unknown':
      return [task.state, task.dueAtMs ?? UNDUE, task.id];
    default:
      return undefined;
  }
}
