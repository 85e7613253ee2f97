/** Asking the rollups of LMDB. */
import type { UsageByHour, UsageFilters } from '../rollups.ts';
import { isWanted, planOf, UsageGroups } from '../usage-query.ts';
import type { KeyRecord } from '../keys.ts';
import type { Environment } from './environment.ts';
import { rangeBetween, type RollupKey, type RollupTable, rollupOf, type StoredRollup } from './rollup-rows.ts';
import { Steps } from '../steps.ts';
import { scan } from './steps.ts';
import type { Tables } from './tables.ts';

export function createUsageByHour(environment: Environment): UsageByHour {
  return async (range, filters = {}, groupBy = []) => {
    const { spans, byKey } = planOf(range, filters, groupBy);
    const groups = new UsageGroups(groupBy);
    const keyIds = byKey ? await keysOf(environment, filters) : [''];
    const steps = new Steps();
    for (const { unit, from, to } of spans) {
      for (const keyId of keyIds) {
        const add = (stored: StoredRollup, key: RollupKey): void => {
          const row = rollupOf(key, stored);
          if (isWanted(row, filters)) groups.add(row, unit);
        };
        const tableOf = (tables: Tables): RollupTable => (unit === 'day' ? tables.rollupDays : tables.rollupHours);
        await scan(environment, tableOf, add, { ...rangeBetween(keyId, from, to), steps });
        if (steps.isOver) await steps.next();
      }
    }
    return await groups.result(steps);
  };
}

async function keysOf(environment: Environment, { keyId, accountId }: UsageFilters): Promise<string[]> {
  if (accountId === undefined && keyId !== undefined) return keyId === '' ? [] : [keyId];
  const ids: string[] = [];
  const take = (key: KeyRecord): void => {
    if ((accountId ?? key.accountId) === key.accountId && (keyId ?? key.id) === key.id) ids.push(key.id);
  };
  await scan(environment, ({ keys }) => keys, take);
  return ids;
}
