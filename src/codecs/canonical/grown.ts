/**
 * Texts that grow by a piece with every event of an open stream. V8 keeps `text + piece` as a pair, and a piece as a slice of the batch
 * that it was read from: after a thousand tokens the pairs and batches are thirty times the text, for as long as the stream is open.
 */

/** A shorter tail than this may stay in pieces. Longer texts may have an eighth of them in pieces, so that copying stays linear. */
const TAIL_BITS = 8;

/** `text + piece`, all but the tail of it in one piece. */
export function grown(text: string, piece: string): string {
  const length = text.length + piece.length;
  const bits = Math.max(TAIL_BITS, 28 - Math.clz32(length));
  return text.length >>> bits === length >>> bits ? text + piece : [text, piece].join('');
}
