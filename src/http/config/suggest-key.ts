/**
 * Suggests what an operator meant by an unknown key: a similar key of the same place, or the same key at another place. Reads as
 * much of JSON Schema as the configuration's schema uses.
 */
import { isObject } from '../../codecs/canonical/json.ts';
import { joinPath } from './config-error.ts';

/** The path of the suggested key, from the schema's root; undefined where none is similar. */
export function suggestKey(schema: unknown, place: readonly string[], key: string): string | undefined {
  const here = place.reduce((schemas, part) => schemas.flatMap((each) => inside(each, part)), alternatives(schema));
  const near = closestMatch(key, new Set(here.flatMap((each) => Object.keys(propertiesOf(each)))));
  if (near !== undefined) return joinPath([...place, near]);
  const [elsewhere] = placesOf(schema, key, []);
  return elsewhere === undefined ? undefined : withIndices(elsewhere, place);
}

function alternatives(schema: unknown): unknown[] {
  return isObject(schema) && Array.isArray(schema['anyOf']) ? schema['anyOf'].flatMap(alternatives) : [schema];
}

function propertiesOf(schema: unknown): Readonly<Record<string, unknown>> {
  const properties = isObject(schema) ? schema['properties'] : undefined;
  return isObject(properties) ? properties : {};
}

/** The schemas of a record's values, or of an array's elements. */
function otherMembers(schema: unknown): unknown[] {
  if (!isObject(schema)) return [];
  const patterns = isObject(schema['patternProperties']) ? Object.values(schema['patternProperties']) : [];
  return [...patterns, ...(schema['items'] === undefined ? [] : [schema['items']])];
}

function inside(schema: unknown, part: string): unknown[] {
  const properties = propertiesOf(schema);
  const found = Object.hasOwn(properties, part) ? [properties[part]] : otherMembers(schema);
  return found.flatMap(alternatives);
}

const ANY = '*';

function placesOf(schema: unknown, key: string, path: readonly string[]): string[][] {
  return alternatives(schema).flatMap((each) => {
    const properties = propertiesOf(each);
    const own = Object.hasOwn(properties, key) ? [[...path, key]] : [];
    const deeper = Object.entries(properties).flatMap(([name, value]) => placesOf(value, key, [...path, name]));
    return [...own, ...deeper, ...otherMembers(each).flatMap((member) => placesOf(member, key, [...path, ANY]))];
  });
}

/** `channels[0].timeouts` when the unknown key stood in `channels[0]`, else `channels[].timeouts`. */
function withIndices(path: readonly string[], place: readonly string[]): string {
  let same = true;
  const parts = path.map((part, index) => {
    same &&= part === ANY || part === place[index];
    return part === ANY && same ? (place[index] ?? ANY) : part;
  });
  return joinPath(parts).replaceAll(`["${ANY}"]`, '[]');
}

/** The known key with the smallest edit distance, which may be a third of its letters. */
export function closestMatch(key: string, known: ReadonlySet<string>): string | undefined {
  let found: { readonly name: string; readonly distance: number } | undefined;
  for (const name of known) {
    const distance = editDistance(key.toLowerCase(), name);
    if (distance <= Math.max(1, Math.floor(Math.min(key.length, name.length) / 3)) && distance < (found?.distance ?? Infinity))
      found = { name, distance };
  }
  return found?.name;
}

/** Damerau–Levenshtein: insertions, deletions, substitutions, and transpositions of neighbours. */
function editDistance(from: string, to: string): number {
  let [before, row]: [number[], number[]] = [[], Array.from({ length: to.length + 1 }, (_, column) => column)];
  for (let line = 1; line <= from.length; line += 1) {
    const next = [line];
    for (let column = 1; column <= to.length; column += 1) {
      const same = from[line - 1] === to[column - 1];
      let least = Math.min((row[column] ?? 0) + 1, (next[column - 1] ?? 0) + 1, (row[column - 1] ?? 0) + (same ? 0 : 1));
      const swapped = line > 1 && column > 1 && from[line - 1] === to[column - 2] && from[line - 2] === to[column - 1];
      if (swapped) least = Math.min(least, (before[column - 2] ?? 0) + 1);
      next.push(least);
    }
    [before, row] = [row, next];
  }
  return row[to.length] ?? from.length;
}
