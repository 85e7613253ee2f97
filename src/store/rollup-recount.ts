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
    this.#counted.exchange(row, row.usage === undefined ? {} : countsOf(row.usage), row.loggedAtMs);
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

  finish(expect: Expect): void {
    const { logHead, after } = this.#limits ?? { logHead: { seq: 0, atMs: 0 }, after: -1 };
    const from = Math.max(keptUntil(this.#oldest, logHead), after) + 1;
    const byKey = new RollupChanges();
    const all = new Map<string, Rollup>();
    for (const [place, rollup] of this.#stored.hour) {
      if (rollup.keyId === '') all.set(place, rollup);
      else byKey.add(rollup);
    }
    const counted = [...this.#counted.hours()].filter(({ at }) => at >= from);
    const kept = [...byKey.hours()].filter(({ at }) => at >= from);
    compare('hour', counted, placed(kept), expect);
    compare('hour', byKey.hoursOfAll().hours(), all, expect);
    const days = [...byKey.days(), ...byKey.hoursOfAll().days()];
    compare('day', days, this.#stored.day, expect);
  }
}

function placed(rollups: Iterable<Rollup>): Map<string, Rollup> {
  return new Map([...rollups].map((rollup) => [placeText(rollup), rollup]));
}

function compare(unit: 'hour' | 'day', expected: Iterable<Rollup>, found: ReadonlyMap<string, Rollup>, expect: Expect): void {
  const counted = placed(expected);
  for (const place of new Set([...counted.keys(), ...found.keys()])) {
    const [is, should] = [found.get(place), counted.get(place)];
    const rollup = is ?? should;
    if (rollup === undefined || (isNothing(is?.sums ?? noSums()) && isNothing(should?.sums ?? noSums()))) continue;
    const where = JSON.stringify([rollup.model, rollup.channelId, rollup.code]);
    const subject = `${nameOf(unit, rollup.at)} of ${rollup.keyId || 'all keys'}, ${where}`;
    expect('rollup', subject, sumsText(should?.sums ?? noSums()), sumsText(is?.sums ?? noSums()));
  }
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
