/**
 * A value that fits a JSON schema (or Google's OpenAPI subset), small and seeded. Refuses nothing: an unknown word is no limit.
 */
import { isArray, isObject, type JsonObject, type JsonValue, listOf, numberOf, objectOf, stringOf } from './json.ts';
import { pick, type Random } from './random.ts';

/** Schemas that contain themselves are cut at this depth, where only what is required is made. */
const DEPTH = 6;

export function sampleSchema(
  schema: JsonValue | undefined,
  random: Random,
  root: JsonValue | undefined = schema,
  depth = 0,
): JsonValue {
  if (!isObject(schema)) return 'value';
  if (typeof schema.$ref === 'string') return sampleSchema(resolve(schema.$ref, root), random, root, depth + 1);
  if (schema.const !== undefined) return schema.const;
  const choices = listOf(schema.enum);
  if (choices.length > 0) return pick(random, choices) ?? null;
  const branches = listOf(schema.anyOf ?? schema.oneOf);
  if (branches.length > 0) {
    const leaf = (branch: JsonValue) => !isObject(dereferenced(objectOf(branch), root).properties);
    const wanted = depth >= DEPTH ? (branches.find(leaf) ?? branches[0]) : branches[0];
    return sampleSchema(merged(schema, objectOf(wanted)), random, root, depth + 1);
  }
  const all = listOf(schema.allOf);
  if (all.length > 0) {
    const whole = all.map((part) => dereferenced(objectOf(part), root)).reduce(merged, schema);
    return sampleSchema(whole, random, root, depth + 1);
  }
  switch (typeOf(schema)) {
    case 'object':
      return sampleObject(schema, random, root, depth);
    case 'array':
      return sampleArray(schema, random, root, depth);
    case 'integer':
      return sampleNumber(schema, random, true);
    case 'number':
      return sampleNumber(schema, random, false);
    case 'boolean':
      return random() < 0.5;
    case 'null':
      return null;
    default:
      return sampleString(schema, random);
  }
}

function merged(base: JsonObject, added: JsonObject): JsonObject {
  const { anyOf: _any, oneOf: _one, allOf: _all, ...rest } = base;
  const properties = { ...objectOf(rest.properties), ...objectOf(added.properties) };
  const required = [...listOf(rest.required), ...listOf(added.required)];
  return {
    ...rest,
    ...added,
    ...(Object.keys(properties).length > 0 ? { properties } : {}),
    ...(required.length > 0 ? { required } : {}),
  };
}

function dereferenced(schema: JsonObject, root: JsonValue | undefined): JsonObject {
  return typeof schema.$ref === 'string' ? objectOf(resolve(schema.$ref, root)) : schema;
}

function resolve(reference: string, root: JsonValue | undefined): JsonValue | undefined {
  let at = root;
  for (const step of reference.split('/').slice(1)) {
    const key = decodeURIComponent(step).replaceAll('~1', '/').replaceAll('~0', '~');
    at = isObject(at) && Object.hasOwn(at, key) ? at[key] : undefined;
  }
  return at;
}

function typeOf(schema: JsonObject): string {
  const named = isArray(schema.type) ? schema.type.find((type) => type !== 'null') : schema.type;
  if (typeof named === 'string') return named.toLowerCase();
  if (schema.properties !== undefined || schema.required !== undefined) return 'object';
  if (schema.items !== undefined || schema.prefixItems !== undefined) return 'array';
  return schema.minimum !== undefined || schema.maximum !== undefined ? 'number' : 'string';
}

function sampleObject(schema: JsonObject, random: Random, root: JsonValue | undefined, depth: number): JsonObject {
  const properties = objectOf(schema.properties);
  const required = new Set(listOf(schema.required).map(stringOf));
  const names = new Set([...Object.keys(properties), ...required]);
  const kept = [...names].filter((name) => required.has(name) || (depth < 2 && random() < 0.7));
  const entries = kept.map((name): [string, JsonValue] => [
    name,
    sampleSchema(Object.hasOwn(properties, name) ? properties[name] : {}, random, root, depth + 1),
  ]);
  return Object.fromEntries(entries);
}

