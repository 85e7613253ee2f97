/** `mizu keys …`: keys with their limits, and money in sub-accounts. A new key is printed once and never again. */
import { type Static, Type } from 'typebox';
import { defined } from '../codecs/defined.ts';
import { InputError, RefusedError, refusedBy } from '../http/admin/refusals.ts';
import { AnyAccount, ChangeKey, CreateKey, type KeyQuery, OneKey, RotateKey, TransferToKey } from '../http/admin/requests.ts';
import type { CreatedQuery } from '../store/created-rows.ts';
import type { KeyChanges, KeyRecord, NewKey, SpendLimits } from '../store/keys.ts';
import { formatUsd } from '../store/money.ts';
import { accountNamed, expiry, usd } from './operator-input.ts';
import { type PageOf, pageOf } from './paging.ts';
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

/**
 * When a new key expires. Throws InputError for a time that is over: a key that never works is a mistake of the one who wrote it.
 */
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

async function listKeys(context: VerbContext, { account }: Static<typeof AnyAccount>): Promise<KeyView[]> {
  const store = await context.store();
  const accountId = account === undefined ? undefined : (await accountNamed(context, account)).id;
  return (await store.keys.list(accountId, existingOf({}))).map(viewOf);
}

/** Without those that were deleted. */
function existingOf({ isWanted = () => true, ...page }: CreatedQuery<KeyRecord>): CreatedQuery<KeyRecord> {
  return { ...page, isWanted: (key) => key.deletedAtMs === undefined && isWanted(key) };
}

export async function pageOfKeys(context: VerbContext, { account, ...query }: Static<typeof KeyQuery>): Promise<PageOf<KeyView>> {
  const { keys } = await context.store();
  const accountId = account === undefined ? undefined : (await accountNamed(context, account)).id;
  const list = (page: CreatedQuery<KeyRecord>): Promise<KeyRecord[]> => keys.list(accountId, existingOf(page));
  const { data, ...rest } = await pageOf(list, query, (key: KeyRecord) => [
    key.id,
    key.name,
    key.prefix,
    key.last4,
    key.accountId,
  ]);
  return { data: data.map(viewOf), ...rest };
}

export async function showKey(context: VerbContext, { id }: Static<typeof OneKey>): Promise<KeyView> {
  return viewOf(await existing(context, id));
}

