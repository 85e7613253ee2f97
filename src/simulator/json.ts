/** Outside JSON, read without trust: narrowing and nothing else. Knows no dialect. */

export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;
export interface JsonObject {
  readonly [key: string]: JsonValue | undefined;
}

type Unread = JsonValue | undefined;

export function isObject(value: Unread): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function objectOf(value: Unread): JsonObject {
  return isObject(value) ? value : {};
}

export function listOf(value: Unread): readonly JsonValue[] {
  return isArray(value) ? value : [];
}

export function isArray(value: Unread): value is readonly JsonValue[] {
  return Array.isArray(value);
}

export function stringOf(value: Unread): string {
  return typeof value === 'string' ? value : '';
}

export function numberOf(value: Unread): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
}

/** The value, or `undefined` where the text is no JSON. */
export function parseJson(text: string): JsonValue | undefined {
  try {
    const value: JsonValue = JSON.parse(text);
    return value;
  } catch {
    return undefined;
  }
}
