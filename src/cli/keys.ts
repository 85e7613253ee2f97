/** `mizu keys create|list|limit|change|disable|enable|transfer`. A new key is printed once and never again. */
import { type Static, Type } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { InputError, RefusedError, refusedBy } from '../http/admin/refusals.ts';
import { AnyAccount, ChangeKey, CreateKey, OneKey, TransferToKey } from '../http/admin/requests.ts';
import type { KeyChanges, KeyRecord, NewKey, SpendLimits } from '../store/keys.ts';
import { formatUsd } from '../store/money.ts';
import { accountNamed, expiry, usd } from './operator-input.ts';
import { newRateLimits, RATE_LIMIT_USAGE, rateLimitWords } from './rate-limits.ts';
import { table, type Verb, type VerbContext, verb } from './verb.ts';

/** A key without its digest; limits in decimal US dollars. */
export interface KeyView extends Omit<KeyRecord, 'digest' | 'limits'> {
  readonly limits: { readonly [Window in keyof SpendLimits]: string };
}

/** The store's names for members that are called otherwise here. */
const MEMBERS = { expiresAtMs: 'expires' };

const WINDOWS = ['total', 'hourly', 'daily'] as const;

/** `key` is the key itself: it is shown this once. */
export async function createKey(
  context: VerbContext,
  input: Static<typeof CreateKey>,
): Promise<KeyView & { readonly key: string }> {
  const account = await accountNamed(context, input.account);
  const made = await (await context.store()).keys.create(newKey(context, account.id, input), context.cause);
  if (!made.ok) throw refusedBy(made.refusal, MEMBERS);
  const { key, secret } = made.value;
  return { ...viewOf(key), key: secret };
}

function newKey(context: VerbContext, accountId: string, input: Static<typeof CreateKey>): NewKey {
  const { name = 'key', expires, models, ips, subAccount } = input;
  return {
    accountId,
    name,
    limits: limitsOf(input.limits),
    ...defined({
      expiresAtMs: expires === undefined ? undefined : expiryAt(expires, context),
      models,
      knownModels: models === undefined ? undefined : knownModels(context),
      ips,
      rateLimits: newRateLimits(input.rateLimits),
      subAccount: subAccount === true ? true : undefined,
    }),
  };
}

function limitsOf(asked: { readonly [Window in keyof SpendLimits]?: string } = {}): SpendLimits {
  const limits: { -readonly [Window in keyof SpendLimits]: SpendLimits[Window] } = {};
  for (const window of WINDOWS) {
    const text = asked[window];
    if (text !== undefined) limits[window] = usd(text, `limits.${window}`);
  }
  return limits;
}

/** When a new key expires. Throws InputError for a time that is over: a key that never works is a mistake of the one who wrote it. */
function expiryAt(text: string, { clock }: VerbContext): number {
  const given = expiry(text, 'expires');
  const nowMs = clock.now();
  const atMs = 'expiresAtMs' in given ? given.expiresAtMs : nowMs + given.expiresInMs;
  if (atMs <= nowMs) throw new InputError((name) => `${name('expires')}: ${text} is over`);
  return atMs;
}

function knownModels(context: VerbContext): ReadonlySet<string> {
  return new Set(context.config().models.keys());
}

export async function listKeys(context: VerbContext, { account }: Static<typeof AnyAccount>): Promise<KeyView[]> {
  const store = await context.store();
  const found = await store.keys.list(account === undefined ? undefined : (await accountNamed(context, account)).id);
  return found.map(viewOf);
}

export async function showKey(context: VerbContext, { id }: Static<typeof OneKey>): Promise<KeyView> {
  const key = await (await context.store()).keys.find(id);
  if (key === undefined) throw new RefusedError(`there is no key ${id}`, 'unknown', 'unknown_key');
  return viewOf(key);
}

export async function changeKey(context: VerbContext, { id, ...asked }: Static<typeof ChangeKey>): Promise<KeyView> {
  const changes = changesOf(asked);
  if (Object.keys(changes).length === 0) throw new InputError('nothing to change is given');
  const known = asked.models === undefined || asked.models === null ? {} : { knownModels: knownModels(context) };
  const changed = await (await context.store()).keys.change(id, { ...changes, ...known }, context.cause);
  if (!changed.ok) throw refusedBy(changed.refusal, MEMBERS);
  return viewOf(changed.value);
}

