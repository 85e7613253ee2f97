/** Pages of what the store lists in the order of creation, and what is searched in them. */
import type { Created, CreatedQuery } from '../store/created-rows.ts';
import { defined } from '../codecs/defined.ts';

export interface PageQuery {
  readonly search?: string;
  readonly limit?: number;
  readonly after?: string;
}

export interface PageOf<Row> {
  readonly data: readonly Row[];
  /** Absent at the end. */
  readonly nextCursor?: string;
}

/**
 * The rows behind the one with the id `after` whose texts contain `search`, whatever its case. An id that is unknown begins anew.
 */
export async function pageOf<Wanted extends Created, Row extends Created>(
  list: (query: CreatedQuery<Wanted>) => Promise<readonly Row[]>,
  { search, limit = 100, after }: PageQuery,
  texts: (row: Wanted) => readonly string[],
): Promise<PageOf<Row>> {
  const words = search?.toLowerCase();
  const isWanted = (row: Wanted): boolean => words === undefined || texts(row).some((text) => text.toLowerCase().includes(words));
  // One more tells whether there is a next page.
  const rows = await list({ limit: limit + 1, isWanted, ...defined({ after }) });
  const data = rows.slice(0, limit);
  return { data, ...(rows.length > limit ? { nextCursor: data.at(-1)?.id ?? '' } : {}) };
}
