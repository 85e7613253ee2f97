/** `mizu balance`, `mizu ledger verify`. */
import { formatUsd } from '../../store/money.ts';
import { report, table, UsageError, type Verb } from './verb.ts';

/** Wallets and sub-accounts, of all accounts or of the one that is named. */
export const balance: Verb = async (context) => {
  const store = await context.store();
  const [only] = context.args;
  const accounts = (await store.accounts.list()).filter(({ id, name }) => only === undefined || only === id || only === name);
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

/** Exit code 1 when anything differs from what the journal says. */
export const ledger: Verb = async (context) => {
  if (context.args[0] !== 'verify') throw new UsageError('ledger verify');
  const { rows, differences } = await (await context.store()).ledger.verify();
  const text =
    differences.length === 0
      ? `${rows} journal rows, no difference`
      : differences
          .map(({ what, subject, expected, found }) => `${what} ${subject}: expected ${expected}, found ${found}`)
          .join('\n');
  report(context, { rows, differences }, text);
  return differences.length === 0 ? 0 : 1;
};
