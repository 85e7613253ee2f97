/**
 * Appends to a text that grows with every event of an open stream. V8 keeps `text + piece` as a rope of both, and a piece as a
 * slice that keeps the whole batch it was read from. After a thousand tokens the ropes and batches take thirty times the memory
 * of the text, for as long as the stream is open.
 */

/**
 * A flat copy is made when the length passes a multiple of 2 ** TAIL_BITS; of a longer text, when it passes a multiple of about
 * an eighth of the length, so that all copies together take linear time.
 */
const TAIL_BITS = 8;

/** Returns `text + piece`, of which all but a tail is one flat string. */
export function grown(text: string, piece: string): string {
  const length = text.length + piece.length;
  const bits = Math.max(TAIL_BITS, 28 - Math.clz32(length));
  return text.length >>> bits === length >>> bits ? text + piece : [text, piece].join('');
}
