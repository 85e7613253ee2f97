/** Whether the bytes of a server are messages of its protocol, as far as the driver takes it for granted. */

/** Of the protocol's own kind, so that it counts as a connection that is lost (`failure.ts`). */
export class ProtocolViolation extends Error {
  override readonly name = 'ProtocolViolation';
  /** SQLSTATE `protocol_violation`. */
  readonly code = '08P01';
}

/** The first bytes of all messages that the driver knows. */
const KNOWN: ReadonlySet<number> = new Set(Buffer.from('123ACDEGHIKNRSTWZcdnst'));
/** Errors and notices: a list of texts, each behind the byte of its field, and a zero. */
const LISTS: ReadonlySet<number> = new Set(Buffer.from('EN'));
const HEAD_BYTES = 5;
/** A row of ours takes a hundredth of it; the driver keeps all of a message until it is whole. */
const MOST_BYTES = 64 * 1024 * 1024;

export class MessageCheck {
  readonly #head = Buffer.alloc(HEAD_BYTES);
  #headBytes = 0;
  /** Bytes of the message that have not come. */
  #left = 0;
  /** Where a list is: before a field, in its text, or behind its last byte. Undefined in any other message. */
  #list: 'field' | 'text' | 'over' | undefined;

  /** Throws {@link ProtocolViolation}. */
  push(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) at = this.#left > 0 ? this.#body(bytes, at) : this.#begin(bytes, at);
  }

  #begin(bytes: Uint8Array, from: number): number {
    const taken = Math.min(HEAD_BYTES - this.#headBytes, bytes.length - from);
    this.#head.set(bytes.subarray(from, from + taken), this.#headBytes);
    this.#headBytes += taken;
    if (this.#headBytes < HEAD_BYTES) return from + taken;
    this.#headBytes = 0;
    const type = this.#head.readUInt8(0);
    // The length counts itself.
    const length = this.#head.readUInt32BE(1);
    if (!KNOWN.has(type) || length < 4 || length > MOST_BYTES)
      throw new ProtocolViolation('the database said what is no message');
    this.#left = length - 4;
    this.#list = LISTS.has(type) ? 'field' : undefined;
    if (this.#left === 0) this.#finish();
    return from + taken;
  }

  #body(bytes: Uint8Array, from: number): number {
    const to = Math.min(bytes.length, from + this.#left);
    if (this.#list !== undefined) for (let at = from; at < to; at++) this.#inList(bytes[at] === 0);
    this.#left -= to - from;
    if (this.#left === 0) this.#finish();
    return to;
  }

  #inList(isZero: boolean): void {
    if (this.#list === 'field') this.#list = isZero ? 'over' : 'text';
    else if (this.#list === 'text' && isZero) this.#list = 'field';
  }

  #finish(): void {
    if (this.#list === undefined || this.#list === 'over') return;
    throw new ProtocolViolation('the database said an error that does not end');
  }
}
