/**
 * The LMDB environment: opening it, the one way to write (`transact`), the one way to read (`read`), and what happens when the
 * disk fails. Facts of lmdb-js that this file exists to respect: only `childTransaction` undoes what a throwing callback has
 * written; inside it only the synchronous puts; a failed commit carries a second promise that must be handled too; closing needs a
 * turn of the event loop after the last flush.
 */
import { join } from 'node:path';
import { open, type RootDatabase } from 'lmdb';
import type { StoreHealth, StoreOptions } from '../store.ts';
import { newerSchemaMessage } from '../archive.ts';
import { StoreError } from '../store-error.ts';
import { checkFile } from './check-file.ts';
import { commitErrorOf } from './commit-error.ts';
import { prepareFolder } from './folder.ts';
import { FreeSpace } from './free-space.ts';
import { metaOf, openTables, SCHEMA, type Tables } from './tables.ts';
import { Work } from './work.ts';

/** For tests: called after every single write inside a transaction; what it throws undoes the transaction. */
export interface Seams {
  readonly afterWrite?: () => void;
}

/** Address space, not disk: the file grows as it is needed, and nothing has to be mapped anew while serving. */
const MAP_BYTES = 16 * 1024 ** 3;
/** How often free space is looked at, and a failed store is tried again. */
const WATCH_MS = 1_000;

export class Environment {
  readonly tables: Tables;
  readonly options: StoreOptions;
  readonly #root: RootDatabase;
  readonly #seams: Seams;
  readonly #space: FreeSpace;
  #writeFailure: string | undefined;
  #rowsWait = false;
  #closed = false;
  #batchExpected = false;
  #stopWatching: () => void = () => undefined;

  private constructor(root: RootDatabase, options: StoreOptions, seams: Seams, space: FreeSpace) {
    this.#root = root;
    this.tables = openTables(root);
    this.options = options;
    this.#seams = seams;
    this.#space = space;
  }

  /** Throws `StoreError` (`schema_newer`, `unavailable`). */
  static async open(options: StoreOptions, seams: Seams): Promise<Environment> {
    const environment = await guard(async () => {
      prepareFolder(options.path);
      checkFile(join(options.path, 'data.mdb'));
      // A commit is synced before its promise resolves: with overlapping sync it would only be visible by then.
      const root = open({
        path: options.path,
        noSubdir: false,
        maxDbs: 64,
        mapSize: MAP_BYTES,
        overlappingSync: false,
        cache: false,
      });
      return new Environment(root, options, seams, new FreeSpace(options));
    });
    await environment.#checkSchema();
    await environment.#space.look();
    environment.#watch();
    return environment;
  }

