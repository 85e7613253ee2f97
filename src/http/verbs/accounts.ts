/** `mizu accounts create NAME [--class C] [--credit USD] [--unlimited]`, `accounts list`, `accounts credit NAME USD`. */
import type { Account } from '../../store/accounts.ts';
import { formatUsd, parseUsd } from '../../store/money.ts';
import { argument, RefusedError, report, table, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';

export const accounts: Verb = async (context) => {
  const [action] = context.args;
  switch (action) {
    case 'create':
      return await create(context);
    case 'list':
      return await list(context);
    case 'credit':
      return await credit(context);
    default:
      throw new UsageError('accounts create NAME | accounts list | accounts credit NAME USD');
  }
};

async function create(context: VerbContext): Promise<number> {
  const name = argument(context, 1, 'NAME');
  const accountClass = textOption(context, 'class');
  const creditNanos = usd(textOption(context, 'credit') ?? '0', '--credit', false);
  const store = await context.store();
  const made = await store.accounts.create(
    {
      name,
      creditNanos,
      ...(accountClass === undefined ? {} : { class: accountClass }),
      ...(context.options['unlimited'] === true ? { unlimited: true } : {}),
    },
    { id: context.mint('op_'), by: 'cli' },
  );
  if (!made.ok) throw new RefusedError(reasonOf(made.refusal));
  report(
    context,
    shown(made.value),
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
  ]);
  report(context, found.map(shown), table([['ID', 'NAME', 'CLASS', 'BALANCE USD', 'STATE'], ...rows]));
  return 0;
}

async function credit(context: VerbContext): Promise<number> {
  const name = argument(context, 1, 'NAME');
  const nanos = usd(argument(context, 2, 'USD'), 'USD', true);
  const store = await context.store();
  const account = await store.accounts.find(name);
  if (account === undefined) throw new RefusedError(`there is no account ${name}`);
  const credited = await store.accounts.credit(account.id, nanos, { id: context.mint('op_'), by: 'cli' });
  if (!credited.ok) throw new RefusedError(reasonOf(credited.refusal));
  report(context, shown(credited.value), `account ${credited.value.name}, balance $${formatUsd(credited.value.walletNanos)}`);
  return 0;
}

export function usd(text: string, field: string, negative: boolean): bigint {
  const parsed = parseUsd(text, { field, negative });
  if (!parsed.ok) throw new UsageError(`${parsed.refusal.field} ${parsed.refusal.message}`);
  return parsed.value;
}

export function reasonOf(refusal: { readonly reason: string }): string {
  if ('field' in refusal && 'message' in refusal) return `${String(refusal.field)} ${String(refusal.message)}`;
  return refusal.reason.replaceAll('_', ' ');
}

function shown(account: Account): object {
  const { id, name, class: accountClass, unlimited, disabled, walletNanos } = account;
  return { id, name, class: accountClass, unlimited, disabled, balance: formatUsd(walletNanos) };
}

function stateOf(account: Account): string {
  if (account.disabled) return 'disabled';
  return account.unlimited ? 'unlimited' : 'active';
}
