/**
 * The index of the request log's filters: for each word of a filter, the places of the log where a row has it, 256 places in one
 * row of 32 bytes. Rows of a version without this index are entered slice by slice, newest first; `filtersAfter` is the place up
 * to which they are not yet.
 */
import type { LogFilter } from '../log-filters.ts';
import { blockOf, type FilterKey, hasSeq, narrow, placesIn } from './log-places.ts';
import { metaOf, type Tables } from './tables.ts';
import type { Work } from './work.ts';

/** The places that all the words have, from `lowest` to `highest`, in the direction asked for. */
export function* placesOf(
  { logFilters }: Tables,
  [first, ...others]: readonly [LogFilter, string][],
  lowest: number,
  highest: number,
  forward: boolean,
): Generator<number> {
  if (first === undefined || lowest > highest) return;
  const [low, high] = [blockOf(lowest), blockOf(highest)];
  const [start, end] = forward ? [low, high + 1] : [high, low - 1];
  const range = { start: [...first, start] as FilterKey, end: [...first, end] as FilterKey, reverse: !forward };
  for (const { key, value } of logFilters.getRange(range)) {
    const block = key[2];
    if (!others.every((other) => narrow(value, logFilters.get([...other, block])))) continue;
    for (const seq of placesIn(value, block, forward)) if (seq >= lowest && seq <= highest) yield seq;
  }
}

export function hasPlace({ logFilters }: Tables, filter: string, word: string, seq: number): boolean {
  const places = logFilters.get([filter, word, blockOf(seq)]);
  return places !== undefined && hasSeq(places, seq);
}

/** In small pieces: each `yield` stands behind one. */
export function* countPlaces({ logFilters }: Tables): Generator<void, number> {
  let count = 0;
  for (const { key, value } of logFilters.getRange()) {
    for (const _ of placesIn(value, key[2], true)) count += 1;
    yield;
  }
  return count;
}

/** Up to this place rows are not in the index. */
export const filtersAfter = (tables: Tables): number => metaOf(tables, 'filtersAfter') ?? 0;

/** Rows of one slice: a millisecond or two. */
const SLICE = 64;

/** A process of an older version may write beside this one: its rows are in the older index alone. */
export function hasOlderRows(tables: Tables): boolean {
  return filtersAfter(tables) > 0 || [...tables.olderLogKeys.getKeys({ limit: 1 })].length > 0;
}

/** Enters the newest rows that are not there yet, and takes them out of the older index. */
export function indexSlice(work: Work): void {
  const { tables } = work;
  const after = filtersAfter(tables);
  const seqs = [...tables.log.getKeys({ start: after, end: 0, reverse: true, limit: SLICE })];
  if (seqs.length === 0) indexOlderKeys(work);
  else {
    const next = (seqs.at(-1) ?? 1) - 1;
    for (const seq of seqs) enterRow(work, seq);
    work.put(tables.meta, 'filtersAfter', next);
  }
}

/** What is left leads to rows that were entered, that were pruned, or that a process of an older version wrote meanwhile. */
function indexOlderKeys(work: Work): void {
  const { meta, olderLogKeys } = work.tables;
  const left = [...olderLogKeys.getRange({ limit: SLICE })];
  for (const { key, value } of left) {
    for (const seq of value) enterRow(work, seq);
    work.remove(olderLogKeys, key);
  }
  if (left.length < SLICE) work.remove(meta, 'filtersAfter');
}

function enterRow(work: Work, seq: number): void {
  const row = work.tables.log.get(seq);
  if (row !== undefined) work.logIndex.enter(row, seq);
}
