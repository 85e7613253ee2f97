/**
 * Lowers JSON Schema to what the messages vendor takes in structured outputs and in strict tools, as its own SDK does: objects
 * are closed, `oneOf` becomes `anyOf`, and keywords that the vendor refuses are told to the model in the description.
 */
import { isObject, type JsonObject, type JsonValue, setMember } from '../canonical/json.ts';
import { endsStep, type Steps } from '../steps.ts';
import { withoutMarks } from './exact-text.ts';
import { LaterSchemas } from './later-schemas.ts';
import { SchemaReferences } from './references.ts';
import { hasManyKeywords, weightOf, WrittenBound } from './written-bound.ts';

export interface LoweredSchema {
  readonly schema: JsonObject;
  /**
   * False where the vendor's subset cannot say what the schema means: a map with free names, a value of any kind, recursion, a
   * reference that leads elsewhere, more than may be written. The lowered schema then allows less than the original, or is
   * refused.
   */
  readonly isFaithful: boolean;
}

const FORMATS: ReadonlySet<JsonValue> = new Set('date-time time date duration email hostname uri ipv4 ipv6 uuid'.split(' '));
const MAX_DEPTH = 64;
/**
 * How often one schema is written out, where references lead to it and to the schemas around it. Further ones refer to a
 * definition.
 */
const MAX_COPIES = 3;

/** Never throws. The root is an object schema for every schema of an object. */
export function* lowerForMessages(schema: JsonObject): Steps<LoweredSchema> {
  const bound = yield* WrittenBound.of(schema);
  yield;
  return yield* new Lowering(schema, bound).run();
}

class Lowering {
  readonly #references: SchemaReferences;
  /** The definitions that each definition refers to; the root is the empty name. */
  readonly #uses = new Map<string, Set<string>>();
  readonly #copies = new Map<JsonObject, number>();
  readonly #later = new LaterSchemas((schema, depth) => this.#write(schema, depth));
  readonly #bound: WrittenBound;
  #within = '';
  #isFaithful = true;

  constructor(schema: JsonObject, bound: WrittenBound) {
    this.#bound = bound;
    this.#references = new SchemaReferences(schema);
  }

  *run(): Steps<LoweredSchema> {
    yield* this.#references.define();
    const root = this.#lower(this.#references.inlineRoot(), 0);
    yield* this.#later.write();
    const definitions: [string, JsonObject][] = [];
    for (let entry = this.#references.next(); entry !== undefined; entry = this.#references.next()) {
      if (endsStep(definitions.length)) yield;
      this.#within = entry.name;
      definitions.push([entry.name, isObject(entry.schema) ? this.#rewrite(entry.schema, 1) : this.#unfaithful()]);
      yield* this.#later.write();
    }
    yield;
    const schema = definitions.length === 0 ? root : { $defs: Object.fromEntries(definitions), ...root };
    return { schema, isFaithful: this.#isFaithful && !hasCircle(this.#uses) };
  }

  #lower(value: JsonValue | undefined, depth: number): JsonObject {
    if (!isObject(value) || depth > MAX_DEPTH || this.#bound.isOver) return this.#unfaithful();
    return this.#later.orNow(value, depth);
  }

  #write(schema: JsonObject, depth: number): JsonObject {
    // What holds no schema costs no more than a reference to it.
    if (HOLDERS.some((key) => schema[key] !== undefined)) {
      const copies = this.#copies.get(schema) ?? 0;
      if (copies === MAX_COPIES) return this.#definition(this.#references.referTo(schema));
      this.#copies.set(schema, copies + 1);
    }
    return this.#rewrite(schema, depth);
  }

  #rewrite(value: JsonObject, depth: number): JsonObject {
    const count = Object.keys(value).length;
    // So many are looked at now, and copied for each type.
    this.#later.took(count >> 4);
    if (this.#bound.isOver || hasManyKeywords(count)) return this.#unfaithful();
    const { $schema: _dialect, $defs: _defs, definitions: _older, $id: _id, ...node } = value;
    if (typeof node['$ref'] === 'string') return this.#reference(node['$ref']);
    const types = typesOf(node);
    this.#later.took((count * types.length) >> 4);
    return types.length > 1 ? this.#union(node, types, depth) : this.#single(node, types[0], depth);
  }

  #reference(reference: string): JsonObject {
    const resolved = this.#references.resolve(reference);
    if (resolved === undefined || !resolved.startsWith(DEFINITIONS)) return this.#unfaithful();
    return this.#definition(resolved);
  }

  #definition(reference: string): JsonObject {
    const uses = this.#uses.get(this.#within) ?? new Set();
    uses.add(reference.slice(DEFINITIONS.length));
    this.#uses.set(this.#within, uses);
    return { $ref: reference };
  }

