/**
 * Words from outside as every engine can keep them unchanged: well-formed, and without NUL, which PostgreSQL's text cannot hold.
 */
export function storable(words: string): string {
  return words.replaceAll('\u0000', '\ufffd').toWellFormed();
}

/** False for words that stand in no row: whoever looks one up by them finds nothing. */
export function isStorable(words: string): boolean {
  return storable(words) === words;
}
