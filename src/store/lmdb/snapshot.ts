/**
 * One moment of the LMDB store, looked at for as long as it takes, in steps between which others have their turns and write.
 * Meanwhile LMDB keeps the pages of that moment, so that the file grows by what is written.
 */
import type { Database, Key, Transaction } from 'lmdb';
import { inSteps } from '../steps.ts';
import type { Engine } from './engine.ts';
import type { Tables } from './tables.ts';

export class Snapshots {
  readonly #open = new Set<Promise<void>>();

  /** `look` yields behind each small piece. `check` throws when the engine may not be used any more. */
  async take<T>({ root, tables }: Engine, look: (tables: Tables) => Generator<void, T>, check: () => void): Promise<T> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const transaction = root.useReadTransaction();
    this.#open.add(promise);
    try {
      return await inSteps(look(tablesAt(tables, transaction)), check);
    } finally {
      transaction.done();
      this.#open.delete(promise);
      resolve();
    }
  }

  /** An engine that were closed while somebody looks would take the process with it. */
  async ended(): Promise<void> {
    await Promise.all(this.#open);
  }
}

/** The tables as this transaction sees them, for reading alone: with `get`, `doesExist`, `getRange` and `getKeys`. */
function tablesAt(tables: Tables, transaction: Transaction): Tables {
  const seen = new Map(Object.entries(tables).map(([name, table]) => [name, tableAt(table, transaction)]));
  return new Proxy(tables, { get: (_, name) => seen.get(String(name)) });
}

function tableAt<V, K extends Key>(table: Database<V, K>, transaction: Transaction): Pick<Database<V, K>, Reading> {
  return {
    get: (key) => table.get(key, { transaction }),
    doesExist: (key: K) => table.get(key, { transaction }) !== undefined,
    getRange: (options) => table.getRange({ ...options, transaction }),
    getKeys: (options) => table.getKeys({ ...options, transaction }),
  };
}

type Reading = 'get' | 'doesExist' | 'getRange' | 'getKeys';
