/** `mizu keys create|list|disable|enable|transfer`. A new key is printed once and never again. */
import type { KeyRecord, NewKey, SpendLimits } from '../../store/keys.ts';
import { formatUsd } from '../../store/money.ts';
import { reasonOf, usd } from './accounts.ts';
import { argument, RefusedError, report, table, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';

export const keys: Verb = async (context) => {
  const [action] = context.args;
  switch (action) {
    case 'create':
      return await create(context);
    case 'list':
      return await list(context);
    case 'disable':
    case 'enable':
      return await change(context, action === 'disable');
    case 'transfer':
      return await transfer(context);
    default:
      throw new UsageError('keys create --account NAME | keys list | keys disable|enable ID | keys transfer ID USD');
  }
};

async function create(context: VerbContext): Promise<number> {
  const owner = textOption(context, 'account');
  if (owner === undefined) throw new UsageError('--account is missing');
  const store = await context.store();
  const account = await store.accounts.find(owner);
  if (account === undefined) throw new RefusedError(`there is no account ${owner}`);
  const made = await store.keys.create(newKey(context, account.id), { id: context.mint('op_'), by: 'cli' });
  if (!made.ok) throw new RefusedError(reasonOf(made.refusal));
  const { key, secret } = made.value;
  report(context, { ...shown(key), key: secret }, secret);
  return 0;
}

function newKey(context: VerbContext, accountId: string): NewKey {
  const expires = textOption(context, 'expires');
  const models = listOption(context, 'models');
  const ips = listOption(context, 'ips');
  const limits = limitsOf(context);
  return {
    accountId,
    name: textOption(context, 'name') ?? 'key',
    ...(expires === undefined ? {} : { expiresAtMs: instant(expires) }),
    ...(models === undefined ? {} : { models, knownModels: new Set(context.config().models.keys()) }),
    ...(ips === undefined ? {} : { ips }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
    ...(context.options['sub-account'] === true ? { subAccount: true } : {}),
  };
}

function limitsOf(context: VerbContext): SpendLimits {
  const windows = ['total', 'hourly', 'daily'] as const;
  return Object.fromEntries(
    windows.flatMap((window) => {
      const text = textOption(context, `limit-${window}`);
      return text === undefined ? [] : [[window, usd(text, `--limit-${window}`, false)]];
    }),
  );
}

function listOption(context: VerbContext, name: string): string[] | undefined {
  const entries = textOption(context, name)
    ?.split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');
  if (entries?.length === 0) throw new UsageError(`--${name} is empty`);
  return entries;
}

/** ISO 8601, or `30d`, `12h` from now. */
function instant(text: string): number {
  const at = Date.parse(text);
  if (Number.isNaN(at)) throw new UsageError(`--expires ${text} is no date such as 2027-01-31T00:00:00Z`);
  return at;
}

async function list(context: VerbContext): Promise<number> {
  const owner = textOption(context, 'account');
  const store = await context.store();
  const account = owner === undefined ? undefined : await store.accounts.find(owner);
  if (owner !== undefined && account === undefined) throw new RefusedError(`there is no account ${owner}`);
  const found = await store.keys.list(account?.id);
  const rows = found.map((key) => [
    key.id,
    key.name,
    `${key.prefix}…${key.last4}`,
    key.accountId,
    key.disabled ? 'disabled' : 'active',
    key.expiresAtMs === undefined ? '' : new Date(key.expiresAtMs).toISOString(),
  ]);
  report(context, found.map(shown), table([['ID', 'NAME', 'KEY', 'ACCOUNT', 'STATE', 'EXPIRES'], ...rows]));
  return 0;
}

async function change(context: VerbContext, disabled: boolean): Promise<number> {
  const id = argument(context, 1, 'ID');
  const changed = await (await context.store()).keys.change(id, { disabled }, { id: context.mint('op_'), by: 'cli' });
  if (!changed.ok) throw new RefusedError(reasonOf(changed.refusal));
  report(context, shown(changed.value), `key ${changed.value.id} is ${disabled ? 'disabled' : 'enabled'}`);
  return 0;
}

async function transfer(context: VerbContext): Promise<number> {
  const id = argument(context, 1, 'ID');
  const nanos = usd(argument(context, 2, 'USD'), 'USD', true);
  const moved = await (await context.store()).keys.transfer(id, nanos, { id: context.mint('op_'), by: 'cli' });
  if (!moved.ok) throw new RefusedError(reasonOf(moved.refusal));
  const balance = formatUsd(moved.value.nanos);
  report(context, { id, balance }, `key ${id}, balance $${balance}`);
  return 0;
}

/** Everything but the digest. */
function shown(key: KeyRecord): object {
  const { digest: _digest, limits, ...rest } = key;
  return { ...rest, limits: Object.fromEntries(Object.entries(limits).map(([window, nanos]) => [window, formatUsd(nanos)])) };
}
