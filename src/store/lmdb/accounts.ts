/** Accounts on LMDB. */
import { randomHex } from '../random-hex.ts';
import type { Account, AccountChanges, AccountRecord, Accounts, Cause, NewAccount } from '../accounts.ts';
import {
  changedAccount,
  checkNewAccount,
  describeAccountChanges,
  isSameAccount,
  newAccountRecord,
  who,
} from '../account-rules.ts';
import { inRange } from '../money.ts';
import { done, invalid, refused } from '../result.ts';
import { accountState } from '../stated.ts';
import { walletOf } from '../payer.ts';
import type { Environment } from './environment.ts';
import type { Tables } from './tables.ts';
import type { Work } from './work.ts';

export function createAccounts(environment: Environment): Accounts {
  const { clock, randomBytes } = environment.options;

  return {
    async create(account: NewAccount, cause: Cause) {
      const checked = checkNewAccount(account);
      if (!checked.ok) return checked;
      const { name, creditNanos = 0n } = account;
      return environment.transact((work) => {
        const { tables } = work;
        const created = work.journaled(cause.id, 'account_created');
        const credited = work.journaled(cause.id, 'credit');
        if (created !== undefined || (creditNanos > 0n && credited !== undefined)) {
          const made = created === undefined ? undefined : tables.accounts.get(created.accountId ?? '');
          const same = made !== undefined && isSameAccount(account, made, credited?.nanos ?? 0n);
          return same ? done(withWallet(tables, made)) : refused({ reason: 'cause_reused', cause: cause.id } as const);
        }
        if (tables.accountNames.doesExist(name)) return refused({ reason: 'name_taken' } as const);
        const record = newAccountRecord(account, `acct_${randomHex(randomBytes)}`, clock.now());
        work.putPrincipal(tables.accounts, record.id, record);
        work.put(tables.accountNames, name, record.id);
        const common = { ref: cause.id, accountId: record.id, atMs: record.createdAtMs, ...who(cause) };
        work.note({ ...common, kind: 'account_created', state: accountState(record) });
        if (creditNanos > 0n)
          work.move({ ...common, kind: 'credit', from: 'external', to: walletOf(record.id), nanos: creditNanos });
        return done({ ...record, walletNanos: creditNanos });
      });
    },

    find: (idOrName) =>
      environment.read((tables) => {
        const record = findRecord(tables, idOrName);
        return record === undefined ? undefined : withWallet(tables, record);
      }),

    list: () =>
      environment.read((tables) => {
        const all = [...tables.accounts.getRange()].map(({ value }) => withWallet(tables, value));
        return all.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1));
      }),

    async change(id: string, changes: AccountChanges, cause: Cause) {
      return environment.transact((work) => {
        const record = work.tables.accounts.get(id);
        if (record === undefined) return refused({ reason: 'unknown_account', account: id } as const);
        const note = describeAccountChanges(changes, cause);
        const before = work.journaled(cause.id, 'account_changed');
        if (before !== undefined) {
          if (before.accountId !== id || before.note !== note)
            return refused({ reason: 'cause_reused', cause: cause.id } as const);
          return done(withWallet(work.tables, record));
        }
        const changed = changedAccount(record, changes);
        if (!changed.ok) return changed;
        work.putPrincipal(work.tables.accounts, id, changed.value);
        const state = accountState(changed.value);
        work.note({ kind: 'account_changed', ref: cause.id, accountId: id, atMs: clock.now(), by: cause.by, note, state });
        return done(withWallet(work.tables, changed.value));
      });
    },

    async credit(id: string, nanos: bigint, cause: Cause) {
      if (nanos === 0n || !inRange(nanos)) return invalid('amount', 'must not be zero and must be in range');
      return environment.transact((work) => creditWallet(work, id, nanos, cause, clock.now()));
    },
  };
}

function creditWallet(work: Work, id: string, nanos: bigint, cause: Cause, atMs: number) {
  const record = work.tables.accounts.get(id);
  if (record === undefined) return refused({ reason: 'unknown_account', account: id } as const);
  const wallet = walletOf(id);
  const kind = nanos > 0n ? 'credit' : 'admin_adjustment';
  const size = nanos > 0n ? nanos : -nanos;
  const before = work.journaled(cause.id, kind);
  if (before !== undefined) {
    const same = before.accountId === id && before.nanos === size;
    return same ? done(withWallet(work.tables, record)) : refused({ reason: 'cause_reused', cause: cause.id } as const);
  }
  const balance = work.balance(wallet) + nanos;
  if (!inRange(balance)) return invalid('amount', 'the balance would be out of range');
  const [from, to] = nanos > 0n ? (['external', wallet] as const) : ([wallet, 'external'] as const);
  work.move({ kind, ref: cause.id, from, to, nanos: size, accountId: id, atMs, ...who(cause) });
  return done({ ...record, walletNanos: balance });
}

function findRecord(tables: Tables, idOrName: string): AccountRecord | undefined {
  if (idOrName.length === 0 || idOrName.length > 256) return undefined;
  const id = tables.accountNames.get(idOrName) ?? idOrName;
  return tables.accounts.get(id);
}

function withWallet(tables: Tables, record: AccountRecord): Account {
  return { ...record, walletNanos: tables.balances.get(walletOf(record.id)) ?? 0n };
}
