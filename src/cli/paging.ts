/** Pages of lists that are in memory, and what is searched in them. */

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
 * The rows behind the one with the id `after` whose texts contain `search`, whatever its case. An id that is gone begins anew.
 */
export function pageOf<Row extends { readonly id: string }>(
  rows: readonly Row[],
  { search, limit = 100, after }: PageQuery,
  texts: (row: Row) => readonly string[],
): PageOf<Row> {
  const start = after === undefined ? 0 : rows.findIndex(({ id }) => id === after) + 1;
  const wanted = search?.toLowerCase();
  const data: Row[] = [];
  for (const row of rows.slice(start)) {
    if (wanted !== undefined && !texts(row).some((text) => text.toLowerCase().includes(wanted))) continue;
    if (data.length === limit) return { data, nextCursor: data.at(-1)?.id ?? '' };
    data.push(row);
  }
  return { data };
}
