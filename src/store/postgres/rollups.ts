/** Asking the rollups of PostgreSQL, and making them anew from the rows that exist. */
import { countsOf } from '../day-usage.ts';
import { filmOf, keptUntil } from '../rollup-recount.ts';
import {
  FIRST_TOKEN_BUCKETS,
  HOUR_MS,
  HOURS_A_DAY,
  hourOf,
  type RebuiltRollups,
  RollupChanges,
  SUM_NAMES,
  type UsageByHour,
  type UsageDimension,
  type UsageFilters,
} from '../rollups.ts';
import { storable } from '../storable.ts';
import { planOf, type RollupSpan, UsageGroups } from '../usage-query.ts';
import type { Database } from './database.ts';
import { logRowOf } from './request-log.ts';
import { addRows, columnsOf, jsonOf, rollupOf, SUM_COLUMNS } from './rollup-rows.ts';
import { int, type Row } from './rows.ts';
import type { Session, Statement, Value } from './session.ts';
import { PAGES, rowsOf } from './verify.ts';
import { taskOf } from './books.ts';
import type { Work } from './work.ts';

type Run = Pick<Session, 'run'>;

export function createUsageByHour(database: Database): UsageByHour {
  return async (range, filters = {}, groupBy = []) => {
    const { spans, byKey } = planOf(range, filters, groupBy);
    const groups = new UsageGroups(groupBy);
    for (const span of spans) {
      const { statement, values } = sumsOf(span, filters, groupBy, byKey);
      for (const row of await database.run(statement, values)) groups.add(rollupOf(row), span.unit);
    }
    return groups.result();
  };
}

const FILTERS = { keyId: 'key_id', accountId: 'account_id', model: 'model', channelId: 'channel_id', code: 'code' } as const;
const BUCKETS = Array.from({ length: FIRST_TOKEN_BUCKETS }, (_, n) => `coalesce(sum(first_token[${n + 1}]), 0)::bigint`);
const SUMS = [...SUM_NAMES.map((name) => SUM_COLUMNS[name]), 'charged_nanos'].map((name) => `sum(${name})::bigint AS ${name}`);

/** The database adds up; the error code stays apart, since it says what an error is. One statement for each combination of what is asked. */
function sumsOf(
  { unit, from, to }: RollupSpan,
  filters: UsageFilters,
  groupBy: readonly UsageDimension[],
  byKey: boolean,
): { readonly statement: Statement; readonly values: readonly Value[] } {
  const values: Value[] = [from, to];
  const conditions = ['at >= $1', 'at < $2', byKey ? `key_id <> ''` : `key_id = ''`];
  let asked = byKey ? 'k' : 'a';
  for (const [name, column] of Object.entries(FILTERS)) {
    const wanted = filters[name as keyof typeof FILTERS];
    if (wanted === undefined) continue;
    values.push(storable(wanted));
    conditions.push(`${column} = $${values.length}`);
    asked += `_${column}`;
  }
  const kept = {
    key_id: groupBy.includes('key'),
    account_id: groupBy.includes('key') || groupBy.includes('account'),
    model: groupBy.includes('model'),
    channel_id: groupBy.includes('channel'),
    code: true,
    at: groupBy.includes('hour') || groupBy.includes('day'),
  };
  const columns = Object.entries(kept);
  const dimensions = columns.map(([name, is]) => (is ? name : name === 'at' ? '0::bigint AS at' : `''::text AS ${name}`));
  const group = columns.filter(([, is]) => is).map(([name]) => name);
  const sql = `SELECT ${[...dimensions, ...SUMS].join(', ')}, ARRAY[${BUCKETS.join(', ')}] AS first_token
    FROM usage_${unit}s WHERE ${conditions.join(' AND ')} GROUP BY ${group.join(', ')}`;
  return { statement: { name: `usage_${unit}_${asked}_by_${group.join('_')}`, text: sql }, values };
}

