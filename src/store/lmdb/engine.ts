/**
 * LMDB itself, with its tables. When the last write of a commit fails, that of a meta page, LMDB gives its environment up: it
 * neither reads nor writes any more, however well the disk is, and only one that is opened anew does. lmdb-js never ends a write
 * that began after that.
 */
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import { checkFile } from './check-file.ts';
import { isGivenUp } from './commit-error.ts';
import { prepareFolder } from './folder.ts';
import { StoreError } from '../store-error.ts';
import { metaOf, openTables, type Tables } from './tables.ts';

export interface Engine {
  readonly root: RootDatabase;
  readonly tables: Tables;
}

/** Address space, not disk: the file grows as it is needed, and nothing has to be mapped anew while serving. */
const MAP_BYTES = 16 * 1024 ** 3;

/** That there is no transaction to read in, in the engine's words. */
const NO_READER = /reading 'address'/;

/** Throws `StoreError`, or what the file system or LMDB throws. */
export function openEngine(path: string): Engine {
  prepareFolder(path);
  checkFile(join(path, 'data.mdb'));
  // A commit is synced before its promise resolves: with overlapping sync it would only be visible by then.
  const root = open({ path, noSubdir: false, maxDbs: 64, mapSize: MAP_BYTES, overlappingSync: false, cache: false });
  const engine = { root, tables: openTables(root) };
  checkReader(engine);
  return engine;
}

/**
 * LMDB knows who reads by the pid, and two containers may have one each: it refuses the second. lmdb-js takes that for a moment's
 * shortage, waits ten seconds, and then trips over a transaction that it has not; once more in a timer of its own. Throws
 * `StoreError`.
 */
function checkReader({ root, tables }: Engine): void {
  try {
    metaOf(tables, 'schema');
  } catch (error) {
    if (!(error instanceof TypeError && NO_READER.test(error.message))) throw error;
    withoutReader(root);
    const pid = `a process of another container has it open under the pid ${process.pid}, by which LMDB tells its readers apart`;
    throw new StoreError('unavailable', `the store cannot be opened: ${pid}: run this in that container, or under another pid`);
  }
}

/** What its timer would throw where nobody catches it, it throws here, and not again. */
function withoutReader(root: RootDatabase): void {
  try {
    root.resetReadTxn();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
}

/** Resolves when nothing is left to be written. */
export async function closeEngine({ root }: Engine): Promise<void> {
  // A commit that failed was told to those who wrote.
  await root.flushed.then(
    () => true,
    () => false,
  );
  // Without a turn of the event loop here lmdb-js can block the main thread for ever.
  await new Promise((resolve) => setImmediate(resolve));
  await root.close();
}

/** Whether LMDB has given the environment up. */
export function isLost({ root, tables }: Engine): boolean {
  root.resetReadTxn();
  try {
    metaOf(tables, 'schema');
    return false;
  } catch (error) {
    return isGivenUp(error);
  }
}
