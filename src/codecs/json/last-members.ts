/** A JSON object without the members that a later one of the same name replaces: JSON.parse reads the last, and other readers the first. */
import { eachChild, skipValue } from './text.ts';

/** `text` is that of an object that has parsed; members that stay keep their own text and order. */
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
