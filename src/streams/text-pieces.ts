/** A long text in pieces: to make bytes of all of it at once would take the engine some nanoseconds a character. */

/** Longer texts are written in pieces, in several turns of the event loop. */
export const LONG_CHARS = 1024 * 1024;
/** One takes less than a millisecond, also where each character has several bytes. */
const PIECE_CHARS = 256 * 1024;

/** The text in order, about `chars` (UTF-16 units) a piece. No piece ends within a character. */
export function* textPieces(text: string, chars = PIECE_CHARS): Generator<string, void, undefined> {
  for (let at = 0; at < text.length; ) {
    let end = Math.min(at + chars, text.length);
    // A surrogate pair is one character of the output.
    if (end < text.length && (text.charCodeAt(end - 1) & 0xfc00) === 0xd800) end += 1;
    yield text.slice(at, end);
    at = end;
  }
}
