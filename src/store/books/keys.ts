/** How keys are made and changed, and how money comes to their sub-accounts and goes back. */
import { who } from '../account-rules.ts';
import type { Cause } from '../accounts.ts';
import { changedKey, describeKeyChanges, checkedKey } from '../key-fields.ts';
import { digestOf, KEY_PREFIX, newSecret } from '../key-rules.ts';
import type { Balance, KeyChanges, KeyRecord, Keys, NewKey } from '../keys.ts';
import { inRange } from '../money.ts';
import { paysFromSubAccount, subAccountOf, walletOf } from '../payer.ts';
import { randomHex } from '../random-hex.ts';
import { done, invalid, refused } from '../result.ts';
import { keyState } from '../stated.ts';
import { type Bookkeeper, type Books, got, type Rule } from './books.ts';

type Replaced = NonNullable<NewKey['replaces']>;

export function keyChanges(keeper: Bookkeeper): Pick<Keys, 'create' | 'change' | 'transfer'> {
  const { clock, randomBytes } = keeper.options;
  return {
    async create(key, cause) {
      const atMs = clock.now();
      const checked = checkedKey(key);
      if (!checked.ok) return checked;
      const { accountId, secret = newSecret(randomBytes(32)), subAccount = false, replaces } = key;
      const digest = digestOf(secret);
      const [prefix, last4] = [secret.slice(0, KEY_PREFIX.length + 4), secret.slice(-4)];
      const keyId = `key_${randomHex(randomBytes)}`;
      const made = { id: keyId, accountId, digest, prefix, last4, createdAtMs: atMs, disabled: false, subAccount };
      const record: KeyRecord = { ...checked.value, ...made };
      return keeper.follow(function* (books) {
        if ((yield* got(books.account(accountId))) === undefined)
          return refused({ reason: 'unknown_account', account: accountId } as const);
        if ((yield* got(books.journaled(cause.id, 'key_created'))) !== undefined) return reused(cause);
        if (yield* got(books.isDigestTaken(digest))) return invalid('secret', 'is taken');
        const wrong = replaces === undefined ? undefined : yield* irreplaceable(books, replaces, cause, atMs);
        if (wrong !== undefined) return wrong;
        yield* got(books.addKey(record));
        books.note({ kind: 'key_created', ref: cause.id, accountId, keyId, atMs, state: keyState(record), ...who(cause) });
        if (replaces !== undefined) {
          const { id, changes, note } = replaces;
          const heir = changes.disabled === true && subAccount ? { heir: keyId } : {};
          const why = { id: cause.id, by: cause.by, ...(note === undefined ? {} : { note }) };
          yield* change(books, id, { ...changes, ...heir }, why, atMs);
        }
        return done({ key: record, secret });
      });
    },

    change: (id, changes, cause) => keeper.follow((books) => change(books, id, changes, cause, clock.now())),

    async transfer(id, nanos, cause) {
      if (nanos === 0n || !inRange(nanos)) return invalid('amount', 'must not be zero and must be in range');
      return keeper.follow((books) => transfer(books, id, nanos, cause, clock.now()));
    },
  };
}

/** Why a key cannot be replaced; undefined where it can: nothing may be written before that is known. */
function* irreplaceable(books: Books, { id, changes }: Replaced, cause: Cause, atMs: number) {
  const key = yield* got(books.key(id));
  if (key === undefined || key.deletedAtMs !== undefined) return unknown(id);
  if (key.disabled) return refused({ reason: 'key_disabled' } as const);
  if ((yield* got(books.journaled(cause.id, 'key_changed'))) !== undefined) return reused(cause);
  const changed = changedKey(key, changes, atMs);
  return changed.ok ? undefined : changed;
}

