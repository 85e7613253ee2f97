/** `mizu spend [--account NAME] [--key ID] [--from DAY] [--to DAY]`: what keys used and were charged, by UTC day. */
import { formatUsd } from '../store/money.ts';
import { usageDay } from '../http/routes/usage-day.ts';
import { accountNamed, dayOption } from './operator-input.ts';
import { RefusedError, report, table, allowOnly, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';
import type { KeyRecord } from '../store/keys.ts';

export const SPEND_USAGE = 'spend [--account NAME] [--key ID] [--from DAY] [--to DAY]';

export const spend: Verb = async (context) => {
  allowOnly(context, 'spend', 0, 'account', 'key', 'from', 'to');
  const from = dayOption(context, 'from');
  const to = dayOption(context, 'to');
  if (from !== undefined && to !== undefined && from > to) throw new UsageError('--from is after --to');
  const store = await context.store();
  const lines: { readonly key: KeyRecord; readonly day: ReturnType<typeof usageDay> }[] = [];
  let nanos = 0n;
  for (const key of await wantedKeys(context)) {
    const range = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
    for (const day of await store.spend.usageByDay(key.id, range)) {
      nanos += day.chargedNanos;
      lines.push({ key, day: usageDay(day) });
    }
  }
  const rows = lines.map(({ key, day }) => [
    day.day,
    key.id,
    key.name,
    String(day.requests),
    String(day.input_tokens),
    String(day.output_tokens),
    day.charged,
  ]);
  const head = ['DAY', 'KEY', 'NAME', 'REQUESTS', 'INPUT', 'OUTPUT', 'CHARGED USD'];
  report(
    context,
    lines.map(({ key, day }) => ({ key: key.id, name: key.name, account: key.accountId, ...day })),
    `${table([head, ...rows])}\ntotal $${formatUsd(nanos)}`,
  );
  return 0;
};

async function wantedKeys(context: VerbContext): Promise<KeyRecord[]> {
  const store = await context.store();
  const owner = textOption(context, 'account');
  const id = textOption(context, 'key');
  const found = await store.keys.list(owner === undefined ? undefined : (await accountNamed(context, owner)).id);
  const keys = id === undefined ? found : found.filter((key) => key.id === id);
  if (id !== undefined && keys.length === 0) throw new RefusedError(`there is no key ${id}`);
  return keys;
}
