/**
 * What this process remembers of keys, accounts, balances and spend, so that admission asks the database nothing. Every value
 * carries the number of the journal row up to which it is known to hold: the journal is the feed of changes, so an older value
 * can never replace a newer one. Whether the whole is fresh enough to be used is decided by `watch.ts`; this file knows no time.
 */
import { LRUCache } from 'lru-cache';
import type { AccountRecord } from '../accounts.ts';
import type { KeyRecord } from '../keys.ts';
import { NOTHING_SPENT, type SpendRow } from '../spend-windows.ts';

export interface Known<T> {
  readonly value: T;
  /** Holds as of this journal row. */
  readonly seq: number;
}

/** Rows that changed, or that were asked for, all as of one journal row. */
export interface Changes {
  readonly seq: number;
  readonly accounts: readonly AccountRecord[];
  readonly keys: readonly KeyRecord[];
  readonly balances: ReadonlyMap<string, bigint>;
  readonly spend: ReadonlyMap<string, SpendRow>;
}

export const NO_CHANGES: Omit<Changes, 'seq'> = { accounts: [], keys: [], balances: new Map(), spend: new Map() };

const MOST_KEYS = 100_000;
const MOST_UNKNOWN = 10_000;

export class Cache {
  readonly #accounts: LRUCache<string, Known<AccountRecord>>;
  readonly #keys: LRUCache<string, Known<KeyRecord>>;
  /** Digests that belong to no key: a guessed token costs one look. */
  readonly #unknown: LRUCache<string, true>;
  readonly #balances: LRUCache<string, Known<bigint>>;
  readonly #spend: LRUCache<string, Known<SpendRow>>;
  #seen = 0;

  /** At most so many rows of each kind are remembered. */
  constructor(max = MOST_KEYS) {
    this.#accounts = new LRUCache({ max });
    this.#keys = new LRUCache({ max });
    this.#unknown = new LRUCache({ max: Math.min(max, MOST_UNKNOWN) });
    this.#balances = new LRUCache({ max });
    this.#spend = new LRUCache({ max });
  }

  /** The journal row up to which the changes of every process are in here. */
  get seen(): number {
    return this.#seen;
  }

  keyByDigest(digest: string): KeyRecord | undefined {
    return this.#keys.get(digest)?.value;
  }

  isUnknown(digest: string): boolean {
    return this.#unknown.has(digest);
  }

  account(id: string): AccountRecord | undefined {
    return this.#accounts.get(id)?.value;
  }

  balance(payer: string): Known<bigint> | undefined {
    return this.#balances.get(payer);
  }

  spend(keyId: string): Known<SpendRow> | undefined {
    return this.#spend.get(keyId);
  }

  /**
   * Rows that were asked for. Ones from before the newest change that was seen are not kept: that change may have passed them by.
   */
  remember(found: Changes): void {
    if (found.seq >= this.#seen) this.#take(found, () => true);
  }

  /** Unless the key was made meanwhile. */
  rememberUnknown(digest: string, seq: number): void {
    if (seq >= this.#seen && !this.#keys.has(digest)) this.#unknown.set(digest, true);
  }

  /**
   * What a transaction of this process has just committed: kept even when nobody asked, so that a look under way cannot undo it.
   * The answer to the commit may come after a later change was seen, and then it is as old as any other.
   */
  committed(changes: Changes): void {
    this.remember(changes);
    for (const { digest } of changes.keys) this.#unknown.delete(digest);
  }

  /** What any process has changed up to `changes.seq`; only what is in here is replaced. */
  follow(changes: Changes): void {
    this.#take(changes, (map, name) => map.has(name));
    for (const { digest } of changes.keys) this.#unknown.delete(digest);
    this.#seen = Math.max(this.#seen, changes.seq);
  }

  /** Too much has changed to follow row by row. */
  restart(seq: number): void {
    for (const map of [this.#accounts, this.#keys, this.#unknown, this.#balances, this.#spend]) map.clear();
    this.#seen = Math.max(this.#seen, seq);
  }

  #take(changes: Changes, wanted: (map: { has(name: string): boolean }, name: string) => boolean): void {
    const { seq } = changes;
    const put = <T>(map: LRUCache<string, Known<T>>, name: string, value: T): void => {
      if (wanted(map, name) && (map.peek(name)?.seq ?? 0) <= seq) map.set(name, { value, seq });
    };
    for (const account of changes.accounts) put(this.#accounts, account.id, account);
    for (const key of changes.keys) put(this.#keys, key.digest, key);
    for (const [payer, nanos] of changes.balances) put(this.#balances, payer, nanos);
    for (const [keyId, row] of changes.spend) put(this.#spend, keyId, row);
  }
}

/** The newer of what was found and what is remembered by now. */
export function newest<T>(found: Known<T>, remembered: Known<T> | undefined): T {
  return remembered !== undefined && remembered.seq > found.seq ? remembered.value : found.value;
}

export const NO_BALANCE: Known<bigint> = { value: 0n, seq: 0 };
export const NO_SPEND: Known<SpendRow> = { value: NOTHING_SPENT, seq: 0 };
