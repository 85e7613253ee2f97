/**
 * The one way to change the ledger (`transact`), the one way to read it (`run`, `snapshot`), and what happens when the database
 * fails. A transaction has an identity: after a cut connection its row in `commits` tells whether the commit happened, so it is
 * tried again only when it did not, and its result is given when it did.
 */
import { Pool, type PoolClient } from 'pg';
import { awaited, type Books, type Rule } from '../books/books.ts';
import { randomHex } from '../random-hex.ts';
import type { StoreHealth } from '../store.ts';
import { StoreError } from '../store-error.ts';
import { PostgresBooks } from './books.ts';
import { Cache } from './cache.ts';
import { CheckedClient } from './checked-client.ts';
import { clientConfig } from './connection.ts';
import { isReadOnlySession, messageOf, storeErrorOf } from './failure.ts';
import { DEFAULTS, type PostgresOptions, type PostgresSeams } from './options.ts';
import type { Row } from './rows.ts';
import { DatabaseFailure, Session, type Statement, type Value } from './session.ts';
import { headOf } from './work.ts';
import { LOCK_HEAD } from './write-all.ts';

/** How often a transaction is tried when the server undid it for the sake of another. */
const TRIES_AGAIN = 10;
const COMMITTED: Statement = { name: 'committed', text: 'SELECT 1 AS one FROM commits WHERE id = $1' };
const NOTIFY: Statement = { name: 'notify', text: `SELECT pg_notify('mizu', '')::text AS done` };