  /**
   * Runs `change` in one transaction. Resolves with its result when that is on disk; rejects with `StoreError` (or with what
   * `change` threw) and then nothing of it was kept.
   */
  async transact<T>(change: (work: Work) => T): Promise<T> {
    if (this.#closed) throw new StoreError('closed', 'the store is closed');
    const transaction = new Transaction(change);
    let thrown: { readonly error: unknown } | undefined;
    try {
      const committed = this.#root.childTransaction(() => {
        try {
          transaction.run(new Work(this.tables, this.#seams.afterWrite));
        } catch (error) {
          thrown = { error };
          throw error;
        }
      });
      this.#expectBatch();
      await committed;
      return transaction.result();
    } catch (error) {
      // The change itself refused (a bug, an amount out of range, a full map): the engine is well.
      if (thrown !== undefined && !isEngineError(thrown.error)) throw thrown.error;
      throw await this.#failed(error);
    }
  }

  /** A look at one snapshot. Throws `StoreError`. */
  look<T>(look: (tables: Tables) => T): T {
    if (this.#closed) throw new StoreError('closed', 'the store is closed');
    try {
      return look(this.tables);
    } catch (error) {
      throw error instanceof StoreError ? error : new StoreError('unavailable', 'the store could not be read', error);
    }
  }

  /** {@link look} for those who promise: rejects with `StoreError`. */
  async read<T>(look: (tables: Tables) => T): Promise<T> {
    return this.look(look);
  }

  health(): StoreHealth {
    if (this.#closed) return { healthy: false, reason: 'closed', message: 'the store is closed' };
    if (this.#writeFailure !== undefined) return { healthy: false, reason: 'write_failed', message: this.#writeFailure };
    const low = this.#space.low;
    return low === undefined ? { healthy: true } : { healthy: false, reason: 'free_space', message: low };
  }

  /** Throws `StoreError` `unhealthy`: for new work, before anything is tried. */
  requireHealth(): void {
    const health = this.health();
    if (!health.healthy) throw new StoreError(health.reason === 'closed' ? 'closed' : 'unhealthy', health.message);
  }

  /** Rows of the settlement queue were refused and are tried again. A smaller write may go through meanwhile, and say nothing about them. */
  rowsRefused(): void {
    this.#rowsWait = true;
  }

  rowsWritten(): void {
    if (!this.#rowsWait) return;
    this.#rowsWait = false;
    const before = this.health().healthy;
    this.#writeFailure = undefined;
    this.#reportSince(before);
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    this.#stopWatching();
    await this.#root.flushed;
    // Without a turn of the event loop here lmdb-js can block the main thread for ever.
    await new Promise((resolve) => setImmediate(resolve));
    await this.#root.close();
  }

  /**
   * The writes of one turn of the event loop share a commit, and lmdb-js makes a promise of its own for it that nobody holds. It
   * exists at the end of the turn, and is handled here so that a failed commit is told once, to those who wrote.
   */
  #expectBatch(): void {
    if (this.#batchExpected) return;
    this.#batchExpected = true;
    setImmediate(() => {
      this.#batchExpected = false;
      if (!this.#closed)
        this.#root.committed.then(
          () => true,
          () => false,
        );
    });
  }

  async #checkSchema(): Promise<void> {
    const found = metaOf(this.tables, 'schema');
    if (found !== undefined && found > SCHEMA) {
      await this.close();
      throw new StoreError('schema_newer', newerSchemaMessage(found, SCHEMA));
    }
    if (found === SCHEMA) return;
    await this.transact((work) => {
      if (found !== undefined) work.put(work.tables.meta, 'olderRefs', true);
      work.put(work.tables.meta, 'schema', SCHEMA);
    });
  }

  async #failed(error: unknown): Promise<StoreError> {
    const cause = await commitErrorOf(error, this.options.clock);
    const full = isDiskFull(cause) || (codeOf(cause) === EIO && (await this.#space.isFull()));
    const message = cause instanceof Error ? cause.message : String(cause);
    // Whoever writes meanwhile runs into the same.
    const isNew = this.#writeFailure !== message;
    this.#writeFailure = message;
    if (full) this.#space.giveUpBallast();
    if (isNew) this.options.onProblem?.({ what: 'store_write_failed', error: cause });
    return new StoreError(full ? 'disk_full' : 'unavailable', `nothing was written: ${message}`, cause);
  }

  #watch(): void {
    this.#stopWatching = this.options.clock.after(WATCH_MS, () => {
      this.#lookAgain().catch((error: unknown) => this.options.onProblem?.({ what: 'store_watch_failed', error }));
    });
  }

  /** Free space may have gone or come back; a store that failed is tried with a write that changes nothing of meaning. */
  async #lookAgain(): Promise<void> {
    try {
      const before = this.health().healthy;
      await this.#space.look();
      if (this.#writeFailure !== undefined && !this.#rowsWait && this.#space.low === undefined) await this.#probe();
      this.#reportSince(before);
    } finally {
      if (!this.#closed) this.#watch();
    }
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

  #reportSince(wasHealthy: boolean): void {
    const now = this.health();
    if (wasHealthy !== now.healthy)
      this.options.onProblem?.({ what: now.healthy ? 'store_healthy' : `store_unhealthy: ${now.message}` });
  }
}

/**
 * A change and what came of it, apart from the callback that runs it: lmdb-js keeps its callbacks in a list in which each knows the next,
 * so what a callback holds outlives its commit until V8's next full collection.
 */
class Transaction<T> {
  #change: ((work: Work) => T) | undefined;
  #done: { readonly result: T } | undefined;

  constructor(change: (work: Work) => T) {
    this.#change = change;
  }

  run(work: Work): void {
    const change = this.#change;
    this.#change = undefined;
    if (change === undefined) throw new StoreError('corrupt', 'a change was to be made twice');
    const result = change(work);
    work.finish();
    this.#done = { result };
  }

  /** Once, after the commit. */
  result(): T {
    const done = this.#done;
    this.#done = undefined;
    if (done === undefined) throw new StoreError('unavailable', 'a change was committed and not made');
    return done.result;
  }
}

async function guard<T>(open: () => Promise<T>): Promise<T> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw new StoreError(
      'unavailable',
      `the store cannot be opened: ${error instanceof Error ? error.message : String(error)}`,
      error,
    );
  }
}

const ENOSPC = 28;
/** What LMDB makes of a write that was cut short. */
const EIO = 5;
const EDQUOT = 122;
const MAP_FULL = -30792;

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

function isDiskFull(error: unknown): boolean {
  const code = codeOf(error);
  return code === ENOSPC || code === EDQUOT || code === MAP_FULL || code === 'ENOSPC';
}

/** Errors of LMDB itself carry a numeric code; a `StoreError` or a bug of ours does not. */
function isEngineError(error: unknown): boolean {
  return !(error instanceof StoreError) && typeof codeOf(error) === 'number';
}
