/**
 * Bytes of `application/vnd.amazon.eventstream` to messages
 * (https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html describes the framing): a prelude of two lengths
 * with its checksum, headers, payload, and a checksum of all of it. Knows no service and no event.
 *
 * What has arrived of a message is kept in pieces and joined once, so a message of N bytes costs O(N) however it is cut, in time
 * and in memory.
 */
import { crc32 } from 'node:zlib';
import { SmallChunks } from './small-chunks.ts';
import type { Stage } from './stage.ts';
import { StreamError } from './stream-error.ts';

export interface EventStreamMessage {
  /** The headers whose values are texts, by their names (`:event-type`). Of all others nothing is kept. */
  readonly headers: ReadonlyMap<string, string>;
  readonly payload: Uint8Array;
}

export interface EventStreamDecodeOptions {
  /** The longest message, framing included. Over it: reason `event_too_large`. */
  readonly maxEventBytes: number;
}

const PRELUDE_BYTES = 12;
/** Of all headers of a message together, as AWS bounds them. */
const MAX_HEADERS_BYTES = 128 * 1024;
/** The prelude and the checksum at the end. */
const FRAMING_BYTES = 16;
/** A message that arrives in more pieces is gathered: each of them takes some hundred bytes beside its own. */
const MOST_PIECES = 64;

/** Throws StreamError with reason `truncated_event`, `event_too_large` or `damaged_event`. */
export function eventStreamDecode(options: EventStreamDecodeOptions): Stage<Uint8Array, EventStreamMessage> {
  return new EventStreamDecoder(options);
}

class EventStreamDecoder implements Stage<Uint8Array, EventStreamMessage> {
  readonly ended = false;
  readonly #maxBytes: number;
  #pieces: Uint8Array[] = [];
  #gathered: SmallChunks<Uint8Array> | undefined;
  #held = 0;
  /** How much must be there before anything can be read: a prelude, or the message that it announced. */
  #wanted = PRELUDE_BYTES;
  #announced = false;

  constructor({ maxEventBytes }: EventStreamDecodeOptions) {
    this.#maxBytes = maxEventBytes;
  }

  push(bytes: Uint8Array, out: EventStreamMessage[]): void {
    if (bytes.length === 0) return;
    if (this.#pieces.length < MOST_PIECES) this.#pieces.push(bytes);
    else this.#gather(bytes);
    this.#held += bytes.length;
    while (this.#held >= this.#wanted) {
      const joined = this.#joined();
      if (!this.#announced) {
        this.#wanted = announcedLength(joined, this.#maxBytes);
        this.#announced = true;
        continue;
      }
      out.push(messageOf(joined.subarray(0, this.#wanted)));
      const rest = joined.subarray(this.#wanted);
      this.#pieces = rest.length === 0 ? [] : [rest];
      this.#held = rest.length;
      this.#wanted = PRELUDE_BYTES;
      this.#announced = false;
    }
  }

  end(): void {
    if (this.#held > 0) throw new StreamError('truncated_event', `the stream ended ${this.#held} bytes into a message`);
  }

  #gather(bytes: Uint8Array): void {
    this.#gathered ??= new SmallChunks((piece) => void this.#pieces.push(piece));
    this.#gathered.add(bytes);
  }

  #joined(): Buffer {
    this.#gathered?.flush();
    this.#gathered = undefined;
    const [only] = this.#pieces;
    const joined =
      this.#pieces.length === 1 && only !== undefined
        ? Buffer.from(only.buffer, only.byteOffset, only.byteLength)
        : Buffer.concat(this.#pieces);
    this.#pieces = [joined];
    return joined;
  }
}

function damaged(message: string): StreamError {
  return new StreamError('damaged_event', message);
}

/**
 * The length of the message that begins here. Checked before it is believed: a wrong one would make all that follows wait for it.
 */
function announcedLength(bytes: Buffer, maxBytes: number): number {
  const length = bytes.readUInt32BE(0);
  if (crc32(bytes.subarray(0, 8)) !== bytes.readUInt32BE(8)) throw damaged('the checksum of a prelude is wrong');
  const headers = bytes.readUInt32BE(4);
  if (length < FRAMING_BYTES || headers > length - FRAMING_BYTES) throw damaged('the lengths of a message are wrong');
  if (headers > MAX_HEADERS_BYTES) throw damaged(`a message has more than ${MAX_HEADERS_BYTES} bytes of headers`);
  if (length > maxBytes) throw new StreamError('event_too_large', `a message of more than ${maxBytes} bytes`);
  return length;
}

function messageOf(bytes: Buffer): EventStreamMessage {
  const end = bytes.length - 4;
  if (crc32(bytes.subarray(0, end)) !== bytes.readUInt32BE(end)) throw damaged('the checksum of a message is wrong');
  const headersEnd = PRELUDE_BYTES + bytes.readUInt32BE(4);
  return { headers: headersOf(bytes.subarray(PRELUDE_BYTES, headersEnd)), payload: bytes.subarray(headersEnd, end) };
}

const TEXT_TYPE = 7;
const BYTES_TYPE = 6;
/** The bytes of a value of each other type: true, false, byte, short, integer, long, …, timestamp, uuid. */
const SIZES: Readonly<Record<number, number>> = { 0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16 };

function headersOf(bytes: Buffer): Map<string, string> {
  const headers = new Map<string, string>();
  let at = 0;
  const take = (size: number): number => {
    if (at + size > bytes.length) throw damaged('the headers of a message are cut off');
    at += size;
    return at - size;
  };
  while (at < bytes.length) {
    const nameLength = bytes.readUInt8(take(1));
    const nameAt = take(nameLength);
    const name = bytes.toString('utf8', nameAt, nameAt + nameLength);
    const type = bytes.readUInt8(take(1));
    const size = type === TEXT_TYPE || type === BYTES_TYPE ? bytes.readUInt16BE(take(2)) : SIZES[type];
    if (size === undefined) throw damaged(`a header of the unknown type ${type}`);
    const valueAt = take(size);
    if (type === TEXT_TYPE) headers.set(name, bytes.toString('utf8', valueAt, valueAt + size));
  }
  return headers;
}
