/**
 * Looks at the header of an LMDB file before LMDB maps it: a file that is something else, or was cut short, would end the process
 * with a signal instead of a sentence. Knows the two meta pages of the data format 2 and nothing behind them.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StoreError } from '../store-error.ts';

const MAGIC = 0xbeefc0de;
const META = { magic: 24, pageSize: 48, lastPage: 144, transaction: 152, end: 160 } as const;

/** Throws `StoreError` `corrupt`. A file that is absent or empty is a store that is yet to be made. */
export function checkFile(path: string): void {
  const file = openIfThere(path);
  if (file === undefined) return;
  try {
    const { size } = fstatSync(file);
    if (size === 0) return;
    const first = readMeta(file, 0, path);
    const pageSize = first.readUInt32LE(META.pageSize);
    if (pageSize < 512 || pageSize > 65_536 || (pageSize & (pageSize - 1)) !== 0) throw corrupt(path, 'has no page size');
    const second = readMeta(file, pageSize, path);
    const newest = first.readBigUInt64LE(META.transaction) > second.readBigUInt64LE(META.transaction) ? first : second;
    const needed = (newest.readBigUInt64LE(META.lastPage) + 1n) * BigInt(pageSize);
    if (needed > BigInt(size)) throw corrupt(path, `is cut short: ${size} of ${needed} bytes`);
  } finally {
    closeSync(file);
  }
}

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

function readMeta(file: number, at: number, path: string): Buffer {
  const meta = Buffer.alloc(META.end);
  if (readSync(file, meta, 0, META.end, at) < META.end) throw corrupt(path, 'is cut short');
  if (meta.readUInt32LE(META.magic) !== MAGIC) throw corrupt(path, 'is no store');
  return meta;
}

function corrupt(path: string, what: string): StoreError {
  return new StoreError('corrupt', `the file ${path} ${what}: restore it from a backup`);
}
