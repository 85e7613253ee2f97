/** `mizu balance [NAME]`, `mizu ledger verify|head|holds|journal`: balances, the check of the books, open holds, and the journal. */
import { defined } from '../codecs/defined.ts';
import { formatUsd } from '../store/money.ts';
import type { Hold, JournalHead, JournalRow } from '../store/ledger.ts';
import { accountNamed, countOption } from './operator-input.ts';
import { report, table, allowOnly, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';

export const LEDGER_USAGE =
  'ledger verify [--head SEQ:HASH] | head | holds [--account NAME] | journal [--account NAME] [--ref ID] [--after SEQ] [--limit N]';

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
  if (action === 'head') return await head(context);
  if (action === 'holds') return await holds(context);
  if (action === 'journal') return await journal(context);
  throw new UsageError(LEDGER_USAGE);
};

/** Exit code 1 when anything differs from what the journal says. */
async function verify(context: VerbContext): Promise<number> {
  allowOnly(context, 'ledger verify', 0, 'head');
  const kept = keptHead(context);
  const { ledger: books } = await context.store();
  const { rows, differences } = await books.verify(kept === undefined ? {} : { head: kept });
  const text =
    differences.length === 0
      ? `${rows} journal rows, no difference`
      : differences
          .map(({ what, subject, expected, found }) => `${what} ${subject}: expected ${expected}, found ${found}`)
          .join('\n');
  report(context, { rows, differences }, text);
  return differences.length === 0 ? 0 : 1;
}

const HEAD = /^(\d{1,15}):([0-9a-f]{64})$/;

/** What `ledger head` printed once. */
function keptHead(context: VerbContext): JournalHead | undefined {
  const text = textOption(context, 'head');
  if (text === undefined) return undefined;
  const [, seq, hash] = HEAD.exec(text) ?? [];
  if (seq === undefined || hash === undefined) throw new UsageError('--head must be what `ledger head` printed: SEQ:HASH');
  return { seq: Number(seq), hash };
}

/** To be kept where the store's own administrator cannot change it: it vouches for every row before it. */
async function head(context: VerbContext): Promise<number> {
  allowOnly(context, 'ledger head', 0);
  const { seq, hash } = await (await context.store()).ledger.head();
  report(context, { seq, hash }, `${seq}:${hash}`);
  return 0;
}

/** Money that is set aside for video tasks, oldest first, with the state of the task. */
async function holds(context: VerbContext): Promise<number> {
  allowOnly(context, 'ledger holds', 0, 'account');
  const store = await context.store();
  const owner = textOption(context, 'account');
  const accountId = owner === undefined ? undefined : (await accountNamed(context, owner)).id;
  const open = (await store.ledger.holds({ state: 'held' }))
    .filter((hold) => accountId === undefined || hold.accountId === accountId)
    .sort((a, b) => a.openedAtMs - b.openedAtMs);
  const rows: { readonly hold: Hold; readonly task: string }[] = [];
  for (const hold of open) rows.push({ hold, task: (await store.videos.inspect(hold.id))?.state ?? 'none' });
  const lines = rows.map(({ hold, task }) => [
    hold.id,
    hold.accountId,
    hold.keyId,
    formatUsd(hold.nanos),
    new Date(hold.openedAtMs).toISOString(),
    task,
  ]);
  const total = formatUsd(open.reduce((sum, { nanos }) => sum + nanos, 0n));
  report(
    context,
    rows.map(({ hold: { id, accountId: account, keyId: key, nanos, openedAtMs }, task }) => {
      return { id, account, key, amount: formatUsd(nanos), opened: new Date(openedAtMs).toISOString(), task };
    }),
    `${table([['ID', 'ACCOUNT', 'KEY', 'USD', 'SINCE', 'TASK'], ...lines])}\ntotal $${total}`,
  );
  return 0;
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
