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
