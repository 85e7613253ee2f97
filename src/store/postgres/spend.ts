/** Reading what keys have spent and used, on PostgreSQL. */
import type { SpendWindows } from '../spend-windows.ts';
import { dayName, dayNumber, NOTHING_SPENT, spendAt } from '../spend-windows.ts';
import { isStorable } from '../storable.ts';
import type { Database } from './database.ts';
import { countsOf, int, spendOf } from './rows.ts';
import type { Statement } from './session.ts';

const SPEND: Statement = { name: 'spend_of', text: 'SELECT * FROM spend WHERE key_id = $1' };
const DAYS: Statement = {
  name: 'days_of',
  text: 'SELECT * FROM days WHERE key_id = $1 AND day >= $2 AND day <= $3 ORDER BY day',
};

export function createSpend(database: Database): SpendWindows {
  return {
    async spend(keyId, nowMs) {
      const [row] = isStorable(keyId) ? await database.run(SPEND, [keyId]) : [];
      return spendAt(row === undefined ? NOTHING_SPENT : spendOf(row), nowMs);
    },

    async usageByDay(keyId, range = {}) {
      if (!isStorable(keyId)) return [];
      const from = dayNumber(range.from ?? '') ?? 0;
      const to = dayNumber(range.to ?? '') ?? Number.MAX_SAFE_INTEGER;
      const rows = await database.run(DAYS, [keyId, from, to]);
      return rows.map((row) => ({ day: dayName(int(row, 'day')), ...countsOf(row) }));
    },
  };
}
