/** Accounts on PostgreSQL. */
import type { Accounts } from '../accounts.ts';
import { accountChanges } from '../books/accounts.ts';
import { isStorable } from '../storable.ts';
import type { Database } from './database.ts';
import { accountWithWallet } from './rows.ts';
import type { Statement } from './session.ts';

const WITH_WALLET = `SELECT a.*, b.nanos FROM accounts a LEFT JOIN balances b ON b.account = 'wallet:' || a.id`;
const FIND: Statement = {
  name: 'account_find',
  // A name wins over an id: the order of the other engine.
  text: `${WITH_WALLET} WHERE a.name = $1 OR a.id = $1 ORDER BY a.name = $1 DESC LIMIT 1`,
};
const LIST: Statement = { name: 'account_list', text: `${WITH_WALLET} ORDER BY a.created_at_ms, a.id COLLATE "C"` };

export function createAccounts(database: Database): Accounts {
  return {
    ...accountChanges(database),

    async find(idOrName) {
      if (idOrName.length === 0 || idOrName.length > 256 || !isStorable(idOrName)) return undefined;
      const [row] = await database.run(FIND, [idOrName]);
      return row === undefined ? undefined : accountWithWallet(row);
    },

    list: async () => (await database.run(LIST)).map(accountWithWallet),
  };
}
