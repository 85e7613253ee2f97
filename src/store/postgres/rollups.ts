/** Asking the rollups of PostgreSQL. */
import { FIRST_TOKEN_BUCKETS, SUM_NAMES, type UsageByHour, type UsageDimension, type UsageFilters } from '../rollups.ts';
import { Steps } from '../steps.ts';
import { storable } from '../storable.ts';
import { planOf, type RollupSpan, UsageGroups } from '../usage-query.ts';
import type { Database } from './database.ts';
import { rollupOf, SUM_COLUMNS } from './rollup-rows.ts';
import type { Statement, Value } from './session.ts';

/** By a cursor: a month by the hour and model is an answer of megabytes, which the driver would read in one turn of the loop. */
export function createUsageByHour(database: Database): UsageByHour {
  return async (range, filters = {}, groupBy = []) => {
    const { spans, byKey } = planOf(range, filters, groupBy);
    if (spans.length === 0) return [];
    const steps = new Steps();
    const groups = await database.snapshot(async (session) => {
      const found = new UsageGroups(groupBy);
      for (const span of spans) {
        const { statement, values } = sumsOf(span, filters, groupBy, byKey);
        for await (const row of session.rows(statement, values)) {
          found.add(rollupOf(row), span.unit);
          if (steps.isOver) await steps.next();
        }
      }
      return found;
    });
    return await groups.result(steps);
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
    at: groupBy.includes('hour') || groupBy.includes('day'),
    account_id: groupBy.includes('key') || groupBy.includes('account'),
    key_id: groupBy.includes('key'),
    model: groupBy.includes('model'),
    channel_id: groupBy.includes('channel'),
    code: true,
  };
  const columns = Object.entries(kept);
  const dimensions = columns.map(([name, is]) => (is ? name : name === 'at' ? '0::bigint AS at' : `''::text AS ${name}`));
  const group = columns.filter(([, is]) => is).map(([name]) => name);
  // Nearly the order of the answer, which is then quick to put right.
  const order = group.map((name) => (name === 'at' ? name : `${name} COLLATE "C"`));
  const sql = `SELECT ${[...dimensions, ...SUMS].join(', ')}, ARRAY[${BUCKETS.join(', ')}] AS first_token
    FROM usage_${unit}s WHERE ${conditions.join(' AND ')} GROUP BY ${group.join(', ')} ORDER BY ${order.join(', ')}`;
  return { statement: { name: `usage_${unit}_${asked}_by_${group.join('_')}`, text: sql }, values };
}
