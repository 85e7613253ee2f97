/** The keywords of one schema in the forms that a target protocol takes. */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';

export interface SchemaTarget {
  /** The keywords that the target takes. All others are rewritten or left out. */
  readonly keywords: ReadonlySet<string>;
}

/** Keywords that restrict values of certain types only. */
const OF_TYPE: ReadonlyMap<string, readonly string[]> = new Map([
  ['items', ['array']],
  ['prefixItems', ['array']],
  ['minItems', ['array']],
  ['maxItems', ['array']],
  ['minimum', ['number', 'integer']],
  ['maximum', ['number', 'integer']],
  ['properties', ['object']],
  ['additionalProperties', ['object']],
  ['required', ['object']],
  ['propertyOrdering', ['object']],
  ['format', ['string', 'number', 'integer']],
]);
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']);

export type Entry = readonly [string, JsonValue];
export type Entries = Map<string, JsonValue>;

/** Removes the keywords that the target does not take, and rewrites the others to the forms that it takes. */
export function finish(entries: Entries, target: SchemaTarget, hasName: HasName): JsonObject {
  const nullable = entries.get('nullable') === true;
  for (const key of [...entries.keys()]) if (!target.keywords.has(key)) entries.delete(key);
  fixRequired(entries, hasName);
  const { types, allowsNull } = fixEnum(entries, readTypes(entries.get('type'), nullable));
  if (entries.has('$ref')) return besideReference(entries);
  if (types === undefined) {
    entries.delete('type');
    return allowsNull ? spread(entries, [undefined, 'null']) : Object.fromEntries(entries);
  }
  if (types.length === 1) {
    entries.set('type', types[0] ?? 'null');
    return withItems(Object.fromEntries(entries));
  }
  return spread(entries, types);
}

/** The type names, each once; undefined where any type is meant. */
function readTypes(value: JsonValue | undefined, nullable: boolean): string[] | undefined {
  const listed = Array.isArray(value) ? value : [value];
  const types = new Set<string>();
  for (const entry of listed) {
    const name = typeof entry === 'string' ? entry.toLowerCase() : '';
    if (TYPES.has(name)) types.add(name);
  }
  if (types.size === 0) return undefined;
  if (nullable) types.add('null');
  return [...types];
}

interface TypesOfEnum {
  readonly types: readonly string[] | undefined;
  /** The enumeration also allowed null, which no type does. */
  readonly allowsNull: boolean;
}

/** The target enumerates strings and numbers only. Other values become their type, if all have the same. */
function fixEnum(entries: Entries, types: readonly string[] | undefined): TypesOfEnum {
  const listed = entries.get('enum');
  if (listed === undefined) return { types, allowsNull: false };
  const values = Array.isArray(listed) ? listed : [];
  const kept = values.filter((value) => typeof value === 'string' || typeof value === 'number');
  const others = values.filter((value) => typeof value !== 'string' && typeof value !== 'number');
  const isNull = types?.length === 1 && types[0] === 'null';
  if (kept.length > 0 && !isNull && others.every((value) => value === null)) {
    entries.set('enum', kept);
    return { types, allowsNull: others.length > 0 && types === undefined };
  }
  entries.delete('enum');
  const [kind, ...kinds] = new Set(values.map(kindOf));
  return { types: types ?? (kind === undefined || kinds.length > 0 ? undefined : [kind]), allowsNull: false };
}

function kindOf(value: JsonValue): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'array' : typeof value;
}

/** Whether properties have a member of a name. */
type HasName = (properties: JsonObject, name: string) => boolean;

function fixRequired(entries: Entries, hasName: HasName): void {
  const properties = entries.get('properties');
  for (const key of ['required', 'propertyOrdering']) {
    const listed = entries.get(key);
    if (listed === undefined) continue;
    const known =
      Array.isArray(listed) && isObject(properties)
        ? listed.filter((name) => typeof name === 'string' && hasName(properties, name))
        : [];
    const names = [...new Set(known)];
    if (names.length === 0) entries.delete(key);
    else entries.set(key, names);
  }
}

/** Only `$` keywords may stand beside a reference, so its description goes to a schema around it. */
function besideReference(entries: Entries): JsonObject {
  const ref = entries.get('$ref') ?? '';
  const around = [...entries].filter(([key]) => key === 'title' || key === 'description');
  const beside = [...entries].filter(([key]) => key.startsWith('$'));
  if (around.length === 0) return Object.fromEntries(beside);
  return Object.fromEntries([...around, ...beside.filter(([key]) => key !== '$ref'), ['anyOf', [{ $ref: ref }]]]);
}

/** Several types become one branch each, with the keywords that apply to that type. `undefined` is a branch for any type. */
function spread(entries: Entries, types: readonly (string | undefined)[]): JsonObject {
  if (entries.has('anyOf') || entries.has('oneOf')) {
    entries.delete('type');
    return Object.fromEntries(entries);
  }
  const outer: Entry[] = [];
  const inner: Entry[] = [];
  for (const [key, value] of entries) {
    if (key === 'type') continue;
    (key.startsWith('$') || key === 'title' || key === 'description' ? outer : inner).push([key, value]);
  }
  const branches = types.map((type) => branchOf(type, inner)).filter((branch) => branch !== undefined);
  return Object.fromEntries([
    ...outer,
    ...(branches.length === 0 ? inner.filter(([key]) => key === 'enum') : [['anyOf', branches]]),
  ]);
}

function branchOf(type: string | undefined, inner: readonly Entry[]): JsonObject | undefined {
  const branch: Entry[] = type === undefined ? [] : [['type', type]];
  for (const [key, value] of inner) {
    if (key === 'enum' && type !== undefined && Array.isArray(value)) {
      if (type === 'null') continue;
      const fitting = value.filter((entry) => (typeof entry === 'string' ? 'string' : 'number') === scalarOf(type));
      if (fitting.length === 0) return undefined;
      branch.push([key, fitting]);
    } else if (type === undefined || OF_TYPE.get(key)?.includes(type) === true) {
      branch.push([key, value]);
    }
  }
  return withItems(Object.fromEntries(branch));
}

/** Adds `items` to an array schema without any, which the vendor would refuse. */
function withItems(schema: JsonObject): JsonObject {
  const isBare = schema['type'] === 'array' && schema['items'] === undefined && schema['prefixItems'] === undefined;
  return isBare ? { ...schema, items: {} } : schema;
}

function scalarOf(type: string): string {
  return type === 'integer' ? 'number' : type;
}
