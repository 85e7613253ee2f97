/**
 * The responses that clients may continue by id (spec, "Stored response history"): in the memory of this process, for 30 minutes
 * from their creation, bounded by entry, by key and in total. Their items can be looked up by id as well. Knows no JSON and no
 * HTTP.
 *
 * A turn counts once, however many others continue it. An expired parent cannot be addressed any more, but its children keep it.
 * To make room the least recently used branch is dropped: its last turn, and all turns before it that no other branch needs,
 * since a conversation without its end is useless to a client. A turn that a WebSocket keeps is a branch of its own beside those
 * that can be found by id.
 */
import type { Clock, Timer } from '../../streams/clock.ts';
import type { HistoryLimits } from '../config/config.ts';
import { ownBytes, type PastTurn } from './past-turn.ts';
import type { Principal } from '../../store/keys.ts';

export const HISTORY_TTL_MS = 30 * 60_000;

interface Entry {
  readonly id: string;
  readonly owner: string;
  readonly turn: PastTurn;
  readonly createdAt: number;
}

/** A turn that a connection keeps for itself, whether or not it can be found by its id. */
interface Kept extends Pick<Entry, 'owner' | 'turn'> {
  /** What the connection keeps beside the turn. */
  readonly bytes: number;
  readonly onDropped: () => void;
}

type Tip = Entry | Kept;

/** A connection's hold on a turn. */
export interface KeptTurn {
  /** It was used: others are dropped first. */
  touch(): void;
  /** Calling it again, or after it was dropped, does nothing. */
  release(): void;
}

/** Reference count of a turn that entries and other turns hold. */
interface Held {
  holders: number;
  /** The entry of this very turn, while its id can be found. */
  entry: Entry | undefined;
  readonly owner: string;
}

export class ResponseHistory {
  readonly #clock: Clock;
  readonly #limits: () => HistoryLimits;
  /** In order of creation, which is the order of expiry. */
  readonly #entries = new Map<string, Entry>();
  readonly #held = new Map<PastTurn, Held>();
  /** Turns by their owner and the id of one of their output items. */
  readonly #byItem = new Map<string, PastTurn>();
  /** Entries that nobody continued, least recently used first: in all, and by owner. */
  readonly #tips = new Set<Tip>();
  readonly #tipsOf = new Map<string, Set<Tip>>();
  readonly #bytesOf = new Map<string, number>();
  #bytes = 0;
  #timer: Timer | undefined;

  constructor(clock: Clock, limits: () => HistoryLimits) {
    this.#clock = clock;
    this.#limits = limits;
  }

  /** Bytes of all turns that are kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Ids that can be found. */
  get size(): number {
    return this.#entries.size;
  }

