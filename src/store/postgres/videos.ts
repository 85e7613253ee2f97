/** Video tasks on PostgreSQL: each change of a task, what it does to the hold and the journal row are one transaction. */
import { VIDEO_WORKER } from '../leases.ts';
import { payerOf } from '../payer.ts';
import type { Reservations } from '../reservations.ts';
import { done, invalid, refused, type Result } from '../result.ts';
import { filmOf } from '../rollup-recount.ts';
import { StoreError } from '../store-error.ts';
import {
  DUE_STATES,
  type DueState,
  type NewVideo,
  type NotChanged,
  type NotCreated,
  VIDEO,
  VIDEO_HOLD,
  type VideoChange,
  type Videos,
  type VideoTask,
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
  UNDUE,
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
} from '../video-rules.ts';
import { findAccount } from './accounts.ts';
import type { Database } from './database.ts';
import { findKey } from './keys.ts';
import { holdsLease } from './leases.ts';
import { openHold, resolveHold } from './money-moves.ts';
import { int, type Row, text } from './rows.ts';
import type { Statement } from './session.ts';
import type { Work } from './work.ts';

const FIND: Statement = { name: 'video_find', text: 'SELECT task FROM videos WHERE id = $1' };
/** $3: below this number. */
const LIST: Statement = {
  name: 'video_list',
  text: 'SELECT task FROM videos WHERE account_id = $1 AND key_id = $2 AND number < $3 ORDER BY number DESC LIMIT $4',
};
const FAR = `due_at_ms >= $1::bigint + ${FAR_MS} AND due_at_ms < ${UNDUE}`;
/** The first of one state, from the index, however many more are due. */
const dueIn = (state: DueState, when: string): string =>
  `(SELECT task, due_at_ms, id FROM videos WHERE state = '${state}' AND '${state}' = ANY ($4::text[]) AND ${when}
    AND id <> ALL ($3::text[]) ORDER BY due_at_ms, id COLLATE "C" LIMIT $2)`;
