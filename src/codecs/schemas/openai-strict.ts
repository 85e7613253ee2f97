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
  const closed = closedForOpenAi(parameters ?? { type: 'object', properties: {} });
  if (closed === undefined) return { parameters, isChanged: true };
  return { parameters: closed, strict, isChanged: JSON.stringify(closed) !== JSON.stringify(parameters) };
}

type FunctionTool = Extract<Tool, { kind: 'function' }>;

/** The schema with its objects closed; undefined where the vendor would refuse it, or it would mean something else. */
export function closedForOpenAi(schema: JsonObject): JsonObject | undefined {
  const closed = close(schema, 0);
  return isObject(closed) && closed['type'] === 'object' ? closed : undefined;
}

function close(value: JsonValue | undefined, depth: number): JsonValue | undefined {
  if (!isObject(value) || depth > MAX_DEPTH || REFUSED.some((key) => Object.hasOwn(value, key))) return undefined;
  const members: [string, JsonValue][] = [];
  for (const [key, member] of Object.entries(value)) {
    const closed = closeMember(key, member, depth);
    if (closed === undefined) return undefined;
    members.push([key, closed]);
  }
  const out = Object.fromEntries(members);
  const { type, properties } = value;
  const isOfObjects = type === 'object' || isObject(properties) || (Array.isArray(type) && type.includes('object'));
  if (!isOfObjects) return out;
  const names = isObject(properties) ? Object.keys(properties) : [];
  const required = new Set(Array.isArray(value['required']) ? value['required'] : []);
  if (isMap(value) || names.some((name) => !required.has(name))) return undefined;
  return { ...out, properties: out['properties'] ?? {}, required: names, additionalProperties: false };
}

function closeMember(key: string, member: JsonValue | undefined, depth: number): JsonValue | undefined {
  switch (key) {
    case 'properties':
    case '$defs':
    case 'definitions':
      return isObject(member) ? closeEach(member, depth) : undefined;
    case 'items':
      return close(member, depth + 1);
    case 'anyOf':
      if (!Array.isArray(member)) return undefined;
      return closeAll(member, depth);
    default:
      return member;
  }
}

function closeEach(children: JsonObject, depth: number): JsonObject | undefined {
  const closed = closeAll(Object.values(children), depth);
  return closed && Object.fromEntries(Object.keys(children).map((name, at) => [name, closed[at]]));
}

function closeAll(children: readonly (JsonValue | undefined)[], depth: number): JsonValue[] | undefined {
  const closed = children.map((child) => close(child, depth + 1)).filter((child) => child !== undefined);
  return closed.length === children.length ? closed : undefined;
}
