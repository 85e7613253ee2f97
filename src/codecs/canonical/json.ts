/** JSON values. Objects are read and never assigned to by a key from outside, so `__proto__` is a key like any other. */
export type JsonValue = null | boolean | number | string | JsonArray | JsonObject;
export interface JsonArray extends ReadonlyArray<JsonValue> {}
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}

/** True for a JSON object, false for arrays and null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Sets a member under a name from outside, as `JSON.parse` does: assigned, `__proto__` would be the prototype. */
export function setMember(object: JsonObject, name: string, value: JsonValue | undefined): void {
  if (name === '__proto__') Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
  else (object as Record<string, JsonValue | undefined>)[name] = value;
}

/** `JSON.parse` typed as what it returns. Throws SyntaxError. */
export function parseJson(text: string): JsonValue {
  return JSON.parse(text) as JsonValue;
}

/** The parsed value; undefined for text that is not JSON. */
export function tryJson(text: string): JsonValue | undefined {
  try {
    return parseJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** True for the text of a JSON object: what a function call's arguments must be when they are final. */
export function isObjectText(text: string): boolean {
  // Called for every piece of arguments, so a text that cannot be an object is not parsed.
  return endsInBrace(text) && isObject(tryJson(text));
}

function endsInBrace(text: string): boolean {
  let last = text.length - 1;
  while (last >= 0 && WHITE_SPACE.has(text.charCodeAt(last))) last -= 1;
  return text.charCodeAt(last) === 0x7d;
}

const WHITE_SPACE: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** About the length of the longest tokens. */
const TOKEN_CHARS = 48;

/** The text as JSON.stringify writes it between quotes. Checking that a token needs no escape is faster than the call. */
export function escapeJson(text: string): string {
  if (text.length > TOKEN_CHARS) return JSON.stringify(text).slice(1, -1);
  for (let at = 0; at < text.length; at++) if (isEscaped(text.charCodeAt(at))) return JSON.stringify(text).slice(1, -1);
  return text;
}

/** True for control characters, quote and backslash, and for surrogates, since an unpaired one is escaped. */
function isEscaped(code: number): boolean {
  return code < 0x20 || code === QUOTE || code === BACKSLASH || (code >= 0xd800 && code <= 0xdfff);
}
