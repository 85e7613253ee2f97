/** Video tasks on PostgreSQL. */
import { videoChanges } from '../books/videos.ts';
import type { Reservations } from '../reservations.ts';
import { done, refused } from '../result.ts';
import { FAR_MS, isOwned, isTaskId, MAX_LIST, pageOf, pageSize, repeated, type TaskOwner, UNDUE } from '../video-rules.ts';
import { DUE_STATES, type DueState, type Videos, type VideoTask } from '../videos.ts';
import { earlierOf, videosOf } from './books.ts';
import type { Database } from './database.ts';
import { int, text, taskOf } from './rows.ts';
import type { Statement } from './session.ts';

/** The text of a task without its request. As `json`, which keeps every text as it is. */
const LISTED = `(SELECT json_object_agg(e.key, e.value)::text FROM json_each(task::json) AS e
    WHERE e.key <> 'requestJson') AS task`;
/** $3: below this number. */
const LIST: Statement = {
  name: 'video_list',
  text: `SELECT ${LISTED} FROM (SELECT task, number FROM videos WHERE account_id = $1 AND key_id = $2 AND number < $3
    ORDER BY number DESC LIMIT $4) AS found ORDER BY number DESC`,
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
const OPEN_BY_STATE: Statement = {
  name: 'video_open_by_state',
  text: `SELECT state, count(*) FROM videos WHERE state IN ('queued', 'submitting', 'running', 'unknown') GROUP BY state`,
};
const ALL: Statement = {
  name: 'video_all',
  text: 'SELECT task FROM videos WHERE $1::text IS NULL OR state = $1 ORDER BY number DESC LIMIT $2',
};

export function createVideos(database: Database, reservations: Reservations): Videos {
  const owned = async (id: string, owner: TaskOwner): Promise<VideoTask | undefined> =>
    (await videosOf(database, [id])).find((task) => isOwned(task, owner));

  return {
    ...videoChanges(database, reservations),

    async earlier(request) {
      const earlier = await earlierOf(database, request);
      return earlier === undefined ? done(undefined) : repeated(earlier, request);
    },

    find: owned,

    async list(owner, { limit, after }) {
      const last = after === undefined ? undefined : await owned(after, owner);
      if (after !== undefined && last === undefined) return refused({ reason: 'unknown_cursor' } as const);
      const size = pageSize(limit);
      const below = last?.number ?? Number.MAX_SAFE_INTEGER;
      const found = await database.run(LIST, [owner.accountId, owner.keyId, below, size + 1]);
      return done(pageOf(found.map(taskOf), size));
    },

    due: async (nowMs, limit, { states = DUE_STATES, inHand = [] } = {}) =>
      (await database.run(DUE, [nowMs, limit, [...inHand].filter(isTaskId), states])).map(taskOf),

    openByState: async () =>
      new Map((await database.run(OPEN_BY_STATE)).map((row) => [text(row, 'state'), int(row, 'count')] as const)),

    inspect: async (id) => (await videosOf(database, [id]))[0],

    all: async (query = {}) => (await database.run(ALL, [query.state, query.limit ?? MAX_LIST])).map(taskOf),
  };
}