function sampleArray(schema: JsonObject, random: Random, root: JsonValue | undefined, depth: number): JsonValue {
  const first = listOf(schema.prefixItems).map((item) => sampleSchema(item, random, root, depth + 1));
  const least = countOf(schema.minItems) ?? 0;
  const most = Math.max(least, Math.min(countOf(schema.maxItems) ?? 2, Math.max(least, depth >= DEPTH ? 0 : 2)));
  const wanted = Math.max(least, Math.min(most, 1 + Math.floor(random() * 2)));
  const items = [...first];
  const seen = new Set(items.map((item) => JSON.stringify(item)));
  // `uniqueItems` may need more draws; a schema with fewer values than asked for ends the loop.
  for (let tries = 0; items.length < wanted && tries < wanted * 20; tries += 1) {
    const item = sampleSchema(schema.items ?? {}, random, root, depth + 1);
    const text = JSON.stringify(item);
    if (schema.uniqueItems === true && seen.has(text)) continue;
    seen.add(text);
    items.push(item);
  }
  return items;
}

/** Google writes int64 limits as strings. */
function countOf(value: JsonValue | undefined): number | undefined {
  return typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : numberOf(value);
}

function sampleNumber(schema: JsonObject, random: Random, whole: boolean): number {
  const step = numberOf(schema.multipleOf) ?? (whole ? 1 : 0.5);
  const above = numberOf(schema.exclusiveMinimum);
  const below = numberOf(schema.exclusiveMaximum);
  const least = above === undefined ? numberOf(schema.minimum) : above + step / 2;
  const most = below === undefined ? numberOf(schema.maximum) : below - step / 2;
  const low = least ?? (most === undefined ? 1 : Math.min(1, most - step * 10));
  const high = most ?? low + step * 20;
  const from = Math.ceil(low / step);
  const to = Math.floor(high / step);
  if (to < from) return low;
  return (from + Math.floor(random() * (Math.min(to - from, 1000) + 1))) * step;
}

const FORMATS = new Map([
  ['date', '2026-03-14'],
  ['date-time', '2026-03-14T09:26:53Z'],
  ['time', '09:26:53Z'],
  ['duration', 'P1D'],
  ['email', 'someone@example.com'],
  ['hostname', 'example.com'],
  ['ipv4', '192.0.2.7'],
  ['ipv6', '2001:db8::7'],
  ['uri', 'https://example.com/a'],
  ['url', 'https://example.com/a'],
  ['uuid', '123e4567-e89b-42d3-a456-426614174000'],
]);

const WORDS = ['river', 'stone', 'north', 'Berlin', 'quiet', 'seven', 'maple', 'harbour', 'signal', 'cloud'];

function sampleString(schema: JsonObject, random: Random): string {
  const format = FORMATS.get(stringOf(schema.format));
  if (format !== undefined) return format;
  const pattern = stringOf(schema.pattern);
  const text = pattern === '' ? (pick(random, WORDS) ?? 'value') : (samplePattern(pattern, random) ?? 'value');
  const least = countOf(schema.minLength) ?? 0;
  const most = countOf(schema.maxLength) ?? Number.POSITIVE_INFINITY;
  if (pattern !== '') return text;
  return text.padEnd(least, 'abcdefghij').slice(0, most);
}

/** A string for the simple patterns that tools use: literals, classes, counts. `undefined` for richer ones. */
function samplePattern(pattern: string, random: Random): string | undefined {
  const expression = attempt(pattern);
  if (expression === undefined) return undefined;
  const atoms = pattern.replace(/^\^/, '').replace(/\$$/, '');
  let made = '';
  for (const [, atom = '', count = ''] of atoms.matchAll(/(\[[^\]]+\]|\\.|[^\\[\]])(\{\d+(?:,\d*)?\}|[*+?])?/g)) {
    const least = count.startsWith('{') ? Number(/\d+/.exec(count)?.[0]) : count === '*' || count === '?' ? 0 : 1;
    const single = attempt(`^${atom}$`);
    const fitting = [...'abcxyzABCXYZ0123456789-_./: '].filter((letter) => single?.test(letter) === true);
    for (let done = 0; done < least; done += 1) made += pick(random, fitting) ?? atom;
  }
  return expression.test(made) ? made : undefined;
}

function attempt(pattern: string): RegExp | undefined {
  try {
    return new RegExp(pattern, 'u');
  } catch {
    return undefined;
  }
}
