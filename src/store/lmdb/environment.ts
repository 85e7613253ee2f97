/**
 * The LMDB environment: opening it, the one way to write (`transact`), the one way to read (`read`), and what happens when the
 * disk fails. Facts of lmdb-js that this file exists to respect: only `childTransaction` undoes what a throwing callback has
 * written; inside it only the synchronous puts; a failed commit carries a second promise that must be handled too, and may be the
 * end of the environment (`engine.ts`), after which a write that has begun meanwhile never ends.
 */
import type { StoreHealth, StoreOptions } from '../store.ts';
import { newerSchemaMessage } from '../archive.ts';
import { hourOf } from '../rollups.ts';
import { StoreError } from '../store-error.ts';
import { codeOf, commitErrorOf, EIO, isDiskFull, isEngineError, isGivenUp } from './commit-error.ts';
import { closeEngine, type Engine, isLost, openEngine } from './engine.ts';
import { FreeSpace } from './free-space.ts';
import { OwnFiles } from './own-files.ts';
import { Snapshots } from './snapshot.ts';
import { EXCHANGES_APART, LOG_FILTER_INDEX, metaOf, ROLLUPS, SCHEMA, type Tables } from './tables.ts';
import { Transaction } from './transaction.ts';
import { type Books, finished, type Rule } from '../books/books.ts';
import { LmdbBooks } from './books.ts';

/** For tests: called after every single write inside a transaction; what it throws undoes the transaction. */
export interface Seams {
  readonly afterWrite?: () => void;
}

/** How often free space is looked at, and a failed store is tried again. */
const WATCH_MS = 1_000;
/** So many looks at one and the same commit: the disk hangs, or a process that was stopped holds the lock. */
const HUNG_LOOKS = 10;
/** The message for a store that LMDB has given up, until it is usable again. */
const GIVEN_UP = 'a write failed, and the store must be opened anew';

export class Environment {
  readonly options: StoreOptions;
  /** Undefined while LMDB is opened anew. */
  #engine: Engine | undefined;
  readonly #seams: Seams;
  readonly #snapshots = new Snapshots();
  readonly #space: FreeSpace;
  readonly #files: OwnFiles;
  #writeFailure: string | undefined;
  /** What was told last, so that a change is told once whoever sees it. */
  #toldHealthy = true;
  #rowsWait = false;
  #closed = false;
  #batchExpected = false;
  /** Resolves when the commit that is under way has ended, and LMDB is usable again if that was the end of its environment. */
  #commit: Promise<void> | undefined;
  /** The commit that the last look saw, and how many have seen it. */
  #watched: { readonly commit: Promise<void> | undefined; looks: number } = { commit: undefined, looks: 0 };
  #stopWatching: () => void = () => undefined;

  private constructor(engine: Engine, options: StoreOptions, seams: Seams, space: FreeSpace) {
    this.#engine = engine;
    this.options = options;
    this.#seams = seams;
    this.#space = space;
    this.#files = new OwnFiles(options.path);
  }

  /** Throws `StoreError` (`schema_newer`, `unavailable`). */
  static async open(options: StoreOptions, seams: Seams): Promise<Environment> {
    const engine = guard(() => openEngine(options.path));
    const environment = new Environment(engine, options, seams, new FreeSpace(options));
    await environment.#checkSchema();
    await environment.#space.look();
    environment.#tellHealth();
    environment.#watch();
    return environment;
  }

