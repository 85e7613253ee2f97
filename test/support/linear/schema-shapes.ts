/** JSON Schemas of a size that can be chosen, each with much of one thing that a lowering has to look at. */
import type { JsonObject, JsonValue } from '../../../src/codecs/canonical/json.ts';

export const list = <T>(count: number, entry: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => entry(index));
export const record = <T>(count: number, name: string, entry: (index: number) => T): Record<string, T> =>
  Object.fromEntries(list(count, (at) => [`${name}${at}`, entry(at)]));

const STRING: JsonObject = { type: 'string' };
const object = (members: JsonObject): JsonObject => ({ type: 'object', ...members });
const one = (at: number): JsonObject => ({ properties: { [`p${at}`]: STRING } });

/** As deep as a body may be, less what stands around a schema in it. */
const DEPTH = 100;

/** A schema within a schema, `DEPTH` times; every level has an even share of `count` other members. */
function deep(count: number, around: (inner: JsonObject, share: JsonObject) => JsonObject): JsonObject {
  const each = Math.ceil(count / DEPTH);
  let schema = object({});
  for (let level = 0; level < DEPTH; level += 1)
    schema = around(
      schema,
      record(each, `l${level}_`, () => STRING),
    );
  return object({ properties: { a: schema } });
}

/** A circle of definitions, each of which refers to the next one twice. */
const doubling = (count: number): JsonObject =>
  record(count, 'd', (at): JsonValue => {
    const next = { $ref: `#/$defs/d${(at + 1) % count}` };
    return { anyOf: [next, { type: 'object', properties: { next } }] };
  });

