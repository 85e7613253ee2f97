/**
 * Lowers JSON Schema to the keywords of a target protocol: other keywords are rewritten or left out, so that the lowered schema accepts
 * everything that the original accepts. Only schemas are rewritten: properties that are merely named like keywords, and values inside
 * `enum`, are data.
 */
import { isObject, type JsonObject, type JsonValue, setMember } from '../canonical/json.ts';
import type { Steps } from '../steps.ts';
import { LaterSchemas } from './later-schemas.ts';
import { MergedKeywords } from './merged-keywords.ts';
import { SchemaReferences } from './references.ts';

export interface SchemaTarget {
  /** The keywords that the target takes. All others are rewritten or left out. */
  readonly keywords: ReadonlySet<string>;
}

/** `parametersJsonSchema` and `responseJsonSchema` of the generative-content protocol. */
export const GENERATIVE_JSON_SCHEMA: SchemaTarget = {
  keywords: new Set(
    (
      '$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum ' +
      'anyOf oneOf properties additionalProperties required propertyOrdering'
    ).split(' '),
  ),
};

/** A pattern that every name matches. */
const ANY_NAME = /^\^?(?:\.\*|\(\.\*\))?\$?$/;

/** Schemas that are nested deeper become ones that accept anything. */
const MAX_DEPTH = 128;

/**
 * How often one schema is written out. References to a schema and to the schemas around it would otherwise repeat it for each of them; further
 * repetitions refer to a definition.
 */
const MAX_COPIES = 3;

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

type Entry = readonly [string, JsonValue];
type Entries = Map<string, JsonValue>;

/** The lowered schema, with keys in their order and a root that is not a mere reference. Never throws: what is no schema is left out. */
export function lowerSchema(schema: JsonObject, target: SchemaTarget): Steps<JsonObject> {
  return new Lowering(schema, target).run();
}

/** Lowers one schema for one target. `depth` is the nesting of the schema that is being read: 0 for the root. */
class Lowering {
  readonly #references: SchemaReferences;
  readonly #target: SchemaTarget;
  readonly #copies = new Map<JsonObject, number>();
  readonly #later = new LaterSchemas((schema, depth) => this.#write(schema, depth));

  constructor(schema: JsonObject, target: SchemaTarget) {
    this.#references = new SchemaReferences(schema);
    this.#target = target;
  }

