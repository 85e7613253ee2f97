/** `mizu keys create|list|limit|change|disable|enable|transfer`. A new key is printed once and never again. */
import type { KeyChanges, KeyRecord, NewKey, SpendLimits } from '../store/keys.ts';
import { formatUsd } from '../store/money.ts';
import { accountNamed, CAUSE, causeOf, expiry, listOption, reasonOf, usd } from './operator-input.ts';
import { newRateLimits, NONE, RATE_LIMIT_OPTIONS, RATE_LIMIT_USAGE, rateLimitWords, requestedRateLimits } from './rate-limits.ts';
import { argument, RefusedError, report, table, allowOnly, textOption, UsageError, type Verb, type VerbContext } from './verb.ts';

const OPTIONS =
  '[--name N] [--expires TIME] [--models A,B] [--ips CIDR,…] [--limit-total USD] [--limit-hourly USD] [--limit-daily USD]';
const RESTRICTIONS = ['name', 'expires', 'models', 'ips', 'limit-total', 'limit-hourly', 'limit-daily'] as const;
export const KEYS_USAGE = `keys create --account NAME ${OPTIONS} ${RATE_LIMIT_USAGE} [--sub-account] | list [--account NAME] | limit ID ${RATE_LIMIT_USAGE} | change ID ${OPTIONS} ("none" removes) | disable ID | enable ID | transfer ID USD`;

export const keys: Verb = async (context) => {
  const [action] = context.args;
  switch (action) {
    case 'create':
      allowOnly(context, 'keys create', 0, 'account', 'sub-account', ...RESTRICTIONS, ...RATE_LIMIT_OPTIONS, ...CAUSE);
      return await create(context);
    case 'list':
      allowOnly(context, 'keys list', 0, 'account');
      return await list(context);
    case 'limit':
      allowOnly(context, 'keys limit', 1, ...RATE_LIMIT_OPTIONS, ...CAUSE);
      return await change(context, requestedLimits(context));
    case 'change':
      allowOnly(context, 'keys change', 1, ...RESTRICTIONS, ...CAUSE);
      return await change(context, requestedChanges(context));
    case 'disable':
    case 'enable':
      allowOnly(context, `keys ${action}`, 1, ...CAUSE);
      return await change(context, { disabled: action === 'disable' });
    case 'transfer':
      allowOnly(context, 'keys transfer', 2, ...CAUSE);
      return await transfer(context);
    default:
      throw new UsageError(KEYS_USAGE);
  }
};

async function create(context: VerbContext): Promise<number> {
  const owner = textOption(context, 'account');
  if (owner === undefined) throw new UsageError('--account is missing');
  const account = await accountNamed(context, owner);
  const made = await (await context.store()).keys.create(newKey(context, account.id), causeOf(context));
  if (!made.ok) throw new RefusedError(reasonOf(made.refusal));
  const { key, secret } = made.value;
  report(context, { ...keyJson(key), key: secret }, secret);
  return 0;
}

function newKey(context: VerbContext, accountId: string): NewKey {
  const expires = textOption(context, 'expires');
  const models = listOption(context, 'models');
  const ips = listOption(context, 'ips');
  const rateLimits = newRateLimits(context);
  const limits: { -readonly [K in keyof SpendLimits]: SpendLimits[K] } = {};
  for (const window of WINDOWS) {
    const text = textOption(context, `limit-${window}`);
    if (text !== undefined) limits[window] = usd(text, `--limit-${window}`);
  }
  return {
    accountId,
    name: textOption(context, 'name') ?? 'key',
    ...(expires === undefined ? {} : { expiresAtMs: expiryAt(expires, context) }),
    ...(models === undefined ? {} : { models, knownModels: knownModels(context) }),
    ...(ips === undefined ? {} : { ips }),
    limits,
    ...(rateLimits === undefined ? {} : { rateLimits }),
    ...(context.options['sub-account'] === true ? { subAccount: true } : {}),
  };
}

/** When a new key expires. Throws UsageError for a time that is over: a key that never works is a mistake of the one who typed it. */
function expiryAt(text: string, { clock }: VerbContext): number {
  const given = expiry(text, '--expires');
  const nowMs = clock.now();
  const atMs = 'expiresAtMs' in given ? given.expiresAtMs : nowMs + given.expiresInMs;
  if (atMs <= nowMs) throw new UsageError(`--expires: ${text} is over`);
  return atMs;
}

