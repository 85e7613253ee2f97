/** Asking the rollups of LMDB, and making them anew from the rows that exist. */
import { countsOf } from '../day-usage.ts';
import {
  HOURS_A_DAY,
  HOUR_MS,
  hourOf,
  type RebuiltRollups,
  type RollupChanges as Changes,
  RollupChanges,
  type UsageByHour,
  type UsageFilters,
} from '../rollups.ts';
import { filmOf, keptUntil } from '../rollup-recount.ts';
import { isWanted, planOf, UsageGroups } from '../usage-query.ts';
import type { Environment } from './environment.ts';
import { firstAt } from './request-log.ts';
import { addAll, addRollups, keyOf, rowsBetween, type RollupTable } from './rollup-rows.ts';
import { metaOf, type Tables } from './tables.ts';
import type { Work } from './work.ts';

export function createUsageByHour(environment: Environment): UsageByHour {
  return (range, filters = {}, groupBy = []) =>
    environment.read((tables) => {
      const { spans, byKey } = planOf(range, filters, groupBy);
      const groups = new UsageGroups(groupBy);
      const keyIds = byKey ? keysOf(tables, filters) : [''];
      for (const { unit, from, to } of spans) {
        const table = unit === 'day' ? tables.rollupDays : tables.rollupHours;
        for (const keyId of keyIds)
          for (const row of rowsBetween(table, keyId, from, to)) if (isWanted(row, filters)) groups.add(row, unit);
      }
      return groups.result();
    });
}

function keysOf(tables: Tables, { keyId, accountId }: UsageFilters): string[] {
  if (accountId === undefined) return keyId === undefined ? [...tables.keys.getKeys()] : keyId === '' ? [] : [keyId];
  const ids: string[] = [];
  for (const { key, value } of tables.keys.getRange()) if (value.accountId === accountId && (keyId ?? key) === key) ids.push(key);
  return ids;
}

/** Day by day, each in one transaction: settlements wait for no longer than a day takes. */
export async function rebuildRollups(environment: Environment): Promise<RebuiltRollups> {
  const { kept, days } = environment.look((tables) => {
    const until = keptUntilOf(tables);
    return { kept: until, days: daysOf(tables, until, environment.options.clock.now()) };
  });
  let hours = 0;
  for (const day of days) hours += await environment.transact((work) => rebuildDay(work, day));
  await environment.transact((work) => work.remove(work.tables.meta, 'rollupsAfter'));
  return { hours, ...(kept < 0 ? {} : { keptUntilMs: kept * HOUR_MS }) };
}

function rebuildDay(work: Work, day: number): number {
  const { tables } = work;
  const from = Math.max(day * HOURS_A_DAY, keptUntilOf(tables) + 1);
  const to = (day + 1) * HOURS_A_DAY;
  const hours = recounted(tables, from, to);
  const keyIds = ['', ...tables.keys.getKeys()];
  for (const keyId of keyIds) {
    removeBetween(work, tables.rollupHours, keyId, from, to);
    removeBetween(work, tables.rollupDays, keyId, day, day + 1);
  }
  // What is left of the day: hours that are kept as they are.
  for (const keyId of keyIds) {
    const kept = new RollupChanges();
    for (const row of rowsBetween(tables.rollupHours, keyId, day * HOURS_A_DAY, from)) kept.add(row);
    addAll(work, tables.rollupDays, kept.days());
  }
  const counted = new Set([...hours.hours()].map(({ at }) => at)).size;
  addRollups(work, hours);
  return counted;
}

function recounted(tables: Tables, from: number, to: number): Changes {
  const changes = new RollupChanges();
  const head = metaOf(tables, 'logHead')?.seq ?? 0;
  const [first, end] = [firstAt(tables, from * HOUR_MS, head), firstAt(tables, to * HOUR_MS, head)];
  for (const { value } of tables.log.getRange({ start: first, end }))
    changes.exchange(value, value.usage === undefined ? {} : countsOf(value.usage), value.loggedAtMs);
  for (const { value } of tables.videos.getRange()) {
    const film = filmOf(value);
    if (film !== undefined && hourOf(film.atMs) >= from && hourOf(film.atMs) < to) changes.film(film);
  }
  return changes;
}

function removeBetween(work: Work, table: RollupTable, keyId: string, from: number, to: number): void {
  for (const row of [...rowsBetween(table, keyId, from, to)]) work.remove(table, keyOf(row));
}

/** The hour up to which rows of the log were pruned, -1 where none were. */
function keptUntilOf(tables: Tables): number {
  const [oldest] = tables.log.getRange({ limit: 1 });
  return keptUntil(oldest?.value, metaOf(tables, 'logHead') ?? { seq: 0, atMs: 0 });
}

/** Every day that may have a row behind that hour. */
function daysOf(tables: Tables, kept: number, nowMs: number): number[] {
  const hours: number[] = [];
  const [oldest] = tables.log.getRange({ limit: 1 });
  if (oldest !== undefined) hours.push(hourOf(oldest.value.loggedAtMs));
  for (const { value } of tables.videos.getRange()) {
    const film = filmOf(value);
    if (film !== undefined) hours.push(hourOf(film.atMs));
  }
  const stored = tables.rollupHours.getKeys({
    start: ['', 0, '', '', ''],
    end: ['', Number.MAX_SAFE_INTEGER, '', '', ''],
    limit: 1,
  });
  for (const [, at] of stored) hours.push(at);
  const newest = hourOf(Math.max(nowMs, metaOf(tables, 'logHead')?.atMs ?? 0));
  const first = Math.max(
    kept + 1,
    hours.reduce((least, hour) => Math.min(least, hour), newest),
  );
  const last = hours.reduce((most, hour) => Math.max(most, hour), newest);
  const [from, to] = [Math.floor(first / HOURS_A_DAY), Math.floor(last / HOURS_A_DAY)];
  return Array.from({ length: Math.max(0, to - from + 1) }, (_, n) => from + n);
}
