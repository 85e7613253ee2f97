/** Removes duplicate members: JSON.parse reads the last of a name, other parsers the first. */
import { eachChild, skipValue } from './text.ts';

/** The text of an object with the last member of each name only. `text` must have parsed; members keep their text and order. */
export function lastMembers(text: string): string {
  const kept = new Map<string | number, string>();
  eachChild(text, text.indexOf('{'), (key, at, start) => {
    const end = skipValue(text, at);
    kept.delete(key);
    kept.set(key, text.slice(start, end));
    return end;
  });
  return `{${[...kept.values()].join()}}`;
}
