/** Video tasks on LMDB. */
import { videoChanges } from '../books/videos.ts';
import { FirstRows } from '../created-rows.ts';
import type { Reservations } from '../reservations.ts';
import { done, refused } from '../result.ts';
import { FAR_MS, isOwned, listed, MAX_LIST, pageOf, pageSize, repeated, type TaskOwner, UNDUE } from '../video-rules.ts';
import { DUE_STATES, type DueQuery, type ListedVideo, type Videos, type VideoTask } from '../videos.ts';
import { earlierOf, videosOf } from './books.ts';
import type { Environment } from './environment.ts';
import { scan } from './steps.ts';
import type { Tables } from './tables.ts';

export function createVideos(environment: Environment, reservations: Reservations): Videos {
  const find = (tables: Tables, id: string): VideoTask | undefined => videosOf(tables, [id])[0];
  const owned = (tables: Tables, id: string, owner: TaskOwner): VideoTask | undefined => {
    const task = find(tables, id);
    return isOwned(task, owner) ? task : undefined;
  };

  /** Pages of one key are read one after the other: each takes its part of a turn. */
  const reading = new Map<string, Promise<unknown>>();
  const inTurn = async <T>(keyId: string, read: () => Promise<T>): Promise<T> => {
    const page = (reading.get(keyId) ?? Promise.resolve()).then(read);
    const ended = page.catch(() => undefined);
    reading.set(keyId, ended);
    try {
      return await page;
    } finally {
      if (reading.get(keyId) === ended) reading.delete(keyId);
    }
  };

  return {
    ...videoChanges(environment, reservations),

    earlier: (request) =>
      environment.read((tables) => {
        const earlier = earlierOf(tables, request);
        return earlier === undefined ? done(undefined) : repeated(earlier, request);
      }),

    find: (id, owner) => environment.read((tables) => owned(tables, id, owner)),

    list: (owner, { limit, after }) =>
      inTurn(owner.keyId, () =>
        environment.snapshot(function* (tables) {
          const last = after === undefined ? undefined : owned(tables, after, owner);
          if (after !== undefined && last === undefined) return refused({ reason: 'unknown_cursor' } as const);
          const size = pageSize(limit);
          const found = yield* newestOf(tables, owner, last?.number ?? Number.MAX_SAFE_INTEGER, size + 1);
          return done(pageOf(found, size));
        }),
      ),

    due: (nowMs, limit, query = {}) => environment.read((tables) => due(tables, nowMs, limit, query)),

    async openByState() {
      const counts = new Map<string, number>();
      await scan(
        environment,
        ({ videoDue }) => videoDue,
        (_, [state]) => counts.set(state, (counts.get(state) ?? 0) + 1),
      );
      return counts;
    },

    inspect: (id) => environment.read((tables) => find(tables, id)),

    async all({ state: wanted, limit = MAX_LIST } = {}) {
      const newest = new FirstRows<VideoTask>((a, b) => b.number - a.number, limit);
      await scan(
        environment,
        ({ videos }) => videos,
        (task) => void ((wanted ?? task.state) === task.state && newest.add(task)),
      );
      return newest.rows();
    },
  };
}

/** The newest tasks of an owner whose number is below `below`. In steps, since each is read with its request. */
function* newestOf(
  tables: Tables,
  { accountId, keyId }: TaskOwner,
  below: number,
  limit: number,
): Generator<void, ListedVideo[]> {
  const range = tables.videoOwners.getRange({
    start: [accountId, keyId, below - 1],
    end: [accountId, keyId, 0],
    reverse: true,
    limit,
  });
  const found: ListedVideo[] = [];
  for (const id of [...range].map(({ value }) => value)) {
    const task = tables.videos.get(id);
    if (task !== undefined) found.push(listed(task));
    yield;
  }
  return found;
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
