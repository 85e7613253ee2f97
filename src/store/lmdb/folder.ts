/**
 * Looks at the folder of a store before LMDB does: a lock that it may not write, and a device or a folder where one of its files belongs,
 * would end the process with a signal, and a pipe would hold it for ever.
 */
import { accessSync, constants, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import { StoreError } from '../store-error.ts';

/** Makes the folder where there is none. Throws `StoreError` `unavailable`, or the file system's own error. */
export function prepareFolder(path: string): void {
  makeFolder(path);
  requireFile(join(path, 'data.mdb'));
  const lock = join(path, 'lock.mdb');
  // Asked, not opened: to close a file gives up the locks that this process has on it.
  accessSync(requireFile(lock) === undefined ? path : lock, constants.R_OK | constants.W_OK);
}

function requireFile(path: string): Stats | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile())
    throw new StoreError('unavailable', `the store cannot be opened: ${path} is no file`);
  return found;
}
