/**
 * The vocabulary of a byte pair encoding in three flat tables, and how many of its tokens a text is. The tables of o200k take 5
 * MiB this way; as strings in a map, with the module that they come in, it was 60. No other part of a tokenizer is needed here.
 */

/** Twice the tokens at least, so that few look-ups meet another token first. A power of two. */
const SLOTS_A_TOKEN = 2;
const LINE_BREAK = 10;
const SPACE = 32;
const ZERO = 48;
/** What each letter of base64 stands for. */
const SIX_BITS = new Map(
  Array.from(Buffer.from('ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/').entries(), ([six, letter]) => [
    letter,
    six,
  ]),
);
const NONE = Number.POSITIVE_INFINITY;
/** A piece of so many bytes or less is encoded without a new buffer. */
const PIECE_BYTES = 1024;

export class TokenTable {
  /** All tokens, one behind another, the lowest rank first. */
  readonly #bytes: Uint8Array;
  /** Where the token of each rank begins; behind the last one where it ends. */
  readonly #starts: Uint32Array;
  /** By hash, a rank and one; 0: nothing. What is taken goes into the next. */
  readonly #slots: Uint32Array;
  readonly #encoder = new TextEncoder();
  readonly #piece = new Uint8Array(PIECE_BYTES);

  /** `ranks`: a line a token in base64, a space and its rank, in the order of the ranks from 0. Throws on anything else. */
  constructor(ranks: Buffer) {
    const bytes = new Uint8Array(ranks.length);
    const starts = [0];
    let end = 0;
    for (let at = 0; at < ranks.length; at++) {
      let [held, bits] = [0, 0];
      for (; (ranks[at] ?? SPACE) !== SPACE; at++) {
        const six = SIX_BITS.get(ranks[at] ?? 0);
        if (six === undefined) continue;
        held = (held << 6) | six;
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        bytes[end++] = held >> bits;
      }
      let rank = 0;
      for (at++; (ranks[at] ?? LINE_BREAK) !== LINE_BREAK; at++) rank = 10 * rank + (ranks[at] ?? 0) - ZERO;
      if (at >= ranks.length) throw new Error('the ranks of tokens end inside a line');
      if (rank !== starts.length - 1) throw new Error('the ranks of tokens have a gap');
      starts.push(end);
    }
    this.#bytes = bytes.slice(0, end);
    this.#starts = Uint32Array.from(starts);
    this.#slots = new Uint32Array(2 ** Math.ceil(Math.log2(SLOTS_A_TOKEN * starts.length)));
    for (let rank = 0; rank < starts.length - 1; rank++) this.#enter(rank);
  }

  /**
   * The tokens of a piece, which is encoded by itself: those of the pair with the lowest rank become one, for as long as there is
   * such a pair.
   */
  count(piece: string): number {
    const bytes = piece.length * 3 > PIECE_BYTES ? this.#encoder.encode(piece) : this.#piece;
    const length = bytes === this.#piece ? this.#encoder.encodeInto(piece, bytes).written : bytes.length;
    if (this.#rankOf(bytes, 0, length) < NONE) return 1;
    const starts = Array.from({ length: length + 1 }, (_, at) => at);
    const rankAt = (part: number): number => {
      const end = starts[part + 2];
      return end === undefined ? NONE : this.#rankOf(bytes, starts[part] ?? 0, end);
    };
    const ranks = Array.from({ length }, (_, part) => rankAt(part));
    for (;;) {
      const lowest = indexOfLowest(ranks);
      if (lowest < 0) return ranks.length;
      starts.splice(lowest + 1, 1);
      ranks.splice(lowest, 1);
      ranks[lowest] = rankAt(lowest);
      if (lowest > 0) ranks[lowest - 1] = rankAt(lowest - 1);
    }
  }

  #enter(rank: number): void {
    const [start = 0, end = 0] = [this.#starts[rank], this.#starts[rank + 1]];
    const mask = this.#slots.length - 1;
    let slot = hashOf(this.#bytes, start, end) & mask;
    while (this.#slots[slot] !== 0) slot = (slot + 1) & mask;
    this.#slots[slot] = rank + 1;
  }

  /** The rank of the token that these bytes are; infinite where they are none. */
  #rankOf(bytes: Uint8Array, start: number, end: number): number {
    const mask = this.#slots.length - 1;
    for (let slot = hashOf(bytes, start, end) & mask; ; slot = (slot + 1) & mask) {
      const rank = (this.#slots[slot] ?? 0) - 1;
      if (rank < 0) return NONE;
      if (this.#is(rank, bytes, start, end)) return rank;
    }
  }

  #is(rank: number, bytes: Uint8Array, start: number, end: number): boolean {
    const from = this.#starts[rank] ?? 0;
    if ((this.#starts[rank + 1] ?? 0) - from !== end - start) return false;
    for (let at = start; at < end; at++) if (bytes[at] !== this.#bytes[from + at - start]) return false;
    return true;
  }
}

/** FNV-1a, its high bits mixed into the low ones. */
function hashOf(bytes: Uint8Array, start: number, end: number): number {
  let hash = 0x811c9dc5;
  for (let at = start; at < end; at++) hash = Math.imul(hash ^ (bytes[at] ?? 0), 0x01000193);
  return hash ^ (hash >>> 15);
}

/** The first of the lowest; -1 where all are infinite. */
function indexOfLowest(ranks: readonly number[]): number {
  let lowest = -1;
  let rank = NONE;
  for (const [at, each] of ranks.entries()) {
    if (each >= rank) continue;
    rank = each;
    lowest = at;
  }
  return lowest;
}
