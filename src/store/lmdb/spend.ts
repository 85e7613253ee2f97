/** Reading what keys have spent and used, on LMDB. */
import type { SpendWindows } from '../spend-windows.ts';
import { dayName, dayNumber, NOTHING_SPENT, spendAt } from '../spend-windows.ts';
import type { Environment } from './environment.ts';

export function createSpend(environment: Environment): SpendWindows {
  return {
    spend: (keyId, nowMs) => environment.read((tables) => spendAt(tables.spend.get(keyId) ?? NOTHING_SPENT, nowMs)),

    usageByDay: (keyId, range = {}) =>
      environment.read((tables) => {
        const from = dayNumber(range.from ?? '') ?? 0;
        const to = dayNumber(range.to ?? '') ?? Number.MAX_SAFE_INTEGER - 1;
        const rows = tables.days.getRange({ start: [keyId, from], end: [keyId, to + 1] });
        return [...rows].map(({ key: [, day], value }) => ({ day: dayName(day), ...value }));
      }),
  };
}
