/** Video tasks on PostgreSQL: each change of a task, what it does to the hold and the journal row are one transaction. */
import { VIDEO_WORKER } from '../leases.ts';
import { payerOf } from '../payer.ts';
import type { Reservations } from '../reservations.ts';
import { done, invalid, refused } from '../result.ts';
import { reachedWindow, spendAt } from '../spend-windows.ts';
import { StoreError } from '../store-error.ts';
import { nextTask, UNDUE } from '../video-task.ts';
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
import { findAccount } from './accounts.ts';
import type { Database } from './database.ts';
import { findKey } from './keys.ts';
import { holdsLease } from './leases.ts';
import { openHold, resolveHold } from './money-moves.ts';
import { type Row, text } from './rows.ts';
import type { Statement } from './session.ts';
import type { Work } from './work.ts';

const ID = /^[\x21-\x7e]{1,200}$/;
/** What the endpoint takes. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,255}$/;
const MAX_LIST = 1000;

interface Owner {
  readonly accountId: string;
  readonly keyId: string;
}

const FIND: Statement = { name: 'video_find', text: 'SELECT task FROM videos WHERE id = $1' };
/** $3: below this number. */
const LIST: Statement = {
  name: 'video_list',
  text: 'SELECT task FROM videos WHERE account_id = $1 AND key_id = $2 AND number < $3 ORDER BY number DESC LIMIT $4',
};
const DUE: Statement = {
  name: 'video_due',
  text: `SELECT task FROM videos WHERE state IN ('queued', 'running', 'unknown') AND due_at_ms <= $1
    ORDER BY due_at_ms, id COLLATE "C" LIMIT $2`,
};
const SUBMITTING: Statement = {
  name: 'video_submitting',
  text: `SELECT task FROM videos WHERE state = 'submitting' ORDER BY id COLLATE "C"`,
};
const ALL: Statement = {
  name: 'video_all',
  text: 'SELECT task FROM videos WHERE $1::text IS NULL OR state = $1 ORDER BY number DESC LIMIT $2',
};
export const INSERT_VIDEO: Statement = {
  name: 'video_insert',
  text: 'INSERT INTO videos (id, number, account_id, key_id, state, due_at_ms, task) VALUES ($1, $2, $3, $4, $5, $6, $7)',
};
const UPDATE: Statement = {
  name: 'video_update',
  text: 'UPDATE videos SET state = $2, due_at_ms = $3, task = $4 WHERE id = $1',
};
const EARLIER: Statement = {
  name: 'video_earlier',
  text: `SELECT i.task_id, i.body_hash, v.task FROM idempotency i LEFT JOIN videos v ON v.id = i.task_id
    WHERE i.account_id = $1 AND i.key_id = $2 AND i.idempotency_key = $3`,
};
export const INSERT_IDEMPOTENCY: Statement = {
  name: 'idempotency_insert',
  text: 'INSERT INTO idempotency (account_id, key_id, idempotency_key, task_id, body_hash) VALUES ($1, $2, $3, $4, $5)',
};

export function createVideos(database: Database, reservations: Reservations): Videos {
  const find = async (run: Pick<Work, 'run'>, id: string): Promise<VideoTask | undefined> => {
    const [row] = ID.test(id) ? await run.run(FIND, [id]) : [];
    return row === undefined ? undefined : taskOf(row);
  };
  const owned = async (run: Pick<Work, 'run'>, id: string, owner: Owner): Promise<VideoTask | undefined> => {
    const task = await find(run, id);
    return task?.accountId === owner.accountId && task.keyId === owner.keyId ? task : undefined;
  };

  return {
    async create(video) {
      if (!ID.test(video.id)) return invalid('id', 'is not an id');
      if (!IDEMPOTENCY_KEY.test(video.idempotencyKey))
        return invalid('idempotencyKey', 'must be 1 to 255 printable ASCII characters');
      if (video.priceNanos < 0n) return invalid('priceNanos', 'must not be negative');
      database.requireHealth();
      return database.transact((work) => create(work, video, reservations));
    },

    find: (id, owner) => owned(database, id, owner),

    async list(owner, { limit, after }) {
      const last = after === undefined ? undefined : await owned(database, after, owner);
      if (after !== undefined && last === undefined) return refused({ reason: 'unknown_cursor' } as const);
      const size = Math.min(Math.max(Math.trunc(limit), 1), MAX_LIST);
      const below = last?.number ?? Number.MAX_SAFE_INTEGER;
      const found = (await database.run(LIST, [owner.accountId, owner.keyId, below, size + 1])).map(taskOf);
      const tasks = found.slice(0, size);
      const nextCursor = found.length > size ? tasks.at(-1)?.id : undefined;
      return done({ tasks, hasMore: nextCursor !== undefined, ...(nextCursor === undefined ? {} : { nextCursor }) });
    },

    cancel: (id, owner, nowMs) =>
      database.transact(async (work) => {
        const task = await owned(work, id, owner);
        return change(work, task, { event: 'cancel' }, { nowMs, leaseToken: 0 });
      }),

    change: (id, what, leaseToken, nowMs) =>
      database.transact(async (work) => {
        if (!(await holdsLease(work, VIDEO_WORKER, leaseToken))) return refused<NotChanged>({ reason: 'lease_lost' });
        return change(work, await find(work, id), what, { nowMs, leaseToken });
      }),

    resolve: (id, verdict, cause, nowMs) =>
      database.transact(async (work) => {
        const task = await find(work, id);
        if (task === undefined) return refused<NotChanged>({ reason: 'not_found' });
        // Only what is unclear is a person's to decide.
        if (task.state !== 'unknown') return refused<NotChanged>({ reason: 'illegal', task, event: verdict.event });
        const note = cause.note === undefined ? cause.id : `${cause.id}: ${cause.note}`;
        return change(work, task, verdict, { nowMs, leaseToken: 0, by: { by: cause.by, note } });
      }),

    due: async (nowMs, limit) => (await database.run(DUE, [nowMs, limit])).map(taskOf),

    loseAbandoned: (leaseToken, nowMs) =>
      database.transact(async (work) => {
        if (!(await holdsLease(work, VIDEO_WORKER, leaseToken))) return [];
        const lost: VideoTask[] = [];
        for (const task of (await work.run(SUBMITTING)).map(taskOf)) {
          if (task.state !== 'submitting' || task.leaseToken === leaseToken) continue;
          const why = 'the gateway stopped between submission and answer';
          const changed = await change(work, task, { event: 'lose', why }, { nowMs, leaseToken });
          if (changed.ok) lost.push(changed.value);
        }
        return lost;
      }),

    inspect: (id) => find(database, id),

    all: async (query = {}) => (await database.run(ALL, [query.state, query.limit ?? MAX_LIST])).map(taskOf),
  };
}

