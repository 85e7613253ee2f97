/**
 * Lowers JSON Schema to the keywords of a target protocol: other keywords are rewritten or left out, so that the lowered schema
 * accepts everything that the original accepts. Only schemas are rewritten: properties that are merely named like keywords, and
 * values inside `enum`, are data.
 */
import { isObject, type JsonObject, type JsonValue, setMember } from '../canonical/json.ts';
import { atOnce, endsStep, type Steps } from '../steps.ts';
import { LaterSchemas } from './later-schemas.ts';
import { MergedKeywords } from './merged-keywords.ts';
import { SchemaReferences } from './references.ts';
import { type Entries, type Entry, finish, type SchemaTarget } from './target-forms.ts';

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
 * How often one schema is written out. References to a schema and to the schemas around it would otherwise repeat it for each of
 * them; further repetitions refer to a definition.
 */
const MAX_COPIES = 3;

/**
 * The lowered schema, with keys in their order and a root that is not a mere reference. Never throws: what is no schema is left
 * out.
 */
export function lowerSchema(schema: JsonObject, target: SchemaTarget): Steps<JsonObject> {
  return new Lowering(schema, target).run();
}

/** Lowers one schema for one target. `depth` is the nesting of the schema that is being read: 0 for the root. */
class Lowering {
  readonly #references: SchemaReferences;
  readonly #target: SchemaTarget;
  readonly #copies = new Map<JsonObject, number>();
  readonly #later = new LaterSchemas(
    (schema, depth) => this.#write(schema, depth),
    (schema, depth) => this.#writeInSteps(schema, depth),
  );
  /** Objects of properties that are not whole yet, with what they are made of. */
  readonly #unfinished = new WeakMap<JsonObject, JsonObject>();
  /** Properties that are about to be merged must be whole. */
  #merging = 0;

  constructor(schema: JsonObject, target: SchemaTarget) {
    this.#references = new SchemaReferences(schema);
    this.#target = target;
  }

  *run(): Steps<JsonObject> {
    const references = this.#references;
    yield* references.define();
    const lowered = this.#lower(references.inlineRoot(), 0) ?? {};
    yield* this.#later.write();
    const root = withoutBareReference(lowered);
    const definitions: Entry[] = [];
    for (let entry = references.next(); entry !== undefined; entry = references.next()) {
      if (endsStep(definitions.length)) yield;
      definitions.push([entry.name, (yield* this.#definition(entry.schema)) ?? {}]);
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
    return hasManyBranches(value) ? this.#later.later(value, depth) : this.#later.orNow(value, depth);
  }

  #write(schema: JsonObject, depth: number): JsonObject {
    return this.#copyOf(schema) ?? this.#finish(atOnce(this.#keywords(schema, depth)));
  }

  *#writeInSteps(schema: JsonObject, depth: number): Steps<JsonObject> {
    return this.#copyOf(schema) ?? this.#finish(yield* this.#keywords(schema, depth));
  }

  /** A reference where the schema was written out often enough. */
  #copyOf(schema: JsonObject): JsonObject | undefined {
    const copies = this.#copies.get(schema) ?? 0;
    if (copies === MAX_COPIES) return { $ref: this.#references.referTo(schema) };
    this.#copies.set(schema, copies + 1);
    return undefined;
  }

  *#definition(schema: JsonValue): Steps<JsonObject | undefined> {
    return isObject(schema) ? this.#finish(yield* this.#keywords(schema, 1)) : this.#lower(schema, 1);
  }

  #finish(entries: Entries): JsonObject {
    return finish(entries, this.#target, (properties, name) => this.#isNameOf(properties, name));
  }

  /** Whether the properties have a member of that name, or will have. */
  #isNameOf(properties: JsonObject, name: string): boolean {
    const source = this.#unfinished.get(properties);
    if (source === undefined) return Object.hasOwn(properties, name);
    return Object.hasOwn(source, name) && isSchema(source[name]);
  }

  *#keywords(node: JsonObject, depth: number): Steps<Entries> {
    const branches = node['allOf'];
    if (!Array.isArray(branches)) return this.#ownKeywords(node, depth);
    this.#merging += 1;
    const merged = new MergedKeywords(this.#ownKeywords(node, depth));
    yield* this.#mergeAllOf(branches, depth, merged);
    this.#merging -= 1;
    return merged.entries();
  }

  #ownKeywords(node: JsonObject, depth: number): Entries {
    const own: Entries = new Map();
    const members = Object.entries(node);
    // Those of one schema are copied in one step, and not those of the next one with them.
    this.#later.took(members.length >> 4);
    for (const [key, value] of members) {
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
    const add = (name: string): void => {
      const child = this.#lower(value[name], depth + 1);
      if (child !== undefined) setMember(lowered, name, child);
    };
    const names = Object.keys(value);
    if (this.#merging > 0) names.forEach(add);
    else if (this.#later.each(names, add)) this.#unfinished.set(lowered, value);
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
  *#mergeAllOf(branches: readonly JsonValue[], depth: number, out: MergedKeywords): Steps<void> {
    if (depth > MAX_DEPTH) return;
    for (const [index, branch] of branches.entries()) {
      if (endsStep(index)) yield;
      if (!isObject(branch)) continue;
      for (const [key, value] of this.#ownKeywords(branch, depth + 1)) out.add(key, value);
      if (!Array.isArray(branch['allOf'])) continue;
      yield;
      yield* this.#mergeAllOf(branch['allOf'], depth + 1, out);
    }
  }
}

/** A conjunction of so many branches, or of conjunctions, is merged in several steps. */
const MANY_BRANCHES = 256;

function hasManyBranches({ allOf }: JsonObject): boolean {
  return Array.isArray(allOf) && (allOf.length > MANY_BRANCHES || allOf.some(isConjunction));
}

function isConjunction(branch: JsonValue): boolean {
  return isObject(branch) && Array.isArray(branch['allOf']);
}

/** True for what {@link Lowering} makes a schema of. */
function isSchema(value: JsonValue | undefined): boolean {
  return value === true || isObject(value);
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
