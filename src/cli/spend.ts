/** `mizu spend`: what keys used and were charged, by UTC day. */
import type { Static } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { RefusedError } from '../http/admin/refusals.ts';
import { SpendQuery } from '../http/admin/requests.ts';
import { type UsageDay, usageDay } from '../http/routes/usage-day.ts';
import type { KeyRecord } from '../store/keys.ts';
import { formatUsd, parseUsd } from '../store/money.ts';
import { Steps } from '../store/steps.ts';
import { accountNamed, checkDays, tooManyRows } from './operator-input.ts';
import { table, type Verb, type VerbContext, verb } from './verb.ts';

/** What one key used on one day. */
export interface SpendView extends UsageDay {
  readonly key: string;
  readonly name: string;
  readonly account: string;
}

/** Throws `too_many_rows` where there are more than `most`. */
export async function spendByDay(
  context: Pick<VerbContext, 'store'>,
  query: Static<typeof SpendQuery>,
  most = Number.POSITIVE_INFINITY,
): Promise<SpendView[]> {
  const { from, to } = query;
  checkDays(query);
  const store = await context.store();
  const days: SpendView[] = [];
  const steps = new Steps();
  for (const { id, name, accountId } of await wantedKeys(context, query)) {
    for (const day of await store.spend.usageByDay(id, defined({ from, to }))) {
      days.push({ key: id, name, account: accountId, ...usageDay(day) });
    }
    if (days.length > most) throw tooManyRows(most, 'an account, a key or days');
    if (steps.isOver) await steps.next();
  }
  return days;
}

async function wantedKeys(
  context: Pick<VerbContext, 'store'>,
  { account, key: id }: Static<typeof SpendQuery>,
): Promise<KeyRecord[]> {
  const store = await context.store();
  const found = await store.keys.list(account === undefined ? undefined : (await accountNamed(context, account)).id);
  const keys = id === undefined ? found : found.filter((key) => key.id === id);
  if (id !== undefined && keys.length === 0) throw new RefusedError(`there is no key ${id}`, 'unknown', 'unknown_key');
  return keys;
}

function textOf(days: readonly SpendView[]): string {
  const rows = days.map((day) => [
    day.day,
    day.key,
    day.name,
    String(day.requests),
    String(day.input_tokens),
    String(day.output_tokens),
    day.charged,
  ]);
  const total = days.reduce((sum, { charged }) => {
    const nanos = parseUsd(charged, { negative: true });
    return nanos.ok ? sum + nanos.value : sum;
  }, 0n);
  return `${table([['DAY', 'KEY', 'NAME', 'REQUESTS', 'INPUT', 'OUTPUT', 'CHARGED USD'], ...rows])}\ntotal $${formatUsd(total)}`;
}

export const SPEND: Verb = verb({
  name: 'spend',
  usage: '[--account NAME] [--key ID] [--from DAY] [--to DAY]',
  does: 'What keys used and were charged, by UTC day.',
  options: SpendQuery,
  run: (context, query) => spendByDay(context, query),
  text: textOf,
});
