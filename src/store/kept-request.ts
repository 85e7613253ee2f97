/**
 * What is kept of the request of a video task that is over. Tasks are kept for ever, those that were refused cost their owner
 * nothing, and a request may be a megabyte: nobody sends that again, and a disk would be full of it.
 */

/** A request that is no longer is kept as it is. */
const MAX_KEPT = 16 * 1024;
const MAX_WORDS = 256;

/** JSON text; of a long request with its long words cut. */
export function keptRequest(json: string): string {
  if (json.length <= MAX_KEPT) return json;
  const shortened = withShortWords(json);
  return shortened.length <= MAX_KEPT ? shortened : JSON.stringify({ cut: cut(json) });
}

function withShortWords(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), (_, value: unknown) => (typeof value === 'string' ? cut(value) : value));
  } catch (error) {
    if (error instanceof SyntaxError) return json;
    throw error;
  }
}

function cut(words: string): string {
  return words.length <= MAX_WORDS ? words : `${words.slice(0, MAX_WORDS).toWellFormed()}… (${words.length} characters)`;
}