  /** Several types, such as a string or null: one branch each. */
  #union(node: JsonObject, types: readonly string[], depth: number): JsonObject {
    const { description, title, ...rest } = node;
    this.#wrote(weightOf(description) + weightOf(title));
    const branches = types.map((type) => this.#single(forType(rest, type), type, depth + 1));
    return { ...named({ description, title }), anyOf: branches };
  }

  #single(node: JsonObject, type: string | undefined, depth: number): JsonObject {
    if (this.#bound.isOver) return this.#unfaithful();
    const rest: Record<string, JsonValue | undefined> = { ...node };
    const take = (key: string): JsonValue | undefined => {
      const value = rest[key];
      delete rest[key];
      return value;
    };
    const out: Record<string, JsonValue> = {};
    take('type');
    take('nullable');
    const { description, title, enum: listed, const: only } = node;
    if (Array.isArray(listed) && listed.length > 0 && listed.every(isScalar)) out['enum'] = take('enum') ?? [];
    if (only !== undefined && isScalar(only)) out['const'] = take('const') ?? null;
    const hasLiterals = Object.keys(out).length > 0;
    this.#combine(node, take, out, depth);
    if (!hasLiterals && Object.keys(out).length === 0) {
      if (type === undefined) return this.#unfaithful(node);
      out['type'] = type;
    }
    for (const [key, text] of Object.entries({ description, title })) if (text !== undefined) out[key] = take(key) ?? text;
    if (out['type'] === 'object') this.#object(node, take, out, depth);
    else if (out['type'] === 'array') this.#array(take, rest, out, depth);
    else if (out['type'] === 'string' && FORMATS.has(node['format'] ?? null)) out['format'] = take('format') ?? '';
    this.#wrote(weightOf(out['enum']) + weightOf(out['const']) + weightOf(out['title']) + weightOf(out['required']));
    const described = describe(out, rest);
    this.#wrote(weightOf(described['description']));
    return described;
  }

  #wrote(characters: number): void {
    this.#bound.take(characters);
    if (this.#bound.isOver) this.#isFaithful = false;
    this.#later.took(characters >> 12);
  }

  #combine(node: JsonObject, take: (key: string) => JsonValue | undefined, out: Record<string, JsonValue>, depth: number): void {
    for (const [key, into] of COMBINATIONS) {
      const list = node[key];
      if (!Array.isArray(list) || list.length === 0) continue;
      take(key);
      out[into] = list.map((branch) => this.#lower(branch, depth + 1));
      return;
    }
  }

  #object(
    { additionalProperties: others, patternProperties: patterns, properties }: JsonObject,
    take: (key: string) => JsonValue | undefined,
    out: Record<string, JsonValue>,
    depth: number,
  ): void {
    const lowered: JsonObject = {};
    if (isMap({ additionalProperties: others, patternProperties: patterns, properties })) this.#isFaithful = false;
    take('properties');
    take('additionalProperties');
    if (isObject(properties))
      this.#later.each(Object.keys(properties), (name) => setMember(lowered, name, this.#lower(properties[name], depth + 1)));
    out['properties'] = lowered;
    out['additionalProperties'] = false;
    const required = take('required');
    if (Array.isArray(required))
      out['required'] = required.filter(
        (name) => typeof name === 'string' && isObject(properties) && Object.hasOwn(properties, name),
      );
  }

  #array(
    take: (key: string) => JsonValue | undefined,
    rest: Record<string, JsonValue | undefined>,
    out: Record<string, JsonValue>,
    depth: number,
  ): void {
    const items = take('items');
    if (isObject(items)) out['items'] = this.#lower(items, depth + 1);
    else this.#isFaithful = false;
    if (rest['minItems'] === 0 || rest['minItems'] === 1) out['minItems'] = take('minItems') ?? 0;
  }

  /** A schema that the subset cannot say: the model is told of it, and of nothing else. */
  #unfaithful(node: JsonObject = {}): JsonObject {
    this.#isFaithful = false;
    return node;
  }
}

