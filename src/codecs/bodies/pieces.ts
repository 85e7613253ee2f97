/**
 * An outgoing body as pieces that are turned into bytes only while they are sent: text, received bytes as they are, and base64
 * read or written on the way. So a large upload is held once, whatever form the upstream wants it in. Knows no protocol.
 */
import { textPieces } from '../../streams/text-pieces.ts';

export type BodyPiece =
  | string
  | Uint8Array
  /** Base64 text whose bytes are sent. */
  | { readonly decode: string }
  /** Bytes whose base64 text is sent. */
  | { readonly encode: readonly Uint8Array[] };

/** About what one piece of output holds; a multiple of 3 and of 4. */
const SLICE = 48 * 1024;

/** The exact number of bytes that {@link bodyBytes} yields, for `content-length`. */
export function bodyLength(pieces: readonly BodyPiece[]): number {
  let length = 0;
  for (const piece of pieces) {
    if (typeof piece === 'string') length += Buffer.byteLength(piece);
    else if (piece instanceof Uint8Array) length += piece.length;
    else if ('decode' in piece) length += base64Size(piece.decode);
    else length += Math.ceil(sizeOf(piece.encode) / 3) * 4;
  }
  return length;
}

/** The bytes in order, in small buffers made one at a time: the reader sets the pace. */
export function* bodyBytes(pieces: readonly BodyPiece[]): Generator<Uint8Array, void, undefined> {
  for (const piece of pieces) {
    if (typeof piece === 'string') yield* textBytes(piece);
    else if (piece instanceof Uint8Array) yield piece;
    else if ('decode' in piece) yield* decoded(piece.decode);
    else yield* encoded(piece.encode);
  }
}

export function sizeOf(chunks: readonly Uint8Array[]): number {
  let size = 0;
  for (const chunk of chunks) size += chunk.length;
  return size;
}

/** How many bytes base64 text stands for, without decoding it. */
export function base64Size(data: string): number {
  let end = data.length;
  while (end > 0 && data.charCodeAt(end - 1) === PADDING) end -= 1;
  return Math.floor((end * 3) / 4);
}

const PADDING = 0x3d;

function* textBytes(text: string): Generator<Uint8Array, void, undefined> {
  for (const piece of textPieces(text, SLICE)) yield Buffer.from(piece, 'utf8');
}

function* decoded(data: string): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < data.length; at += SLICE) {
    const bytes = Buffer.from(data.slice(at, at + SLICE), 'base64');
    if (bytes.length > 0) yield bytes;
  }
}

/** Up to two bytes wait for the next chunk, since three make four characters. */
function* encoded(chunks: readonly Uint8Array[]): Generator<Uint8Array, void, undefined> {
  let carry: Uint8Array = new Uint8Array(0);
  for (const chunk of chunks) {
    let at = 0;
    if (carry.length > 0) {
      at = Math.min(3 - carry.length, chunk.length);
      carry = Buffer.concat([carry, chunk.subarray(0, at)]);
      if (carry.length < 3) continue;
      yield base64Text(carry);
      carry = new Uint8Array(0);
    }
    const whole = chunk.length - ((chunk.length - at) % 3);
    for (; at < whole; at += SLICE) yield base64Text(chunk.subarray(at, Math.min(at + SLICE, whole)));
    carry = chunk.subarray(whole);
  }
  if (carry.length > 0) yield base64Text(carry);
}

function base64Text(bytes: Uint8Array): Uint8Array {
  return Buffer.from(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64'), 'latin1');
}