const WINDOWS = ['total', 'hourly', 'daily'] as const;

function requestedLimits(context: VerbContext): KeyChanges {
  const rateLimits = requestedRateLimits(context);
  if (rateLimits === undefined) throw new UsageError('nothing to change is given');
  return { rateLimits };
}

function requestedChanges(context: VerbContext): KeyChanges {
  const { options } = context;
  const name = textOption(context, 'name');
  const expires = textOption(context, 'expires');
  const limits: { total?: bigint | null; hourly?: bigint | null; daily?: bigint | null } = {};
  for (const window of WINDOWS) {
    const text = textOption(context, `limit-${window}`);
    if (text !== undefined) limits[window] = text === NONE ? null : usd(text, `--limit-${window}`);
  }
  const models = options['models'] === NONE ? null : listOption(context, 'models');
  const ips = options['ips'] === NONE ? null : listOption(context, 'ips');
  const changes: KeyChanges = {
    ...(name === undefined ? {} : { name }),
    ...(expires === undefined ? {} : expires === NONE ? { expiresAtMs: null } : expiry(expires, '--expires')),
    ...(models === undefined ? {} : { models }),
    ...(ips === undefined ? {} : { ips }),
    ...(Object.keys(limits).length === 0 ? {} : { limits }),
  };
  if (Object.keys(changes).length === 0) throw new UsageError('nothing to change is given');
  return models === undefined || models === null ? changes : { ...changes, knownModels: knownModels(context) };
}

function knownModels(context: VerbContext): ReadonlySet<string> {
  return new Set(context.config().models.keys());
}

async function list(context: VerbContext): Promise<number> {
  const owner = textOption(context, 'account');
  const store = await context.store();
  const found = await store.keys.list(owner === undefined ? undefined : (await accountNamed(context, owner)).id);
  const rows = found.map((key) => [
    key.id,
    key.name,
    `${key.prefix}…${key.last4}`,
    key.accountId,
    stateOf(key, context.clock.now()),
    key.expiresAtMs === undefined ? '' : new Date(key.expiresAtMs).toISOString(),
    restrictions(key),
  ]);
  report(context, found.map(keyJson), table([['ID', 'NAME', 'KEY', 'ACCOUNT', 'STATE', 'EXPIRES', 'RESTRICTIONS'], ...rows]));
  return 0;
}

function stateOf({ disabled, expiresAtMs }: KeyRecord, nowMs: number): string {
  if (disabled) return 'disabled';
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'expired' : 'active';
}

function restrictions({ models, ips, limits, rateLimits, subAccount }: KeyRecord): string {
  const words = WINDOWS.flatMap((window) => {
    const limit = limits[window];
    return limit === undefined ? [] : [`${window} $${formatUsd(limit)}`];
  });
  words.push(...rateLimitWords(rateLimits));
  if (models !== undefined) words.push(`models ${models.join(',')}`);
  if (ips !== undefined) words.push(`ips ${ips.join(',')}`);
  if (subAccount) words.push('sub-account');
  return words.join('; ');
}

async function change(context: VerbContext, changes: KeyChanges): Promise<number> {
  const id = argument(context, 1, 'ID');
  const changed = await (await context.store()).keys.change(id, changes, causeOf(context));
  if (!changed.ok) throw new RefusedError(reasonOf(changed.refusal));
  const { value } = changed;
  const text = [`key ${value.id} is ${value.disabled ? 'disabled' : 'enabled'}`, restrictions(value)];
  report(context, keyJson(value), text.filter((part) => part !== '').join('; '));
  return 0;
}

async function transfer(context: VerbContext): Promise<number> {
  const id = argument(context, 1, 'ID');
  const nanos = usd(argument(context, 2, 'USD'), 'USD', true);
  const moved = await (await context.store()).keys.transfer(id, nanos, causeOf(context));
  if (!moved.ok) throw new RefusedError(reasonOf(moved.refusal));
  const balance = formatUsd(moved.value.nanos);
  report(context, { id, balance }, `key ${id}, balance $${balance}`);
  return 0;
}

/** Everything but the digest. */
function keyJson(key: KeyRecord): object {
  const { digest: _digest, limits, ...rest } = key;
  return { ...rest, limits: Object.fromEntries(Object.entries(limits).map(([window, nanos]) => [window, formatUsd(nanos)])) };
}
