/** Accounts on LMDB. */
import type { Account, AccountRecord, Accounts } from '../accounts.ts';
import { accountChanges } from '../books/accounts.ts';
import { createdRows } from './steps.ts';
import { Steps } from '../steps.ts';
import { walletOf } from '../payer.ts';
import type { Environment } from './environment.ts';
import type { Tables } from './tables.ts';

export function createAccounts(environment: Environment): Accounts {
  return {
    ...accountChanges(environment),

    find: (idOrName) =>
      environment.read((tables) => {
        const record = findRecord(tables, idOrName);
        return record === undefined ? undefined : withWallet(tables, record);
      }),

    async list(page) {
      const records = await createdRows(environment, ({ accounts }) => accounts, page);
      const accounts: Account[] = [];
      const steps = new Steps();
      for (const record of records) {
        accounts.push(environment.look((tables) => withWallet(tables, record)));
        if (steps.isOver) await steps.next();
      }
      return accounts;
    },
  };
}

function findRecord(tables: Tables, idOrName: string): AccountRecord | undefined {
  if (idOrName.length === 0 || idOrName.length > 256) return undefined;
  const id = tables.accountNames.get(idOrName) ?? idOrName;
  return tables.accounts.get(id);
}

function withWallet(tables: Tables, record: AccountRecord): Account {
  return { ...record, walletNanos: tables.balances.get(walletOf(record.id)) ?? 0n };
}
