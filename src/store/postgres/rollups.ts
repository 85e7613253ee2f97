/** Asking the rollups of PostgreSQL. */
import { FIRST_TOKEN_BUCKETS, SUM_NAMES, type UsageByHour, type UsageDimension, type UsageFilters } from '../rollups.ts';
import { Steps } from '../steps.ts';
import { storable } from '../storable.ts';
import { planOf, type RollupSpan, UsageGroups } from '../usage-query.ts';
import type { Database } from './database.ts';
import { rollupOf, SUM_COLUMNS } from './rollup-rows.ts';
import type { Statement, Value } from './session.ts';

export function createUsageByHour(database: Database): UsageByHour {
  return async (range, filters = {}, groupBy = []) => {
    const { spans, byKey } = planOf(range, filters, groupBy);
    const groups = new UsageGroups(groupBy);
    const steps = new Steps();
    for (const span of spans) {
      const { statement, values } = sumsOf(span, filters, groupBy, byKey);
      const rows = await database.run(statement, values);
      await steps.next();
      for (const row of rows) {
        groups.add(rollupOf(row), span.unit);
        if (steps.isOver) await steps.next();
      }
    }
    await steps.next();
    return groups.result();
  };
}

const FILTERS = { keyId: 'key_id', accountId: 'account_id', model: 'model', channelId: 'channel_id', code: 'code' } as const;
const BUCKETS = Array.from({ length: FIRST_TOKEN_BUCKETS }, (_, n) => `coalesce(sum(first_token[${n + 1}]), 0)::bigint`);
const SUMS = [...SUM_NAMES.map((name) => SUM_COLUMNS[name]), 'charged_nanos'].map((name) => `sum(${name})::bigint AS ${name}`);

/**
 * The database adds up; the error code stays apart, since it tells what an error is. One statement for each combination of what
 * is asked.
 */
function sumsOf(
  { unit, from, to }: RollupSpan,
  filters: UsageFilters,
  groupBy: readonly UsageDimension[],
  byKey: boolean,
): { readonly statement: Statement; readonly values: readonly Value[] } {
  const values: Value[] = [from, to];
  const conditions = ['at >= $1', 'at < $2'];
  let ofAccount = '';
  let asked = byKey ? 'k' : 'a';
  for (const [name, column] of Object.entries(FILTERS)) {
    const wanted = filters[name as keyof typeof FILTERS];
    if (wanted === undefined) continue;
    values.push(storable(wanted));
    const condition = `${column} = $${values.length}`;
    conditions.push(condition);
    if (name === 'accountId') ofAccount = ` WHERE ${condition}`;
    asked += `_${column}`;
  }
  // Each key by its name: the rows begin with it, and without it all hours there ever were would be read.
  conditions.push(byKey ? `key_id IN (SELECT id FROM keys${ofAccount})` : `key_id = ''`);
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
