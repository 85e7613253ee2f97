/** The schema of a tool's arguments, as every protocol wants it: that of an object. */
import { notConvertible } from '../canonical/error.ts';
import type { JsonObject } from '../canonical/json.ts';

/**
 * The schema with the type `object`: inserted where none is said, taken out of a list of types. Throws `unsupported_conversion` at
 * `at` for a schema of anything else (spec rule 14).
 */
export function objectSchema(schema: JsonObject, at: string): JsonObject {
  const { type, ...rest } = schema;
  if (type === 'object') return schema;
  const mayBeObject = type === undefined || type === null || (Array.isArray(type) && type.includes('object'));
  if (!mayBeObject) throw notConvertible(at, 'The arguments of a tool need an object schema.');
  return { type: 'object', ...rest };
}
