/** Asking the rollups of LMDB. */
import type { UsageByHour, UsageFilters } from '../rollups.ts';
import { isWanted, planOf, UsageGroups } from '../usage-query.ts';
import type { Environment } from './environment.ts';
import { rowsBetween } from './rollup-rows.ts';
import type { Tables } from './tables.ts';

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
