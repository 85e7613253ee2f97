/**
 * Small chunks of a body are handed on together. A client or an upstream may send each byte in a chunk of its own, and what each
 * of them takes as an object is some hundred times its byte.
 */

/** Larger ones are handed on as they are. */
const SMALL_BYTES = 1024;
const BLOCK_BYTES = 32 * 1024;
/** So many are, whatever their size: bodies mostly come in few. */
const FEW = 64;

export class SmallChunks<Chunk extends Uint8Array> {
  readonly #take: (chunk: Chunk | Buffer) => void;
  #block: Buffer | undefined;
  #used = 0;
  #few = FEW;

  constructor(take: (chunk: Chunk | Buffer) => void) {
    this.#take = take;
  }

  /** Throws what the taker throws. */
  add(chunk: Chunk): void {
    const isSmall = chunk.length <= SMALL_BYTES;
    if (!isSmall || this.#used + chunk.length > BLOCK_BYTES) this.flush();
    if (!isSmall || this.#few > 0) {
      this.#few -= 1;
      this.#take(chunk);
      return;
    }
    this.#block ??= Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#block.set(chunk, this.#used);
    this.#used += chunk.length;
  }

  /** Hands on what waits. */
  flush(): void {
    const some = this.#block?.subarray(0, this.#used);
    if (some === undefined || some.length === 0) return;
    const isFull = some.length > BLOCK_BYTES / 2;
    if (isFull) this.#block = undefined;
    this.#used = 0;
    // A byte between two larger chunks, again and again, must not keep a block each time.
    this.#take(isFull ? some : Buffer.from(some));
  }
}
