/**
 * Looks at an LMDB file before LMDB maps it: a file that is something else, was cut short or is damaged would end the process
 * with a signal instead of a sentence. Knows the two meta pages of the data format 2; what is behind them is followed by
 * `check-pages.ts`.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';
import { StoreError } from '../store-error.ts';
import { damageOf, type Roots } from './check-pages.ts';

const MAGIC = 0xbeefc0de;
const META = { magic: 24, pageSize: 48, freeRoot: 88, mainRoot: 136, lastPage: 144, transaction: 152, end: 160 } as const;

/** A process that writes meanwhile moves the pages under our eyes: then it is looked at again, and in the end believed. */
const LOOKS = 3;

/** Throws `StoreError` `corrupt`. A file that is absent or empty is a store that is yet to be made. */
export function checkFile(path: string): void {
  const file = openIfThere(path);
  if (file === undefined) return;
  try {
    if (fstatSync(file).size === 0) return;
    for (let look = 0; look < LOOKS; look++) {
      const before = readRoots(file, path);
      const damage = damageOf(file, before);
      if (damage === undefined) return;
      if (readRoots(file, path).transaction === before.transaction) throw corrupt(path, `is damaged: ${damage}`);
    }
  } finally {
    closeSync(file);
  }
}

interface Snapshot extends Roots {
  readonly transaction: bigint;
}

/** What the newer of the two meta pages tells. */
function readRoots(file: number, path: string): Snapshot {
  const first = readMeta(file, 0, path);
  const pageSize = first.readUInt32LE(META.pageSize);
  if (pageSize < 512 || pageSize > 65_536 || (pageSize & (pageSize - 1)) !== 0) throw corrupt(path, 'has no page size');
  const second = readMeta(file, pageSize, path);
  const newest = first.readBigUInt64LE(META.transaction) > second.readBigUInt64LE(META.transaction) ? first : second;
  const needed = (newest.readBigUInt64LE(META.lastPage) + 1n) * BigInt(pageSize);
  const { size } = fstatSync(file);
  if (needed > BigInt(size)) throw corrupt(path, `is cut short: ${size} of ${needed} bytes`);
  return {
    pageSize,
    lastPage: Number(newest.readBigUInt64LE(META.lastPage)),
    trees: [newest.readBigUInt64LE(META.freeRoot), newest.readBigUInt64LE(META.mainRoot)],
    transaction: newest.readBigUInt64LE(META.transaction),
  };
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
