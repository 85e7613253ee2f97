/** `GET /v1/usage?from=YYYY-MM-DD&to=YYYY-MM-DD`: what the calling key used, by UTC day (an addition of ours). */
import { invalid } from '../../codecs/canonical/error.ts';
import { dayNumber } from '../../store/spend-windows.ts';
import { fromStore } from '../from-store.ts';
import { principalOf } from '../request/authenticate.ts';
import { Waiting } from '../exchange/reply.ts';
import type { Handler } from '../gateway.ts';
import { queryOfTarget } from '../server/route-table.ts';
import { usageDay } from './usage-day.ts';

export const usage: Handler = async (call) => {
  const { store, clock } = call.gateway;
  const { key } = await principalOf(call);
  const query = queryOfTarget(call.request.url ?? '');
  const from = dayOf(query, 'from');
  const to = dayOf(query, 'to');
  await fromStore(clock, store.settlements.caughtUp());
  const range = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  const days = await fromStore(clock, store.spend.usageByDay(key.id, range));
  const body = JSON.stringify({ object: 'list', currency: 'USD', data: days.map(usageDay) });
  new Waiting(call).answer({ status: 200, body, headers: { 'cache-control': 'no-store' } });
};

function dayOf(query: URLSearchParams, name: 'from' | 'to'): string | undefined {
  const day = query.get(name);
  if (day === null) return undefined;
  if (dayNumber(day) === undefined) throw invalid(name, `${name} must be a day such as 2026-03-01.`);
  return day;
}
