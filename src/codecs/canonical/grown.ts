/**
 * Appends to a text that grows with every event of an open stream. V8 keeps `text + piece` as a rope of both, and a piece as a slice that
 * keeps the whole batch it was read from. After a thousand tokens the ropes and batches take thirty times the memory of the text, for as
 * long as the stream is open.
 */

/** The text is copied flat each time that this many bits of its length overflow; of long texts, with each eighth, so that copying stays linear. */
const TAIL_BITS = 8;

/** Returns `text + piece`, of which all but a tail is one flat string. */
export function grown(text: string, piece: string): string {
  const length = text.length + piece.length;
  const bits = Math.max(TAIL_BITS, 28 - Math.clz32(length));
  return text.length >>> bits === length >>> bits ? text + piece : [text, piece].join('');
}
