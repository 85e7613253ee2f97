/**
 * How video tasks are made and change: each change of a task, what it does to its hold and the journal row are one transaction.
 */
import { VIDEO_WORKER } from '../leases.ts';
import { payerOf } from '../payer.ts';
import type { Reservations } from '../reservations.ts';
import { done, invalid, refused, type Result } from '../result.ts';
import { settledVideoOf } from '../rollup-recount.ts';
import {
  ABANDONED,
  activePayer,
  checkNewVideo,
  checkResolvable,
  type Circumstance,
  decide,
  isOwned,
  isRepeatedResolution,
  queuedTask,
  repeated,
  resolver,
} from '../video-rules.ts';
import {
  type NewVideo,
  type NotChanged,
  type NotCreated,
  VIDEO_HOLD,
  type VideoChange,
  type Videos,
  type VideoTask,
} from '../videos.ts';
import { type Bookkeeper, type Books, got, type Rule } from './books.ts';
import { openHold, resolveHold } from './holds.ts';

type VideoChanges = Pick<Videos, 'create' | 'cancel' | 'change' | 'reschedule' | 'resolve' | 'loseAbandoned'>;

export function videoChanges(keeper: Bookkeeper, reservations: Reservations): VideoChanges {
  return {
    async create(video) {
      const checked = checkNewVideo(video);
      if (!checked.ok) return checked;
      keeper.requireHealth();
      return keeper.follow((books) => create(books, video, reservations));
    },

    cancel: (id, owner, nowMs) =>
      keeper.follow(function* (books) {
        const task = yield* find(books, id);
        return yield* change(books, isOwned(task, owner) ? task : undefined, { event: 'cancel' }, { nowMs, leaseToken: 0 });
      }),

    change: (id, what, leaseToken, nowMs) =>
      keeper.follow(function* (books) {
        if (!(yield* got(books.holdsLease(VIDEO_WORKER, leaseToken)))) return refused<NotChanged>({ reason: 'lease_lost' });
        return yield* change(books, yield* find(books, id), what, { nowMs, leaseToken });
      }),

    /** Polls decide nothing about money, so they are written together. */
    reschedule: (polls, leaseToken, nowMs) =>
      keeper.follow(function* (books) {
        if (!(yield* got(books.holdsLease(VIDEO_WORKER, leaseToken)))) return refused({ reason: 'lease_lost' } as const);
        const due = new Map(polls.map(({ id, dueAtMs }) => [id, dueAtMs]));
        const polled = (yield* got(books.videos([...due.keys()]))).flatMap((task) => {
          const decided = decide(task, { event: 'poll', dueAtMs: due.get(task.id) ?? nowMs }, { nowMs, leaseToken });
          return decided.ok ? [decided.value] : [];
        });
        yield* got(books.replaceVideos(polled));
        return done(polled.length);
      }),

    resolve: (id, verdict, cause, nowMs) =>
      keeper.follow(function* (books) {
        const found = yield* find(books, id);
        const ended = found === undefined ? undefined : yield* got(books.journaled(id, VIDEO_HOLD[verdict.event]));
        if (found !== undefined && isRepeatedResolution(found, verdict, cause, ended)) return done(found);
        const task = checkResolvable(found, verdict.event);
        if (!task.ok) return task;
        return yield* change(books, task.value, verdict, { nowMs, leaseToken: 0, by: resolver(cause) });
      }),

    loseAbandoned: (leaseToken, nowMs) =>
      keeper.follow(function* (books) {
        const lost: VideoTask[] = [];
        if (!(yield* got(books.holdsLease(VIDEO_WORKER, leaseToken)))) return lost;
        for (const task of yield* got(books.submittingVideos())) {
          if (task.state !== 'submitting' || task.leaseToken === leaseToken) continue;
          const changed = yield* change(books, task, { event: 'lose', why: ABANDONED }, { nowMs, leaseToken });
          if (changed.ok) lost.push(changed.value);
        }
        return lost;
      }),
  };
}

function* find(books: Books, id: string): Rule<VideoTask | undefined> {
  return (yield* got(books.videos([id])))[0];
}

function* create(
  books: Books,
  video: NewVideo,
  reservations: Reservations,
): Rule<Result<{ readonly task: VideoTask; readonly created: boolean }, NotCreated>> {
  const { id, principal, nowMs, priceNanos } = video;
  const [accountId, keyId] = [principal.account.id, principal.key.id];

  const earlier = yield* got(books.earlierVideo(video));
  if (earlier !== undefined) {
    const task = repeated(earlier, video);
    return task.ok ? done({ task: task.value, created: false }) : task;
  }
  if ((yield* find(books, id)) !== undefined) return invalid('id', 'is taken');

  const active = activePayer(yield* got(books.key(keyId)), yield* got(books.account(accountId)));
  if (!active.ok) return active;
  const { key, account } = active.value;
  const from = payerOf(key, account.unlimited);
  yield* got(books.load([from], [keyId]));
  const refusal = reservations.refusal(from, key, books, nowMs, priceNanos - 1n);
  if (refusal !== undefined) return refused(refusal);

  const task = queuedTask(video, books.nextVideoNumber());
  yield* openHold(books, { id, accountId, keyId, from, nanos: priceNanos, openedAtMs: nowMs });
  yield* got(books.addVideo(task, video));
  return done({ task, created: true });
}

/** Every check is before the first write. */
function* change(
  books: Books,
  task: VideoTask | undefined,
  what: VideoChange | { readonly event: 'cancel' },
  circumstance: Circumstance,
): Rule<Result<VideoTask, NotChanged>> {
  const decided = decide(task, what, circumstance);
  if (!decided.ok) return decided;
  const { next, hold } = decided.value;
  if (hold !== null) yield* resolveHold(books, next.id, hold, circumstance.nowMs, circumstance.by);
  const video = settledVideoOf(next);
  if (video !== undefined) books.rollups.video(video);
  yield* got(books.replaceVideos([decided.value]));
  return done(next);
}
