/** How accounts come to be and change, and how they are credited: each change is one transaction, with its row of the journal. */
import {
  changedAccount,
  checkNewAccount,
  describeAccountChanges,
  isSameAccount,
  newAccountRecord,
  who,
} from '../account-rules.ts';
import type { Account, AccountRecord, Accounts, Cause } from '../accounts.ts';
import { inRange } from '../money.ts';
import { walletOf } from '../payer.ts';
import { randomHex } from '../random-hex.ts';
import { done, invalid, refused } from '../result.ts';
import { accountState } from '../stated.ts';
import { type Bookkeeper, type Books, got, type Rule } from './books.ts';

export function accountChanges(keeper: Bookkeeper): Pick<Accounts, 'create' | 'change' | 'credit'> {
  const { clock, randomBytes } = keeper.options;
  return {
    async create(account, cause) {
      const checked = checkNewAccount(account);
      if (!checked.ok) return checked;
      const { name, creditNanos = 0n } = account;
      const record = newAccountRecord(account, `acct_${randomHex(randomBytes)}`, clock.now());
      return keeper.follow(function* (books) {
        const created = yield* got(books.journaled(cause.id, 'account_created'));
        const credited = yield* got(books.journaled(cause.id, 'credit'));
        if (created !== undefined || (creditNanos > 0n && credited !== undefined)) {
          const made = created === undefined ? undefined : yield* got(books.account(created.accountId ?? ''));
          if (made === undefined || !isSameAccount(account, made, credited?.nanos ?? 0n)) return reused(cause);
          return done(yield* withWallet(books, made));
        }
        if (yield* got(books.isNameTaken(name))) return refused({ reason: 'name_taken' } as const);
        yield* got(books.addAccount(record));
        const common = { ref: cause.id, accountId: record.id, atMs: record.createdAtMs, ...who(cause) };
        books.note({ ...common, kind: 'account_created', state: accountState(record) });
        const wallet = walletOf(record.id);
        yield* got(books.load([wallet, 'external']));
        if (creditNanos > 0n) books.move({ ...common, kind: 'credit', from: 'external', to: wallet, nanos: creditNanos });
        return done({ ...record, walletNanos: creditNanos });
      });
    },

    change: (id, changes, cause) =>
      keeper.follow(function* (books) {
        const record = yield* got(books.account(id));
        if (record === undefined) return refused({ reason: 'unknown_account', account: id } as const);
        const note = describeAccountChanges(changes, cause);
        const before = yield* got(books.journaled(cause.id, 'account_changed'));
        if (before !== undefined) {
          const isSame = before.accountId === id && before.note === note;
          return isSame ? done(yield* withWallet(books, record)) : reused(cause);
        }
        const changed = changedAccount(record, changes);
        if (!changed.ok) return changed;
        yield* got(books.replaceAccount(changed.value));
        const state = accountState(changed.value);
        books.note({ kind: 'account_changed', ref: cause.id, accountId: id, atMs: clock.now(), by: cause.by, note, state });
        return done(yield* withWallet(books, changed.value));
      }),

    async credit(id, nanos, cause) {
      if (nanos === 0n || !inRange(nanos)) return invalid('amount', 'must not be zero and must be in range');
      return keeper.follow((books) => creditWallet(books, id, nanos, cause, clock.now()));
    },
  };
}

function* creditWallet(books: Books, id: string, nanos: bigint, cause: Cause, atMs: number) {
  const record = yield* got(books.account(id));
  if (record === undefined) return refused({ reason: 'unknown_account', account: id } as const);
  const wallet = walletOf(id);
  yield* got(books.load([wallet, 'external']));
  const kind = nanos > 0n ? 'credit' : 'admin_adjustment';
  const size = nanos > 0n ? nanos : -nanos;
  const before = yield* got(books.journaled(cause.id, kind));
  if (before !== undefined) {
    const isSame = before.accountId === id && before.nanos === size;
    return isSame ? done({ ...record, walletNanos: books.balance(wallet) }) : reused(cause);
  }
  const balance = books.balance(wallet) + nanos;
  if (!inRange(balance)) return invalid('amount', 'the balance would be out of range');
  const [from, to] = nanos > 0n ? (['external', wallet] as const) : ([wallet, 'external'] as const);
  books.move({ kind, ref: cause.id, from, to, nanos: size, accountId: id, atMs, ...who(cause) });
  return done({ ...record, walletNanos: balance });
}

function* withWallet(books: Books, record: AccountRecord): Rule<Account> {
  const wallet = walletOf(record.id);
  yield* got(books.load([wallet]));
  return { ...record, walletNanos: books.balance(wallet) };
}

const reused = (cause: Cause) => refused({ reason: 'cause_reused', cause: cause.id } as const);
