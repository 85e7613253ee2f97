/** Members of a client's body, read strictly: the wrong type is `invalid_request` at its path; null counts as absent. */
import { invalid } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';

export function pathOf(at: string, key: string): string {
  return at === '' ? key : `${at}.${key}`;
}

function given(body: JsonObject, key: string): JsonValue | undefined {
  const value = Object.hasOwn(body, key) ? body[key] : undefined;
  return value === null ? undefined : value;
}

export function optionalString(body: JsonObject, key: string, at = ''): string | undefined {
  const value = given(body, key);
  if (value === undefined || typeof value === 'string') return value;
  throw invalid(pathOf(at, key), `${pathOf(at, key)} must be a string.`);
}

export function requiredString(body: JsonObject, key: string, at = ''): string {
  const value = given(body, key);
  if (typeof value === 'string' && value !== '') return value;
  throw invalid(pathOf(at, key), `${pathOf(at, key)} must be a non-empty string.`);
}

export function optionalBoolean(body: JsonObject, key: string, at = ''): boolean | undefined {
  const value = given(body, key);
  if (value === undefined || typeof value === 'boolean') return value;
  throw invalid(pathOf(at, key), `${pathOf(at, key)} must be a boolean.`);
}

export function optionalNumber(body: JsonObject, key: string, at = ''): number | undefined {
  const value = given(body, key);
  // `1e400` parses to Infinity, which JSON would tell an upstream as null.
  if (value === undefined || (typeof value === 'number' && Number.isFinite(value))) return value;
  throw invalid(pathOf(at, key), `${pathOf(at, key)} must be a number.`);
}

export function optionalInteger(body: JsonObject, key: string, min: number, max: number, at = ''): number | undefined {
  const value = optionalNumber(body, key, at);
  if (value === undefined || (Number.isInteger(value) && value >= min && value <= max)) return value;
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`;
  throw invalid(pathOf(at, key), `${pathOf(at, key)} must be an integer ${range}.`);
}

export function optionalObject(body: JsonObject, key: string, at = ''): JsonObject | undefined {
  const value = given(body, key);
  if (value === undefined || isObject(value)) return value;
  throw invalid(pathOf(at, key), `${pathOf(at, key)} must be an object.`);
}

export function optionalStrings(body: JsonObject, key: string, at = ''): readonly string[] | undefined {
  const value = given(body, key);
  if (value === undefined) return undefined;
  const isList = Array.isArray(value) && value.every((entry: JsonValue): entry is string => typeof entry === 'string');
  if (isList) return value;
  throw invalid(pathOf(at, key), `${pathOf(at, key)} must be an array of strings.`);
}
