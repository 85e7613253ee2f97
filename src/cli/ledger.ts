/** `mizu balance [NAME]`, `mizu ledger verify`, `mizu ledger journal`: balances, the check of the books, and the journal. */
import { defined } from '../codecs/defined.ts';
import { formatUsd } from '../store/money.ts';
import type { JournalRow } from '../store/ledger.ts';
import { accountNamed, countOption } from './operator-input.ts';
import { report, table, allowOnly, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';

export const LEDGER_USAGE = 'ledger verify | journal [--account NAME] [--ref ID] [--after SEQ] [--limit N]';

/** Wallets and sub-accounts, of all accounts or of the one that is named. */
export const balance: Verb = async (context) => {
  allowOnly(context, 'balance', 1);
  const store = await context.store();
  const [only] = context.args;
  const accounts = only === undefined ? await store.accounts.list() : [await accountNamed(context, only)];
  const rows: { readonly account: string; readonly key?: string; readonly balance: string }[] = [];
  for (const account of accounts) {
    rows.push({ account: account.name, balance: formatUsd(account.walletNanos) });
    for (const key of await store.keys.list(account.id)) {
      const own = key.subAccount ? await store.keys.balance(key.id) : undefined;
      if (own?.source === 'sub_account') rows.push({ account: account.name, key: key.id, balance: formatUsd(own.nanos) });
    }
  }
  report(
    context,
    rows,
    table([
      ['ACCOUNT', 'SUB-ACCOUNT', 'BALANCE USD'],
      ...rows.map(({ account, key, balance: usd }) => [account, key ?? '', usd]),
    ]),
  );
  return 0;
};

export const ledger: Verb = async (context) => {
  const [action] = context.args;
  if (action === 'verify') return await verify(context);
  if (action === 'journal') return await journal(context);
  throw new UsageError(LEDGER_USAGE);
};

/** Exit code 1 when anything differs from what the journal says. */
async function verify(context: VerbContext): Promise<number> {
  allowOnly(context, 'ledger verify', 0);
  const { rows, differences } = await (await context.store()).ledger.verify();
  const text =
    differences.length === 0
      ? `${rows} journal rows, no difference`
      : differences
          .map(({ what, subject, expected, found }) => `${what} ${subject}: expected ${expected}, found ${found}`)
          .join('\n');
  report(context, { rows, differences }, text);
  return differences.length === 0 ? 0 : 1;
}

/** Rows oldest first; `--ref` takes an exchange, a task or an operator's cause. */
async function journal(context: VerbContext): Promise<number> {
  allowOnly(context, 'ledger journal', 0, 'account', 'ref', 'after', 'limit');
  const owner = textOption(context, 'account');
  const ref = textOption(context, 'ref');
  const after = countOption(context, 'after', 0, Number.MAX_SAFE_INTEGER - 1);
  const limit = countOption(context, 'limit', 1, 100_000);
  const store = await context.store();
  const accountId = owner === undefined ? undefined : (await accountNamed(context, owner)).id;
  const rows = await store.ledger.journal(defined({ accountId, ref, after, limit }));
  const head = ['SEQ', 'AT', 'KIND', 'FROM', 'TO', 'USD', 'REF', 'BY'];
  report(context, rows, table([head, ...rows.map(cells)]));
  return 0;
}

function cells({ seq, atMs, kind, from, to, nanos, ref, by }: JournalRow): string[] {
  const moved = nanos > 0n;
  return [
    String(seq),
    new Date(atMs).toISOString(),
    kind,
    moved ? from : '',
    moved ? to : '',
    moved ? formatUsd(nanos) : '',
    ref,
    by ?? '',
  ];
}