const ADD_HOURS: Statement = { name: 'rollup_add_hours', text: addRows('usage_hours', '$1') };
const ADD_DAYS: Statement = { name: 'rollup_add_days', text: addRows('usage_days', '$1') };
const REMOVE_HOURS: Statement = { name: 'rollup_remove_hours', text: 'DELETE FROM usage_hours WHERE at >= $1 AND at < $2' };
const REMOVE_DAY: Statement = { name: 'rollup_remove_day', text: 'DELETE FROM usage_days WHERE at = $1' };
const HOURS: Statement = { name: 'rollup_hours', text: `SELECT * FROM usage_hours WHERE at >= $1 AND at < $2 AND key_id <> ''` };
const LOGGED: Statement = {
  name: 'rollup_logged',
  text: 'SELECT * FROM request_log WHERE logged_at_ms >= $1 AND logged_at_ms < $2 AND seq > $3 ORDER BY seq LIMIT $4',
};
const LIMITS: Statement = {
  name: 'rollup_limits',
  text: `SELECT h.log_seq, h.log_at_ms, r.seq, r.logged_at_ms, (SELECT min(at) FROM usage_hours) AS stored
    FROM ledger_head h LEFT JOIN LATERAL (SELECT seq, logged_at_ms FROM request_log ORDER BY seq LIMIT 1) r ON true`,
};
const SUMMED_UP: Statement = { name: 'rollup_summed_up', text: 'UPDATE ledger_head SET rollups_after = -1' };
const PAGE = 2_000;

interface Limits {
  readonly kept: number;
  readonly oldest: number | undefined;
  readonly newest: number;
}

/** Day by day, each in one transaction: settlements wait for no longer than a day takes. */
export async function rebuildRollups(database: Database): Promise<RebuiltRollups> {
  const { kept, oldest, newest } = await limitsOf(database);
  const films = await filmHours(database);
  const first = [...films, ...(oldest === undefined ? [] : [oldest])].reduce((least, hour) => Math.min(least, hour), newest);
  const last = films.reduce((most, hour) => Math.max(most, hour), Math.max(newest, hourOf(database.options.clock.now())));
  let hours = 0;
  for (let day = dayOf(Math.max(first, kept + 1)); day <= dayOf(last); day += 1)
    hours += await database.transact((work) => rebuildDay(work, day));
  await database.change(SUMMED_UP);
  return { hours, ...(kept < 0 ? {} : { keptUntilMs: kept * HOUR_MS }) };
}

const dayOf = (hour: number): number => Math.floor(hour / HOURS_A_DAY);

async function rebuildDay(work: Work, day: number): Promise<number> {
  const { kept } = await limitsOf(work);
  const from = Math.max(day * HOURS_A_DAY, kept + 1);
  const to = (day + 1) * HOURS_A_DAY;
  const hours = new RollupChanges();
  for await (const row of loggedBetween(work, from * HOUR_MS, to * HOUR_MS))
    hours.exchange(row, row.usage === undefined ? {} : countsOf(row.usage), row.loggedAtMs);
  for await (const row of rowsOf(work, PAGES.videos)) {
    const film = filmOf(taskOf(row));
    if (film !== undefined && hourOf(film.atMs) >= from && hourOf(film.atMs) < to) hours.film(film);
  }
  await work.run(REMOVE_HOURS, [from, to]);
  await work.run(REMOVE_DAY, [day]);
  // What is left of the day: hours that are kept as they are.
  const left = new RollupChanges();
  for (const row of await work.run(HOURS, [day * HOURS_A_DAY, from])) left.add(rollupOf(row));
  await work.run(ADD_DAYS, [jsonOf([...left.days(), ...left.hoursOfAll().days()])]);
  const columns = columnsOf(hours);
  await work.run(ADD_HOURS, [columns.hours]);
  await work.run(ADD_DAYS, [columns.days]);
  return new Set([...hours.hours()].map(({ at }) => at)).size;
}

async function* loggedBetween(run: Run, fromMs: number, toMs: number) {
  for (let after = 0; ; ) {
    const rows = (await run.run(LOGGED, [fromMs, toMs, after, PAGE])).map(logRowOf);
    yield* rows;
    after = rows.at(-1)?.seq ?? after;
    if (rows.length < PAGE) return;
  }
}

async function filmHours(run: Run): Promise<number[]> {
  const hours: number[] = [];
  for await (const row of rowsOf(run, PAGES.videos)) {
    const film = filmOf(taskOf(row));
    if (film !== undefined) hours.push(hourOf(film.atMs));
  }
  return hours;
}

async function limitsOf(run: Run): Promise<Limits> {
  const [row = {}] = await run.run(LIMITS);
  const logHead = { seq: int(row, 'log_seq'), atMs: int(row, 'log_at_ms') };
  const oldest = row['seq'] === null ? undefined : { seq: int(row, 'seq'), loggedAtMs: int(row, 'logged_at_ms') };
  const hours = [oldest === undefined ? undefined : hourOf(oldest.loggedAtMs), storedHour(row)];
  const known = hours.filter((hour) => hour !== undefined);
  return {
    kept: keptUntil(oldest, logHead),
    oldest: known.length === 0 ? undefined : Math.min(...known),
    newest: hourOf(logHead.atMs),
  };
}

const storedHour = (row: Row): number | undefined => (row['stored'] === null ? undefined : int(row, 'stored'));