  /**
   * Runs `change` in one transaction. Resolves with its result when that is on disk; rejects with `StoreError` (or with what
   * `change` threw) and then nothing of it was kept.
   */
  async transact<T>(change: (work: LmdbBooks) => T): Promise<T> {
    // One commit at a time: it may be the end of the environment.
    while (this.#commit !== undefined) await this.#commit;
    const { root, tables } = this.#usable();
    if (!this.#files.mayWrite) throw new StoreError('unavailable', `nothing was written: ${this.#files.lost}`);
    const transaction = new Transaction(change);
    let thrown: { readonly error: unknown } | undefined;
    try {
      const committed = root.childTransaction(() => {
        try {
          transaction.run(new LmdbBooks(tables, this.#seams.afterWrite));
        } catch (error) {
          thrown = { error };
          throw error;
        }
      });
      this.#expectBatch(root);
      await committed;
      return transaction.result();
    } catch (error) {
      // The change itself refused (a bug, an amount out of range, a full map): the engine is well.
      if (thrown !== undefined && !isEngineError(thrown.error)) throw thrown.error;
      throw await this.#failed(error);
    }
  }

  follow<T>(rule: (books: Books) => Rule<T>): Promise<T> {
    return this.transact((books) => finished(rule(books)));
  }

  /** A look at one snapshot: that of this turn of the event loop, or one of now where `isFresh`. Throws `StoreError`. */
  look<T>(look: (tables: Tables) => T, isFresh = false): T {
    const { root, tables } = this.#usable();
    try {
      if (isFresh) root.resetReadTxn();
      return look(tables);
    } catch (error) {
      throw this.#readError(error);
    }
  }

  #readError(error: unknown): StoreError {
    // The commit that failed tells so itself, a moment later.
    if (isGivenUp(error)) this.#writeFailure ??= GIVEN_UP;
    return error instanceof StoreError ? error : new StoreError('unavailable', 'the store could not be read', error);
  }

  /** One moment for as long as `look` takes, which yields behind each small piece. Rejects with `StoreError`. */
  async snapshot<T>(look: (tables: Tables) => Generator<void, T>): Promise<T> {
    const engine = this.#usable();
    try {
      return await this.#snapshots.take(engine, look, () => {
        if (this.#usable() !== engine) throw new StoreError('unavailable', GIVEN_UP);
      });
    } catch (error) {
      throw this.#readError(error);
    }
  }

  /** {@link look} for those who promise: rejects with `StoreError`. */
  async read<T>(look: (tables: Tables) => T): Promise<T> {
    return this.look(look);
  }

  /** The tables as they are open now: they are others when LMDB was opened anew. */
  get tables(): Tables {
    return this.#usable().tables;
  }

  #usable(): Engine {
    if (this.#closed) throw new StoreError('closed', 'the store is closed');
    if (this.#engine === undefined) throw new StoreError('unavailable', GIVEN_UP);
    return this.#engine;
  }

  health(): StoreHealth {
    if (this.#closed) return { healthy: false, reason: 'closed', message: 'the store is closed' };
    const failure = this.#files.lost ?? this.#writeFailure;
    if (failure !== undefined) return { healthy: false, reason: 'write_failed', message: failure };
    const low = this.#space.low;
    return low === undefined ? { healthy: true } : { healthy: false, reason: 'free_space', message: low };
  }

  /** Throws `StoreError` `unhealthy`: for new work, before anything is tried. */
  requireHealth(): void {
    const health = this.health();
    if (!health.healthy) throw new StoreError(health.reason === 'closed' ? 'closed' : 'unhealthy', health.message);
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
    this.#writeFailure = undefined;
    this.#tellHealth();
  }

  /** Copies one moment into a folder that is there and empty, while others write. Throws `StoreError`. */
  async copyTo(folder: string): Promise<void> {
    try {
      await this.#usable().root.backup(folder, true);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      throw error instanceof StoreError ? error : new StoreError('unavailable', `the store could not be copied: ${why}`, error);
    }
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopWatching();
    await this.#commit;
    await this.#snapshots.ended();
    if (this.#engine !== undefined) await closeEngine(this.#engine);
  }

  /**
   * The writes of one turn of the event loop share a commit, and lmdb-js makes a promise of its own for it that nobody holds. It
   * exists at the end of the turn, and is handled here so that a failed commit is told once, to those who wrote.
   */
  #expectBatch(root: Engine['root']): void {
    if (this.#batchExpected) return;
    this.#batchExpected = true;
    setImmediate(() => {
      this.#batchExpected = false;
      const ended = root.committed.then(
        () => undefined,
        () => this.#replaceIfLost(),
      );
      this.#commit = ended.finally(() => {
        this.#commit = undefined;
      });
    });
  }

  /** After a commit that failed: the environment may be of no use any more. */
  async #replaceIfLost(): Promise<void> {
    const engine = this.#engine;
    if (engine === undefined || this.#closed || !isLost(engine)) return;
    this.#writeFailure ??= GIVEN_UP;
    this.#engine = undefined;
    await this.#snapshots.ended();
    await closeEngine(engine);
    this.#reopen();
  }

  /** Where that fails, the next look tries again. */
  #reopen(): void {
    if (this.#closed || this.#files.lost !== undefined) return;
    try {
      this.#engine = guard(() => openEngine(this.options.path));
    } catch (error) {
      this.#tellFailure(error);
    }
  }

  async #checkSchema(): Promise<void> {
    const found = metaOf(this.tables, 'schema');
    if (found !== undefined && found > SCHEMA) {
      await this.close();
      throw new StoreError('schema_newer', newerSchemaMessage(found, SCHEMA));
    }
    if (found === SCHEMA) return;
    await this.transact((work) => {
      if (found !== undefined && found < EXCHANGES_APART) work.put(work.tables.meta, 'olderRefs', true);
      if (found !== undefined && found < ROLLUPS) {
        const loggedAtMs = metaOf(work.tables, 'logHead')?.atMs ?? 0;
        work.put(work.tables.meta, 'rollupsAfter', hourOf(Math.max(loggedAtMs, this.options.clock.now())));
      }
      const logged = metaOf(work.tables, 'logHead')?.seq ?? 0;
      if (found !== undefined && found < LOG_FILTER_INDEX && logged > 0) work.put(work.tables.meta, 'filtersAfter', logged);
      work.put(work.tables.meta, 'schema', SCHEMA);
    });
  }

  async #failed(error: unknown): Promise<StoreError> {
    const cause = await commitErrorOf(error, this.options.clock);
    const full = isDiskFull(cause) || (codeOf(cause) === EIO && (await this.#space.isFull()));
    const message = this.#tellFailure(cause);
    if (full) this.#space.giveUpBallast();
    return new StoreError(full ? 'disk_full' : 'unavailable', `nothing was written: ${message}`, cause);
  }

  /** Once, whoever runs into the same meanwhile. Gives its words. */
  #tellFailure(cause: unknown): string {
    const message = cause instanceof Error ? cause.message : String(cause);
    const isNew = this.#writeFailure !== message;
    this.#writeFailure = message;
    this.#toldHealthy = false;
    if (isNew) this.options.onProblem?.({ what: 'store_write_failed', error: cause });
    return message;
  }

  #watch(): void {
    this.#stopWatching = this.options.clock.after(WATCH_MS, () => {
      this.#lookAgain().catch((error: unknown) => this.options.onProblem?.({ what: 'store_watch_failed', error }));
    });
  }

  /**
   * Files and free space may have gone or come back; a store that failed is tried with a write that changes nothing of meaning.
   */
  async #lookAgain(): Promise<void> {
    try {
      const [room, files] = await Promise.allSettled([this.#space.look(), this.#files.look()]);
      if (files.status === 'rejected') throw files.reason;
      // A folder that has gone has no room to look at.
      if (room.status === 'rejected' && this.#files.lost === undefined) throw room.reason;
      if (this.#files.lost !== undefined) {
        this.#tellHealth();
        return;
      }
      if (this.#engine === undefined && this.#commit === undefined) this.#reopen();
      // Whoever writes then waits, and so would the one who tries.
      if (this.#isHung()) this.#tellFailure(new StoreError('unavailable', `a write has not ended for ${HUNG_LOOKS} s`));
      else if (this.#writeFailure !== undefined && !this.#rowsWait && this.#space.low === undefined) await this.#probe();
      this.#tellHealth();
    } finally {
      if (!this.#closed) this.#watch();
    }
  }

  #isHung(): boolean {
    const commit = this.#commit;
    if (commit === undefined || commit !== this.#watched.commit) this.#watched = { commit, looks: 0 };
    else this.#watched.looks += 1;
    return this.#watched.looks >= HUNG_LOOKS;
  }

  async #probe(): Promise<void> {
    try {
      await this.transact((work) => work.put(work.tables.meta, 'probe', this.options.clock.now()));
      this.#writeFailure = undefined;
    } catch (error) {
      // It fails still, which was told when it began.
      if (!(error instanceof StoreError)) throw error;
    }
  }

  #tellHealth(): void {
    // Whoever has closed it knows.
    if (this.#closed) return;
    const health = this.health();
    if (health.healthy === this.#toldHealthy) return;
    this.#toldHealthy = health.healthy;
    this.options.onProblem?.({ what: health.healthy ? 'store_healthy' : `store_unhealthy: ${health.message}` });
  }
}

function guard<T>(open: () => T): T {
  try {
    return open();
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw new StoreError(
      'unavailable',
      `the store cannot be opened: ${error instanceof Error ? error.message : String(error)}`,
      error,
    );
  }
}