/** $1 now, $2 limit, $3 ids to leave out, $4 states. */
const DUE: Statement = {
  name: 'video_due',
  text: `SELECT task FROM (${DUE_STATES.flatMap((state) => [dueIn(state, 'due_at_ms <= $1'), dueIn(state, FAR)]).join(' UNION ALL ')}) AS due ORDER BY due_at_ms, id COLLATE "C" LIMIT $2`,
};
const FIND_ALL: Statement = { name: 'video_find_all', text: 'SELECT task FROM videos WHERE id = ANY ($1)' };
const SUBMITTING: Statement = {
  name: 'video_submitting',
  text: `SELECT task FROM videos WHERE state = 'submitting' ORDER BY id COLLATE "C"`,
};
const OPEN_BY_STATE: Statement = {
  name: 'video_open_by_state',
  text: `SELECT state, count(*) FROM videos WHERE state IN ('queued', 'submitting', 'running', 'unknown') GROUP BY state`,
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
const UPDATE_ALL: Statement = {
  name: 'video_update_all',
  text: `UPDATE videos v SET state = n.state, due_at_ms = n.due_at_ms, task = n.task
    FROM jsonb_to_recordset($1) AS n (id text, state text, due_at_ms bigint, task text) WHERE v.id = n.id`,
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
    const [row] = isTaskId(id) ? await run.run(FIND, [id]) : [];
    return row === undefined ? undefined : taskOf(row);
  };
  const owned = async (run: Pick<Work, 'run'>, id: string, owner: TaskOwner): Promise<VideoTask | undefined> => {
    const task = await find(run, id);
    return isOwned(task, owner) ? task : undefined;
  };

  return {
    async create(video) {
      const checked = checkNewVideo(video);
      if (!checked.ok) return checked;
      database.requireHealth();
      return database.transact((work) => create(work, video, reservations));
    },

    async earlier(request) {
      const earlier = await earlierOf(database, request);
      return earlier === undefined ? done(undefined) : repeated(earlier, request);
    },

    find: (id, owner) => owned(database, id, owner),

    async list(owner, { limit, after }) {
      const last = after === undefined ? undefined : await owned(database, after, owner);
      if (after !== undefined && last === undefined) return refused({ reason: 'unknown_cursor' } as const);
      const size = pageSize(limit);
      const below = last?.number ?? Number.MAX_SAFE_INTEGER;
      const found = await database.run(LIST, [owner.accountId, owner.keyId, below, size + 1]);
      return done(pageOf(found.map(taskOf), size));
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

    reschedule: (polls, leaseToken, nowMs) =>
      database.transact(async (work) => {
        if (!(await holdsLease(work, VIDEO_WORKER, leaseToken))) return refused({ reason: 'lease_lost' } as const);
        const due = new Map(polls.map(({ id, dueAtMs }) => [id, dueAtMs]));
        const changed = (await work.run(FIND_ALL, [[...due.keys()].filter(isTaskId)])).flatMap((row) => {
          const task = taskOf(row);
          const decided = decide(task, { event: 'poll', dueAtMs: due.get(task.id) ?? nowMs }, { nowMs, leaseToken });
          return decided.ok ? [columnsOf(decided.value.next)] : [];
        });
        if (changed.length > 0) await work.run(UPDATE_ALL, [JSON.stringify(changed)]);
        return done(changed.length);
      }),

    resolve: (id, verdict, cause, nowMs) =>
      database.transact(async (work) => {
        const found = await find(work, id);
        const ended = found === undefined ? undefined : await work.journaled(id, VIDEO_HOLD[verdict.event]);
        if (found !== undefined && isRepeatedResolution(found, verdict, cause, ended)) return done(found);
        const task = checkResolvable(found, verdict.event);
        return task.ok ? change(work, task.value, verdict, { nowMs, leaseToken: 0, by: resolver(cause) }) : task;
      }),

    due: async (nowMs, limit, { states = DUE_STATES, inHand = [] } = {}) =>
      (await database.run(DUE, [nowMs, limit, [...inHand].filter(isTaskId), states])).map(taskOf),

    loseAbandoned: (leaseToken, nowMs) =>
      database.transact(async (work) => {
        if (!(await holdsLease(work, VIDEO_WORKER, leaseToken))) return [];
        const lost: VideoTask[] = [];
        for (const task of (await work.run(SUBMITTING)).map(taskOf)) {
          if (task.state !== 'submitting' || task.leaseToken === leaseToken) continue;
          const changed = await change(work, task, { event: 'lose', why: ABANDONED }, { nowMs, leaseToken });
          if (changed.ok) lost.push(changed.value);
        }
        return lost;
      }),

    openByState: async () =>
      new Map((await database.run(OPEN_BY_STATE)).map((row) => [text(row, 'state'), int(row, 'count')] as const)),

    inspect: (id) => find(database, id),

    all: async (query = {}) => (await database.run(ALL, [query.state, query.limit ?? MAX_LIST])).map(taskOf),
  };
}

async function earlierOf(
  run: Pick<Work, 'run'>,
  { principal, idempotencyKey }: Pick<NewVideo, 'principal' | 'idempotencyKey'>,
): Promise<Earlier | undefined> {
  const [row] = isIdempotencyKey(idempotencyKey)
    ? await run.run(EARLIER, [principal.account.id, principal.key.id, idempotencyKey])
    : [];
  if (row === undefined) return undefined;
  const task = row['task'] === null ? undefined : taskOf(row);
  return { taskId: text(row, 'task_id'), bodyHash: text(row, 'body_hash'), task };
}

async function create(
  work: Work,
  video: NewVideo,
  reservations: Reservations,
): Promise<Result<{ readonly task: VideoTask; readonly created: boolean }, NotCreated>> {
  const { id, principal, nowMs, priceNanos, idempotencyKey, bodyHash } = video;
  const [accountId, keyId] = [principal.account.id, principal.key.id];

  const earlier = await earlierOf(work, video);
  if (earlier !== undefined) {
    const task = repeated(earlier, video);
    return task.ok ? done({ task: task.value, created: false }) : task;
  }
  if ((await work.run(FIND, [id])).length > 0) return invalid('id', 'is taken');

  const active = activePayer(await findKey(work, keyId), await findAccount(work, accountId));
  if (!active.ok) return active;
  const { key, account } = active.value;
  const from = payerOf(key, account.unlimited);
  await work.load([from], [keyId]);
  const fits = canHold(priceNanos, { from, balance: work.balance(from), key, spend: work.spend(keyId) }, reservations, nowMs);
  if (!fits.ok) return fits;

  const task = queuedTask(video, work.nextVideoNumber());
  await openHold(work, { id, accountId, keyId, from, nanos: priceNanos, openedAtMs: nowMs });
  await work.run(INSERT_VIDEO, [id, task.number, accountId, keyId, task.state, dueAt(task), taskText(task)]);
  await work.run(INSERT_IDEMPOTENCY, [accountId, keyId, idempotencyKey, id, bodyHash]);
  return done({ task, created: true });
}

async function change(
  work: Work,
  task: VideoTask | undefined,
  what: VideoChange | { readonly event: 'cancel' },
  circumstance: Circumstance,
): Promise<Result<VideoTask, NotChanged>> {
  const decided = decide(task, what, circumstance);
  if (!decided.ok) return decided;
  const { next, hold } = decided.value;
  if (hold !== null) await resolveHold(work, next.id, hold, circumstance.nowMs, circumstance.by);
  const film = filmOf(next);
  if (film !== undefined) work.rollups.film(film);
  await work.run(UPDATE, [next.id, next.state, dueAt(next), taskText(next)]);
  return done(next);
}

function columnsOf(task: VideoTask): object {
  return { id: task.id, state: task.state, due_at_ms: dueAt(task), task: taskText(task) };
}

export function taskText(task: VideoTask): string {
  return JSON.stringify({ ...task, frozenNanos: task.frozenNanos.toString() });
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
