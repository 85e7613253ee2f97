/**
 * Which processes have the store open. An exchange belongs to the process that opened it, and only one that is known to be dead has its
 * exchanges closed by another: by its pid on the same host at once, else when it has not been heard of for a while by the
 * clock of the database, the one clock that all machines share.
 */
import type { OpenExchange } from '../settlement.ts';
import { randomHex } from '../random-hex.ts';
import { exchangeOf } from '../settlements/records.ts';
import type { Database } from './database.ts';
import { DEFAULTS } from './options.ts';
import { int, type Row, text } from './rows.ts';
import type { Statement } from './session.ts';
import { Settler } from './settle.ts';
import type { Work } from './work.ts';

/** The registrations of this very process: several stores may be open in one. */
const living = new Set<string>();

/** Exchanges closed in one transaction. */
const BATCH = 200;

const BEAT: Statement = {
  name: 'owner_beat',
  text: `INSERT INTO owners (id, host, pid, heartbeat) VALUES ($1, $2, $3, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET heartbeat = clock_timestamp()`,
};
const AGE = `(extract(epoch FROM clock_timestamp() - heartbeat) * 1000)::bigint AS age_ms`;
const PROCESSES: Statement = {
  name: 'owners_of_open',
  text: `SELECT e.owner_id AS id, o.host, o.pid, ${AGE} FROM (SELECT DISTINCT owner_id FROM open_exchanges) e
    LEFT JOIN owners o ON o.id = e.owner_id`,
};
const PROCESS: Statement = { name: 'owner_find', text: `SELECT id, host, pid, ${AGE} FROM owners WHERE id = $1` };
const OPEN_OF: Statement = {
  name: 'open_of',
  text: 'SELECT exchange FROM open_exchanges WHERE owner_id = $1 ORDER BY exchange_id LIMIT $2',
};
const LEAVE: Statement = { name: 'owner_leave', text: 'DELETE FROM owners WHERE id = $1' };
/** Dead processes without open exchanges, and the proofs of commits that nobody asks about any more. */
const SWEEP: Statement = {
  name: 'sweep',
  text: `WITH old AS (DELETE FROM commits WHERE at < now() - interval '15 minutes')
    DELETE FROM owners o WHERE heartbeat < now() - interval '1 day'
      AND NOT EXISTS (SELECT 1 FROM open_exchanges e WHERE e.owner_id = o.id)`,
};

export class StoreProcess {
  readonly id: string;
  readonly #database: Database;
  readonly #ttlMs: number;
  #stop: () => void = () => undefined;
  /** The last heartbeat failed, which was told. */
  #failing = false;
  #onBeat: () => Promise<void> = async () => undefined;

  private constructor(database: Database, id: string) {
    this.#database = database;
    this.id = id;
    this.#ttlMs = database.options.processTtlMs ?? DEFAULTS.processTtlMs;
  }

  static async register(database: Database): Promise<StoreProcess> {
    const registered = new StoreProcess(database, `own_${randomHex(database.options.randomBytes)}`);
    living.add(registered.id);
    await registered.#beat();
    registered.#schedule();
    return registered;
  }

  /** `then` runs after every heartbeat. */
  everyBeat(then: () => Promise<void>): void {
    this.#onBeat = then;
  }

  /** False only when the process of that registration is known to be dead. */
  async mayLive(processId: string): Promise<boolean> {
    const [row] = await this.#database.run(PROCESS, [processId]);
    return this.#isAlive(row, processId);
  }

  /** Closes what dead processes left open. Returns what was closed. */
  async closeInterrupted(): Promise<OpenExchange[]> {
    const found = await this.#database.run(PROCESSES);
    const closed: OpenExchange[] = [];
    for (const row of found) if (!this.#isAlive(row, text(row, 'id'))) closed.push(...(await this.#closeAllOf(text(row, 'id'))));
    return closed;
  }

  /** Ends this process's own registration: what it still has open can never be settled, so it is closed as interrupted. */
  async leave(): Promise<void> {
    this.#stop();
    await this.#closeAllOf(this.id);
    await this.#database.change(LEAVE, [this.id]);
    living.delete(this.id);
  }

  /** Leaves without a word, as a killed process does: for a database that is away. */
  abandon(): void {
    this.#stop();
    living.delete(this.id);
  }

  async #closeAllOf(processId: string): Promise<OpenExchange[]> {
    const { clock } = this.#database.options;
    const closed: OpenExchange[] = [];
    for (;;) {
      const batch = await this.#database.transact((work) => this.#closeSome(work, processId, clock.now()));
      closed.push(...batch.closed);
      if (batch.rows < BATCH) return closed;
    }
  }

  async #closeSome(work: Work, processId: string, nowMs: number): Promise<{ closed: OpenExchange[]; rows: number }> {
    if (processId !== this.id) {
      // Asked again inside the transaction: it may have come back, or another process may have been here.
      const [row] = await work.run(PROCESS, [processId]);
      if (this.#isAlive(row, processId)) return { closed: [], rows: 0 };
    }
    const rows = (await work.run(OPEN_OF, [processId, BATCH])).map((row) => exchangeOf(text(row, 'exchange')));
    const settler = await Settler.prepare(work, rows, nowMs);
    const closed = rows.filter((exchange) => {
      work.closeExchange(exchange.exchangeId);
      return settler.interrupt(exchange);
    });
    if (rows.length < BATCH && processId !== this.id) await work.run(LEAVE, [processId]);
    return { closed, rows: rows.length };
  }

  #isAlive(row: Row | undefined, id: string): boolean {
    if (living.has(id)) return true;
    if (row === undefined || row['host'] === null) return false;
    const { process: self } = this.#database.options;
    const pid = int(row, 'pid');
    // The same host, so the pid tells; our own pid in another registration's row is an earlier life of it.
    if (text(row, 'host') === self.host && (pid === self.pid || !self.isAlive(pid))) return false;
    return int(row, 'age_ms') < this.#ttlMs;
  }

  async #beat(): Promise<void> {
    const { process: self } = this.#database.options;
    await this.#database.change(BEAT, [this.id, self.host, self.pid]);
  }

  #schedule(): void {
    const { clock, onProblem } = this.#database.options;
    this.#stop = clock.after(this.#ttlMs / 3, () => {
      this.#schedule();
      this.#round().then(
        () => {
          this.#failing = false;
        },
        (error: unknown) => {
          if (!this.#failing) onProblem?.({ what: 'heartbeat_failed', error });
          this.#failing = true;
        },
      );
    });
  }

  async #round(): Promise<void> {
    await this.#beat();
    await this.#onBeat();
    await this.#database.change(SWEEP);
  }
}