function changesOf({ expires, limits = {}, rateLimits = {}, ...rest }: Omit<Static<typeof ChangeKey>, 'id'>): KeyChanges {
  const nanos: { -readonly [Window in keyof SpendLimits]: SpendLimits[Window] | null } = {};
  for (const window of WINDOWS) {
    const text = limits[window];
    if (text !== undefined) nanos[window] = text === null ? null : usd(text, `limits.${window}`);
  }
  const isGiven = (members: object): boolean => Object.keys(members).length > 0;
  return {
    ...defined(rest),
    ...(expires === undefined ? {} : expires === null ? { expiresAtMs: null } : expiry(expires, 'expires')),
    ...(isGiven(nanos) ? { limits: nanos } : {}),
    ...(isGiven(rateLimits) ? { rateLimits } : {}),
  };
}

/** The sub-account's balance after it. */
export async function transferToKey(
  context: VerbContext,
  { id, amount }: Static<typeof TransferToKey>,
): Promise<{ readonly id: string; readonly balance: string }> {
  const nanos = usd(amount, 'amount', true);
  const moved = await (await context.store()).keys.transfer(id, nanos, context.cause);
  if (!moved.ok) throw refusedBy(moved.refusal);
  return { id, balance: formatUsd(moved.value.nanos) };
}

function viewOf(key: KeyRecord): KeyView {
  const { digest: _digest, limits, ...rest } = key;
  return { ...rest, limits: Object.fromEntries(Object.entries(limits).map(([window, nanos]) => [window, formatUsd(nanos)])) };
}

function stateOf({ disabled, expiresAtMs }: KeyView, nowMs: number): string {
  if (disabled) return 'disabled';
  return expiresAtMs !== undefined && expiresAtMs <= nowMs ? 'expired' : 'active';
}

function restrictions({ models, ips, limits, rateLimits, subAccount }: KeyView): string {
  const words = WINDOWS.flatMap((window) => {
    const limit = limits[window];
    return limit === undefined ? [] : [`${window} $${limit}`];
  });
  words.push(...rateLimitWords(rateLimits));
  if (models !== undefined) words.push(`models ${models.join(',')}`);
  if (ips !== undefined) words.push(`ips ${ips.join(',')}`);
  if (subAccount) words.push('sub-account');
  return words.join('; ');
}

const changedText = (key: KeyView): string =>
  [`key ${key.id} is ${key.disabled ? 'disabled' : 'enabled'}`, restrictions(key)].filter((part) => part !== '').join('; ');

function switched(action: 'disable' | 'enable'): Verb {
  return verb({
    name: `keys ${action}`,
    usage: `${action} ID`,
    options: OneKey,
    arguments: ['id'],
    changes: true,
    run: (context, { id }) => changeKey(context, { id, disabled: action === 'disable' }),
    text: changedText,
  });
}

const OPTIONS =
  '[--name N] [--expires TIME] [--models A,B] [--ips CIDR,…] [--limit-total USD] [--limit-hourly USD] [--limit-daily USD]';
const closed = { additionalProperties: false };

export const KEYS: readonly Verb[] = [
  verb({
    name: 'keys create',
    usage: `create --account NAME ${OPTIONS} ${RATE_LIMIT_USAGE} [--sub-account]`,
    options: CreateKey,
    changes: true,
    run: createKey,
    text: ({ key }) => key,
  }),
  verb({
    name: 'keys list',
    usage: 'list [--account NAME]',
    options: AnyAccount,
    run: listKeys,
    text: (keys, _options, nowMs) =>
      table([
        ['ID', 'NAME', 'KEY', 'ACCOUNT', 'STATE', 'EXPIRES', 'RESTRICTIONS'],
        ...keys.map((key) => [
          key.id,
          key.name,
          `${key.prefix}…${key.last4}`,
          key.accountId,
          stateOf(key, nowMs),
          key.expiresAtMs === undefined ? '' : new Date(key.expiresAtMs).toISOString(),
          restrictions(key),
        ]),
      ]),
  }),
  verb({
    name: 'keys limit',
    usage: `limit ID ${RATE_LIMIT_USAGE}`,
    options: Type.Pick(ChangeKey, ['id', 'rateLimits'], closed),
    arguments: ['id'],
    changes: true,
    run: changeKey,
    text: changedText,
  }),
  verb({
    name: 'keys change',
    usage: `change ID ${OPTIONS} ("none" removes)`,
    options: Type.Pick(ChangeKey, ['id', 'name', 'expires', 'models', 'ips', 'limits'], closed),
    arguments: ['id'],
    changes: true,
    run: changeKey,
    text: changedText,
  }),
  switched('disable'),
  switched('enable'),
  verb({
    name: 'keys transfer',
    usage: 'transfer ID USD',
    options: TransferToKey,
    arguments: ['id', 'amount'],
    changes: true,
    run: transferToKey,
    text: ({ id, balance }) => `key ${id}, balance $${balance}`,
  }),
];
