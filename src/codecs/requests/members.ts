/**
 * Reads members of a client's body and refuses a wrong type with the member's path. Null and absent are the same. `path` is that of
 * the object that has the member, empty at the top of the body. Knows no dialect beyond the members that several spell alike.
 */
import { type GatewayError, invalid } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Format } from '../canonical/request.ts';
import { defined } from '../defined.ts';

/** Members that choose upstreams or credentials. */
const GATEWAY_MEMBERS: ReadonlySet<string> = new Set(['api_base', 'base_url', 'models', 'fallbacks', 'user_config']);

/**
 * Whether a member of a body is the gateway's business and never forwarded. Servers in Go read `Model` as `model`, whichever comes last,
 * so other spellings of these names in letters of another case are none of the client's either.
 */
export function isGatewayMember(name: string): boolean {
  if (name === 'model') return false;
  const folded = name.toUpperCase().toLowerCase();
  return folded === 'model' || GATEWAY_MEMBERS.has(folded);
}

/** Those that a body has. */
export function gatewayMembers(json: JsonObject): string[] {
  return Object.keys(json).filter(isGatewayMember);
}

function memberPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

/** Null counts as absent. */
export function present(value: JsonValue | undefined): value is Exclude<JsonValue, null> {
  return value !== undefined && value !== null;
}

/** May be empty. */
export function requiredString(json: JsonObject, key: string, path = ''): string {
  const value = json[key];
  if (!present(value)) throw invalid(memberPath(path, key), `Missing required parameter: '${memberPath(path, key)}'.`);
  return stringAt(value, memberPath(path, key));
}

/** A string that must say something: a name, a type, an id. */
export function requiredName(json: JsonObject, key: string, path = ''): string {
  const name = requiredString(json, key, path);
  if (name === '') throw invalid(memberPath(path, key), `'${memberPath(path, key)}' must not be empty.`);
  return name;
}

export function stringAt(value: JsonValue, path: string): string {
  if (typeof value !== 'string') throw wrongType(path, 'a string');
  return value;
}

export function optionalString(json: JsonObject, key: string, path = ''): string | undefined {
  const value = json[key];
  return present(value) ? stringAt(value, memberPath(path, key)) : undefined;
}

export function optionalBoolean(json: JsonObject, key: string, path = ''): boolean | undefined {
  const value = json[key];
  if (!present(value)) return undefined;
  if (typeof value !== 'boolean') throw wrongType(memberPath(path, key), 'a boolean');
  return value;
}

/** JSON can spell numbers that are too large to be one; those are refused, too. */
export function optionalNumber(json: JsonObject, key: string, path = ''): number | undefined {
  const value = json[key];
  if (!present(value)) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw wrongType(memberPath(path, key), 'a number');
  return value;
}

/** Both bounds are allowed values. */
export interface Bounds {
  readonly least?: number;
  readonly most?: number;
}

export function optionalInteger(json: JsonObject, key: string, bounds: Bounds = {}, path = ''): number | undefined {
  const value = optionalNumber(json, key, path);
  if (value === undefined) return undefined;
  const { least = Number.MIN_SAFE_INTEGER, most = Number.MAX_SAFE_INTEGER } = bounds;
  if (!Number.isSafeInteger(value)) throw wrongType(memberPath(path, key), 'an integer');
  if (value < least) throw invalid(memberPath(path, key), `'${memberPath(path, key)}' must be at least ${least}.`);
  if (value > most) throw invalid(memberPath(path, key), `'${memberPath(path, key)}' must be at most ${most}.`);
  return value;
}

/** `seed`: the vendor takes 64 bits, which is more than a number holds exactly: the same protocol forwards its spelling, another the nearest number. */
export function readSeed(json: JsonObject): number | undefined {
  const seed = optionalNumber(json, 'seed');
  if (seed !== undefined && !(Number.isInteger(seed) && Math.abs(seed) <= 2 ** 63))
    throw wrongType('seed', 'an integer of 64 bits');
  return seed;
}

export function optionalObject(json: JsonObject, key: string, path = ''): JsonObject | undefined {
  const value = json[key];
  if (!present(value)) return undefined;
  return objectAt(value, memberPath(path, key));
}

export function objectAt(value: JsonValue | undefined, path: string): JsonObject {
  if (!isObject(value)) throw wrongType(path, 'an object');
  return value;
}

export function arrayAt(value: JsonValue | undefined, path: string): readonly JsonValue[] {
  if (!Array.isArray(value)) throw wrongType(path, 'an array');
  return value;
}

export function optionalArray(json: JsonObject, key: string, path = ''): readonly JsonValue[] | undefined {
  const value = json[key];
  return present(value) ? arrayAt(value, memberPath(path, key)) : undefined;
}

export function optionalStrings(json: JsonObject, key: string, path = ''): readonly string[] | undefined {
  return optionalArray(json, key, path)?.map((entry, index) => stringAt(entry, `${memberPath(path, key)}[${index}]`));
}

/** `stop` of chat and completions: one string or a list of strings; empty lists are absent. */
export function readStop(json: JsonObject): readonly string[] | undefined {
  const { stop } = json;
  if (!present(stop)) return undefined;
  if (typeof stop === 'string') return [stop];
  const list = optionalStrings(json, 'stop');
  return list?.length === 0 ? undefined : list;
}

/** One candidate is all that the canonical model holds: `n` is absent or 1. */
export function refuseSeveralChoices(json: JsonObject): void {
  const { n } = json;
  if (present(n) && n !== 1) throw invalid('n', "Only one choice is supported: 'n' must be 1.");
}

/** `stream` and `stream_options.include_usage` of chat and completions; options of a wrong type ask for nothing (semantics 6.5.8). */
export function readStreaming(json: JsonObject): { readonly stream: boolean; readonly includeUsage: boolean } {
  const stream = optionalBoolean(json, 'stream') ?? false;
  const options = json['stream_options'];
  return { stream, includeUsage: stream && isObject(options) && options['include_usage'] === true };
}

/** What names a JSON schema, in every dialect that has one. */
export function schemaMembers(body: JsonObject, path: string): Omit<Extract<Format, { type: 'json_schema' }>, 'type'> {
  return defined({
    name: optionalString(body, 'name', path),
    description: optionalString(body, 'description', path),
    schema: optionalObject(body, 'schema', path),
    strict: optionalBoolean(body, 'strict', path),
  });
}

/** `invalid_request` for the member at `path`; `wanted` completes `'path' must be …`. */
export function wrongType(path: string, wanted: string): GatewayError {
  return invalid(path, `'${path}' must be ${wanted}.`);
}
