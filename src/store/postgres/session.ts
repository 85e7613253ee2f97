/** One connection while it is borrowed: runs named statements and tells failures of the database from errors of ours. */
import type { ClientBase } from 'pg';
import { type FailureKind, failureKind, messageOf } from './failure.ts';
import type { PostgresSeams } from './options.ts';
import type { Row } from './rows.ts';

/** A prepared statement: parsed once for each connection, known by its name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
}

/**
 * Rows of one answer of a cursor: the driver reads an answer that has come whole in one turn of the event loop, a wide row in 25
 * µs.
 */
const FETCHED = 200;

export type Value = string | number | bigint | boolean | null | Uint8Array | readonly string[] | undefined;

/** What the driver or the server reported, with what it means. Never leaves this folder. */
export class DatabaseFailure extends Error {
  override readonly name = 'DatabaseFailure';
  readonly kind: FailureKind;

  constructor(error: unknown, kind = failureKind(error)) {
    super(messageOf(error), { cause: error });
    this.kind = kind;
  }

  /** That no connection could be made, whatever the words for it: it is not about a row. */
  static toConnect(error: unknown): DatabaseFailure {
    const kind = failureKind(error);
    return new DatabaseFailure(error, kind === 'row' ? 'away' : kind);
  }
}

export class Session {
  readonly #client: ClientBase;
  readonly #seams: PostgresSeams;

  constructor(client: ClientBase, seams: PostgresSeams) {
    this.#client = client;
    this.#seams = seams;
  }

  /** Throws `DatabaseFailure`. */
  async run({ name, text }: Statement, values: readonly Value[] = []): Promise<Row[]> {
    this.#seams.beforeStatement?.(name);
    this.#seams.onQuery?.(name);
    try {
      const found = await this.#client.query<Row>({ name, text, values: values.map(parameter) });
      return found.rows;
    } catch (error) {
      throw new DatabaseFailure(error);
    }
  }

  /**
   * All rows of a query, some hundred at a time, within the transaction that is under way. The database sorts them once, whatever
   * their order; pages by key would sort them anew for each page where no index has that order. A cursor that was not read to its
   * end is closed with the transaction.
   */
  async *rows({ name, text }: Statement, values: readonly Value[] = []): AsyncGenerator<Row> {
    await this.#send(`DECLARE ${name} NO SCROLL CURSOR FOR ${text}`, values);
    for (;;) {
      const rows = await this.#send(`FETCH ${FETCHED} FROM ${name}`);
      yield* rows;
      if (rows.length < FETCHED) break;
    }
    await this.#send(`CLOSE ${name}`);
  }

  /** Commands without parameters: `BEGIN`, `COMMIT`, migrations. */
  async command(text: string): Promise<void> {
    if (text !== 'ROLLBACK') this.#seams.onQuery?.(text);
    if (text === 'COMMIT') this.#seams.beforeStatement?.(text);
    await this.#send(text);
  }

  async #send(text: string, values: readonly Value[] = []): Promise<Row[]> {
    try {
      const query = values.length === 0 ? text : { text, values: values.map(parameter) };
      return (await this.#client.query<Row>(query)).rows;
    } catch (error) {
      throw new DatabaseFailure(error);
    }
  }
}

/** Amounts go as decimal text: the driver would do the same, but only for bigints that it knows of. */
function parameter(value: Value): unknown {
  if (typeof value === 'bigint') return value.toString();
  return value === undefined ? null : value;
}
