/**
 * The keywords of a schema and of the branches of its conjunctions, as one schema. The first one stays where two conflict;
 * properties and required names are collected. Grows in place, so that a branch costs what it adds, however many there are and
 * however deep they are nested.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';

export class MergedKeywords {
  readonly #entries: Map<string, JsonValue>;
  /** The values of the keywords of these names, once a branch has added to them. */
  #properties: Map<string, JsonValue | undefined> | undefined;
  #required: Set<JsonValue> | undefined;

  /** `own`: the keywords of the schema itself, which this changes. */
  constructor(own: Map<string, JsonValue>) {
    this.#entries = own;
  }

  add(key: string, value: JsonValue): void {
    const known = this.#entries.get(key);
    if (known === undefined) this.#entries.set(key, value);
    else if (key === 'properties' && isObject(known) && isObject(value)) this.#addProperties(known, value);
    else if (key === 'required' && Array.isArray(known) && Array.isArray(value)) {
      this.#required ??= new Set(known);
      for (const name of value) this.#required.add(name);
    }
  }

  entries(): Map<string, JsonValue> {
    if (this.#properties !== undefined) this.#entries.set('properties', Object.fromEntries(this.#properties));
    if (this.#required !== undefined) this.#entries.set('required', [...this.#required]);
    return this.#entries;
  }

  #addProperties(known: JsonObject, more: JsonObject): void {
    this.#properties ??= new Map(Object.entries(known));
    for (const [name, schema] of Object.entries(more)) if (!this.#properties.has(name)) this.#properties.set(name, schema);
  }
}
