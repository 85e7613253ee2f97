/**
 * Whether a strict tool of another protocol can be one of OpenAI's: there every member of every object is required, and objects
 * are closed. An optional member would have to become nullable, and the client's own schema may refuse the null; such a tool is
 * sent without `strict`.
 */
import type { Dialect } from '../canonical/dialect.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Tool } from '../canonical/request.ts';
import { isMap } from './messages-subset.ts';

const REFUSED = ['allOf', 'oneOf', 'not', 'if', 'then', 'else', 'dependentRequired', 'dependentSchemas', 'patternProperties'];
const MAX_DEPTH = 10;
/**
 * Of all objects and lists together. The vendor takes 5,000 properties and 1,000 values of enumerations in a strict schema; so
 * many members are closed in some milliseconds.
 */
const MAX_MEMBERS = 50_000;

export interface StrictFunction {
  readonly parameters?: JsonObject | undefined;
  readonly strict?: boolean | undefined;
  /** The tool says something else than the client wrote. */
  readonly isChanged: boolean;
}

/**
 * The schema and the strictness of a function for an upstream of OpenAI's protocols. Its own clients know what they may ask for.
 */
export function strictFunction({ parameters, strict }: FunctionTool, dialect: Dialect): StrictFunction {
  if (strict !== true || dialect !== 'messages') return { parameters, strict, isChanged: false };
  const closing = new Closing();
  const closed = closing.root(parameters ?? { type: 'object', properties: {} });
  if (closed === undefined) return { parameters, isChanged: true };
  return { parameters: closed, strict, isChanged: parameters === undefined || closing.isChanged };
}

type FunctionTool = Extract<Tool, { kind: 'function' }>;

/** The schema with its objects closed; undefined where the vendor would refuse it, or it would mean something else. */
export function closedForOpenAi(schema: JsonObject): JsonObject | undefined {
  return new Closing().root(schema);
}

class Closing {
  #left = MAX_MEMBERS;
  isChanged = false;

  root(schema: JsonObject): JsonObject | undefined {
    const closed = this.#close(schema, 0);
    return isObject(closed) && closed['type'] === 'object' ? closed : undefined;
  }

  #close(value: JsonValue | undefined, depth: number): JsonValue | undefined {
    if (!isObject(value) || depth > MAX_DEPTH || REFUSED.some((key) => Object.hasOwn(value, key))) return undefined;
    if (this.#isTooMuch(Object.keys(value))) return undefined;
    const members: [string, JsonValue][] = [];
    for (const [key, member] of Object.entries(value)) {
      const closed = this.#closeMember(key, member, depth);
      if (closed === undefined) return undefined;
      members.push([key, closed]);
    }
    const out = Object.fromEntries(members);
    const { type, properties } = value;
    const isOfObjects = type === 'object' || isObject(properties) || (Array.isArray(type) && type.includes('object'));
    if (!isOfObjects) return out;
    const names = isObject(properties) ? Object.keys(properties) : [];
    const listed = Array.isArray(value['required']) ? value['required'] : [];
    if (this.#isTooMuch(listed)) return undefined;
    const required = new Set(listed);
    if (isMap(value) || names.some((name) => !required.has(name))) return undefined;
    const isSame = listed.length === names.length && names.every((name, at) => listed[at] === name);
    if (!isSame || value['required'] === undefined || value['additionalProperties'] !== false || !isObject(properties))
      this.isChanged = true;
    return { ...out, properties: out['properties'] ?? {}, required: names, additionalProperties: false };
  }

  #isTooMuch({ length }: readonly unknown[]): boolean {
    this.#left -= length + 1;
    return this.#left < 0;
  }

  #closeMember(key: string, member: JsonValue | undefined, depth: number): JsonValue | undefined {
    switch (key) {
      case 'properties':
      case '$defs':
      case 'definitions':
        return isObject(member) ? this.#closeEach(member, depth) : undefined;
      case 'items':
        return this.#close(member, depth + 1);
      case 'anyOf':
        return Array.isArray(member) && !this.#isTooMuch(member) ? this.#closeAll(member, depth) : undefined;
      default:
        return member;
    }
  }

  #closeEach(children: JsonObject, depth: number): JsonObject | undefined {
    const names = Object.keys(children);
    const closed = this.#isTooMuch(names) ? undefined : this.#closeAll(Object.values(children), depth);
    return closed && Object.fromEntries(names.map((name, at) => [name, closed[at]]));
  }

  #closeAll(children: readonly (JsonValue | undefined)[], depth: number): JsonValue[] | undefined {
    const closed = children.map((child) => this.#close(child, depth + 1)).filter((child) => child !== undefined);
    return closed.length === children.length ? closed : undefined;
  }
}
