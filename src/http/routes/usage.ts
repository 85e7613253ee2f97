/** `GET /v1/usage?from=YYYY-MM-DD&to=YYYY-MM-DD`: what the calling key used, by UTC day (an addition of ours). */
import { invalid } from '../../codecs/canonical/error.ts';
import { formatUsd } from '../../store/money.ts';
import type { DayUsage } from '../../store/spend-windows.ts';
import { authenticate } from '../authenticate.ts';
import { Waiting } from '../exchange.ts';
import type { Handler } from '../gateway.ts';

export const usage: Handler = async (call) => {
  const { store, clock } = call.gateway;
  const { key } = await authenticate(call.request, call.ip, store.keys, clock.now());
  const query = new URLSearchParams((call.request.url ?? '').split('?')[1] ?? '');
  const from = dayOf(query, 'from');
  const to = dayOf(query, 'to');
  const days = await store.spend.usageByDay(key.id, {
    ...(from === undefined ? {} : { from }),
    ...(to === undefined ? {} : { to }),
  });
  const body = JSON.stringify({ object: 'list', currency: 'USD', data: days.map(writeDay) });
  new Waiting(call.response).answer({ status: 200, body, headers: { 'cache-control': 'no-store' } });
};

function dayOf(query: URLSearchParams, name: 'from' | 'to'): string | undefined {
  const day = query.get(name);
  if (day === null) return undefined;
  const valid = /^\d{4}-\d{2}-\d{2}$/.test(day) && !Number.isNaN(Date.parse(`${day}T00:00:00Z`));
  if (!valid) throw invalid(name, `${name} must be a day such as 2026-03-01.`);
  return day;
}

function writeDay(day: DayUsage): object {
  return {
    day: day.day,
    requests: day.requests,
    input_tokens: day.inputTokens,
    cached_input_tokens: day.cachedInputTokens,
    cache_write_tokens: day.cacheWriteTokens,
    output_tokens: day.outputTokens,
    reasoning_tokens: day.reasoningTokens,
    images: day.images,
    videos: day.videos,
    charged: formatUsd(day.chargedNanos),
  };
}
