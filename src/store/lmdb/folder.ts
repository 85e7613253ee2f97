/**
 * Looks at the folder of a store before LMDB does: a lock that it may not write or that a full disk has no room for, and a device
 * or a folder where one of its files belongs, would end the process with a signal, and a pipe would hold it for ever. LMDB makes
 * its files readable for everybody, so they are made here.
 */
import { accessSync, chmodSync, closeSync, constants, openSync, rmSync, type Stats, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeFolder } from '../make-folder.ts';
import { StoreError } from '../store-error.ts';

/** They hold secrets and what upstreams wrote. */
const OWN_FILE = 0o600;

/** More than LMDB's lock takes, whose pages it writes through memory: one that the disk has no room for is a signal. */
const ROOM_BYTES = 64 * 1024;
/** As the file system counts. */
const BLOCK_BYTES = 512;
const PAGE_BYTES = 4096;

/**
 * Makes the folder where there is none, and the files in it for this user alone. Throws `StoreError` (`unavailable`,
 * `disk_full`), or the file system's own error.
 */
export function prepareFolder(path: string): void {
  makeFolder(path);
  const [data, lock] = [join(path, 'data.mdb'), join(path, 'lock.mdb')];
  const locked = requireFile(lock);
  const isLocked = locked !== undefined;
  requireFile(data);
  // Asked, not opened: to close a file gives up the locks that this process has on it.
  accessSync(isLocked ? lock : path, constants.R_OK | constants.W_OK);
  for (const file of [data, lock]) ownFile(file);
  // A lock that was in use has its pages on the disk.
  if ((locked?.blocks ?? 0) * BLOCK_BYTES < PAGE_BYTES) requireRoom(path);
  const ballast = join(path, 'ballast');
  if (statSync(ballast, { throwIfNoEntry: false })?.isFile() === true) tighten(ballast);
}

/** By a file that is written and goes again: what the disk tells of its room knows no quota. */
function requireRoom(path: string): void {
  const probe = join(path, `room-${process.pid}`);
  try {
    writeFileSync(probe, Buffer.alloc(ROOM_BYTES), { mode: OWN_FILE, flush: true });
  } catch (error) {
    // Of everything else LMDB's own error tells.
    if (error instanceof Error && 'code' in error && (error.code === 'ENOSPC' || error.code === 'EDQUOT'))
      throw new StoreError('disk_full', `there is no room for a store in ${path}`, error);
  } finally {
    rmSync(probe, { force: true });
  }
}

/** An empty file is to LMDB what none is. Where none can be made another process was quicker, or LMDB's own error tells why. */
function ownFile(path: string): void {
  if (requireFile(path) !== undefined) {
    tighten(path);
    return;
  }
  try {
    closeSync(openSync(path, 'wx', OWN_FILE));
  } catch {
    return;
  }
}

function tighten(path: string): void {
  if ((statSync(path).mode & 0o077) === 0) return;
  try {
    chmodSync(path, OWN_FILE);
  } catch (error) {
    // A file of another user, who shares it on purpose.
    if (!(error instanceof Error && 'code' in error && error.code === 'EPERM')) throw error;
  }
}

function requireFile(path: string): Stats | undefined {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isFile())
    throw new StoreError('unavailable', `the store cannot be opened: ${path} is no file`);
  return found;
}
