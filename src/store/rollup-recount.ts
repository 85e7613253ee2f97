/** Recounts the rollups from the rows of the log and the videos, as far as those exist, and compares. */
import { countsOf } from './day-usage.ts';
import {
  HOUR_MS,
  HOURS_A_DAY,
  hourOf,
  isNothing,
  noSums,
  placeText,
  type Rollup,
  RollupChanges,
  type SettledVideo,
  sumsText,
  type UsageSums,
} from './rollups.ts';
import type { RequestLogRow } from './request-log.ts';
import type { Expect } from './recount-spend.ts';
import type { VideoTask } from './videos.ts';

/** What must be known of the log to tell which hours can be counted again. */
export interface RollupLimits {
  /** Of the newest row that was ever logged. */
  readonly logHead: { readonly seq: number; readonly atMs: number };
  /** The hour up to which an older version logged rows without summing them up; -1 where there is none. */
  readonly after: number;
}

export class RollupRecount {
  readonly #counted = new RollupChanges();
  readonly #stored = { hour: new Map<string, Rollup>(), day: new Map<string, Rollup>() };
  #oldest: RequestLogRow | undefined;
  #limits: RollupLimits | undefined;

  logged(row: RequestLogRow): void {
    if (this.#oldest === undefined || row.seq < this.#oldest.seq) this.#oldest = row;
    this.#counted.exchange(row, countsOf(row.usage), row.loggedAtMs);
  }

  video(video: SettledVideo): void {
    this.#counted.video(video);
  }

  stored(unit: 'hour' | 'day', rollup: Rollup): void {
    this.#stored[unit].set(placeText(rollup), rollup);
  }

  limits(limits: RollupLimits): void {
    this.#limits = limits;
  }

  *finish(expect: Expect): Generator<void> {
    const { logHead, after } = this.#limits ?? { logHead: { seq: 0, atMs: 0 }, after: -1 };
    const from = Math.max(keptUntil(this.#oldest, logHead), after) + 1;
    const kept = new Map<string, Rollup>();
    const all = new Map<string, Rollup>();
    /** What the hours of the keys add up to: those of all keys together, and the days of both. */
    const [hoursOfAll, days] = [new RollupChanges(), new RollupChanges()];
    for (const [place, rollup] of this.#stored.hour) {
      if (rollup.keyId === '') all.set(place, rollup);
      else {
        if (rollup.at >= from) kept.set(place, rollup);
        const ofAll = { ...rollup, keyId: '', accountId: '' };
        hoursOfAll.add(ofAll);
        const at = Math.floor(rollup.at / HOURS_A_DAY);
        days.add({ ...rollup, at });
        days.add({ ...ofAll, at });
      }
      yield;
    }
    const counted = this.#counted.hours().filter(({ at }) => at >= from);
    yield* compare('hour', counted, kept, expect);
    yield* compare('hour', hoursOfAll.hours(), all, expect);
    yield* compare('day', days.hours(), this.#stored.day, expect);
  }
}

function* compare(
  unit: 'hour' | 'day',
  expected: Iterable<Rollup>,
  found: ReadonlyMap<string, Rollup>,
  expect: Expect,
): Generator<void> {
  const places = new Set<string>();
  for (const rollup of expected) {
    const place = placeText(rollup);
    places.add(place);
    compareOne(unit, rollup, rollup.sums, found.get(place)?.sums, expect);
    yield;
  }
  for (const [place, rollup] of found) {
    if (!places.has(place)) compareOne(unit, rollup, undefined, rollup.sums, expect);
    yield;
  }
}

/** The sums of one place, of which `rollup` is a row. Absent sums are nothing. */
function compareOne(
  unit: 'hour' | 'day',
  { keyId, at, model, channelId, code }: Rollup,
  counted: UsageSums | undefined,
  stored: UsageSums | undefined,
  expect: Expect,
): void {
  const [expected, found] = [counted ?? noSums(), stored ?? noSums()];
  if (isNothing(found) && isNothing(expected)) return;
  const subject = `${nameOf(unit, at)} of ${keyId || 'all keys'}, ${JSON.stringify([model, channelId, code])}`;
  expect('rollup', subject, sumsText(expected), sumsText(found));
}

function nameOf(unit: 'hour' | 'day', at: number): string {
  const hour = unit === 'day' ? at * HOURS_A_DAY : at;
  return new Date(hour * HOUR_MS).toISOString().slice(0, unit === 'day' ? 10 : 13);
}

/** The video of a task that was paid for. */
export function settledVideoOf(task: VideoTask): SettledVideo | undefined {
  if (task.state !== 'succeeded') return undefined;
  const { accountId, keyId, model, submission, frozenNanos, endedAtMs } = task;
  return { accountId, keyId, model, channelId: submission.channelId, nanos: frozenNanos, atMs: endedAtMs };
}

/** The hour up to which rows were pruned, so that it cannot be counted again; -1 where none were. */
export function keptUntil(
  oldest: Pick<RequestLogRow, 'seq' | 'loggedAtMs'> | undefined,
  logHead: RollupLimits['logHead'],
): number {
  if (oldest !== undefined) return oldest.seq > 1 ? hourOf(oldest.loggedAtMs) : -1;
  return logHead.seq > 0 ? hourOf(logHead.atMs) : -1;
}
