/** `mizu balance` and `mizu ledger …`: balances, the check of the books, open holds, and the journal. */
import { type Static, Type } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { InputError } from '../http/admin/refusals.ts';
import { AnyAccount, JournalQuery, Nothing, VerifyLedger } from '../http/admin/requests.ts';
import type { JournalHead, JournalRow, Verification } from '../store/ledger.ts';
import { formatUsd, parseUsd } from '../store/money.ts';
import type { RebuiltRollups } from '../store/rollups.ts';
import { Steps } from '../store/steps.ts';
import { accountNamed, tooManyRows } from './operator-input.ts';
import { table, type Verb, type VerbContext, verb } from './verb.ts';

/** A wallet, or with `key` a sub-account. */
export interface BalanceView {
  readonly account: string;
  readonly key?: string;
  readonly balance: string;
}

/**
 * Wallets and sub-accounts, of all accounts or of the one that is named. Throws `too_many_rows` where there are more than `most`.
 */
export async function balances(
  context: Pick<VerbContext, 'store'>,
  { account: only }: Static<typeof AnyAccount>,
  most = Number.POSITIVE_INFINITY,
): Promise<BalanceView[]> {
  const store = await context.store();
  const named = only === undefined ? undefined : await accountNamed(context, only);
  const accounts = named === undefined ? await store.accounts.list() : [named];
  const payers = Map.groupBy(
    await store.keys.list(named?.id, { isWanted: ({ subAccount }) => subAccount }),
    (key) => key.accountId,
  );
  const rows: BalanceView[] = [];
  const steps = new Steps();
  for (const account of accounts) {
    rows.push({ account: account.name, balance: formatUsd(account.walletNanos) });
    for (const { id } of payers.get(account.id) ?? []) {
      const own = await store.keys.balance(id);
      if (own?.source === 'sub_account') rows.push({ account: account.name, key: id, balance: formatUsd(own.nanos) });
      if (steps.isOver) await steps.next();
    }
    if (rows.length > most) throw tooManyRows(most, 'an account');
    if (steps.isOver) await steps.next();
  }
  return rows;
}

/** The verb can also mend what nothing is paid by. */
const VerifyAndRebuild = Type.Object(
  { ...VerifyLedger.properties, rebuildRollups: Type.Optional(Type.Boolean()) },
  { additionalProperties: false },
);

interface Verified extends Verification {
  readonly rebuilt?: RebuiltRollups;
}

export async function verifyLedger(
  context: VerbContext,
  { head, rebuildRollups }: Static<typeof VerifyAndRebuild>,
): Promise<Verified> {
  const kept = head === undefined ? undefined : keptHead(head);
  const { ledger } = await context.store();
  const rebuilt = rebuildRollups === true ? await ledger.rebuildRollups() : undefined;
  return { ...(await ledger.verify(defined({ head: kept }))), ...defined({ rebuilt }) };
}

function rebuiltText({ hours, keptUntilMs }: RebuiltRollups): string {
  const kept = keptUntilMs === undefined ? '' : `; kept until ${new Date(keptUntilMs).toISOString()}, whose rows were pruned`;
  return `sums of ${hours} hours made anew${kept}\n`;
}

const HEAD = /^(\d{1,15}):([0-9a-f]{64})$/;

/** What `ledger head` printed once. */
function keptHead(text: string): JournalHead {
  const [, seq, hash] = HEAD.exec(text) ?? [];
  if (seq === undefined || hash === undefined)
    throw new InputError((name) => `${name('head')} must be what \`ledger head\` printed: SEQ:HASH`);
  return { seq: Number(seq), hash };
}

/** To be kept where the store's own administrator cannot change it: it vouches for every row before it. */
export async function ledgerHead(context: VerbContext): Promise<JournalHead> {
  const { seq, hash } = await (await context.store()).ledger.head();
  return { seq, hash };
}

/** Money that is set aside for a video task, with the state of the task. */
export interface HoldView {
  readonly id: string;
  readonly account: string;
  readonly key: string;
  readonly amount: string;
  /** ISO 8601. */
  readonly opened: string;
  readonly task: string;
}