async function existing(context: VerbContext, id: string): Promise<KeyRecord> {
  const key = await (await context.store()).keys.find(id);
  if (key === undefined) throw new RefusedError(`there is no key ${id}`, 'unknown', 'unknown_key');
  return key;
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

/** What stands in for a key from now on, and what becomes of the old one. */
interface Rotated extends KeyView {
  /** Absent where this rotation was made before: nobody knows the key any more. */
  readonly key?: string;
  readonly replaces: string;
  /** When the old key ends; absent: it is disabled. */
  readonly replacedUntilMs?: number;
}

/**
 * A new key with the restrictions of the old one, which ends at once or after `grace`. Spend windows begin anew; a sub-account
 * goes along where the old key ends at once. The same cause again goes on where an earlier try ended.
 */
export async function rotateKey(context: VerbContext, request: Static<typeof RotateKey>): Promise<Rotated> {
  const { cause } = context;
  const { id, grace } = request;
  const { keys, ledger } = await context.store();
  const old = await existing(context, id);
  const earlier = await ledger.journal({ ref: cause.id });
  const note = `in place of ${id}${cause.note === undefined ? '' : `: ${cause.note}`}`;
  const before = earlier.find(({ kind }) => kind === 'key_created');
  if (before !== undefined && before.note !== note) throw refusedBy({ reason: 'cause_reused' });
  if (before === undefined && old.disabled)
    throw new RefusedError(`key ${id} is disabled: nothing is to be rotated`, 'conflict', 'key_disabled');
  const changes = grace === undefined ? { disabled: true } : graceEnd(grace, old, context);
  const replaces = { id, changes, ...defined({ note: cause.note }) };
  const made = before === undefined ? await keys.create({ ...copyOf(old), replaces }, { ...cause, note }) : undefined;
  if (made?.ok === false) {
    // The same change, begun twice at once: the other one made it.
    const isMade = (await ledger.journal({ ref: cause.id })).some(({ kind }) => kind === 'key_created');
    if (isMade) return await rotateKey(context, request);
    throw refusedBy(made.refusal, MEMBERS);
  }
  const fresh = made?.value.key ?? (await existing(context, before?.keyId ?? ''));
  // An older version made the key and ended the old one in two transactions, and may have come to the first alone.
  if (made === undefined && !earlier.some(({ kind, keyId }) => kind === 'key_changed' && keyId === id)) {
    const ended = await keys.change(
      id,
      { ...changes, ...(old.subAccount && grace === undefined ? { heir: fresh.id } : {}) },
      cause,
    );
    if (!ended.ok) throw refusedBy(ended.refusal, MEMBERS);
  }
  const { disabled, expiresAtMs } = await existing(context, id);
  const rest = defined({ key: made?.value.secret, replacedUntilMs: disabled ? undefined : expiresAtMs });
  return { ...viewOf(fresh), replaces: id, ...rest };
}

function copyOf({ accountId, name, expiresAtMs, models, ips, limits, rateLimits, subAccount }: KeyRecord): NewKey {
  return { accountId, name, limits, subAccount, ...defined({ expiresAtMs, models, ips, rateLimits }) };
}

/** The old key never lives longer than it would have. */
function graceEnd(text: string, { expiresAtMs }: KeyRecord, { clock }: VerbContext): KeyChanges {
  const given = expiry(text, 'grace');
  if (!('expiresInMs' in given)) throw new InputError((name) => `${name('grace')} must be a span such as 45m or 12h`);
  return expiresAtMs !== undefined && expiresAtMs < clock.now() + given.expiresInMs ? { expiresAtMs } : given;
}

/** Refused from now on and for good; rows that name it still explain themselves. A sub-account's balance goes to the wallet. */
export async function deleteKey(context: VerbContext, { id }: Static<typeof OneKey>): Promise<KeyView> {
  const { name } = await existing(context, id);
  await context.confirm(`key ${id} (${name}) is refused from now on, and this cannot be undone`);
  const deleted = await (await context.store()).keys.change(id, { deleted: true }, context.cause);
  if (!deleted.ok) throw refusedBy(deleted.refusal);
  return viewOf(deleted.value);
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
    does: action === 'disable' ? 'Refuses the key until it is enabled.' : 'Takes a disabled key back.',
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
    does: 'Makes a key and prints it once: only its digest is kept.',
    options: CreateKey,
    changes: true,
    run: createKey,
    text: ({ key }) => key,
  }),
  verb({
    name: 'keys list',
    usage: 'list [--account NAME]',
    does: 'All keys with state, expiry and restrictions.',
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
    does: 'Sets what the key may ask for a minute and at once.',
    options: Type.Pick(ChangeKey, ['id', 'rateLimits'], closed),
    arguments: ['id'],
    changes: true,
    run: changeKey,
    text: changedText,
  }),
  verb({
    name: 'keys change',
    usage: `change ID ${OPTIONS} ("none" removes)`,
    does: 'Changes the name, the expiry and the restrictions.',
    options: Type.Pick(ChangeKey, ['id', 'name', 'expires', 'models', 'ips', 'limits'], closed),
    arguments: ['id'],
    changes: true,
    run: changeKey,
    text: changedText,
  }),
  verb({
    name: 'keys rotate',
    usage: 'rotate ID [--grace SPAN]',
    does: 'Makes a new key with the same restrictions. The old one ends at once, or after the grace.',
    options: RotateKey,
    arguments: ['id'],
    changes: true,
    run: rotateKey,
    text: ({ key, id }) => key ?? `key ${id} was made by this rotation before: it is not shown again`,
  }),
  verb({
    name: 'keys delete',
    usage: 'delete ID',
    does: 'Refuses the key for good. Its rows in log and ledger stay; the balance of a sub-account goes back to the wallet.',
    options: OneKey,
    arguments: ['id'],
    changes: true,
    confirms: true,
    run: deleteKey,
    text: ({ id, name }) => `key ${id} (${name}) is deleted; its rows in the log and the ledger stay`,
  }),
  switched('disable'),
  switched('enable'),
  verb({
    name: 'keys transfer',
    usage: 'transfer ID USD',
    does: 'Moves US dollars from the wallet to the sub-account of the key; a negative amount moves them back.',
    options: TransferToKey,
    arguments: ['id', 'amount'],
    changes: true,
    run: transferToKey,
    text: ({ id, balance }) => `key ${id}, balance $${balance}`,
  }),
];
