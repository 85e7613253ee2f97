/** Lists in an order that no table has: the first rows of it, gathered while a table is read in some other order. */

/** A page of what is listed in the order of its creation. Absent members: all of it. */
export interface CreatedQuery<Row> {
  readonly limit?: number;
  /** The id of the last row of the page before; one that is unknown begins anew. */
  readonly after?: string;
  readonly isWanted?: (row: Row) => boolean;
}

export interface Created {
  readonly id: string;
  readonly createdAtMs: number;
}

/** Oldest first; by id where two are of one millisecond. */
export const byCreation = (a: Created, b: Created): number => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1);

/** Keeps the `limit` first rows of an order, whichever way they come. */
export class FirstRows<Row> {
  readonly #compare: (a: Row, b: Row) => number;
  readonly #limit: number;
  #rows: Row[] = [];

  constructor(compare: (a: Row, b: Row) => number, limit: number) {
    this.#compare = compare;
    this.#limit = limit;
  }

  add(row: Row): void {
    this.#rows.push(row);
    if (this.#rows.length >= 4 * this.#limit) this.#rows = this.rows();
  }

  rows(): Row[] {
    return this.#rows.sort(this.#compare).slice(0, this.#limit);
  }
}
