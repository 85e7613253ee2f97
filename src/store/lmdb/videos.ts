/** Video tasks on LMDB: each change of a task, what it does to the hold and the journal row are one transaction. */
import { filmOf } from '../rollup-recount.ts';
import { done, invalid, refused, type Result } from '../result.ts';
import { VIDEO_WORKER } from '../leases.ts';
import type { Reservations } from '../reservations.ts';
import {
  DUE_STATES,
  type DueQuery,
  type NewVideo,
  type NotChanged,
  type NotCreated,
  VIDEO_HOLD,
  type VideoChange,
  type Videos,
  type VideoTask,
  type VideoTaskIn,
} from '../videos.ts';
import {
  ABANDONED,
  activePayer,
  canHold,
  checkNewVideo,
  checkResolvable,
  type Circumstance,
  decide,
  dueAt,
  FAR_MS,
  type Earlier,
  isIdempotencyKey,
  isOwned,
  isRepeatedResolution,
  isTaskId,
  MAX_LIST,
  type TaskOwner,
  pageOf,
  pageSize,
  queuedTask,
  repeated,
  resolver,
  UNDUE,
} from '../video-rules.ts';
import { payerOf } from '../payer.ts';
import type { Environment } from './environment.ts';
import { holdsLease } from './leases.ts';
import { openHold, resolveHold } from './money-moves.ts';
import { metaOf, type Tables } from './tables.ts';
import type { Work } from './work.ts';

export function createVideos(environment: Environment, reservations: Reservations): Videos {
  const find = (tables: Tables, id: string): VideoTask | undefined => (isTaskId(id) ? tables.videos.get(id) : undefined);
  const owned = (tables: Tables, id: string, owner: TaskOwner): VideoTask | undefined => {
    const task = find(tables, id);
    return isOwned(task, owner) ? task : undefined;
  };

  return {
    async create(video) {
      const checked = checkNewVideo(video);
      if (!checked.ok) return checked;
      environment.requireHealth();
      return environment.transact((work) => create(work, video, reservations));
    },

    earlier: (request) =>
      environment.read((tables) => {
        const earlier = earlierOf(tables, request);
        return earlier === undefined ? done(undefined) : repeated(earlier, request);
      }),

    find: (id, owner) => environment.read((tables) => owned(tables, id, owner)),

    list: (owner, { limit, after }) =>
      environment.read((tables) => {
        const last = after === undefined ? undefined : owned(tables, after, owner);
        if (after !== undefined && last === undefined) return refused({ reason: 'unknown_cursor' } as const);
        const size = pageSize(limit);
        return done(pageOf(newestOf(tables, owner, last?.number ?? Number.MAX_SAFE_INTEGER, size + 1), size));
      }),

    cancel: (id, owner, nowMs) =>
      environment.transact((work) => change(work, owned(work.tables, id, owner), { event: 'cancel' }, { nowMs, leaseToken: 0 })),

    change: (id, what, leaseToken, nowMs) =>
      environment.transact((work) => {
        if (!holdsLease(work.tables, VIDEO_WORKER, leaseToken)) return refused<NotChanged>({ reason: 'lease_lost' });
        return change(work, find(work.tables, id), what, { nowMs, leaseToken });
      }),

    reschedule: (polls, leaseToken, nowMs) =>
      environment.transact((work) => {
        if (!holdsLease(work.tables, VIDEO_WORKER, leaseToken)) return refused({ reason: 'lease_lost' } as const);
        const changed = polls.filter(
          ({ id, dueAtMs }) => change(work, find(work.tables, id), { event: 'poll', dueAtMs }, { nowMs, leaseToken }).ok,
        );
        return done(changed.length);
      }),

    resolve: (id, verdict, cause, nowMs) =>
      environment.transact((work) => {
        const found = find(work.tables, id);
        const ended = found === undefined ? undefined : work.journaled(id, VIDEO_HOLD[verdict.event]);
        if (found !== undefined && isRepeatedResolution(found, verdict, cause, ended)) return done(found);
        const task = checkResolvable(found, verdict.event);
        return task.ok ? change(work, task.value, verdict, { nowMs, leaseToken: 0, by: resolver(cause) }) : task;
      }),

    due: (nowMs, limit, query = {}) => environment.read((tables) => due(tables, nowMs, limit, query)),

    loseAbandoned: (leaseToken, nowMs) =>
      environment.transact((work) => {
        if (!holdsLease(work.tables, VIDEO_WORKER, leaseToken)) return [];
        return submitting(work.tables).flatMap((task) => {
          if (task.leaseToken === leaseToken) return [];
          const changed = change(work, task, { event: 'lose', why: ABANDONED }, { nowMs, leaseToken });
          return changed.ok ? [changed.value] : [];
        });
      }),

    openByState: () =>
      environment.read((tables) => {
        const counts = new Map<string, number>();
        for (const [state] of tables.videoDue.getKeys()) counts.set(state, (counts.get(state) ?? 0) + 1);
        return counts;
      }),

    inspect: (id) => environment.read((tables) => find(tables, id)),

    all: (query = {}) =>
      environment.read((tables) => {
        const all = [...tables.videos.getRange()].map(({ value }) => value);
        const wanted = query.state === undefined ? all : all.filter(({ state }) => state === query.state);
        return wanted.sort((a, b) => b.number - a.number).slice(0, query.limit ?? MAX_LIST);
      }),
  };
}

