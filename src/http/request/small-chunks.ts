/**
 * Small chunks of a body are handed on together. A client may send each byte in a chunk of its own, and what each of them takes
 * as an object is some hundred times its byte.
 */

/** Larger ones are handed on as they are. */
const SMALL_BYTES = 1024;
const BLOCK_BYTES = 32 * 1024;
/** So many are, whatever their size: bodies mostly come in few. */
const FEW = 64;

export class SmallChunks {
  readonly #take: (chunk: Buffer) => void;
  #block: Buffer | undefined;
  #used = 0;
  #few = FEW;

  constructor(take: (chunk: Buffer) => void) {
    this.#take = take;
  }

  /** Throws what the taker throws. */
  add(chunk: Buffer): void {
    const isSmall = chunk.length <= SMALL_BYTES;
    if (!isSmall || this.#used + chunk.length > BLOCK_BYTES) this.flush();
    if (!isSmall || this.#few > 0) {
      this.#few -= 1;
      this.#take(chunk);
      return;
    }
    this.#block ??= Buffer.allocUnsafeSlow(BLOCK_BYTES);
    this.#used += chunk.copy(this.#block, this.#used);
  }

  /** Hands on what waits. */
  flush(): void {
    const some = this.#block?.subarray(0, this.#used);
    this.#block = undefined;
    this.#used = 0;
    if (some !== undefined && some.length > 0) this.#take(some);
  }
}