async function create(work: Work, video: NewVideo, reservations: Reservations) {
  const { id, principal, nowMs, priceNanos, idempotencyKey, bodyHash } = video;
  const [accountId, keyId] = [principal.account.id, principal.key.id];

  const [earlier] = await work.run(EARLIER, [accountId, keyId, idempotencyKey]);
  if (earlier !== undefined) {
    const taskId = text(earlier, 'task_id');
    if (text(earlier, 'body_hash') !== bodyHash || earlier['task'] === null)
      return refused<NotCreated>({ reason: 'idempotency_key_reused', taskId });
    return done({ task: taskOf(earlier), created: false });
  }
  if ((await work.run(FIND, [id])).length > 0) return invalid('id', 'is taken');

  // The key as it is now, not as it was when the request was admitted.
  const [key, account] = [await findKey(work, keyId), await findAccount(work, accountId)];
  if (key === undefined || account === undefined || key.disabled || account.disabled)
    return refused<NotCreated>({ reason: 'key_not_active' });
  const from = payerOf(key, account.unlimited);
  await work.load([from], [keyId]);
  if (!from.startsWith('house:') && work.balance(from) - reservations.ofPayer(from) < priceNanos) {
    return refused<NotCreated>({ reason: 'insufficient_balance', source: from.startsWith('sub:') ? 'sub_account' : 'wallet' });
  }
  // A fixed price is known to the last digit, so it must fit: a limit that it would exactly fill is not exceeded.
  const window = reachedWindow(key.limits, spendAt(work.spend(keyId), nowMs), reservations.ofKey(keyId) + priceNanos - 1n);
  if (window !== undefined) return refused<NotCreated>({ reason: 'spend_limit_reached', window });

  const { model, requestJson, dueAtMs = nowMs } = video;
  const task: VideoTask = {
    id,
    number: work.nextVideoNumber(),
    accountId,
    keyId,
    model,
    requestJson,
    createdAtMs: nowMs,
    updatedAtMs: nowMs,
    frozenNanos: priceNanos,
    state: 'queued',
    dueAtMs,
  };
  await openHold(work, { id, accountId, keyId, from, nanos: priceNanos, openedAtMs: nowMs });
  await work.run(INSERT_VIDEO, [id, task.number, accountId, keyId, task.state, dueOf(task), taskText(task)]);
  await work.run(INSERT_IDEMPOTENCY, [accountId, keyId, idempotencyKey, id, bodyHash]);
  return done({ task, created: true });
}

interface Circumstance {
  readonly nowMs: number;
  readonly leaseToken: number;
  readonly by?: { readonly by: string; readonly note?: string };
}

/** The one funnel: the table decides, the new record is made, the hold follows. */
async function change(
  work: Work,
  task: VideoTask | undefined,
  what: VideoChange | { readonly event: 'cancel' },
  { nowMs, leaseToken, by }: Circumstance,
) {
  if (task === undefined) return refused<NotChanged>({ reason: 'not_found' });
  const event: VideoEvent = what.event;
  const next = VIDEO[task.state][event] === null ? undefined : nextTask(task, what, nowMs, leaseToken);
  if (next === undefined) return refused<NotChanged>({ reason: 'illegal', task, event });
  const holdEvent = VIDEO_HOLD[event];
  if (holdEvent !== null) await resolveHold(work, task.id, holdEvent, nowMs, by);
  await work.run(UPDATE, [next.id, next.state, dueOf(next), taskText(next)]);
  return done(next);
}

/** When the worker should look, or undefined when it never has to. */
export function dueOf(task: VideoTask): number | undefined {
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

export function taskText(task: VideoTask): string {
  return JSON.stringify({ ...task, frozenNanos: task.frozenNanos.toString() }, (_, value: unknown) =>
    typeof value === 'string' ? value.toWellFormed() : value,
  );
}

type StoredTask = VideoTask extends infer Task ? (Task extends VideoTask ? Omit<Task, 'frozenNanos'> & Amount : never) : never;
interface Amount {
  readonly frozenNanos: string;
}

export function taskOf(row: Row): VideoTask {
  const stored: unknown = JSON.parse(text(row, 'task'));
  if (!isStoredTask(stored)) throw new StoreError('corrupt', 'a video task is not one');
  return { ...stored, frozenNanos: BigInt(stored.frozenNanos) };
}

/** Only this module writes such text: that it is one is checked, not each of its fields. */
function isStoredTask(value: unknown): value is StoredTask {
  return (
    typeof value === 'object' &&
    value !== null &&
    'id' in value &&
    'frozenNanos' in value &&
    typeof value.frozenNanos === 'string' &&
    'state' in value &&
    typeof value.state === 'string' &&
    Object.hasOwn(VIDEO, value.state)
  );
}