/** True for an object whose names are free: it would be empty if it were closed, or lose the schema of the other names. */
export function isMap({ additionalProperties: others, patternProperties: patterns, properties }: JsonObject): boolean {
  if (isObject(others) || isObject(patterns)) return true;
  const isEmpty = !isObject(properties) || Object.keys(properties).length === 0;
  return isEmpty && (others === true || (others !== false && properties === undefined));
}

const DEFINITIONS = '#/$defs/';
/** The keywords that hold schemas and are lowered. */
const HOLDERS = ['properties', 'items', 'anyOf', 'oneOf', 'allOf'] as const;
const TYPES = new Set(['string', 'number', 'integer', 'boolean', 'array', 'object', 'null']);
const COMBINATIONS = [
  ['anyOf', 'anyOf'],
  ['oneOf', 'anyOf'],
  ['allOf', 'allOf'],
] as const;

/** The types that a schema names or shows by its keywords; none where any kind is meant. */
function typesOf({ type, nullable, properties, items, ...rest }: JsonObject): readonly string[] {
  const named = Array.isArray(type) ? type : [type];
  const listed = [...new Set(named.filter((name): name is string => typeof name === 'string' && TYPES.has(name)))];
  if (listed.length === 0 && !COMBINATIONS.some(([key]) => rest[key] !== undefined)) {
    if (isObject(properties)) listed.push('object');
    else if (isObject(items)) listed.push('array');
  }
  return nullable === true && listed.length > 0 && !listed.includes('null') ? [...listed, 'null'] : listed;
}

/** The keywords that say something of values of one type alone (JSON Schema 2020-12, validation). */
const OF_TYPE: readonly { readonly types: readonly string[]; readonly keywords: readonly string[] }[] = [
  {
    types: ['object'],
    keywords: 'properties required additionalProperties patternProperties propertyNames minProperties maxProperties'.split(' '),
  },
  { types: ['array'], keywords: 'items prefixItems contains minContains maxContains minItems maxItems uniqueItems'.split(' ') },
  { types: ['string'], keywords: 'pattern format minLength maxLength contentEncoding contentMediaType'.split(' ') },
  { types: ['number', 'integer'], keywords: 'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf'.split(' ') },
];

/**
 * The keywords of one branch of a union: what says something of other types alone is left to their branches, and values of null
 * are not listed in it. Else each branch would be told all that stands in the others.
 */
function forType(node: JsonObject, type: string): JsonObject {
  if (type === 'null') return {};
  const foreign = OF_TYPE.flatMap(({ types, keywords }) => (types.includes(type) ? [] : keywords));
  const own: JsonObject = Object.fromEntries(Object.entries(node).filter(([keyword]) => !foreign.includes(keyword)));
  const listed = own['enum'];
  return Array.isArray(listed) ? { ...own, enum: listed.filter((value) => value !== null) } : own;
}

function named(members: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  return Object.fromEntries(Object.entries(members).filter(([, value]) => value !== undefined)) as JsonObject;
}

function isScalar(value: JsonValue): boolean {
  return value === null || typeof value !== 'object';
}

/** What is left of a schema is told in its description, in the vendor's own form. */
function describe(out: Record<string, JsonValue>, rest: Readonly<Record<string, JsonValue | undefined>>): JsonObject {
  const told = Object.entries(rest).filter(([, value]) => value !== undefined);
  if (told.length === 0) return out;
  const { description } = out;
  const before = typeof description === 'string' && description !== '' ? `${description}\n\n` : '';
  const list = told.map(([key, value]) => `${key}: ${withoutMarks(JSON.stringify(value))}`).join(', ');
  return { ...out, description: `${before}{${list}}` };
}

/** True where a definition leads back to itself, which the vendor refuses. */
function hasCircle(uses: ReadonlyMap<string, ReadonlySet<string>>): boolean {
  const done = new Set<string>();
  const open = new Set<string>();
  const stack = [...uses.keys()].map((name) => ({ name, isEnd: false }));
  for (let entry = stack.pop(); entry !== undefined; entry = stack.pop()) {
    const { name, isEnd } = entry;
    if (isEnd) {
      open.delete(name);
      done.add(name);
    } else if (!done.has(name)) {
      open.add(name);
      stack.push({ name, isEnd: true });
      for (const next of uses.get(name) ?? []) {
        if (open.has(next)) return true;
        if (!done.has(next)) stack.push({ name: next, isEnd: false });
      }
    }
  }
  return false;
}
