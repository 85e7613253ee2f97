/** `mizu accounts …`: accounts with their wallets and limits. Every change is one journaled transaction. */
import { type Static, Type } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { InputError, refusedBy } from '../http/admin/refusals.ts';
import { type AccountQuery, ChangeAccount, CreateAccount, CreditAccount, Nothing, OneAccount } from '../http/admin/requests.ts';
import type { Account, AccountRecord } from '../store/accounts.ts';
import { formatUsd } from '../store/money.ts';
import type { RateLimits } from '../store/rate-limits.ts';
import { accountNamed, usd } from './operator-input.ts';
import { type PageOf, pageOf } from './paging.ts';
import { newRateLimits, RATE_LIMIT_USAGE, rateLimitWords } from './rate-limits.ts';
import { table, type Verb, type VerbContext, verb } from './verb.ts';

export interface AccountView {
  readonly id: string;
  readonly name: string;
  readonly class: string;
  readonly unlimited: boolean;
  readonly disabled: boolean;
  readonly rateLimits?: RateLimits;
  /** Decimal US dollars. */
  readonly balance: string;
}

export async function createAccount(
  context: VerbContext,
  { name, class: accountClass, credit = '0', unlimited, rateLimits: asked }: Static<typeof CreateAccount>,
): Promise<AccountView> {
  const creditNanos = usd(credit, 'credit');
  const rateLimits = newRateLimits(asked);
  const store = await context.store();
  const account = { name, creditNanos, ...defined({ class: accountClass, unlimited, rateLimits }) };
  const made = await store.accounts.create(account, context.cause);
  if (!made.ok) throw refusedBy(made.refusal);
  return viewOf(made.value);
}

async function listAccounts(context: VerbContext): Promise<AccountView[]> {
  return (await (await context.store()).accounts.list()).map(viewOf);
}

export async function pageOfAccounts(context: VerbContext, query: Static<typeof AccountQuery>): Promise<PageOf<AccountView>> {
  const { accounts } = await context.store();
  const { data, ...rest } = await pageOf(accounts.list, query, ({ id, name, class: of }: AccountRecord) => [id, name, of]);
  return { data: data.map(viewOf), ...rest };
}

export async function showAccount(context: VerbContext, { account }: Static<typeof OneAccount>): Promise<AccountView> {
  return viewOf(await accountNamed(context, account));
}

export async function creditAccount(context: VerbContext, input: Static<typeof CreditAccount>): Promise<AccountView> {
  const nanos = usd(input.amount, 'amount', true);
  const account = await accountNamed(context, input.account);
  const credited = await (await context.store()).accounts.credit(account.id, nanos, context.cause);
  if (!credited.ok) throw refusedBy(credited.refusal);
  return viewOf(credited.value);
}

export async function changeAccount(
  context: VerbContext,
  { account: name, ...asked }: Static<typeof ChangeAccount>,
): Promise<AccountView> {
  const { rateLimits, ...rest } = asked;
  const limits = rateLimits === undefined || Object.keys(rateLimits).length === 0 ? undefined : rateLimits;
  const changes = defined({ ...rest, rateLimits: limits });
  if (Object.keys(changes).length === 0) throw new InputError('nothing to change is given');
  const account = await accountNamed(context, name);
  const changed = await (await context.store()).accounts.change(account.id, changes, context.cause);
  if (!changed.ok) throw refusedBy(changed.refusal);
  return viewOf(changed.value);
}

function viewOf({ id, name, class: accountClass, unlimited, disabled, rateLimits, walletNanos }: Account): AccountView {
  const limits = rateLimits === undefined ? {} : { rateLimits };
  return { id, name, class: accountClass, unlimited, disabled, ...limits, balance: formatUsd(walletNanos) };
}

const changedText = (account: AccountView): string =>
  [`account ${account.name}, class ${account.class}, ${stateOf(account)}`, ...rateLimitWords(account.rateLimits)].join('; ');

function stateOf(account: AccountView): string {
  if (account.disabled) return 'disabled';
  return account.unlimited ? 'unlimited' : 'active';
}

function switched(action: 'disable' | 'enable'): Verb {
  return verb({
    name: `accounts ${action}`,
    usage: `${action} NAME`,
    does: action === 'disable' ? 'Refuses all keys of the account until it is enabled.' : 'Takes a disabled account back.',
    options: OneAccount,
    arguments: ['account'],
    changes: true,
    run: (context, { account }) => changeAccount(context, { account, disabled: action === 'disable' }),
    text: changedText,
  });
}

export const ACCOUNTS: readonly Verb[] = [
  verb({
    name: 'accounts create',
    usage: `create NAME [--class C] [--credit USD] [--unlimited] ${RATE_LIMIT_USAGE}`,
    does: 'Makes an account with a wallet.',
    options: CreateAccount,
    arguments: ['name'],
    changes: true,
    run: createAccount,
    text: ({ name, id, balance }) => `account ${name} (${id}), balance $${balance}`,
  }),
  verb({
    name: 'accounts list',
    usage: 'list',
    does: 'All accounts with balance, state and limits.',
    options: Nothing,
    run: listAccounts,
    text: (accounts) =>
      table([
        ['ID', 'NAME', 'CLASS', 'BALANCE USD', 'STATE', 'LIMITS'],
        ...accounts.map((account) => [
          account.id,
          account.name,
          account.class,
          account.balance,
          stateOf(account),
          rateLimitWords(account.rateLimits).join('; '),
        ]),
      ]),
  }),
  verb({
    name: 'accounts credit',
    usage: 'credit NAME USD',
    does: 'Adds US dollars to the wallet; a negative amount takes some back.',
    options: CreditAccount,
    arguments: ['account', 'amount'],
    changes: true,
    run: creditAccount,
    text: ({ name, balance }) => `account ${name}, balance $${balance}`,
  }),
  verb({
    name: 'accounts limit',
    usage: `limit NAME ${RATE_LIMIT_USAGE} ("none" removes)`,
    does: 'Sets what the account may ask for a minute and at once.',
    options: Type.Pick(ChangeAccount, ['account', 'rateLimits'], { additionalProperties: false }),
    arguments: ['account'],
    changes: true,
    run: changeAccount,
    text: changedText,
  }),
  verb({
    name: 'accounts change',
    usage: 'change NAME [--class C] [--unlimited | --limited]',
    does: 'Changes the class, or whether a balance is needed.',
    options: Type.Pick(ChangeAccount, ['account', 'class', 'unlimited'], { additionalProperties: false }),
    arguments: ['account'],
    negations: { limited: 'unlimited' },
    changes: true,
    run: changeAccount,
    text: changedText,
  }),
  switched('disable'),
  switched('enable'),
];
