/**
 * Which processes have the store open. An exchange belongs to the process that opened it, and only a process that is known to be
 * dead has its exchanges closed by another: by its pid on the same host at once, else when it has not been heard of for a while.
 */
import type { OpenExchange } from '../settlement.ts';
import { randomHex } from '../random-hex.ts';
import type { Environment } from './environment.ts';
import { logInterrupted } from './settle.ts';
import type { ProcessRow, Tables } from './tables.ts';

/** The registrations of this very process: several stores may be open in one. */
const living = new Set<string>();

const DEFAULT_TTL_MS = 30_000;
/** Exchanges closed in one transaction. */
const BATCH = 200;

export class StoreProcess {
  readonly id: string;
  readonly #environment: Environment;
  readonly #ttlMs: number;
  #stop: () => void = () => undefined;
  /** The last heartbeat failed, which was told. */
  #failing = false;
  #onBeat: () => Promise<void> = async () => undefined;

  private constructor(environment: Environment, id: string) {
    this.#environment = environment;
    this.id = id;
    this.#ttlMs = environment.options.processTtlMs ?? DEFAULT_TTL_MS;
  }

  static async register(environment: Environment): Promise<StoreProcess> {
    const registered = new StoreProcess(environment, `own_${randomHex(environment.options.randomBytes)}`);
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
  mayLive(tables: Tables, processId: string): boolean {
    return this.#isAlive(tables.processes.get(processId), processId);
  }

  /** Closes what dead processes left open. Returns what was closed. */
  async closeInterrupted(): Promise<OpenExchange[]> {
    const dead = await this.#environment.read((tables) =>
      processesOfExchanges(tables).filter((id) => !this.#isAlive(tables.processes.get(id), id)),
    );
    const closed: OpenExchange[] = [];
    for (const id of dead) closed.push(...(await this.#closeAllOf(id)));
    await this.#forgetDead();
    return closed;
  }

  /** Ends this process's own registration: what it still has open can never be settled, so it is closed as interrupted. */
  async leave(): Promise<void> {
    this.#stop();
    await this.#closeAllOf(this.id);
    await this.#environment.transact((work) => work.remove(work.tables.processes, this.id));
    living.delete(this.id);
  }

  /** Leaves without a word, as a killed process does: for a store that cannot write any more. */
  abandon(): void {
    this.#stop();
    living.delete(this.id);
  }

  /** Registrations of dead processes that left nothing open. */
  async #forgetDead(): Promise<void> {
    const dead = ({ processes }: Tables): string[] =>
      [...processes.getRange()].flatMap(({ key, value }) => (this.#isAlive(value, key) ? [] : [key]));
    if ((await this.#environment.read(dead)).length === 0) return;
    await this.#environment.transact((work) => {
      for (const id of dead(work.tables)) work.remove(work.tables.processes, id);
    });
  }

  async #closeAllOf(processId: string): Promise<OpenExchange[]> {
    const { clock } = this.#environment.options;
    const closed: OpenExchange[] = [];
    for (;;) {
      const batch = await this.#environment.transact((work) => {
        const { tables } = work;
        // Asked again inside the transaction: it may have come back, or another process may have been here.
        if (processId !== this.id && this.#isAlive(tables.processes.get(processId), processId)) return [];
        const rows = [...tables.openExchanges.getRange({ start: [processId, ''], end: [processId, '\uffff'], limit: BATCH })];
        for (const { key, value } of rows) {
          work.remove(tables.openExchanges, key);
          logInterrupted(work, value, clock.now());
        }
        if (rows.length < BATCH && processId !== this.id) work.remove(tables.processes, processId);
        return rows.map(({ value }) => value);
      });
      closed.push(...batch);
      if (batch.length < BATCH) return closed;
    }
  }

  #isAlive(row: ProcessRow | undefined, id: string): boolean {
    if (living.has(id)) return true;
    if (row === undefined) return false;
    const { process: self, clock } = this.#environment.options;
    // The same host, so the pid tells; our own pid in another registration's row is an earlier life of it.
    if (row.host === self.host && (row.pid === self.pid || !self.isAlive(row.pid))) return false;
    return row.heartbeatAtMs + this.#ttlMs > clock.now();
  }

  async #beat(): Promise<void> {
    const { process: self, clock } = this.#environment.options;
    const row: ProcessRow = { id: this.id, host: self.host, pid: self.pid, heartbeatAtMs: clock.now() };
    await this.#environment.transact((work) => work.put(work.tables.processes, this.id, row));
  }

  #schedule(): void {
    const { clock, onProblem } = this.#environment.options;
    this.#stop = clock.after(this.#ttlMs / 3, () => {
      this.#schedule();
      const round = this.#beat().then(() => this.#onBeat());
      round.then(
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
}

/** The distinct processes that have exchanges open, by jumping from one to the next. */
function processesOfExchanges(tables: Tables): string[] {
  const found: string[] = [];
  let start = '';
  for (;;) {
    const [next] = [...tables.openExchanges.getKeys({ start: [start, '\uffff'], limit: 1 })];
    if (next === undefined) return found;
    [start] = next;
    found.push(start);
  }
}
