/** What Anthropic takes of JSON Schema in structured outputs and strict tools. */
import { type JsonObject, listOf, objectOf } from './json.ts';
import { VendorError } from './vendor-error.ts';

export function refuse(message: string): never {
  throw new VendorError(400, message);
}

const NOT_IN_SUBSET =
  'minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength maxLength maxItems uniqueItems oneOf not if patternProperties'.split(
    ' ',
  );

/** Refuses what is outside of it; `at` is the path that the vendor's message names. */
export function checkSubset(schema: JsonObject, at: string): void {
  for (const word of NOT_IN_SUBSET)
    if (schema[word] !== undefined) refuse(`${at}: For this type, property '${word}' is not supported`);
  const isSaid = ['type', '$ref', 'anyOf', 'allOf', 'enum', 'const'].some((word) => schema[word] !== undefined);
  if (!isSaid) refuse(`${at}: Schema must have a 'type'`);
  if (schema.type === 'object' && schema.additionalProperties !== false)
    refuse(`${at}: For 'object' type, 'additionalProperties' must be explicitly set to false`);
  for (const holder of ['properties', '$defs'] as const) {
    for (const [name, child] of Object.entries(objectOf(schema[holder]))) checkSubset(objectOf(child), `${at}.${holder}.${name}`);
  }
  if (schema.items !== undefined) checkSubset(objectOf(schema.items), `${at}.items`);
  for (const list of ['anyOf', 'allOf']) {
    listOf(schema[list]).forEach((child, index) => {
      checkSubset(objectOf(child), `${at}.${list}.${index}`);
    });
  }
}
