/** JSON as data. `__proto__` is a key like any other: objects are read, never assigned to by an outside key. */
export type JsonValue = null | boolean | number | string | JsonArray | JsonObject;
export interface JsonArray extends ReadonlyArray<JsonValue> {}
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}

/** True for a JSON object, false for arrays and null. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `JSON.parse` typed as what it returns. Throws SyntaxError. */
export function parseJson(text: string): JsonValue {
  return JSON.parse(text) as JsonValue;
}

/** What the text says; undefined where it is no JSON. */
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
  // What does not end as an object does is not parsed: pieces of arguments are asked about again and again.
  return endsInBrace(text) && isObject(tryJson(text));
}

function endsInBrace(text: string): boolean {
  let last = text.length - 1;
  while (last >= 0 && SPACES.has(text.charCodeAt(last))) last -= 1;
  return text.charCodeAt(last) === 0x7d;
}

/** White space of JSON. */
const SPACES: ReadonlySet<number> = new Set([0x20, 0x09, 0x0a, 0x0d]);

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** What the longest token is about. */
const SHORT = 48;

/**
 * The text as it stands between the quotes of a JSON string: what JSON.stringify says. A token is seen to need no escape sooner than
 * the call is made.
 */
export function escapeJson(text: string): string {
  if (text.length > SHORT) return JSON.stringify(text).slice(1, -1);
  for (let at = 0; at < text.length; at++) if (isEscaped(text.charCodeAt(at))) return JSON.stringify(text).slice(1, -1);
  return text;
}

/** Control characters, quote and backslash; surrogates, since one that stands alone is. */
function isEscaped(code: number): boolean {
  return code < 0x20 || code === QUOTE || code === BACKSLASH || (code >= 0xd800 && code <= 0xdfff);
}
