/**
 * Which processes have the store open. An exchange belongs to the process that opened it, and only a process that is known to be
 * dead has its exchanges closed by another: by its pid on the same host at once, else when it has not been heard of for a while.
 */
import { type Bookkeeper, type Books, got, type Registration, type Rule } from './books/books.ts';
import { interrupt } from './books/settlements.ts';
import { randomHex } from './random-hex.ts';
import type { OpenExchange } from './settlement.ts';
import type { StoreOptions } from './store.ts';

type Options = Pick<StoreOptions, 'clock' | 'randomBytes' | 'process' | 'processTtlMs' | 'onProblem'>;

/** What an engine keeps of processes, outside of transactions. */
export interface Registry extends Bookkeeper {
  readonly options: Options;
  /** Registers this process, or renews its heartbeat. */
  beat(id: string): Promise<void>;
  find(id: string): Promise<Registration | undefined>;
  /** Of all processes that have exchanges open, by their ids; undefined where one has none. */
  ofOpenExchanges(): Promise<ReadonlyMap<string, Registration | undefined>>;
  /** Removes what is left of dead processes. */
  sweep(isAlive: (id: string, registration: Registration) => boolean): Promise<void>;
}

/** The registrations of this very process: several stores may be open in one. */
const living = new Set<string>();

const DEFAULT_TTL_MS = 30_000;
/**
 * On LMDB the machine's clock says when a process was heard of. One elsewhere that was heard of later than this was so by a clock
 * that had jumped, and would live until that time has come.
 */
const FAR_AHEAD_MS = 3_600_000;
/** Exchanges closed in one transaction. */
const BATCH = 200;

export class StoreProcess {
  readonly id: string;
  readonly #registry: Registry;
  readonly #ttlMs: number;
  #stop: () => void = () => undefined;
  /** The last heartbeat failed, which was told. */
  #failing = false;
  #onBeat: () => Promise<void> = async () => undefined;

  private constructor(registry: Registry, id: string) {
    this.#registry = registry;
    this.id = id;
    this.#ttlMs = registry.options.processTtlMs ?? DEFAULT_TTL_MS;
  }

  static async register(registry: Registry): Promise<StoreProcess> {
    const registered = new StoreProcess(registry, `own_${randomHex(registry.options.randomBytes)}`);
    living.add(registered.id);
    await registry.beat(registered.id);
    registered.#schedule();
    return registered;
  }

  /** `then` runs after every heartbeat. */
  everyBeat(then: () => Promise<void>): void {
    this.#onBeat = then;
  }

  /** False only when the process of that registration is known to be dead. */
  async mayLive(id: string): Promise<boolean> {
    return this.isAlive(id, await this.#registry.find(id));
  }

  isAlive(id: string, registration: Registration | undefined): boolean {
    if (living.has(id)) return true;
    if (registration === undefined) return false;
    const { process: self } = this.#registry.options;
    const { host, pid, ageMs } = registration;
    const isHere = host === self.host;
    // The same host, so the pid tells; our own pid in another registration is an earlier life of it.
    if (isHere && (pid === self.pid || !self.isAlive(pid))) return false;
    return ageMs < this.#ttlMs && (isHere || ageMs > -FAR_AHEAD_MS);
  }

  /** Closes what dead processes left open. Returns what was closed. */
  async closeInterrupted(): Promise<OpenExchange[]> {
    const closed: OpenExchange[] = [];
    for (const [id, registration] of await this.#registry.ofOpenExchanges())
      if (!this.isAlive(id, registration)) closed.push(...(await this.#closeAllOf(id)));
    await this.#registry.sweep((id, registration) => this.isAlive(id, registration));
    return closed;
  }

  /** Ends this process's own registration: what it still has open can never be settled, so it is closed as interrupted. */
  async leave(): Promise<void> {
    this.#stop();
    await this.#closeAllOf(this.id);
    living.delete(this.id);
  }

  /** Leaves without a word, as a killed process does: for a store that cannot write any more. */
  abandon(): void {
    this.#stop();
    living.delete(this.id);
  }

  /** The registration goes with the last of its exchanges. */
  async #closeAllOf(id: string): Promise<OpenExchange[]> {
    const { clock } = this.#registry.options;
    const closed: OpenExchange[] = [];
    for (;;) {
      const batch = await this.#registry.follow((books) => this.#closeSome(books, id, clock.now()));
      closed.push(...batch.closed);
      if (batch.found < BATCH) return closed;
    }
  }

  *#closeSome(books: Books, id: string, nowMs: number): Rule<{ readonly closed: OpenExchange[]; readonly found: number }> {
    // Asked again inside the transaction: it may have come back, or another process may have been here.
    if (id !== this.id && this.isAlive(id, yield* got(books.process(id, nowMs)))) return { closed: [], found: 0 };
    const found = yield* got(books.openExchanges(id, BATCH));
    yield* got(books.loadExchanges(found));
    const closed = found.filter((exchange) => interrupt(books, id, exchange, nowMs));
    if (found.length < BATCH) yield* got(books.removeProcess(id));
    return { closed, found: found.length };
  }

  #schedule(): void {
    const { clock, onProblem } = this.#registry.options;
    this.#stop = clock.after(this.#ttlMs / 3, () => {
      this.#schedule();
      const round = this.#registry.beat(this.id).then(() => this.#onBeat());
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
