/** Accounts on LMDB. */
import type { Account, AccountRecord, Accounts } from '../accounts.ts';
import { accountChanges } from '../books/accounts.ts';
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

    list: () =>
      environment.read((tables) => {
        const all = [...tables.accounts.getRange()].map(({ value }) => withWallet(tables, value));
        return all.sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1));
      }),
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
