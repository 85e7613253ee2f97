/**
 * Work on a large body is done in steps (read as text, scanned, parsed, decoded, encoded), each in a turn of the event loop of its own: what others
 * wait for is one step and not their sum.
 */

/** Characters or bytes. A step on less takes a few milliseconds at most. */
const LARGE = 256 * 1024;

export const isLarge = ({ length }: { readonly length: number }): boolean => length >= LARGE;
