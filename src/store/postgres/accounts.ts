/** Accounts on PostgreSQL. */
import {
  changedAccount,
  checkNewAccount,
  describeAccountChanges,
  isSameAccount,
  newAccountRecord,
  who,
} from '../account-rules.ts';
import type { AccountRecord, Accounts, Cause } from '../accounts.ts';
import { inRange } from '../money.ts';
import { walletOf } from '../payer.ts';
import { randomHex } from '../random-hex.ts';
import { done, invalid, refused } from '../result.ts';
import { accountState } from '../stated.ts';
import { isStorable } from '../storable.ts';
import type { Database } from './database.ts';
import { accountOf, accountWithWallet } from './rows.ts';
import type { Session, Statement, Value } from './session.ts';
import type { Work } from './work.ts';

const WITH_WALLET = `SELECT a.*, b.nanos FROM accounts a LEFT JOIN balances b ON b.account = 'wallet:' || a.id`;
const BY_ID: Statement = { name: 'account_by_id', text: 'SELECT * FROM accounts WHERE id = $1' };
const BY_NAME: Statement = { name: 'account_by_name', text: 'SELECT * FROM accounts WHERE name = $1' };
const FIND: Statement = {
  name: 'account_find',
  // A name wins over an id: the order of the other engine.
  text: `${WITH_WALLET} WHERE a.name = $1 OR a.id = $1 ORDER BY a.name = $1 DESC LIMIT 1`,
};
const LIST: Statement = { name: 'account_list', text: `${WITH_WALLET} ORDER BY a.created_at_ms, a.id COLLATE "C"` };
const INSERT: Statement = {
  name: 'account_insert',
  text: `INSERT INTO accounts (id, name, class, unlimited, disabled, created_at_ms, requests_per_minute, tokens_per_minute,
    max_concurrency) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
};
const UPDATE: Statement = {
  name: 'account_update',
  text: `UPDATE accounts SET class = $2, unlimited = $3, disabled = $4, requests_per_minute = $5, tokens_per_minute = $6,
    max_concurrency = $7 WHERE id = $1`,
};

export function createAccounts(database: Database): Accounts {
  const { clock, randomBytes } = database.options;

  return {
    async create(account, cause) {
      const checked = checkNewAccount(account);
      if (!checked.ok) return checked;
      const { name, creditNanos = 0n } = account;
      const record = newAccountRecord(account, `acct_${randomHex(randomBytes)}`, clock.now());
      return database.transact(async (work) => {
        const created = await work.journaled(cause.id, 'account_created');
        const credited = await work.journaled(cause.id, 'credit');
        if (created !== undefined || (creditNanos > 0n && credited !== undefined)) {
          const made = created === undefined ? undefined : await findAccount(work, created.accountId ?? '');
          if (made === undefined || !isSameAccount(account, made, credited?.nanos ?? 0n))
            return refused({ reason: 'cause_reused', cause: cause.id } as const);
          await work.load([walletOf(made.id)]);
          return done({ ...made, walletNanos: work.balance(walletOf(made.id)) });
        }
        if ((await work.run(BY_NAME, [name])).length > 0) return refused({ reason: 'name_taken' } as const);
        await insertAccount(work, record);
        const wallet = walletOf(record.id);
        await work.load([wallet, 'external']);
        const common = { ref: cause.id, accountId: record.id, atMs: record.createdAtMs, ...who(cause) };
        work.note({ ...common, kind: 'account_created', state: accountState(record) });
        if (creditNanos > 0n) work.move({ ...common, kind: 'credit', from: 'external', to: wallet, nanos: creditNanos });
        work.changedAccount(record);
        return done({ ...record, walletNanos: creditNanos });
      });
    },

    async find(idOrName) {
      if (idOrName.length === 0 || idOrName.length > 256 || !isStorable(idOrName)) return undefined;
      const [row] = await database.run(FIND, [idOrName]);
      return row === undefined ? undefined : accountWithWallet(row);
    },

    list: async () => (await database.run(LIST)).map(accountWithWallet),

    async change(id, changes, cause) {
      return database.transact(async (work) => {
        const record = await findAccount(work, id);
        if (record === undefined) return refused({ reason: 'unknown_account', account: id } as const);
        const wallet = walletOf(id);
        await work.load([wallet]);
        const note = describeAccountChanges(changes, cause);
        const before = await work.journaled(cause.id, 'account_changed');
        if (before !== undefined) {
          if (before.accountId !== id || before.note !== note)
            return refused({ reason: 'cause_reused', cause: cause.id } as const);
          return done({ ...record, walletNanos: work.balance(wallet) });
        }
        const checked = changedAccount(record, changes);
        if (!checked.ok) return checked;
        const changed = checked.value;
        await work.run(UPDATE, [id, changed.class, changed.unlimited, changed.disabled, ...rateColumns(changed)]);
        const state = accountState(changed);
        work.note({ kind: 'account_changed', ref: cause.id, accountId: id, atMs: clock.now(), by: cause.by, note, state });
        work.changedAccount(changed);
        return done({ ...changed, walletNanos: work.balance(wallet) });
      });
    },

    async credit(id, nanos, cause) {
      if (nanos === 0n || !inRange(nanos)) return invalid('amount', 'must not be zero and must be in range');
      return database.transact((work) => creditWallet(work, id, nanos, cause, clock.now()));
    },
  };
}

export async function insertAccount(work: Pick<Session, 'run'>, account: AccountRecord): Promise<void> {
  const { id, name, class: of, unlimited, disabled, createdAtMs } = account;
  await work.run(INSERT, [id, name, of, unlimited, disabled, createdAtMs, ...rateColumns(account)]);
}

function rateColumns({ rateLimits }: AccountRecord): Value[] {
  return [rateLimits?.requestsPerMinute, rateLimits?.tokensPerMinute, rateLimits?.maxConcurrency];
}

async function creditWallet(work: Work, id: string, nanos: bigint, cause: Cause, atMs: number) {
  const record = await findAccount(work, id);
  if (record === undefined) return refused({ reason: 'unknown_account', account: id } as const);
  const wallet = walletOf(id);
  await work.load([wallet, 'external']);
  const kind = nanos > 0n ? 'credit' : 'admin_adjustment';
  const size = nanos > 0n ? nanos : -nanos;
  const before = await work.journaled(cause.id, kind);
  if (before !== undefined) {
    const same = before.accountId === id && before.nanos === size;
    if (!same) return refused({ reason: 'cause_reused', cause: cause.id } as const);
    return done({ ...record, walletNanos: work.balance(wallet) });
  }
  const balance = work.balance(wallet) + nanos;
  if (!inRange(balance)) return invalid('amount', 'the balance would be out of range');
  const [from, to] = nanos > 0n ? (['external', wallet] as const) : ([wallet, 'external'] as const);
  work.move({ kind, ref: cause.id, from, to, nanos: size, accountId: id, atMs, ...who(cause) });
  return done({ ...record, walletNanos: balance });
}

export async function findAccount(work: Work, id: string): Promise<AccountRecord | undefined> {
  if (!isStorable(id)) return undefined;
  const [row] = await work.run(BY_ID, [id]);
  return row === undefined ? undefined : accountOf(row);
}
