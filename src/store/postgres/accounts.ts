/** Accounts on PostgreSQL. */
import type { Accounts } from '../accounts.ts';
import { accountChanges } from '../books/accounts.ts';
import type { Created } from '../created-rows.ts';
import { isStorable } from '../storable.ts';
import { CREATED_PAGE, createdRows } from './created-rows.ts';
import type { Database } from './database.ts';
import { accountWithWallet } from './rows.ts';
import type { Statement } from './session.ts';

const WITH_WALLET = `SELECT a.*, b.nanos FROM accounts a LEFT JOIN balances b ON b.account = 'wallet:' || a.id`;
const FIND: Statement = {
  name: 'account_find',
  // A name wins over an id: the order of the other engine.
  text: `${WITH_WALLET} WHERE a.name = $1 OR a.id = $1 ORDER BY a.name = $1 DESC LIMIT 1`,
};
/** $1, $2: behind this moment and id. */
const LIST: Statement = {
  name: 'account_list',
  text: `${WITH_WALLET} WHERE (a.created_at_ms, a.id COLLATE "C") > ($1, $2)
    ORDER BY a.created_at_ms, a.id COLLATE "C" LIMIT ${CREATED_PAGE}`,
};
/** By id alone. */
const ONE: Statement = { name: 'account_one', text: `${WITH_WALLET} WHERE a.id = $1` };

export function createAccounts(database: Database): Accounts {
  return {
    ...accountChanges(database),

    async find(idOrName) {
      if (idOrName.length === 0 || idOrName.length > 256 || !isStorable(idOrName)) return undefined;
      const [row] = await database.run(FIND, [idOrName]);
      return row === undefined ? undefined : accountWithWallet(row);
    },

    async list(page) {
      const pages = {
        find: async (id: string) => (await database.run(ONE, [id])).map(accountWithWallet)[0],
        behind: async ({ createdAtMs, id }: Created) => (await database.run(LIST, [createdAtMs, id])).map(accountWithWallet),
      };
      return await createdRows(pages, page);
    },
  };
}
