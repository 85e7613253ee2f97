/** API keys on PostgreSQL. Authentication reads the cache while that is fresh, else the database. */
import { keyChanges } from '../books/keys.ts';
import type { Created } from '../created-rows.ts';
import { accepted, digestOf, MAX_TOKEN } from '../key-rules.ts';
import type { Keys, NotAccepted, Principal } from '../keys.ts';
import { paysFromSubAccount } from '../payer.ts';
import { refused } from '../result.ts';
import { isStorable, storable } from '../storable.ts';
import { KEY } from './books.ts';
import { NO_CHANGES } from './cache.ts';
import { CREATED_PAGE, createdRows } from './created-rows.ts';
import type { Database } from './database.ts';
import { ACCOUNTS, KEYS } from './record-tables.ts';
import { accountOf, flag, int, keyOf, maybeBig, maybeText, object } from './rows.ts';
import type { Statement } from './session.ts';
import type { Watch } from './watch.ts';

/** $1, $2: behind this moment and id; $3: the account. */
const listWhere = (name: string, condition: string): Statement => ({
  name,
  text: `SELECT * FROM keys WHERE (created_at_ms, id COLLATE "C") > ($1, $2)${condition}
    ORDER BY created_at_ms, id COLLATE "C" LIMIT ${CREATED_PAGE}`,
});
const LIST = listWhere('key_list', '');
const LIST_OF_ACCOUNT = listWhere('key_list_of_account', ' AND account_id = $3');
/** $1: a digest. One row always: the head tells as of when the answer holds, also when there is no such key. */
const PRINCIPAL: Statement = {
  name: 'principal',
  text: `SELECT h.seq, ${KEYS.json('k')} AS key, ${ACCOUNTS.json('a')} AS account, k.id IS NOT NULL AS known
    FROM ledger_head h LEFT JOIN keys k ON k.digest = $1 LEFT JOIN accounts a ON a.id = k.account_id`,
};
const BALANCE: Statement = {
  name: 'key_balance',
  text: `SELECT k.*, a.unlimited, w.nanos AS wallet, s.nanos AS sub FROM keys k JOIN accounts a ON a.id = k.account_id
    LEFT JOIN balances w ON w.account = 'wallet:' || k.account_id LEFT JOIN balances s ON s.account = 'sub:' || k.id
    WHERE k.id = $1`,
};

export function createKeys(database: Database, watch: Watch): Keys {
  const one = async (statement: Statement, id: string) => (isStorable(id) ? database.run(statement, [id]) : []);

  return {
    ...keyChanges(database),

    async authenticate(token, nowMs) {
      if (token.length === 0 || token.length > MAX_TOKEN) return refused<NotAccepted>({ reason: 'unknown' });
      const digest = digestOf(token);
      return accepted(digest, await lookUp(database, watch, digest), nowMs);
    },

    async find(id) {
      const [row] = await one(KEY, id);
      return row === undefined ? undefined : keyOf(row);
    },

    async list(accountId, page) {
      const [statement, owner] = accountId === undefined ? [LIST, []] : [LIST_OF_ACCOUNT, [storable(accountId)]];
      const pages = {
        find: async (id: string) => (await database.run(KEY, [id])).map(keyOf)[0],
        behind: async ({ createdAtMs, id }: Created) => (await database.run(statement, [createdAtMs, id, ...owner])).map(keyOf),
      };
      return await createdRows(pages, page);
    },

    async balance(keyId) {
      const [row] = await one(BALANCE, keyId);
      if (row === undefined) return undefined;
      const sub = paysFromSubAccount(keyOf(row));
      const nanos = maybeBig(row, sub ? 'sub' : 'wallet') ?? 0n;
      return { source: sub ? 'sub_account' : 'wallet', nanos, unlimited: !sub && flag(row, 'unlimited') };
    },
  };
}

/** From the cache while it is fresh; else from the database, which fails with `StoreError` when it is away. */
async function lookUp(database: Database, watch: Watch, digest: string): Promise<Principal | undefined> {
  const { cache } = database;
  if (watch.isFresh()) {
    const key = cache.keyByDigest(digest);
    const account = key === undefined ? undefined : cache.account(key.accountId);
    if (key !== undefined && account !== undefined) return { key, account };
    if (cache.isUnknown(digest)) return undefined;
  }
  const [row] = await database.run(PRINCIPAL, [digest]);
  if (row === undefined) return undefined;
  const seq = int(row, 'seq');
  if (!flag(row, 'known')) {
    cache.rememberUnknown(digest, seq);
    return undefined;
  }
  const key = keyOf(object(maybeText(row, 'key') ?? '{}'));
  const account = accountOf(object(maybeText(row, 'account') ?? '{}'));
  cache.remember({ ...NO_CHANGES, seq, keys: [key], accounts: [account] });
  return { key, account };
}
