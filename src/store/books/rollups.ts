/** Making the rollups anew from the rows that exist: the log, as far as it was not pruned, and the videos. */
import { countsOf } from '../day-usage.ts';
import { keptUntil } from '../rollup-recount.ts';
import { HOUR_MS, HOURS_A_DAY, hourOf, type RebuiltRollups, RollupChanges } from '../rollups.ts';
import { type Bookkeeper, type Books, got, type Rule } from './books.ts';

/** Rows of the log that are read at a time. */
const PAGE = 2_000;

const dayOf = (hour: number): number => Math.floor(hour / HOURS_A_DAY);

/** Day by day, each in one transaction: settlements wait for no longer than a day takes. */
export async function rebuildRollups(keeper: Bookkeeper): Promise<RebuiltRollups> {
  const nowMs = keeper.options.clock.now();
  const { kept, first, last } = await keeper.follow((books) => reach(books, nowMs));
  let hours = 0;
  for (let day = dayOf(first); day <= dayOf(last); day += 1) hours += await keeper.follow((books) => rebuildDay(books, day));
  await keeper.follow((books) => got(books.allSummedUp()));
  return { hours, ...(kept < 0 ? {} : { keptUntilMs: kept * HOUR_MS }) };
}

/** The hours that may have a row. What was summed up to `kept` cannot be counted again: rows were pruned. */
function* reach(books: Books, nowMs: number): Rule<{ readonly kept: number; readonly first: number; readonly last: number }> {
  const { oldest, head, firstHour } = yield* got(books.logLimits());
  const kept = keptUntil(oldest, head);
  const hours = (yield* got(books.settledVideos())).map(({ atMs }) => hourOf(atMs));
  if (oldest !== undefined) hours.push(hourOf(oldest.loggedAtMs));
  if (firstHour !== undefined) hours.push(firstHour);
  const newest = hourOf(Math.max(nowMs, head.atMs));
  const first = hours.reduce((least, hour) => Math.min(least, hour), newest);
  return { kept, first: Math.max(kept + 1, first), last: hours.reduce((most, hour) => Math.max(most, hour), newest) };
}

/** Gives how many hours of the day have rows. */
function* rebuildDay(books: Books, day: number): Rule<number> {
  const { oldest, head } = yield* got(books.logLimits());
  const from = Math.max(day * HOURS_A_DAY, keptUntil(oldest, head) + 1);
  const to = (day + 1) * HOURS_A_DAY;
  const counted = new RollupChanges();
  for (let after = 0; ; ) {
    const rows = yield* got(books.logged(from * HOUR_MS, to * HOUR_MS, after, PAGE));
    for (const row of rows) counted.exchange(row, countsOf(row.usage), row.loggedAtMs);
    after = rows.at(-1)?.seq ?? after;
    if (rows.length < PAGE) break;
  }
  for (const video of yield* got(books.settledVideos()))
    if (hourOf(video.atMs) >= from && hourOf(video.atMs) < to) counted.video(video);

  // The sums of the day are those, and those of its hours that are kept as they are.
  const whole = new RollupChanges();
  for (const row of yield* got(books.hoursOfKeys(day * HOURS_A_DAY, from))) whole.add(row);
  for (const row of counted.hours()) whole.add(row);
  yield* got(books.removeRollups({ from, to }, day));
  const hours = [...counted.hours(), ...counted.hoursOfAll().hours()];
  yield* got(books.addRollups(hours, [...whole.days(), ...whole.hoursOfAll().days()]));
  return new Set([...counted.hours()].map(({ at }) => at)).size;
}
