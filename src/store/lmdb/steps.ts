/** Reading tables of any size for an operator, in steps: each sees the store as it is then. */
import type { Database, Key } from 'lmdb';
import { byCreation, type Created, type CreatedQuery, FirstRows } from '../created-rows.ts';
import { Steps } from '../steps.ts';
import type { Environment } from './environment.ts';
import type { Tables } from './tables.ts';

/** Longer words are no id; LMDB could not even look them up. */
const MAX_ID = 256;

interface Range<K> {
  readonly start?: K;
  /** Rows before this one. */
  readonly end?: K;
  /** Those of whoever scans many ranges. */
  readonly steps?: Steps;
}

/** Hands each row of a table, or of a range of it, to `visit` in the order of keys, until that gives false. */
export async function scan<V, K extends Key>(
  environment: Environment,
  tableOf: (tables: Tables) => Database<V, K>,
  visit: (value: V, key: K) => unknown,
  { steps = new Steps(), ...whole }: Range<K> = {},
): Promise<void> {
  for (let range: Range<K> & { readonly exclusiveStart?: boolean } = whole; ; ) {
    const last = environment.look((tables) => {
      for (const { key, value } of tableOf(tables).getRange(range)) {
        if (visit(value, key) === false) return undefined;
        if (steps.isOver) return key;
      }
      return undefined;
    });
    if (last === undefined) return;
    range = { ...whole, start: last, exclusiveStart: true };
    await steps.next();
  }
}

/** Rows of one moment or another, in the order of their creation. */
export async function createdRows<Row extends Created>(
  environment: Environment,
  tableOf: (tables: Tables) => Database<Row, string>,
  { limit = Number.POSITIVE_INFINITY, after, isWanted = () => true }: CreatedQuery<Row> = {},
): Promise<Row[]> {
  const isId = after !== undefined && after.length <= MAX_ID;
  const last = isId ? environment.look((tables) => tableOf(tables).get(after)) : undefined;
  const first = new FirstRows<Row>(byCreation, limit);
  await scan(environment, tableOf, (row) => {
    if ((last === undefined || byCreation(last, row) < 0) && isWanted(row)) first.add(row);
  });
  return first.rows();
}
