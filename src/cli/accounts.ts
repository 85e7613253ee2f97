/** `mizu accounts create|list|credit|limit|change|disable|enable`. Every change is one journaled transaction. */
import type { Account, AccountChanges } from '../store/accounts.ts';
import { formatUsd } from '../store/money.ts';
import { accountNamed, CAUSE, causeOf, reasonOf, usd } from './operator-input.ts';
import { newRateLimits, RATE_LIMIT_OPTIONS, RATE_LIMIT_USAGE, rateLimitWords, requestedRateLimits } from './rate-limits.ts';
import { argument, RefusedError, report, table, allowOnly, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';

export const ACCOUNTS_USAGE = `accounts create NAME [--class C] [--credit USD] [--unlimited] ${RATE_LIMIT_USAGE} | list | credit NAME USD | limit NAME ${RATE_LIMIT_USAGE} ("none" removes) | change NAME [--class C] [--unlimited | --limited] | disable NAME | enable NAME`;

export const accounts: Verb = async (context) => {
  const [action] = context.args;
  switch (action) {
    case 'create':
      allowOnly(context, 'accounts create', 1, 'class', 'credit', 'unlimited', ...RATE_LIMIT_OPTIONS, ...CAUSE);
      return await create(context);
    case 'list':
      allowOnly(context, 'accounts list', 0);
      return await list(context);
    case 'credit':
      allowOnly(context, 'accounts credit', 2, ...CAUSE);
      return await credit(context);
    case 'limit':
      allowOnly(context, 'accounts limit', 1, ...RATE_LIMIT_OPTIONS, ...CAUSE);
      return await change(context, requestedLimits(context));
    case 'change':
      allowOnly(context, 'accounts change', 1, 'class', 'unlimited', 'limited', ...CAUSE);
      return await change(context, requestedChanges(context));
    case 'disable':
    case 'enable':
      allowOnly(context, `accounts ${action}`, 1, ...CAUSE);
      return await change(context, { disabled: action === 'disable' });
    default:
      throw new UsageError(ACCOUNTS_USAGE);
  }
};

async function create(context: VerbContext): Promise<number> {
  const name = argument(context, 1, 'NAME');
  const accountClass = textOption(context, 'class');
  const creditNanos = usd(textOption(context, 'credit') ?? '0', '--credit');
  const rateLimits = newRateLimits(context);
  const store = await context.store();
  const made = await store.accounts.create(
    {
      name,
      creditNanos,
      ...(accountClass === undefined ? {} : { class: accountClass }),
      ...(context.options['unlimited'] === true ? { unlimited: true } : {}),
      ...(rateLimits === undefined ? {} : { rateLimits }),
    },
    causeOf(context),
  );
  if (!made.ok) throw new RefusedError(reasonOf(made.refusal, { name: 'NAME' }));
  report(
    context,
    accountJson(made.value),
    `account ${made.value.name} (${made.value.id}), balance $${formatUsd(made.value.walletNanos)}`,
  );
  return 0;
}

async function list(context: VerbContext): Promise<number> {
  const found = await (await context.store()).accounts.list();
  const rows = found.map((account) => [
    account.id,
    account.name,
    account.class,
    formatUsd(account.walletNanos),
    stateOf(account),
    rateLimitWords(account.rateLimits).join('; '),
  ]);
  report(context, found.map(accountJson), table([['ID', 'NAME', 'CLASS', 'BALANCE USD', 'STATE', 'LIMITS'], ...rows]));
  return 0;
}

async function credit(context: VerbContext): Promise<number> {
  const name = argument(context, 1, 'NAME');
  const nanos = usd(argument(context, 2, 'USD'), 'USD', true);
  const account = await accountNamed(context, name);
  const credited = await (await context.store()).accounts.credit(account.id, nanos, causeOf(context));
  if (!credited.ok) throw new RefusedError(reasonOf(credited.refusal));
  report(
    context,
    accountJson(credited.value),
    `account ${credited.value.name}, balance $${formatUsd(credited.value.walletNanos)}`,
  );
  return 0;
}

function requestedLimits(context: VerbContext): AccountChanges {
  const rateLimits = requestedRateLimits(context);
  if (rateLimits === undefined) throw new UsageError('nothing to change is given');
  return { rateLimits };
}

function requestedChanges(context: VerbContext): AccountChanges {
  const { unlimited, limited } = context.options;
  const accountClass = textOption(context, 'class');
  if (unlimited === true && limited === true) throw new UsageError('--unlimited and --limited exclude each other');
  if (accountClass === undefined && unlimited !== true && limited !== true) throw new UsageError('nothing to change is given');
  return {
    ...(accountClass === undefined ? {} : { class: accountClass }),
    ...(unlimited === true || limited === true ? { unlimited: unlimited === true } : {}),
  };
}

async function change(context: VerbContext, changes: AccountChanges): Promise<number> {
  const account = await accountNamed(context, argument(context, 1, 'NAME'));
  const changed = await (await context.store()).accounts.change(account.id, changes, causeOf(context));
  if (!changed.ok) throw new RefusedError(reasonOf(changed.refusal));
  const { value } = changed;
  const words = [`account ${value.name}, class ${value.class}, ${stateOf(value)}`, ...rateLimitWords(value.rateLimits)];
  report(context, accountJson(value), words.join('; '));
  return 0;
}

function accountJson(account: Account): object {
  const { id, name, class: accountClass, unlimited, disabled, rateLimits, walletNanos } = account;
  const limits = rateLimits === undefined ? {} : { rateLimits };
  return { id, name, class: accountClass, unlimited, disabled, ...limits, balance: formatUsd(walletNanos) };
}

function stateOf(account: Account): string {
  if (account.disabled) return 'disabled';
  return account.unlimited ? 'unlimited' : 'active';
}
