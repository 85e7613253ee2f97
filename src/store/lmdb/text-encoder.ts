/**
 * Rows that are kept as JSON text. Such a text is a list, so its first byte tells it from the rows of older stores, which are
 * MessagePack: those are still read.
 */

/** What lmdb-js calls to write and read a value. */
export interface Encoder<V> {
  readonly copyBuffers?: boolean;
  encode(value: V, mode: number): Uint8Array;
  decode(bytes: Uint8Array, options: unknown): V;
}

const LIST = '['.charCodeAt(0);

/**
 * `text` of a row and `value` of what the text, or an older row, says. A row may also be given as the text that it has already.
 */
export function textEncoder<V>(
  older: Encoder<unknown>,
  { text, value }: { text(row: V): string; value(stored: unknown): V },
): Encoder<V> {
  return {
    encode: (row: V | string) => bytesOf(typeof row === 'string' ? row : text(row)),
    decode: (bytes, options) => {
      // In MessagePack that byte is a whole value: a number.
      const isText = bytes[0] === LIST && bytes.length > 1;
      return value(isText ? JSON.parse(utf8(bytes)) : older.decode(bytes, options));
    },
  };
}

/** A list as text, its words as UTF-8 can hold them: JSON would write half a surrogate pair as an escape, and give it back. */
export function listText(list: unknown): string {
  const text = JSON.stringify(list);
  return text.includes(ESCAPED_SURROGATE) ? JSON.stringify(list, wellFormed) : text;
}

const ESCAPED_SURROGATE = '\\ud';

function wellFormed(_: string, value: unknown): unknown {
  return typeof value === 'string' ? value.toWellFormed() : value;
}

/**
 * Every put of the store is done with the bytes when it returns, so that all can share one place. lmdb-js reads from `start` to
 * `end`.
 */
const SHARED = Object.assign(Buffer.allocUnsafeSlow(64 * 1024), { start: 0, end: 0 });
const MOST_BYTES_A_UNIT = 3;

function bytesOf(text: string): Uint8Array {
  if (text.length * MOST_BYTES_A_UNIT > SHARED.length) return Buffer.from(text);
  SHARED.end = SHARED.write(text);
  return SHARED;
}

function utf8({ buffer, byteOffset, length }: Uint8Array): string {
  return Buffer.from(buffer, byteOffset, length).toString('utf8');
}
