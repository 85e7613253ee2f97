/** Accounts and keys in the order of their creation, from the index of that order. */
import type { Created, CreatedQuery } from '../created-rows.ts';
import { isStorable } from '../storable.ts';

/** Rows of one round trip: those that are made of them hold the event loop for two or three milliseconds. */
export const CREATED_PAGE = 500;

const BEFORE_ALL: Created = { id: '', createdAtMs: -1 };

interface Pages<Row> {
  readonly find: (id: string) => Promise<Row | undefined>;
  /** At most {@link CREATED_PAGE} rows. */
  readonly behind: (last: Created) => Promise<readonly Row[]>;
}

export async function createdRows<Wanted extends Created, Row extends Wanted>(
  { find, behind }: Pages<Row>,
  { limit = Number.POSITIVE_INFINITY, after, isWanted = () => true }: CreatedQuery<Wanted> = {},
): Promise<Row[]> {
  let last: Created = (after === undefined || !isStorable(after) ? undefined : await find(after)) ?? BEFORE_ALL;
  const rows: Row[] = [];
  for (;;) {
    const page = await behind(last);
    for (const row of page) if (rows.length < limit && isWanted(row)) rows.push(row);
    const end = page.at(-1);
    if (end === undefined || page.length < CREATED_PAGE || rows.length >= limit) return rows;
    last = end;
  }
}
