/** The tables of a store on LMDB while nobody has it open, for tests of what another process or a fault may leave in them. */
import { open, type RootDatabase } from 'lmdb';
import { openTables, type Tables } from '../../../src/store/lmdb/tables.ts';

/** Whatever `edit` writes is on disk when this resolves with its result. */
export async function editTables<T>(path: string, edit: (tables: Tables, root: RootDatabase) => T): Promise<T> {
  const root = open({ path, noSubdir: false, maxDbs: 64, cache: false, overlappingSync: false });
  const result = edit(openTables(root), root);
  await root.flushed;
  // Without a turn of the event loop lmdb-js can block the main thread for ever when it closes.
  await new Promise((resolve) => setImmediate(resolve));
  await root.close();
  return result;
}