  *run(): Steps<JsonObject> {
    const references = this.#references;
    yield* references.define();
    const root = withoutBareReference(this.#lower(references.inlineRoot(), 0) ?? {});
    yield* this.#later.write();
    const definitions: Entry[] = [];
    for (let entry = references.next(); entry !== undefined; entry = references.next()) {
      definitions.push([entry.name, this.#definition(entry.schema) ?? {}]);
      yield* this.#later.write();
    }
    const { $defs: _place, ...bare } = root;
    return definitions.length === 0 ? bare : { ...root, $defs: Object.fromEntries(definitions) };
  }

  /** Undefined for a schema that allows nothing, and for what is no schema. */
  #lower(value: JsonValue | undefined, depth: number): JsonObject | undefined {
    if (value === true) return {};
    if (!isObject(value)) return undefined;
    if (depth > MAX_DEPTH) return {};
    return this.#later.orNow(value, depth);
  }

  #write(schema: JsonObject, depth: number): JsonObject {
    const copies = this.#copies.get(schema) ?? 0;
    if (copies === MAX_COPIES) return { $ref: this.#references.referTo(schema) };
    this.#copies.set(schema, copies + 1);
    return finish(this.#keywords(schema, depth), this.#target);
  }

  #definition(schema: JsonValue): JsonObject | undefined {
    return isObject(schema) ? finish(this.#keywords(schema, 1), this.#target) : this.#lower(schema, 1);
  }

  #keywords(node: JsonObject, depth: number): Entries {
    const own = this.#ownKeywords(node, depth);
    if (!Array.isArray(node['allOf'])) return own;
    const merged = new MergedKeywords(own);
    this.#mergeAllOf(node['allOf'], depth, merged);
    return merged.entries();
  }

  #ownKeywords(node: JsonObject, depth: number): Entries {
    const own: Entries = new Map();
    for (const [key, value] of Object.entries(node)) {
      if (value === undefined) continue;
      const next = this.#keyword(key, value, node, depth);
      if (next !== undefined) own.set(next[0], next[1]);
    }
    return own;
  }

  #keyword(key: string, value: JsonValue, node: JsonObject, depth: number): Entry | undefined {
    switch (key) {
      case '$ref':
        return entryOf('$ref', typeof value === 'string' ? this.#references.resolve(value) : undefined);
      case '$defs':
      case 'definitions':
        // All definitions move to the `$defs` of the root; nested ones only if something refers to them.
        return depth === 0 ? ['$defs', {}] : undefined;
      case 'properties':
        return entryOf('properties', this.#each(value, depth));
      case 'items':
        return Array.isArray(value) ? this.#list('prefixItems', value, depth) : entryOf('items', this.#lower(value, depth + 1));
      case 'additionalItems':
        return Array.isArray(node['items']) ? entryOf('items', this.#lower(value, depth + 1)) : undefined;
      case 'prefixItems':
      case 'anyOf':
      case 'oneOf':
        return Array.isArray(value) ? this.#list(key, value, depth) : undefined;
      case 'additionalProperties':
        return value === true ? [key, true] : [key, this.#alternatives([value, ...patternsOf(node)], depth)];
      case 'patternProperties':
        return this.#patternOfAll(value, node, depth);
      case 'const':
        return Object.hasOwn(node, 'enum') ? undefined : ['enum', [value]];
      case 'exclusiveMinimum':
        return lowerBound('minimum', value, node, 1);
      case 'exclusiveMaximum':
        return lowerBound('maximum', value, node, -1);
      default:
        return [key, value];
    }
  }

  #each(value: JsonValue, depth: number): JsonObject | undefined {
    if (!isObject(value)) return undefined;
    const lowered: JsonObject = {};
    for (const name of Object.keys(value)) {
      const child = this.#lower(value[name], depth + 1);
      if (child !== undefined) setMember(lowered, name, child);
    }
    return lowered;
  }

  #all(schemas: readonly (JsonValue | undefined)[], depth: number): JsonObject[] {
    return schemas.map((child) => this.#lower(child, depth + 1)).filter((child) => child !== undefined);
  }

  #list(key: string, schemas: readonly JsonValue[], depth: number): Entry | undefined {
    const lowered = this.#all(schemas, depth);
    return lowered.length === 0 ? undefined : [key, lowered];
  }

  /** A schema that allows what any of these allows; false where none allows anything. */
  #alternatives(schemas: readonly (JsonValue | undefined)[], depth: number): JsonValue {
    const lowered = this.#all(schemas, depth);
    return lowered.length > 1 ? { anyOf: lowered } : (lowered[0] ?? false);
  }

  /** Without `additionalProperties`, only a pattern that every name matches can be expressed. */
  #patternOfAll(patterns: JsonValue, node: JsonObject, depth: number): Entry | undefined {
    if (Object.hasOwn(node, 'additionalProperties') || !isObject(patterns)) return undefined;
    const all = Object.entries(patterns).find(([pattern]) => ANY_NAME.test(pattern));
    return all && ['additionalProperties', this.#alternatives([all[1]], depth)];
  }

  /** The target has no conjunction: its branches are merged, and where two conflict, the first one stays. */
  #mergeAllOf(branches: readonly JsonValue[], depth: number, out: MergedKeywords): void {
    if (depth > MAX_DEPTH) return;
    for (const branch of branches) {
      if (!isObject(branch)) continue;
      for (const [key, value] of this.#ownKeywords(branch, depth + 1)) out.add(key, value);
      if (Array.isArray(branch['allOf'])) this.#mergeAllOf(branch['allOf'], depth + 1, out);
    }
  }
}

/** The schemas of properties by pattern, which the target does not have. */
function patternsOf({ patternProperties: patterns }: JsonObject): (JsonValue | undefined)[] {
  return isObject(patterns) ? Object.values(patterns) : [];
}

function entryOf(key: string, value: JsonValue | undefined): Entry | undefined {
  return value === undefined ? undefined : [key, value];
}

function lowerBound(key: string, value: JsonValue, node: JsonObject, step: number): Entry | undefined {
  // Draft 4 has a boolean here, beside the bound itself.
  if (typeof value !== 'number' || Object.hasOwn(node, key)) return undefined;
  return [key, node['type'] === 'integer' && Number.isInteger(value) ? value + step : value];
}

/** The root as `anyOf` with one branch where it would be a mere reference, as after a conjunction of one branch. */
function withoutBareReference(root: JsonObject): JsonObject {
  const { $ref: reference, ...rest } = root;
  return reference === undefined ? root : { anyOf: [{ $ref: reference }], ...rest };
}

/** Removes the keywords that the target does not take, and rewrites the others to the forms that it takes. */
function finish(entries: Entries, target: SchemaTarget): JsonObject {
  const nullable = entries.get('nullable') === true;
  for (const key of [...entries.keys()]) if (!target.keywords.has(key)) entries.delete(key);
  fixRequired(entries);
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

function fixRequired(entries: Entries): void {
  const properties = entries.get('properties');
  for (const key of ['required', 'propertyOrdering']) {
    const listed = entries.get(key);
    if (listed === undefined) continue;
    const known = Array.isArray(listed) && isObject(properties) ? listed.filter((name) => isNameOf(name, properties)) : [];
    const names = [...new Set(known)];
    if (names.length === 0) entries.delete(key);
    else entries.set(key, names);
  }
}

function isNameOf(name: JsonValue, properties: JsonObject): boolean {
  return typeof name === 'string' && Object.hasOwn(properties, name);
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
    } else if (type === undefined || (OF_TYPE.get(key)?.includes(type) ?? key === 'enum')) {
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