/** The newest tasks of an owner whose number is below `below`. */
function newestOf(tables: Tables, { accountId, keyId }: TaskOwner, below: number, limit: number): VideoTask[] {
  const range = tables.videoOwners.getRange({
    start: [accountId, keyId, below - 1],
    end: [accountId, keyId, 0],
    reverse: true,
    limit,
  });
  return [...range].map(({ value }) => tables.videos.get(value)).filter((task) => task !== undefined);
}

function due(tables: Tables, nowMs: number, limit: number, { states = DUE_STATES, inHand = [] }: DueQuery): VideoTask[] {
  const without = new Set(inHand);
  const entries = states.flatMap((state) => [
    ...tables.videoDue.getKeys({ start: [state, 0, ''], end: [state, nowMs + 1, ''], limit: limit + without.size }),
    ...tables.videoDue.getKeys({ start: [state, nowMs + FAR_MS, ''], end: [state, UNDUE, ''], limit: limit + without.size }),
  ]);
  const wanted = entries.filter(([, , id]) => !without.has(id)).sort(([, a], [, b]) => a - b);
  return wanted
    .slice(0, limit)
    .map(([, , id]) => tables.videos.get(id))
    .filter((task) => task !== undefined);
}

/** Tasks in submission; read whole, since changing one moves it in the index. */
function submitting(tables: Tables): VideoTaskIn<'submitting'>[] {
  const keys = [...tables.videoDue.getKeys({ start: ['submitting', 0, ''], end: ['submitting', UNDUE + 1, ''] })];
  return keys.map(([, , id]) => tables.videos.get(id)).filter((task) => task?.state === 'submitting');
}

function earlierOf(
  tables: Tables,
  { principal, idempotencyKey }: Pick<NewVideo, 'principal' | 'idempotencyKey'>,
): Earlier | undefined {
  if (!isIdempotencyKey(idempotencyKey)) return undefined;
  const row = tables.idempotency.get([principal.account.id, principal.key.id, idempotencyKey]);
  return row === undefined ? undefined : { ...row, task: tables.videos.get(row.taskId) };
}

function create(
  work: Work,
  video: NewVideo,
  reservations: Reservations,
): Result<{ readonly task: VideoTask; readonly created: boolean }, NotCreated> {
  const { tables } = work;
  const { id, principal, nowMs, priceNanos, idempotencyKey, bodyHash } = video;
  const [accountId, keyId] = [principal.account.id, principal.key.id];

  const earlier = earlierOf(tables, video);
  if (earlier !== undefined) {
    const task = repeated(earlier, video);
    return task.ok ? done({ task: task.value, created: false }) : task;
  }
  if (tables.videos.doesExist(id)) return invalid('id', 'is taken');

  const active = activePayer(tables.keys.get(keyId), tables.accounts.get(accountId));
  if (!active.ok) return active;
  const { key, account } = active.value;
  const from = payerOf(key, account.unlimited);
  const fits = canHold(priceNanos, { from, balance: work.balance(from), key, spend: work.spend(keyId) }, reservations, nowMs);
  if (!fits.ok) return fits;

  const task = queuedTask(video, (metaOf(tables, 'videoNumber') ?? 0) + 1);
  openHold(work, { id, accountId, keyId, from, nanos: priceNanos, openedAtMs: nowMs });
  work.put(tables.meta, 'videoNumber', task.number);
  work.put(tables.videoOwners, [accountId, keyId, task.number], id);
  work.put(tables.idempotency, [accountId, keyId, idempotencyKey], { taskId: id, bodyHash });
  store(work, undefined, task);
  return done({ task, created: true });
}

/** Every check is before the first write. */
function change(
  work: Work,
  task: VideoTask | undefined,
  what: VideoChange | { readonly event: 'cancel' },
  circumstance: Circumstance,
): Result<VideoTask, NotChanged> {
  const decided = decide(task, what, circumstance);
  if (!decided.ok) return decided;
  const { next, hold } = decided.value;
  if (hold !== null) resolveHold(work, next.id, hold, circumstance.nowMs, circumstance.by);
  const film = filmOf(next);
  if (film !== undefined) work.rollups.film(film);
  store(work, task, next);
  return done(next);
}

/** Writes the task and moves it in the index of what the worker should take up. */
function store(work: Work, before: VideoTask | undefined, task: VideoTask): void {
  const old = before === undefined ? undefined : dueKey(before);
  const now = dueKey(task);
  if (old !== undefined) work.remove(work.tables.videoDue, old);
  if (now !== undefined) work.put(work.tables.videoDue, now, true);
  work.put(work.tables.videos, task.id, task);
}

export function dueKey(task: VideoTask): [string, number, string] | undefined {
  const due = dueAt(task);
  return due === undefined ? undefined : [task.state, due, task.id];
}
