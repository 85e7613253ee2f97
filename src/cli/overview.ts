/**
 * What was asked, failed and charged in a time, in groups: read from the sums by hour, so that a month is a query of
 * milliseconds.
 */
import type { Static } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { InputError } from '../http/admin/refusals.ts';
import type { OverviewQuery } from '../http/admin/requests.ts';
import { formatUsd } from '../store/money.ts';
import { addSums, firstTokenMs, HOUR_MS, noSums, type UsageGroup } from '../store/rollups.ts';
import { accountNamed, moment } from './operator-input.ts';
import type { VerbContext } from './verb.ts';

type Counts = Omit<UsageGroup, 'hour' | 'day' | 'accountId' | 'keyId' | 'model' | 'channelId' | 'code'>;

/** Whole UTC hours: those that begin before `to` and end after `from`. */
export async function overview(context: VerbContext, query: Static<typeof OverviewQuery>): Promise<object> {
  const { from = '24h', to, by = [], account, key: keyId, model, channel: channelId } = query;
  const nowMs = context.clock.now();
  const fromMs = Math.floor(moment(from, 'from', nowMs) / HOUR_MS) * HOUR_MS;
  const toMs = Math.ceil((to === undefined ? nowMs : moment(to, 'to', nowMs)) / HOUR_MS) * HOUR_MS;
  if (fromMs >= toMs) throw new InputError((name) => `${name('from')} is not before ${name('to')}`);
  const accountId = account === undefined ? undefined : (await accountNamed(context, account)).id;
  const { usageByHour } = await context.store();
  const groups = await usageByHour({ fromMs, toMs }, defined({ accountId, keyId, model, channelId }), by);
  return { fromMs, toMs, total: countsOf(totalOf(groups)), data: by.length === 0 ? [] : groups.map(viewOf) };
}

function totalOf(groups: readonly UsageGroup[]): Counts {
  const total = { ...noSums(), errors: 0 };
  for (const group of groups) {
    addSums(total, group);
    total.errors += group.errors;
  }
  return total;
}

function viewOf({ hour, day, accountId: account, keyId: key, model, channelId: channel, code, ...counts }: UsageGroup): object {
  return { ...defined({ hour, day, account, key, model, channel, code }), ...countsOf(counts) };
}

function countsOf(counts: Counts): object {
  const { requests, errors, inputTokens, cachedInputTokens, cacheWriteTokens, outputTokens, reasoningTokens } = counts;
  const { images, videos, durationMs, chargedNanos, firstToken } = counts;
  const within = (share: number): number | undefined => {
    const ms = firstTokenMs(firstToken, share);
    return ms === undefined ? undefined : Math.round(ms);
  };
  return {
    ...{
      requests,
      errors,
      inputTokens,
      cachedInputTokens,
      cacheWriteTokens,
      outputTokens,
      reasoningTokens,
      images,
      videos,
      durationMs,
    },
    charge: formatUsd(chargedNanos),
    ...defined({ firstTokenP50Ms: within(0.5), firstTokenP95Ms: within(0.95) }),
  };
}