/** It keeps nobody waiting, so it may think between its reads. */
const SNAPSHOT = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '60s'`;

/** A change with an identity: running it again after a failure never does it twice. */
export interface Unit<T> {
  run(): Promise<T>;
}

/** What a transaction came to, known before it is known to be committed. */
interface Attempted<T> {
  readonly result: T;
  readonly work: PostgresBooks;
}

interface Lent {
  readonly session: Session;
  readonly giveBack: (broken: boolean) => void;
}

export class Database {
  readonly options: PostgresOptions;
  readonly cache = new Cache();
  readonly #pool: Pool;
  readonly #seams: PostgresSeams;
  /**
   * When one connection is lost, often all are: each of the pool may have to be found out, and then a new one be lost once more.
   */
  readonly #triesLost: number;
  /** Problems reported since the last write that succeeded, so that each is reported once. */
  readonly #told = new Set<string>();
  #writeFailure: string | undefined;
  #rowsWait = false;
  #lineFailure: string | undefined;
  #closed = false;

  constructor(options: PostgresOptions, seams: PostgresSeams) {
    this.options = options;
    this.#seams = seams;
    this.#triesLost = (options.poolSize ?? DEFAULTS.poolSize) + 2;
    this.#pool = new Pool({
      ...clientConfig(options),
      Client: CheckedClient,
      max: options.poolSize ?? DEFAULTS.poolSize,
      idleTimeoutMillis: 60_000,
      // A connection is replaced now and then, so that a database that has moved is found again.
      maxLifetimeSeconds: 3_600,
    });
    // An idle connection that breaks is removed by the pool; the next use opens another, or fails with its own error.
    this.#pool.on('error', (error) => options.onProblem?.({ what: 'idle_connection_lost', error }));
  }

  /** One transaction over the ledger, tried again while that is safe. Rejects with `StoreError`, or with what `change` threw. */
  transact<T>(change: (work: PostgresBooks) => Promise<T>): Promise<T> {
    return this.unit(change).run();
  }

  follow<T>(rule: (books: Books) => Rule<T>): Promise<T> {
    return this.transact((books) => awaited(rule(books)));
  }

  unit<T>(change: (work: PostgresBooks) => Promise<T>): Unit<T> {
    const id = randomHex(this.options.randomBytes);
    // What the last attempt would have committed, while it is not known whether it did.
    const doubt: { attempted?: Attempted<T> } = {};
    return {
      run: async () => {
        const attempted = await this.#again(() => this.#attempt(id, change, doubt)).catch((error: unknown) => {
          throw doubt.attempted === undefined || !(error instanceof StoreError) ? error : inDoubt(error);
        });
        delete doubt.attempted;
        this.cache.committed(attempted.work.changes());
        if (attempted.work.urgent) this.#notify();
        return attempted.result;
      },
    };
  }

  /** One statement that may be repeated without harm. */
  run(statement: Statement, values: readonly Value[] = []): Promise<Row[]> {
    return this.#again(() => this.#borrow((session) => session.run(statement, values)));
  }

  /** One statement that changes rows, in a transaction of its own, and that may be repeated without harm. */
  change(statement: Statement, values: readonly Value[] = []): Promise<Row[]> {
    const changed = async (session: Session): Promise<Row[]> => {
      await session.command('BEGIN');
      const rows = await session.run(statement, values);
      await session.command('COMMIT');
      return rows;
    };
    return this.#again(() => this.#borrow(changed, true));
  }

  /** Many statements in one transaction beside the ledger; not tried again. */
  async changeAll(changes: (session: Session) => Promise<void>): Promise<void> {
    const all = async (session: Session): Promise<void> => {
      await session.command('BEGIN');
      await changes(session);
      await session.command('COMMIT');
    };
    try {
      await this.#borrow(all, true);
    } catch (error) {
      throw error instanceof DatabaseFailure ? this.#failed(error) : error;
    }
  }

  /** Several reads of one and the same state. */
  snapshot<T>(look: (session: Session) => Promise<T>): Promise<T> {
    return this.#again(() =>
      this.#borrow(async (session) => {
        await session.command(SNAPSHOT);
        const result = await look(session);
        await session.command('COMMIT');
        return result;
      }),
    );
  }

  /**
   * Rows of one and the same state, read as they are taken. Not tried again, since some may have been taken; its connection is
   * not used again either. Rejects with `StoreError`.
   */
  async *rows<T>(read: (session: Session) => AsyncIterable<T>): AsyncGenerator<T> {
    let lent: Lent | undefined;
    try {
      lent = await this.#lend();
      await lent.session.command(SNAPSHOT);
      yield* read(lent.session);
    } catch (error) {
      throw error instanceof DatabaseFailure ? this.#failed(error) : error;
    } finally {
      lent?.giveBack(true);
    }
  }

  health(): StoreHealth {
    if (this.#closed) return { healthy: false, reason: 'closed', message: 'the store is closed' };
    if (this.#lineFailure !== undefined) return { healthy: false, reason: 'unreachable', message: this.#lineFailure };
    if (this.#writeFailure !== undefined) return { healthy: false, reason: 'write_failed', message: this.#writeFailure };
    return { healthy: true };
  }

  /** Throws `StoreError`: for new work, before anything is tried. */
  requireHealth(): void {
    const health = this.health();
    if (!health.healthy) throw new StoreError(health.reason === 'closed' ? 'closed' : 'unhealthy', health.message);
  }

  /** Set by the watcher: why the database cannot be reached, or undefined when it can. */
  setLine(failure: string | undefined): void {
    this.#report(() => {
      this.#lineFailure = failure;
    });
  }

  /** True when a write has failed since the last one that succeeded, and none waits that would tell when they succeed again. */
  get needsProbe(): boolean {
    return this.#writeFailure !== undefined && !this.#rowsWait;
  }

  /**
   * Rows of the settlement queue were refused and are tried again. A smaller write may go through meanwhile, which proves nothing
   * about them.
   */
  rowsRefused(): void {
    this.#rowsWait = true;
  }

  rowsWritten(): void {
    if (!this.#rowsWait) return;
    this.#rowsWait = false;
    this.recovered();
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#pool.end();
  }

  async #attempt<T>(
    id: string,
    change: (work: PostgresBooks) => Promise<T>,
    doubt: { attempted?: Attempted<T> },
  ): Promise<Attempted<T>> {
    return this.#borrow(async (session) => {
      await session.command('BEGIN');
      const [row] = await session.run(LOCK_HEAD);
      if (row === undefined) throw new StoreError('corrupt', 'the ledger has no head');
      // The lock was ours to get, so an earlier attempt is over, one way or the other.
      if (doubt.attempted !== undefined && (await session.run(COMMITTED, [id])).length > 0) {
        await session.command('ROLLBACK');
        return doubt.attempted;
      }
      delete doubt.attempted;
      const work = new PostgresBooks(session, headOf(row), id);
      const result = await change(work);
      await work.finish();
      const attempted = { result, work };
      doubt.attempted = attempted;
      await session.command('COMMIT');
      return attempted;
    }, true);
  }

  /** Lends a connection. One that failed in a way that leaves its state unknown is not used again. */
  async #borrow<T>(use: (session: Session) => Promise<T>, changes = false): Promise<T> {
    const { session, giveBack } = await this.#lend(changes);
    let broken = false;
    try {
      return await use(session);
    } catch (error) {
      broken = !(await this.#rolledBack(session, error));
      throw error;
    } finally {
      giveBack(broken);
    }
  }

  async #lend(changes = false): Promise<Lent> {
    if (this.#closed) throw new StoreError('closed', 'the store is closed');
    let client: PoolClient;
    try {
      client = await this.#pool.connect();
    } catch (error) {
      throw DatabaseFailure.toConnect(error);
    }
    const { beforeStatement: _seam, ...quiet } = this.#seams;
    return {
      session: new Session(client, changes ? this.#seams : quiet),
      giveBack: (broken) => client.release(broken),
    };
  }

  async #rolledBack(session: Session, error: unknown): Promise<boolean> {
    if (error instanceof DatabaseFailure && (error.kind === 'lost' || error.kind === 'away' || isReadOnlySession(error.cause)))
      return false;
    try {
      await session.command('ROLLBACK');
      return true;
    } catch (failure) {
      if (failure instanceof DatabaseFailure) return false;
      throw failure;
    }
  }

  async #again<T>(attempt: () => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries += 1) {
      try {
        const result = await attempt();
        return result;
      } catch (error) {
        if (!(error instanceof DatabaseFailure)) throw error;
        const most = error.kind === 'again' ? TRIES_AGAIN : error.kind === 'lost' ? this.#triesLost : 1;
        if (tries >= most) throw this.#failed(error);
      }
    }
  }

  #failed(failure: DatabaseFailure): StoreError {
    const found = storeErrorOf(failure.cause, 'the database failed');
    if (failure.kind === 'row') return found;
    const message = messageOf(failure.cause);
    this.#report(() => {
      this.#writeFailure = message;
    });
    if (!this.#told.has(message)) this.options.onProblem?.({ what: 'database_failed', error: failure.cause });
    this.#told.add(message);
    return found;
  }

  /** A write has gone through again. */
  recovered(): void {
    this.#told.clear();
    this.#report(() => {
      this.#writeFailure = undefined;
    });
  }

  #report(change: () => void): void {
    const before = this.health();
    change();
    const after = this.health();
    if (before.healthy !== after.healthy && !this.#closed)
      this.options.onProblem?.({ what: after.healthy ? 'store_healthy' : `store_unhealthy: ${after.message}` });
  }

  /** A hint to other processes to look now. Lost ones do no harm: everybody looks every half second anyway. */
  #notify(): void {
    this.#borrow((session) => session.run(NOTIFY)).catch((error: unknown) =>
      this.options.onProblem?.({ what: 'notification_not_sent', error }),
    );
  }
}

/** The commit was sent and nothing came back: whoever repeats the change as a new one may make it twice. */
function inDoubt({ code, message, cause }: StoreError): StoreError {
  return new StoreError(code, `${message}; whether the change was made is not known`, cause);
}
