/** The rows of the rollups on LMDB: their keys, their text, and how a transaction adds to them. */
import type { Database, Key } from 'lmdb';
import { noSums, type Rollup, type RollupChanges, type RollupPlace, SUM_NAMES, type UsageSums } from '../rollups.ts';
import type { Encoder } from './text-encoder.ts';
import { StoreError } from '../store-error.ts';

export type RollupKey = [keyId: string, at: number, model: string, channelId: string, code: string];

export interface StoredRollup {
  readonly accountId: string;
  readonly sums: UsageSums;
}

export type RollupTable = Database<StoredRollup, RollupKey>;

/**
 * A row is its amount and its counts in the order of `SUM_NAMES`, how many buckets of the first token there are and those, each
 * eight bytes, and then the account: that is the format of the store. As text it would take twice the time.
 */
export const ROLLUP_BYTES: Encoder<StoredRollup> = {
  encode(row: StoredRollup | typeof ROW) {
    if (row !== ROW) addUp(undefined, row as StoredRollup);
    return ROW;
  },
  decode(bytes) {
    const row = viewOf(bytes);
    const sums = noSums();
    sums.chargedNanos = row.getBigInt64(0, true);
    for (const [n, name] of SUM_NAMES.entries()) sums[name] = row.getFloat64(WORD * (1 + n), true);
    const end = COUNTS_END + WORD + WORD * row.getFloat64(COUNTS_END, true);
    for (let at = COUNTS_END + WORD; at < end; at += WORD) sums.firstToken.push(row.getFloat64(at, true));
    return { accountId: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('utf8', end), sums };
  },
};

const WORD = 8;
const COUNTS_END = WORD * (1 + SUM_NAMES.length);
/** Every put is done with the bytes when it returns, so that all can share one place. lmdb-js reads from `start` to `end`. */
const ROW = Object.assign(Buffer.allocUnsafeSlow(8 * 1024), { start: 0, end: 0 });
const WORDS = new DataView(ROW.buffer);

function viewOf(bytes: Uint8Array): DataView {
  if (bytes.length < COUNTS_END + WORD) throw new StoreError('corrupt', 'a sum by hour is not one');
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

/**
 * Puts a stored row with what is added to it into {@link ROW}; false when nothing is left of it. It stays bytes: each exchange
 * adds to several rows, and making values of them took longer than the rest.
 */
function addUp(stored: Uint8Array | undefined, { accountId, sums }: StoredRollup): boolean {
  const { firstToken } = sums;
  const before = stored === undefined ? EMPTY : viewOf(stored);
  const nanos = before.getBigInt64(0, true) + sums.chargedNanos;
  WORDS.setBigInt64(0, nanos, true);
  let isNothing = nanos === 0n;
  let at = WORD;
  for (const name of SUM_NAMES) {
    const sum = before.getFloat64(at, true) + sums[name];
    WORDS.setFloat64(at, sum, true);
    isNothing &&= sum === 0;
    at += WORD;
  }
  const had = before.getFloat64(at, true);
  const buckets = Math.max(had, firstToken.length);
  WORDS.setFloat64(at, buckets, true);
  for (let bucket = 0; bucket < buckets; bucket++) {
    at += WORD;
    const count = (bucket < had ? before.getFloat64(at, true) : 0) + (firstToken[bucket] ?? 0);
    WORDS.setFloat64(at, count, true);
    isNothing &&= count === 0;
  }
  at += WORD;
  ROW.end = at + ROW.write(accountId, at);
  return !isNothing;
}

const EMPTY = new DataView(new ArrayBuffer(COUNTS_END + WORD));

export const keyOf = ({ keyId, at, model, channelId, code }: RollupPlace): RollupKey => [keyId, at, model, channelId, code];

/** Before all rows of that hour, or day, of all keys together. */
export const keyOfAll = (at: number): RollupKey => ['', at, '', '', ''];

export function rollupOf(key: RollupKey, { accountId, sums }: StoredRollup): Rollup {
  const [keyId, at, model, channelId, code] = key;
  return { keyId, accountId, at, model, channelId, code, sums };
}

/** What a transaction writes with. */
interface Writer {
  put<V, K extends Key>(table: Database<V, K>, key: K, value: V): void;
  remove(table: RollupTable, key: RollupKey): void;
  readonly tables: { readonly rollupHours: RollupTable; readonly rollupDays: RollupTable };
}

/** `hours`: by key; their days, and both for all keys together, are added, too. */
export function addRollups(work: Writer, hours: RollupChanges): void {
  const { rollupHours, rollupDays } = work.tables;
  const all = hours.hoursOfAll();
  for (const changes of [hours, all]) {
    addAll(work, rollupHours, changes.hours());
    addAll(work, rollupDays, changes.days());
  }
}

export function addAll(work: Pick<Writer, 'put' | 'remove'>, table: RollupTable, changes: Iterable<Rollup>): void {
  for (const rollup of changes) {
    const key = keyOf(rollup);
    const stored = table.getBinaryFast(key);
    if (addUp(stored, rollup)) work.put<StoredRollup | Uint8Array, RollupKey>(table, key, ROW);
    else if (stored !== undefined) work.remove(table, key);
  }
}

/** The keys of the rows of a key (`''`: of all keys together) from `from`, before `to`. */
export function rangeBetween(keyId: string, from: number, to: number): { readonly start: RollupKey; readonly end: RollupKey } {
  return { start: [keyId, from, '', '', ''], end: [keyId, to, '', '', ''] };
}

export function* rowsBetween(table: RollupTable, keyId: string, from: number, to: number): Generator<Rollup> {
  for (const { key, value } of table.getRange(rangeBetween(keyId, from, to))) yield rollupOf(key, value);
}
