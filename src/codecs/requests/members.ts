/**
 * Checked access to the members of a client's body: a wrong type is refused with the member's path. Null counts as absent. `path`
 * is that of the object that has the member; it is empty at the top of the body. Knows only members that several dialects have in
 * common. What a decoder reads of a body at all is one table in its dialect (`read-members.ts`).
 */
import { type GatewayError, invalid } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { CanonicalRequest, Format, ReadMembers } from '../canonical/request.ts';
import { defined } from '../defined.ts';

/** Members that choose upstreams or credentials. */
const GATEWAY_MEMBERS: ReadonlySet<string> = new Set(['api_base', 'base_url', 'models', 'fallbacks', 'user_config']);

/** Members that are forwarded, and decide where a request goes, what it may cost and how it is answered. */
const DECISIVE: ReadonlySet<string> = new Set([
  ...['model', 'max_tokens', 'max_completion_tokens', 'max_output_tokens', 'n', 'stream', 'stream_options'],
  ...['messages', 'input', 'prompt', 'system', 'instructions', 'tools', 'functions', 'web_search_options'],
  ...['service_tier', 'speed', 'inference_geo'],
]);

/**
 * True for a member of a body that is meant for the gateway and never forwarded. Servers written in Go read `Model` as `model`,
 * whichever comes last, so such members are not forwarded under names that differ in case either.
 */
export function isGatewayMember(name: string): boolean {
  const folded = name.toUpperCase().toLowerCase();
  return GATEWAY_MEMBERS.has(folded) || (folded !== name && DECISIVE.has(folded));
}

/** The members of a body that are never forwarded. */
export function gatewayMembers(json: JsonObject): string[] {
  return Object.keys(json).filter(isGatewayMember);
}

export function memberPath(path: string, key: string): string {
  return path === '' ? key : `${path}.${key}`;
}

/** True for a member that is neither absent nor null. */
export function present(value: JsonValue | undefined): value is Exclude<JsonValue, null> {
  return value !== undefined && value !== null;
}

/** The string may be empty. */
export function requiredString(json: JsonObject, key: string, path = ''): string {
  const value = json[key];
  if (!present(value)) throw invalid(memberPath(path, key), `Missing required parameter: '${memberPath(path, key)}'.`);
  return stringAt(value, memberPath(path, key));
}

/** A string that must not be empty: a name, a type, an id. */
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

/** Also refuses numbers that are too large for JavaScript, which parse as infinity. */
export function optionalNumber(json: JsonObject, key: string, path = ''): number | undefined {
  const value = json[key];
  if (!present(value)) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw wrongType(memberPath(path, key), 'a number');
  return value;
}

/** Inclusive bounds. */
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

/**
 * `seed`: vendors take 64 bits, more than a number holds exactly. The same protocol gets the client's text, another one the
 * nearest number.
 */
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

/** Throws unless `n` is absent or 1: the canonical model holds one candidate. */
export function refuseSeveralChoices(json: JsonObject): void {
  const { n } = json;
  if (present(n) && n !== 1) throw invalid('n', "Only one choice is supported: 'n' must be 1.");
}

/** `stream` and `stream_options.include_usage` of chat and completions; options of a wrong type are ignored (semantics 6.5.8). */
export function readStreaming(json: JsonObject): { readonly stream: boolean; readonly includeUsage: boolean } {
  const stream = optionalBoolean(json, 'stream') ?? false;
  const options = json['stream_options'];
  return { stream, includeUsage: stream && isObject(options) && options['include_usage'] === true };
}

/** The members of a `json_schema` format, which all dialects share. */
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

/**
 * True when the request has members that its decoder does not read: they are lost at an upstream of another dialect, which the
 * log reports as `unknown members`.
 */
export function hasUnreadMembers({ json, reads: { own: known, within } }: CanonicalRequest): boolean {
  for (const key in json) if (!known.has(key) && present(json[key])) return true;
  return within !== undefined && holdsUnreadWithin(json, within);
}

/** Goes through lists, and no deeper than the table: the value of a member that is read counts as read. */
function holdsUnread(value: JsonValue | undefined, members: ReadMembers): boolean {
  if (Array.isArray(value)) return value.some((entry) => holdsUnread(entry, members));
  if (!isObject(value) || members.of?.(value) === false) return false;
  for (const key in value) if (!members.own.has(key) && hasValue(value[key])) return true;
  return members.within !== undefined && holdsUnreadWithin(value, members.within);
}

function holdsUnreadWithin(json: JsonObject, tables: Readonly<Record<string, ReadMembers>>): boolean {
  for (const key in tables) {
    const members = tables[key];
    const value = json[key];
    if (members !== undefined && value !== undefined && holdsUnread(value, members)) return true;
  }
  return false;
}

/** Histories repeat answers whole, with empty values for members that are absent. */
function hasValue(value: JsonValue | undefined): boolean {
  return present(value) && value !== '' && value !== false && !(Array.isArray(value) && value.length === 0);
}

/** The own members of {@link ReadMembers}. */
export function own(...names: readonly string[]): Pick<ReadMembers, 'own'> {
  return { own: new Set(names) };
}

/** For {@link ReadMembers.of}: matches entries of these types, and entries without a type. */
export function ofType(...types: readonly string[]): (entry: JsonObject) => boolean {
  const known = new Set(types);
  return ({ type }) => typeof type !== 'string' || known.has(type);
}
