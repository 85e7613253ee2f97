/**
 * Collects the targets of references inside one JSON Schema under the root's `$defs`: older `definitions`, definitions of nested
 * schemas and pointers into the schema itself all become `#/$defs/name`. A recursive schema stays finite.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { endsStep, type Steps } from '../steps.ts';

export interface Definition {
  readonly name: string;
  readonly schema: JsonValue;
}

/** The definitions of one schema. `next` returns each of them once: those of the root first, then others by first reference. */
export class SchemaReferences {
  readonly #root: JsonObject;
  readonly #nameByPointer = new Map<string, string>();
  /** One schema has many pointers (`#/anyOf/1`, `#/anyOf/01`) and one definition. */
  readonly #nameBySchema = new Map<JsonValue, string>();
  readonly #names = new Set<string>();
  /** The next number to append, by name, for definitions whose name is taken. */
  readonly #counts = new Map<string, number>();
  readonly #found: Definition[] = [];
  #returned = 0;

  constructor(root: JsonObject) {
    this.#root = root;
  }

  /** Collects the definitions of the root. To be done first. */
  *define(): Steps<void> {
    for (const holder of ['$defs', 'definitions']) {
      const definitions = this.#root[holder];
      if (!isObject(definitions)) continue;
      for (const [index, name] of Object.keys(definitions).entries()) {
        if (endsStep(index)) yield;
        const schema = definitions[name];
        if (schema !== undefined) this.#nameByPointer.set(`#/${holder}/${escapeStep(name)}`, this.#define(name, schema));
      }
    }
  }

  /**
   * The root with its own reference replaced by the schema that it refers to. References that lead nowhere, or in a circle, are
   * removed.
   */
  inlineRoot(): JsonObject {
    if (this.#root['$ref'] === undefined) return this.#root;
    const chain: JsonObject[] = [];
    const followed = new Set<string>();
    for (let schema: JsonValue | undefined = this.#root; isObject(schema) && chain.length < MOST_LINKS; ) {
      const { $ref: reference, ...siblings }: JsonObject = schema;
      chain.push(siblings);
      const pointer: string | undefined = typeof reference === 'string' ? normalise(reference) : undefined;
      schema = pointer?.startsWith('#/') === true && !followed.has(pointer) ? this.#at(pointer) : undefined;
      if (pointer !== undefined) followed.add(pointer);
    }
    const root = new Map<string, JsonValue | undefined>();
    for (const schema of chain.reverse()) for (const [key, value] of Object.entries(schema)) root.set(key, value);
    return Object.fromEntries(root);
  }

  /** The next definition that was not returned yet. References in it may add further ones. */
  next(): Definition | undefined {
    return this.#found[this.#returned++];
  }

  /** The reference as `#/$defs/…` or an anchor; undefined when it leads nowhere inside this schema. */
  resolve(reference: string): string | undefined {
    if (!reference.startsWith('#')) return undefined;
    if (reference !== '#' && !reference.startsWith('#/')) return reference;
    const pointer = normalise(reference);
    if (pointer === undefined) return undefined;
    const known = this.#nameByPointer.get(pointer);
    if (known !== undefined) return `#/$defs/${escapeStep(known)}`;
    const schema = this.#at(pointer);
    if (!isObject(schema)) return undefined;
    const last = pointer === '#' ? 'root' : unescapeStep(pointer.slice(pointer.lastIndexOf('/') + 1));
    const name = this.#nameBySchema.get(schema) ?? this.#define(last, schema);
    this.#nameByPointer.set(pointer, name);
    return `#/$defs/${escapeStep(name)}`;
  }

  /** A reference to a schema anywhere inside this one, which becomes a definition. */
  referTo(schema: JsonObject): string {
    return `#/$defs/${escapeStep(this.#nameBySchema.get(schema) ?? this.#define('schema', schema))}`;
  }

  #define(wanted: string, schema: JsonValue): string {
    let name = wanted;
    let count = this.#counts.get(wanted) ?? 2;
    for (; this.#names.has(name); count += 1) name = `${wanted}_${count}`;
    this.#counts.set(wanted, count);
    this.#names.add(name);
    if (isObject(schema)) this.#nameBySchema.set(schema, name);
    this.#found.push({ name, schema });
    return name;
  }

  #at(pointer: string): JsonValue | undefined {
    let value: JsonValue | undefined = this.#root;
    for (const step of pointer.split('/').slice(1).map(unescapeStep)) {
      if (Array.isArray(value)) value = value[Number(step)];
      else if (isObject(value) && Object.hasOwn(value, step)) value = value[step];
      else return undefined;
    }
    return value;
  }
}

/** Of references at the root, each to the next: what is behind more of them is left out. */
const MOST_LINKS = 128;

/** Percent signs decoded, so that equal pointers are equal text. Undefined for a malformed one. */
function normalise(reference: string): string | undefined {
  if (!reference.includes('%')) return reference;
  try {
    return decodeURIComponent(reference);
  } catch {
    return undefined;
  }
}

function escapeStep(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

function unescapeStep(step: string): string {
  return step.replaceAll('~1', '/').replaceAll('~0', '~');
}
