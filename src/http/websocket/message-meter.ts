/**
 * What a message that is not complete holds in memory, read from the frames as they arrive: the WebSocket library tells of a
 * message only when it is whole. Reads heads of frames and skips what is in them. A frame that is not valid ends the connection
 * elsewhere.
 */

/** A received piece is a buffer of its own until its frame is complete. */
const PIECE_BYTES = 256;
const LONGEST_HEAD = 14;
const FIN = 0x80;
const OPCODE = 0x0f;
/** From this opcode on a frame belongs to no message: close, ping, pong. */
const CONTROL = 0x08;
const MASK_BIT = 0x80;
const LENGTH = 0x7f;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASK_BYTES = 4;

export class MessageMeter {
  readonly #head = Buffer.alloc(LONGEST_HEAD);
  #headBytes = 0;
  #payloadLeft = 0;
  #isControl = false;
  #isFinal = false;
  #bytes = 0;
  #finished = 0;

  /** Bytes of the incomplete message, and what its pieces take beside them; 0 between messages. */
  get unfinished(): number {
    return this.#bytes;
  }

  /** Messages that were completed. */
  get finished(): number {
    return this.#finished;
  }

  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      if (this.#payloadLeft === 0) {
        at = this.#readHead(chunk, at);
        continue;
      }
      const taken = Math.min(this.#payloadLeft, chunk.length - at);
      at += taken;
      this.#payloadLeft -= taken;
      this.#bytes += taken + PIECE_BYTES;
      if (this.#payloadLeft === 0) this.#endFrame();
    }
  }

  /** Returns the index after what was read of the head. */
  #readHead(chunk: Uint8Array, from: number): number {
    let at = from;
    while (at < chunk.length) {
      this.#head[this.#headBytes++] = chunk[at++] ?? 0;
      if (this.#headBytes < 2 || this.#headBytes < this.#headLength()) continue;
      this.#beginFrame();
      return at;
    }
    return at;
  }

  #headLength(): number {
    const second = this.#head[1] ?? 0;
    const length = second & LENGTH;
    const more = length === LENGTH_64 ? 8 : length === LENGTH_16 ? 2 : 0;
    return 2 + more + ((second & MASK_BIT) === 0 ? 0 : MASK_BYTES);
  }

  #beginFrame(): void {
    const first = this.#head[0] ?? 0;
    const length = (this.#head[1] ?? 0) & LENGTH;
    this.#headBytes = 0;
    this.#isFinal = (first & FIN) !== 0;
    this.#isControl = (first & OPCODE) >= CONTROL;
    if (length === LENGTH_16) this.#payloadLeft = this.#head.readUInt16BE(2);
    else if (length === LENGTH_64) this.#payloadLeft = Number(this.#head.readBigUInt64BE(2));
    else this.#payloadLeft = length;
    if (!this.#isControl) this.#bytes += PIECE_BYTES;
    if (this.#payloadLeft === 0) this.#endFrame();
  }

  #endFrame(): void {
    if (this.#isControl || !this.#isFinal) return;
    this.#bytes = 0;
    this.#finished += 1;
  }
}
