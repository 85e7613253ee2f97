/** The rows of the rollups on LMDB: their keys, their text, and how a transaction adds to them. */
import type { Database } from 'lmdb';
import {
  addSums,
  isNothing,
  noSums,
  type Rollup,
  type RollupChanges,
  type RollupPlace,
  SUM_NAMES,
  type UsageSums,
} from '../rollups.ts';
import type { Encoder } from './text-encoder.ts';
import { StoreError } from '../store-error.ts';

export type RollupKey = [keyId: string, at: number, model: string, channelId: string, code: string];

export interface StoredRollup {
  readonly accountId: string;
  readonly sums: UsageSums;
}

export type RollupTable = Database<StoredRollup, RollupKey>;

/**
 * A row is its amount and its counts in the order of `SUM_NAMES`, how many buckets of the first token there are and those, each eight bytes,
 * and then the account: that is the format of the store. As text it would take twice the time.
 */
export const ROLLUP_BYTES: Encoder<StoredRollup> = {
  encode({ accountId, sums }) {
    const { firstToken } = sums;
    ROW.writeBigInt64LE(sums.chargedNanos, 0);
    let at = WORD;
    for (const name of SUM_NAMES) at = ROW.writeDoubleLE(sums[name], at);
    at = ROW.writeDoubleLE(firstToken.length, at);
    for (const count of firstToken) at = ROW.writeDoubleLE(count, at);
    ROW.end = at + ROW.write(accountId, at);
    return ROW;
  },
  decode(bytes) {
    const row = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    if (row.length < COUNTS_END + WORD) throw new StoreError('corrupt', 'a sum by hour is not one');
    const sums = noSums();
    sums.chargedNanos = row.readBigInt64LE(0);
    let at = WORD;
    for (const name of SUM_NAMES) {
      sums[name] = row.readDoubleLE(at);
      at += WORD;
    }
    const end = at + WORD + WORD * row.readDoubleLE(at);
    for (at += WORD; at < end; at += WORD) sums.firstToken.push(row.readDoubleLE(at));
    return { accountId: row.toString('utf8', end), sums };
  },
};

const WORD = 8;
const COUNTS_END = WORD * (1 + SUM_NAMES.length);
/** Every put is done with the bytes when it returns, so that all can share one place. lmdb-js reads from `start` to `end`. */
const ROW = Object.assign(Buffer.allocUnsafeSlow(8 * 1024), { start: 0, end: 0 });

export const keyOf = ({ keyId, at, model, channelId, code }: RollupPlace): RollupKey => [keyId, at, model, channelId, code];

/** Before all rows of that hour, or day, of all keys together. */
export const keyOfAll = (at: number): RollupKey => ['', at, '', '', ''];

export function rollupOf(key: RollupKey, { accountId, sums }: StoredRollup): Rollup {
  const [keyId, at, model, channelId, code] = key;
  return { keyId, accountId, at, model, channelId, code, sums };
}

/** What a transaction writes with. */
interface Writer {
  put(table: RollupTable, key: RollupKey, value: StoredRollup): void;
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
    const { accountId } = rollup;
    const key = keyOf(rollup);
    const stored = table.get(key);
    if (stored !== undefined) addSums(stored.sums, rollup.sums);
    const sums = stored?.sums ?? rollup.sums;
    if (!isNothing(sums)) work.put(table, key, { accountId, sums });
    else if (stored !== undefined) work.remove(table, key);
  }
}

/** Rows of a key (`''`: of all keys together) from `from`, before `to`. */
export function* rowsBetween(table: RollupTable, keyId: string, from: number, to: number): Generator<Rollup> {
  const range = { start: [keyId, from, '', '', ''] as RollupKey, end: [keyId, to, '', '', ''] as RollupKey };
  for (const { key, value } of table.getRange(range)) yield rollupOf(key, value);
}