/** Open holds, oldest first. */
export async function openHolds(context: VerbContext, { account }: Static<typeof AnyAccount>): Promise<HoldView[]> {
  const store = await context.store();
  const accountId = account === undefined ? undefined : (await accountNamed(context, account)).id;
  const open = (await store.ledger.holds({ state: 'held' }))
    .filter((hold) => accountId === undefined || hold.accountId === accountId)
    .sort((a, b) => a.openedAtMs - b.openedAtMs);
  const views: HoldView[] = [];
  const steps = new Steps();
  for (const { id, accountId: owner, keyId, nanos, openedAtMs } of open) {
    const task = (await store.videos.inspect(id))?.state ?? 'none';
    views.push({ id, account: owner, key: keyId, amount: formatUsd(nanos), opened: new Date(openedAtMs).toISOString(), task });
    if (steps.isOver) await steps.next();
  }
  return views;
}

function holdsText(holds: readonly HoldView[]): string {
  const lines = holds.map(({ id, account, key, amount, opened, task }) => [id, account, key, amount, opened, task]);
  const total = holds.reduce((sum, { amount }) => {
    const nanos = parseUsd(amount);
    return nanos.ok ? sum + nanos.value : sum;
  }, 0n);
  return `${table([['ID', 'ACCOUNT', 'KEY', 'USD', 'SINCE', 'TASK'], ...lines])}\ntotal $${formatUsd(total)}`;
}

/** Rows oldest first; `ref` takes an exchange, a task or an operator's cause. */
export async function journalRows(
  context: VerbContext,
  { account, ...rest }: Static<typeof JournalQuery>,
): Promise<JournalRow[]> {
  const store = await context.store();
  const accountId = account === undefined ? undefined : (await accountNamed(context, account)).id;
  return await store.ledger.journal(defined({ accountId, ...rest }));
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

export const BALANCE: Verb = verb({
  name: 'balance',
  usage: '[NAME]',
  does: 'The balance of an account, or of all.',
  options: AnyAccount,
  arguments: ['account'],
  run: (context, query) => balances(context, query),
  text: (rows) =>
    table([['ACCOUNT', 'SUB-ACCOUNT', 'BALANCE USD'], ...rows.map(({ account, key, balance }) => [account, key ?? '', balance])]),
});

export const LEDGER: readonly Verb[] = [
  verb({
    name: 'ledger verify',
    usage: 'verify [--head SEQ:HASH] [--rebuild-rollups]',
    does: 'Recounts the store from its journal and names every difference. Exit code 1 where there is one.',
    options: VerifyAndRebuild,
    run: verifyLedger,
    text: ({ rows, differences, rebuilt }) => {
      const before = rebuilt === undefined ? '' : rebuiltText(rebuilt);
      if (differences.length === 0) return `${before}${rows} journal rows, no difference`;
      const lines = differences.map(
        ({ what, subject, expected, found }) => `${what} ${subject}: expected ${expected}, found ${found}`,
      );
      return `${before}${lines.join('\n')}`;
    },
    // When anything differs from the journal.
    code: ({ differences }) => (differences.length === 0 ? 0 : 1),
  }),
  verb({
    name: 'ledger head',
    usage: 'head',
    does: 'The newest row of the journal, to be kept elsewhere for `ledger verify --head`.',
    options: Nothing,
    run: ledgerHead,
    text: ({ seq, hash }) => `${seq}:${hash}`,
  }),
  verb({
    name: 'ledger holds',
    usage: 'holds [--account NAME]',
    does: 'Money that is set aside for videos.',
    options: AnyAccount,
    run: openHolds,
    text: holdsText,
  }),
  verb({
    name: 'ledger journal',
    usage: 'journal [--account NAME] [--ref ID] [--after SEQ] [--limit N]',
    does: 'The journal, oldest first.',
    options: JournalQuery,
    run: journalRows,
    text: (rows) => table([['SEQ', 'AT', 'KIND', 'FROM', 'TO', 'USD', 'REF', 'BY'], ...rows.map(cells)]),
  }),
];