export const SCHEMAS: Readonly<Record<string, (count: number) => JsonObject>> = {
  properties: (count) => object({ properties: record(count, 'p', () => STRING) }),
  'properties that are required': (count) =>
    object({ properties: record(count, 'p', () => STRING), required: list(count, (at) => `p${at}`) }),
  'required names that repeat': (count) => object({ properties: { p0: STRING }, required: list(count, () => 'p0') }),
  'properties that look like numbers': (count) => object({ properties: { z: STRING, ...record(count, '', () => STRING) } }),
  'allOf, a property each': (count) => object({ allOf: list(count, one) }),
  'allOf, a required name each': (count) =>
    object({ properties: record(count, 'p', () => STRING), allOf: list(count, (at) => ({ required: [`p${at}`] })) }),
  'allOf, a keyword each': (count) => object({ allOf: list(count, (at) => ({ [`x-${at}`]: at })) }),
  'allOf, a reference each': (count) =>
    object({ $defs: record(count, 'd', one), allOf: list(count, (at) => ({ $ref: `#/$defs/d${at}` })) }),
  'allOf within allOf': (count) => deep(count, (inner, share) => ({ properties: share, allOf: [inner] })),
  'allOf within allOf, all at the bottom': (count) => {
    let schema: JsonObject = object({ properties: record(count, 'p', () => STRING), required: list(count, (at) => `p${at}`) });
    for (let level = 0; level < DEPTH; level += 1) schema = { properties: { [`l${level}`]: STRING }, allOf: [schema] };
    return object({ allOf: [schema] });
  },
  'allOf at the root of a chain of references': (count) => ({
    $defs: record(count, 'd', (at): JsonValue => ({ ...one(at), allOf: [{ $ref: `#/$defs/d${at + 1}` }] })),
    $ref: '#/$defs/d0',
  }),
  anyOf: (count) => object({ properties: { a: { anyOf: list(count, (at) => ({ const: `v${at}` })) } } }),
  'anyOf within anyOf': (count) => deep(count, (inner, share) => ({ anyOf: [inner, object({ properties: share })] })),
  'oneOf of objects': (count) => object({ properties: { a: { oneOf: list(count, one) } } }),
  'several types': (count) =>
    object({ properties: record(count, 'p', () => ({ type: ['string', 'number', 'array', 'object', 'null'], minimum: 1 })) }),
  'several types within each other': (count) =>
    deep(count, (inner, share) => ({
      type: ['object', 'array', 'string', 'null'],
      properties: { ...share, inner },
      items: STRING,
      enum: ['a', 1, null],
    })),
  'keywords that nobody knows, beside several types': (count) =>
    object({
      properties: record(5, 'p', () => ({
        type: ['string', 'number', 'boolean', 'array', 'null'],
        ...record(Math.ceil(count / 5), 'x-', (at) => at),
      })),
    }),
  'several types and choices within each other, around a long keyword': (count) => {
    const types = ['string', 'number', 'integer', 'boolean'];
    let schema: JsonObject = { type: types, example: 'word "quoted" '.repeat(count) };
    for (let level = 0; level < 6; level += 1) schema = { type: types, anyOf: [schema, { type: 'null' }] };
    return object({ properties: { a: schema } });
  },
  'objects within objects': (count) => deep(count, (inner, share) => object({ properties: { ...share, inner } })),
  'an enumeration': (count) => object({ properties: { a: { type: 'string', enum: list(count, (at) => `v${at}`) } } }),
  'an enumeration of all types': (count) =>
    object({
      properties: {
        a: {
          type: ['string', 'integer', 'number', 'null', 'boolean'],
          enum: list(count, (at): JsonValue => [`v${at}`, at, null, true, at / 2][at % 5] ?? null),
        },
      },
    }),
  'definitions that are used once': (count) =>
    object({ $defs: record(count, 'd', one), properties: record(count, 'p', (at) => ({ $ref: `#/$defs/d${at}` })) }),
  'definitions of one name in both places': (count) =>
    object({
      $defs: record(count, 'd', one),
      definitions: record(count, 'd', one),
      properties: record(count, 'p', (at) => ({ $ref: `#/definitions/d${at}` })),
    }),
  'references to properties of one name': (count) =>
    object({
      $defs: record(count, 'd', () => object({ properties: { x: STRING } })),
      properties: record(count, 'p', (at) => ({ $ref: `#/$defs/d${at}/properties/x` })),
    }),
  'references into a list': (count) =>
    object({ anyOf: list(count, one), properties: record(count, 'p', (at) => ({ $ref: `#/anyOf/${at}` })) }),
  'references that lead nowhere': (count) =>
    object({ properties: record(count, 'p', (at) => ({ $ref: `#/$defs/none${at}`, description: 'd' })) }),
  'references to each level of a deep schema': (count) => {
    const name = (level: number): string => `#/properties/a${'/properties/inner'.repeat(level)}`;
    let schema: JsonObject = object({ properties: record(count, 'p', () => STRING) });
    for (let level = 0; level < 40; level += 1) schema = object({ properties: { inner: schema } });
    return object({ properties: { a: schema, ...record(40, 'r', (at) => ({ $ref: name(40 - at) })) } });
  },
  'one schema under many spellings': (count) =>
    object({
      anyOf: [object({ properties: record(count, 'p', () => STRING) })],
      properties: record(count, 'r', (at) => ({ $ref: `#/anyOf/0e${at}` })),
    }),
  'a chain of references': (count) =>
    object({
      $defs: record(count, 'd', (at): JsonValue => ({ $ref: `#/$defs/d${at + 1}`, description: 'd' })),
      properties: { a: { $ref: '#/$defs/d0' } },
    }),
  'a chain of references at the root, a keyword each': (count) => ({
    $defs: record(count, 'd', (at): JsonValue => ({ [`x-${at}`]: at, $ref: `#/$defs/d${at + 1}` })),
    $ref: '#/$defs/d0',
  }),
  'references that double': (count) => object({ $defs: doubling(count), properties: { a: { $ref: '#/$defs/d0' } } }),
  'references within references': (count) =>
    object({
      properties: { a: deep(count, (inner, share) => object({ properties: { ...share, inner, self: { $ref: '#' } } })) },
    }),
  patterns: (count) => object({ patternProperties: record(count, '^p', () => STRING), additionalProperties: { type: 'number' } }),
  'patterns without the rest': (count) => object({ patternProperties: record(count, '^p', () => STRING) }),
  tuples: (count) => object({ properties: { a: { type: 'array', items: list(count, () => STRING), additionalItems: false } } }),
  prefixItems: (count) => object({ properties: { a: { type: 'array', prefixItems: list(count, () => STRING) } } }),
  'every other keyword': (count) =>
    object({
      properties: record(count, 'p', (at) => ({
        type: 'integer',
        title: 't',
        description: 'd',
        exclusiveMinimum: 0,
        exclusiveMaximum: at,
        multipleOf: 1,
        format: 'int32',
        default: at,
        examples: [at],
        not: { const: 5 },
        if: { minimum: 1 },
        // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
        then: { maximum: 5 },
        nullable: true,
      })),
      dependentRequired: record(count, 'p', () => ['p0']),
      dependentSchemas: record(count, 'p', one),
      propertyOrdering: list(count, (at) => `p${at}`),
      unevaluatedProperties: false,
    }),
  'a long description': (count) => object({ description: 'word "quoted" '.repeat(count), properties: { a: STRING } }),
  'large integers': (count) =>
    object({ properties: record(count, 'p', () => ({ type: 'integer', maximum: Number.MAX_SAFE_INTEGER + 1 })) }),
};
