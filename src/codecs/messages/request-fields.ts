/** Checks of the client's body: each throws `invalid_request` with the path of the wrong field. Null counts as absent. */
import { invalid } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';

function present(value: JsonValue | undefined): value is Exclude<JsonValue, null> {
  return value !== undefined && value !== null;
}

export function needText(parent: JsonObject, key: string, at: string): string {
  const value = parent[key];
  if (typeof value !== 'string') throw invalid(at, `${at} must be a string.`);
  return value;
}

export function needName(parent: JsonObject, key: string, at: string): string {
  const value = needText(parent, key, at);
  if (value === '') throw invalid(at, `${at} must not be empty.`);
  return value;
}

export function mayText(parent: JsonObject, key: string, at: string): string | undefined {
  return present(parent[key]) ? needText(parent, key, at) : undefined;
}

export function mayObject(parent: JsonObject, key: string, at: string): JsonObject | undefined {
  const value = parent[key];
  if (!present(value)) return undefined;
  if (!isObject(value)) throw invalid(at, `${at} must be an object.`);
  return value;
}

export function needObjectAt(value: JsonValue | undefined, at: string): JsonObject {
  if (!isObject(value)) throw invalid(at, `${at} must be an object.`);
  return value;
}

export function mayArray(parent: JsonObject, key: string, at: string): readonly JsonValue[] | undefined {
  const value = parent[key];
  if (!present(value)) return undefined;
  if (!Array.isArray(value)) throw invalid(at, `${at} must be an array.`);
  return value;
}

export function mayBoolean(parent: JsonObject, key: string, at: string): boolean | undefined {
  const value = parent[key];
  if (!present(value)) return undefined;
  if (typeof value !== 'boolean') throw invalid(at, `${at} must be a boolean.`);
  return value;
}

export function mayNumber(parent: JsonObject, key: string, at: string): number | undefined {
  const value = parent[key];
  if (!present(value)) return undefined;
  if (typeof value !== 'number' || !Number.isFinite(value)) throw invalid(at, `${at} must be a number.`);
  return value;
}

/** An integer of at least `least`. */
export function mayInteger(parent: JsonObject, key: string, at: string, least: number): number | undefined {
  const value = mayNumber(parent, key, at);
  if (value !== undefined && (!Number.isInteger(value) || value < least)) {
    throw invalid(at, `${at} must be an integer of at least ${least}.`);
  }
  return value;
}
