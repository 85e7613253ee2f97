/**
 * The rows of the index of the request log's filters: 256 places of the log in 32 bytes, and how a transaction enters and removes
 * places.
 */
import type { Database } from 'lmdb';
import { filterWords, LOG_FILTERS } from '../log-filters.ts';
import type { RequestLogEntry } from '../request-log.ts';
import type { Encoder } from './text-encoder.ts';

/** [filter, word, number of the block] */
export type FilterKey = [filter: string, word: string, block: number];

/** Places of one row. */
const PLACES = 256;
const BYTES = PLACES / 8;

const SHARED = Object.assign(Buffer.allocUnsafeSlow(BYTES), { start: 0, end: BYTES });

export const PLACES_BYTES: Encoder<Uint8Array> = {
  encode(places) {
    SHARED.set(places);
    return SHARED;
  },
  decode: (bytes) => Uint8Array.prototype.slice.call(bytes, 0, BYTES),
};

export const blockOf = (seq: number): number => Math.floor(seq / PLACES);

/** `place`: inside its block. */
const isIn = (places: Uint8Array, place: number): boolean => (((places[place >> 3] ?? 0) >> (place & 7)) & 1) === 1;

export const hasSeq = (places: Uint8Array, seq: number): boolean => isIn(places, seq % PLACES);

/** Takes away what the other has not; false where nothing is left. */
export function narrow(places: Uint8Array, other: Uint8Array | undefined): boolean {
  if (other === undefined) return false;
  let left = 0;
  for (let at = 0; at < BYTES; at++) left |= places[at] = (places[at] ?? 0) & (other[at] ?? 0);
  return left !== 0;
}

export function* placesIn(places: Uint8Array, block: number, forward: boolean): Generator<number> {
  for (let n = 0; n < PLACES; n++) {
    const place = forward ? n : PLACES - 1 - n;
    if (isIn(places, place)) yield block * PLACES + place;
  }
}

export type FilterTable = Database<Uint8Array, FilterKey>;

/** What a transaction writes with. */
interface Writer {
  put(table: FilterTable, key: FilterKey, value: Uint8Array): void;
  remove(table: FilterTable, key: FilterKey): void;
  readonly tables: { readonly logFilters: FilterTable };
}

/** What a transaction changes of the index, written once at its end. */
export class LogIndexChanges {
  /**
   * By filter, in the order of `LOG_FILTERS`: by word, the places that are entered, and as negative numbers those that are
   * removed.
   */
  readonly #words = LOG_FILTERS.map(() => new Map<string, number[]>());

  enter(entry: RequestLogEntry, seq: number): void {
    this.#add(entry, seq);
  }

  remove(entry: RequestLogEntry, seq: number): void {
    this.#add(entry, -seq);
  }

  write(work: Writer): void {
    for (const [at, words] of this.#words.entries())
      for (const [word, seqs] of words) writeWord(work, LOG_FILTERS[at] ?? '', word, seqs);
  }

  #add(entry: RequestLogEntry, seq: number): void {
    for (const [at, word] of filterWords(entry).entries()) {
      if (word === undefined) continue;
      const seqs = this.#words[at]?.get(word);
      if (seqs === undefined) this.#words[at]?.set(word, [seq]);
      else seqs.push(seq);
    }
  }
}

function writeWord(work: Writer, filter: string, word: string, seqs: readonly number[]): void {
  const table = work.tables.logFilters;
  const blocks = new Map<number, Uint8Array>();
  for (const signed of seqs) {
    const seq = Math.abs(signed);
    const block = blockOf(seq);
    let places = blocks.get(block);
    if (places === undefined) {
      places = table.get([filter, word, block]) ?? new Uint8Array(BYTES);
      blocks.set(block, places);
    }
    const bit = 1 << (seq & 7);
    const at = (seq % PLACES) >> 3;
    places[at] = signed > 0 ? (places[at] ?? 0) | bit : (places[at] ?? 0) & ~bit;
  }
  for (const [block, places] of blocks) {
    if (places.every((byte) => byte === 0)) work.remove(table, [filter, word, block]);
    else work.put(table, [filter, word, block], places);
  }
}