  /** Undefined for an id that is unknown, expired or another owner's, without a difference. */
  find(id: string, owner: string): PastTurn | undefined {
    const entry = this.#entries.get(id);
    if (entry === undefined || entry.owner !== owner || this.#isOver(entry)) return undefined;
    this.#touch(entry);
    return entry.turn;
  }

  /** The turns whose output holds the items of these ids; without those that {@link find} would not find. */
  turnsOf(itemIds: readonly string[], owner: string): Map<string, PastTurn> {
    const found = new Map<string, PastTurn>();
    for (const id of itemIds) {
      const turn = this.#byItem.get(itemKey(owner, id));
      const entry = turn === undefined ? undefined : this.#held.get(turn)?.entry;
      if (entry !== undefined && !this.#isOver(entry)) found.set(id, entry.turn);
    }
    return found;
  }

  /** False when it is too large: the id is then unknown. An id can be saved once. */
  save(id: string, owner: string, turn: PastTurn): boolean {
    this.#dropExpired();
    const limits = this.#limits();
    const allowed = Math.min(limits.entryBytes, limits.keyBytes, limits.totalBytes);
    if (turn.totalBytes > allowed || this.#entries.has(id)) return false;
    const entry: Entry = { id, owner, turn, createdAt: this.#clock.monotonic() };
    this.#entries.set(id, entry);
    this.#hold(turn, owner).entry = entry;
    this.#addTip(entry);
    const parent = turn.parent === undefined ? undefined : this.#held.get(turn.parent)?.entry;
    if (parent !== undefined) this.#removeTip(parent);
    this.#makeRoom(limits, entry);
    this.#arm();
    return this.#entries.has(id);
  }

  /**
   * Keeps a turn for as long as a connection wants, within the same bounds as what can be found by id, and as likely to be
   * dropped to make room: `onDropped` is then called. Undefined when it is too large. `bytes`: what is kept beside it.
   */
  keep(owner: string, turn: PastTurn, bytes: number, onDropped: () => void): KeptTurn | undefined {
    this.#dropExpired();
    const limits = this.#limits();
    if (turn.totalBytes + bytes > Math.min(limits.entryBytes, limits.keyBytes, limits.totalBytes)) return undefined;
    const kept: Kept = { owner, turn, bytes, onDropped };
    this.#hold(turn, owner);
    this.#count(owner, bytes);
    this.#addTip(kept);
    this.#makeRoom(limits, kept);
    return {
      touch: () => this.#touch(kept),
      release: () => {
        if (this.#tips.has(kept)) this.#dropBranch(kept);
      },
    };
  }

  /** Forgets everything and stops its timer. */
  close(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    for (const memory of [this.#entries, this.#held, this.#byItem, this.#tips, this.#tipsOf, this.#bytesOf]) memory.clear();
    this.#bytes = 0;
  }

  #isOver(entry: Entry): boolean {
    return this.#clock.monotonic() - entry.createdAt >= HISTORY_TTL_MS;
  }

  #touch(entry: Tip): void {
    if (!this.#tips.delete(entry)) return;
    this.#tips.add(entry);
    const own = this.#tipsOf.get(entry.owner);
    own?.delete(entry);
    own?.add(entry);
  }

  #addTip(entry: Tip): void {
    this.#tips.add(entry);
    const own = this.#tipsOf.get(entry.owner) ?? new Set();
    own.add(entry);
    this.#tipsOf.set(entry.owner, own);
  }

  #removeTip(entry: Tip): void {
    this.#tips.delete(entry);
    const own = this.#tipsOf.get(entry.owner);
    own?.delete(entry);
    if (own?.size === 0) this.#tipsOf.delete(entry.owner);
  }

  /**
   * With the turns before it that are not held: of a conversation that was dropped while its next turn was on its way, thousands.
   */
  #hold(turn: PastTurn, owner: string): Held {
    const own = this.#holdOne(turn, owner);
    let { parent } = turn;
    for (let held = own; held.holders === 1 && parent !== undefined; { parent } = parent) held = this.#holdOne(parent, owner);
    return own;
  }

  #holdOne(turn: PastTurn, owner: string): Held {
    const known = this.#held.get(turn);
    if (known !== undefined) {
      known.holders += 1;
      return known;
    }
    const held: Held = { holders: 1, entry: undefined, owner };
    this.#held.set(turn, held);
    for (const id of turn.itemIds) this.#byItem.set(itemKey(owner, id), turn);
    this.#count(owner, ownBytes(turn));
    return held;
  }

  #release(turn: PastTurn): void {
    for (let current: PastTurn | undefined = turn; current !== undefined; current = current.parent) {
      const held = this.#held.get(current);
      if (held === undefined) return;
      held.holders -= 1;
      if (held.holders > 0) return;
      this.#held.delete(current);
      for (const id of current.itemIds) {
        const key = itemKey(held.owner, id);
        if (this.#byItem.get(key) === current) this.#byItem.delete(key);
      }
      this.#count(held.owner, -ownBytes(current));
    }
  }

  #count(owner: string, bytes: number): void {
    this.#bytes += bytes;
    const own = (this.#bytesOf.get(owner) ?? 0) + bytes;
    if (own === 0) this.#bytesOf.delete(owner);
    else this.#bytesOf.set(owner, own);
  }

  /** Forgets the id; the turn itself lives as long as another holds it. */
  #drop(entry: Entry): void {
    this.#entries.delete(entry.id);
    this.#removeTip(entry);
    const held = this.#held.get(entry.turn);
    if (held?.entry === entry) held.entry = undefined;
    this.#release(entry.turn);
  }

  #dropKept(kept: Kept): void {
    this.#removeTip(kept);
    this.#count(kept.owner, -kept.bytes);
    this.#release(kept.turn);
  }

  #dropBranch(tip: Tip): void {
    if ('onDropped' in tip) this.#dropKept(tip);
    else this.#drop(tip);
    for (let turn = tip.turn.parent; turn !== undefined; turn = turn.parent) {
      const held = this.#held.get(turn);
      // A turn that was never saved by itself was released with its child.
      if (held === undefined) continue;
      if (held.holders > 1 || held.entry === undefined || this.#tips.has(held.entry)) return;
      this.#drop(held.entry);
    }
  }

  /** The newest entry is never dropped: it fits alone. */
  #makeRoom(limits: HistoryLimits, newest: Tip): void {
    const own = this.#tipsOf.get(newest.owner) ?? this.#tips;
    this.#dropWhile(own, newest, () => (this.#bytesOf.get(newest.owner) ?? 0) > limits.keyBytes);
    this.#dropWhile(this.#tips, newest, () => this.#bytes > limits.totalBytes);
  }

  #dropWhile(tips: ReadonlySet<Tip>, newest: Tip, isFull: () => boolean): void {
    for (const tip of tips) {
      if (!isFull()) return;
      if (tip === newest) continue;
      this.#dropBranch(tip);
      if ('onDropped' in tip) tip.onDropped();
    }
  }

  #dropExpired(): void {
    for (const entry of this.#entries.values()) {
      if (!this.#isOver(entry)) return;
      this.#drop(entry);
    }
  }

  /** One timer, for the entry that expires first. */
  #arm(): void {
    if (this.#timer !== undefined) return;
    const [first] = this.#entries.values();
    if (first === undefined) return;
    const left = first.createdAt + HISTORY_TTL_MS - this.#clock.monotonic();
    this.#timer = this.#clock.setTimeout(
      () => {
        this.#timer = undefined;
        this.#dropExpired();
        this.#arm();
      },
      Math.max(1, Math.ceil(left)),
    );
  }
}

function itemKey(owner: string, id: string): string {
  return `${owner} ${id}`;
}

/** The owner of a stored response: account and key. To any other owner its id is unknown. */
export function ownerOf({ account, key }: Principal): string {
  return `${account.id}/${key.id}`;
}
