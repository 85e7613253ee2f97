/** The schema of a tool's arguments, which every protocol wants to be that of an object. */
import { notConvertible } from '../canonical/error.ts';
import type { JsonObject } from '../canonical/json.ts';

/**
 * The schema with the type `object`, which may be missing or one of a list of types. Throws `unsupported_conversion` at `at` for
 * any other type (spec rule 14).
 */
export function objectSchema(schema: JsonObject, at: string): JsonObject {
  const { type, ...rest } = schema;
  if (type === 'object') return schema;
  const mayBeObject = type === undefined || type === null || (Array.isArray(type) && type.includes('object'));
  if (!mayBeObject) throw notConvertible(at, 'The arguments of a tool need an object schema.');
  return { type: 'object', ...rest };
}