function* change(books: Books, id: string, changes: KeyChanges, cause: Cause, atMs: number) {
  const key = yield* got(books.key(id));
  if (key === undefined) return unknown(id);
  const note = describeKeyChanges(changes, cause);
  const before = yield* got(books.journaled(cause.id, 'key_changed'));
  if (before !== undefined) return before.keyId === id && before.note === note ? done(key) : reused(cause);
  if (key.deletedAtMs !== undefined) return unknown(id);
  const changed = changedKey(key, changes, atMs);
  if (!changed.ok) return changed;
  if (changed.value.disabled && !key.disabled && key.subAccount) {
    const heir = changes.heir === undefined ? undefined : yield* got(books.key(changes.heir));
    if (changes.heir !== undefined && !isHeir(heir, key)) return unknown(changes.heir);
    const returned = yield* returnBalance(books, key, cause, atMs);
    if (heir !== undefined && returned > 0n) yield* passOn(books, heir, returned, cause, atMs);
  }
  yield* got(books.replaceKey(changed.value));
  const state = keyState(changed.value);
  books.note({ kind: 'key_changed', ref: cause.id, accountId: key.accountId, keyId: id, atMs, by: cause.by, note, state });
  return changed;
}

function isHeir(heir: KeyRecord | undefined, key: KeyRecord): boolean {
  return heir !== undefined && heir.id !== key.id && heir.accountId === key.accountId && paysFromSubAccount(heir);
}

/** The signed balance of a sub-account, which goes to the wallet when its key is disabled. */
function* returnBalance(books: Books, key: KeyRecord, cause: Cause, atMs: number): Rule<bigint> {
  const [sub, wallet] = [subAccountOf(key.id), walletOf(key.accountId)];
  yield* got(books.load([sub, wallet]));
  const nanos = books.balance(sub);
  if (nanos === 0n) return nanos;
  const common = { ref: cause.id, accountId: key.accountId, keyId: key.id, atMs, ...who(cause) };
  if (nanos > 0n) books.move({ ...common, kind: 'sub_account_refund', from: sub, to: wallet, nanos });
  else books.move({ ...common, kind: 'sub_account_debt_transfer', from: wallet, to: sub, nanos: -nanos });
  return nanos;
}

/** What came back to the wallet in this transaction goes on to the heir, however little else the wallet has. */
function* passOn(books: Books, heir: KeyRecord, nanos: bigint, cause: Cause, atMs: number): Rule<void> {
  const [sub, wallet] = [subAccountOf(heir.id), walletOf(heir.accountId)];
  yield* got(books.load([sub, wallet, 'transit']));
  const common = { ref: cause.id, accountId: heir.accountId, keyId: heir.id, atMs, nanos, ...who(cause) };
  books.move({ ...common, kind: 'sub_account_transfer_out', from: wallet, to: 'transit' });
  books.move({ ...common, kind: 'sub_account_transfer_in', from: 'transit', to: sub });
}

function* transfer(books: Books, id: string, nanos: bigint, cause: Cause, atMs: number) {
  const key = yield* got(books.key(id));
  if (key === undefined) return unknown(id);
  if (!key.subAccount) return refused({ reason: 'no_sub_account' } as const);
  const [sub, wallet] = [subAccountOf(key.id), walletOf(key.accountId)];
  yield* got(books.load([sub, wallet, 'transit']));
  const [giver, taker] = nanos > 0n ? [wallet, sub] : [sub, wallet];
  const size = nanos > 0n ? nanos : -nanos;
  const balance = (): Balance => ({ source: 'sub_account', nanos: books.balance(sub), unlimited: false });

  const before = yield* got(books.journaled(cause.id, 'sub_account_transfer_out'));
  if (before !== undefined) {
    const isSame = before.keyId === id && before.from === giver && before.nanos === size;
    return isSame ? done(balance()) : reused(cause);
  }
  if (key.disabled) return refused({ reason: 'key_disabled' } as const);
  if (books.balance(giver) < size) return refused({ reason: 'insufficient_balance' } as const);
  const common = { ref: cause.id, accountId: key.accountId, keyId: id, atMs, nanos: size, ...who(cause) };
  books.move({ ...common, kind: 'sub_account_transfer_out', from: giver, to: 'transit' });
  books.move({ ...common, kind: 'sub_account_transfer_in', from: 'transit', to: taker });
  return done(balance());
}

const unknown = (id: string) => refused({ reason: 'unknown_key', key: id } as const);
const reused = (cause: Cause) => refused({ reason: 'cause_reused', cause: cause.id } as const);
