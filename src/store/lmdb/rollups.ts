/** Asking the rollups of LMDB. */
import type { UsageByHour, UsageFilters } from '../rollups.ts';
import { isWanted, planOf, UsageGroups } from '../usage-query.ts';
import type { KeyRecord } from '../keys.ts';
import type { Environment } from './environment.ts';
import { rowsBetween } from './rollup-rows.ts';
import { Steps } from '../steps.ts';
import { scan } from './steps.ts';

export function createUsageByHour(environment: Environment): UsageByHour {
  return async (range, filters = {}, groupBy = []) => {
    const { spans, byKey } = planOf(range, filters, groupBy);
    const groups = new UsageGroups(groupBy);
    const keyIds = byKey ? await keysOf(environment, filters) : [''];
    const steps = new Steps();
    for (const { unit, from, to } of spans) {
      for (const keyId of keyIds) {
        environment.look(({ rollupDays, rollupHours }) => {
          const table = unit === 'day' ? rollupDays : rollupHours;
          for (const row of rowsBetween(table, keyId, from, to)) if (isWanted(row, filters)) groups.add(row, unit);
        });
        if (steps.isOver) await steps.next();
      }
    }
    return groups.result();
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
