/**
 * `GET /v1/usage?group_by=day&from=YYYY-MM-DD&to=YYYY-MM-DD&model=ID`: what the calling key used, by UTC day, by hour or by model
 * (an addition of ours).
 */
import { invalid } from '../../codecs/canonical/error.ts';
import { dayName, dayNumber, dayOf } from '../../store/spend-windows.ts';
import type { UsageDimension } from '../../store/rollups.ts';
import { listText } from '../admin/json-text.ts';
import { fromStore } from '../from-store.ts';
import { principalOf } from '../request/authenticate.ts';
import { Waiting } from '../exchange/reply.ts';
import type { Call, Handler } from '../gateway.ts';
import { queryOfTarget } from '../server/route-table.ts';
import { usageDay, usageGroup } from './usage-day.ts';

const DAY_MS = 86_400_000;
/** Days of hours in one answer: 744 hours, times the models. */
const MOST_DAYS_OF_HOURS = 31;
const DEFAULT_DAYS_OF_HOURS = 7;
/** Everything that is kept. */
const FIRST_DAY = 0;

const GROUPS = ['hour', 'day', 'model'] as const;
type Group = (typeof GROUPS)[number];

export const usage: Handler = async (call) => {
  const { store, clock } = call.gateway;
  const { key } = await principalOf(call);
  const query = queryOfTarget(call.request.url ?? '');
  const groups = groupsOf(query);
  const [from, to] = [dayIn(query, 'from'), dayIn(query, 'to')];
  await fromStore(clock, store.settlements.caughtUp());
  if (groups === undefined) {
    const range = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
    await answer(call, await fromStore(clock, store.spend.usageByDay(key.id, range)), usageDay);
    return;
  }
  const last = to === undefined ? dayOf(clock.now()) : (dayNumber(to) ?? 0);
  const first = firstOf(from, last, groups);
  const model = query.get('model');
  const found = await fromStore(
    clock,
    store.usageByHour(
      { fromMs: first * DAY_MS, toMs: (last + 1) * DAY_MS },
      { keyId: key.id, ...(model === null ? {} : { model }) },
      groups satisfies readonly UsageDimension[],
    ),
  );
  await answer(call, found, usageGroup);
};

/** A month of hours is some hundred thousand rows where a key uses many models. */
async function answer<Row>(call: Call, rows: readonly Row[], of: (row: Row) => object): Promise<void> {
  const body = `{"object":"list","currency":"USD","data":${await listText(rows, of)}}`;
  new Waiting(call).answer({ status: 200, body, headers: { 'cache-control': 'no-store' } });
}

/** Undefined where nothing but days is asked for. */
function groupsOf(query: URLSearchParams): readonly Group[] | undefined {
  const asked = query.get('group_by');
  if (asked === null && query.get('model') === null) return undefined;
  const words = (asked ?? 'day').split(',');
  const groups = GROUPS.filter((group) => words.includes(group));
  if (groups.length !== words.length || (groups.includes('hour') && groups.includes('day')))
    throw invalid('group_by', 'group_by must be hour, day or model, or hour,model or day,model.');
  return groups;
}

function firstOf(from: string | undefined, last: number, groups: readonly Group[]): number {
  if (!groups.includes('hour')) return from === undefined ? FIRST_DAY : (dayNumber(from) ?? FIRST_DAY);
  const first = from === undefined ? last - DEFAULT_DAYS_OF_HOURS + 1 : (dayNumber(from) ?? FIRST_DAY);
  if (last - first >= MOST_DAYS_OF_HOURS)
    throw invalid(
      'from',
      `group_by=hour answers ${MOST_DAYS_OF_HOURS} days at most, so from ${dayName(last - MOST_DAYS_OF_HOURS + 1)}.`,
    );
  return first;
}

function dayIn(query: URLSearchParams, name: 'from' | 'to'): string | undefined {
  const day = query.get(name);
  if (day === null) return undefined;
  if (dayNumber(day) === undefined) throw invalid(name, `${name} must be a day such as 2026-03-01.`);
  return day;
}
