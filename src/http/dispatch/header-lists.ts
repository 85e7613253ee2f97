/** Headers that hold a list which several sides may add to: the client, the codec and the Channel. */

const LISTS: ReadonlySet<string> = new Set(['anthropic-beta']);

/** `name` in lower case. */
export function isListHeader(name: string): boolean {
  return LISTS.has(name);
}

/** `given` as it is written, and what of `more` it does not name. */
export function joinList(given: string | undefined, more: string): string {
  if (given === undefined || given.trim() === '') return more;
  const named = new Set(given.split(',').map((entry) => entry.trim()));
  const missing = more.split(',').filter((entry) => entry.trim() !== '' && !named.has(entry.trim()));
  return [given, ...missing].join(',');
}
