import assert from 'node:assert/strict';
import test from 'node:test';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import { GENERATIVE_JSON_SCHEMA, lowerSchema } from '../../../src/codecs/schemas/lowering.ts';
import { atOnce } from '../../../src/codecs/steps.ts';

const lower = (schema: unknown): unknown => atOnce(lowerSchema(schema as JsonObject, GENERATIVE_JSON_SCHEMA));
const text = (schema: unknown): string => JSON.stringify(lower(schema));

test('G12: keywords that the target refuses are left out, at every schema position', () => {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    type: 'object',
    properties: {
      tags: { type: 'array', items: { type: 'string', minLength: 1, pattern: '^a' }, uniqueItems: true, maxItems: 3 },
      age: { type: 'integer', exclusiveMinimum: 0, multipleOf: 2, default: 4 },
    },
    propertyNames: { pattern: 'x' },
    if: {},
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: {},
    additionalProperties: false,
    required: ['tags', 'ghost'],
  };
  assert.deepEqual(lower(schema), {
    type: 'object',
    properties: {
      tags: { type: 'array', items: { type: 'string' }, maxItems: 3 },
      age: { type: 'integer', minimum: 1 },
    },
    additionalProperties: false,
    required: ['tags'],
  });
});

test('G12: properties named like keywords survive, and so do values of an enumeration', () => {
  const schema = {
    type: 'object',
    properties: {
      if: { type: 'string' },
      pattern: { type: 'string', enum: ['not', '$schema'] },
      $schema: { type: 'object', properties: { default: { type: 'null' }, const: { type: 'number' } } },
      properties: { type: 'object', properties: { uniqueItems: { type: 'boolean' } } },
    },
    required: ['if', 'pattern'],
  };
  assert.deepEqual(lower(schema), schema);
});

test('T7: a property named __proto__ is data', () => {
  const schema = JSON.parse(
    '{"type":"object","properties":{"__proto__":{"type":"string","minLength":1}},"required":["__proto__"]}',
  );
  assert.equal(text(schema), '{"type":"object","properties":{"__proto__":{"type":"string"}},"required":["__proto__"]}');
});

test('T10: the order of keys is kept', () => {
  const schema = { description: 'd', type: 'object', properties: { zeta: { title: 't', type: 'string' }, alpha: {} } };
  assert.equal(text(schema), JSON.stringify(schema));
  const [a, properties] = [{ type: 'string' }, { a: { $ref: '#/definitions/A' } }];
  assert.equal(
    text({ definitions: { A: a }, type: 'object', properties }),
    JSON.stringify({ $defs: { A: a }, type: 'object', properties: { a: { $ref: '#/$defs/A' } } }),
    'what is defined stands where it stood',
  );
});

test('const becomes an enumeration where that can be said, else its type', () => {
  assert.deepEqual(lower({ const: 'a' }), { enum: ['a'] });
  assert.deepEqual(lower({ const: 3 }), { enum: [3] });
  assert.deepEqual(lower({ const: true }), { type: 'boolean' });
  assert.deepEqual(lower({ const: null }), { type: 'null' });
  assert.deepEqual(lower({ const: { a: 1 } }), { type: 'object' });
  assert.deepEqual(lower({ type: 'string', const: 'a', enum: ['a', 'b'] }), { type: 'string', enum: ['a', 'b'] });
});

test('enumerations keep strings and numbers; null becomes a branch', () => {
  assert.deepEqual(lower({ enum: [1, 'a', 2] }), { enum: [1, 'a', 2] });
  assert.deepEqual(lower({ enum: ['a', null] }), { anyOf: [{ enum: ['a'] }, { type: 'null' }] });
  assert.deepEqual(lower({ enum: [true, false] }), { type: 'boolean' });
  assert.deepEqual(lower({ type: 'integer', enum: [1, 2] }), { type: 'integer', enum: [1, 2] });
  assert.deepEqual(lower({ enum: [true, 'x'] }), {});
  assert.deepEqual(lower({ enum: [] }), {});
});

test('properties that a pattern names stay allowed, and a pattern for all of them speaks for all of them', () => {
  const patterns = { '^a': { type: 'string', minLength: 1 }, '^b': { type: 'integer' } };
  assert.deepEqual(lower({ type: 'object', patternProperties: { '^a': patterns['^a'] }, additionalProperties: false }), {
    type: 'object',
    additionalProperties: { type: 'string' },
  });
  assert.deepEqual(lower({ type: 'object', patternProperties: patterns, additionalProperties: { type: 'null' } }), {
    type: 'object',
    additionalProperties: { anyOf: [{ type: 'null' }, { type: 'string' }, { type: 'integer' }] },
  });
  for (const more of [{}, { additionalProperties: true }]) {
    assert.deepEqual(lower({ type: 'object', patternProperties: patterns, ...more }), { type: 'object', ...more });
  }
  // How TypeBox writes a record.
  for (const all of ['^(.*)$', '^.*$', '.*', '']) {
    assert.deepEqual(lower({ type: 'object', patternProperties: { [all]: { type: 'number' } } }), {
      type: 'object',
      additionalProperties: { type: 'number' },
    });
  }
  const refused = { type: 'object', patternProperties: { '^a': false }, additionalProperties: false };
  assert.deepEqual(lower(refused), { type: 'object', additionalProperties: false });
});

test('what contradicts itself is still a schema', () => {
  assert.deepEqual(lower({ type: ['boolean', 'number'], enum: ['a'] }), { enum: ['a'] });
  assert.deepEqual(lower({ type: 'null', enum: ['a', null] }), { type: 'null' });
  assert.deepEqual(lower({ properties: { a: {} }, required: ['a', 'a'] }), { properties: { a: {} }, required: ['a'] });
});

test('several types become branches, each with the keywords that speak of it', () => {
  for (const key of ['anyOf', 'oneOf']) {
    const branches = { [key]: [{ type: 'integer', minimum: 1 }, { type: 'string' }] };
    assert.deepEqual(lower({ type: ['integer', 'string'], ...branches }), branches, 'unless they are there');
  }
  assert.deepEqual(lower({ type: ['string', 'null'], description: 'd', enum: ['a', null] }), {
    description: 'd',
    anyOf: [{ type: 'string', enum: ['a'] }, { type: 'null' }],
  });
  assert.deepEqual(lower({ type: ['integer', 'array'], minimum: 1, items: { type: 'string' } }), {
    anyOf: [
      { type: 'integer', minimum: 1 },
      { type: 'array', items: { type: 'string' } },
    ],
  });
  assert.deepEqual(lower({ type: ['string'] }), { type: 'string' });
  assert.deepEqual(lower({ type: 'STRING', nullable: true }), { anyOf: [{ type: 'string' }, { type: 'null' }] });
});

test('an array that does not say what it holds holds anything', () => {
  assert.deepEqual(lower({ type: 'array', minItems: 1 }), { type: 'array', minItems: 1, items: {} });
  assert.deepEqual(lower({ type: ['array', 'null'] }), { anyOf: [{ type: 'array', items: {} }, { type: 'null' }] });
  assert.deepEqual(lower({ type: 'array', prefixItems: [{ type: 'string' }] }), {
    type: 'array',
    prefixItems: [{ type: 'string' }],
  });
});

test('a reference stands alone; what describes it goes around it', () => {
  const schema = {
    type: 'object',
    properties: { a: { $ref: '#/$defs/A', description: 'the a', default: {} }, b: { $ref: '#/$defs/A' } },
    $defs: { A: { type: 'string', minLength: 1 } },
  };
  assert.deepEqual(lower(schema), {
    type: 'object',
    properties: { a: { description: 'the a', anyOf: [{ $ref: '#/$defs/A' }] }, b: { $ref: '#/$defs/A' } },
    $defs: { A: { type: 'string' } },
  });
});

test('older definitions, pointers into the schema and nested definitions are gathered under $defs', () => {
  const schema = {
    definitions: { A: { type: 'string' } },
    properties: {
      a: { $ref: '#/definitions/A' },
      b: { $defs: { 'x/y': { type: 'integer' } }, properties: { c: { $ref: '#/properties/b/$defs/x~1y' } } },
      far: { $ref: 'https://example.com/schema.json' },
      nowhere: { $ref: '#/$defs/missing', description: 'any' },
    },
  };
  assert.deepEqual(lower(schema), {
    properties: {
      a: { $ref: '#/$defs/A' },
      b: { properties: { c: { $ref: '#/$defs/x~1y' } } },
      far: {},
      nowhere: { description: 'any' },
    },
    $defs: { A: { type: 'string' }, 'x/y': { type: 'integer' } },
  });
});

test('recursion stays finite', () => {
  const tree = {
    type: 'object',
    properties: { next: { $ref: '#' }, kids: { type: 'array', items: { $ref: '#/$defs/T' } } },
    $defs: { T: { $ref: '#/$defs/T' } },
  };
  const lowered = lower(tree) as { $defs: Record<string, unknown> };
  assert.deepEqual(Object.keys(lowered.$defs), ['T', 'root']);
  let deep: JsonObject = { type: 'string' };
  for (let level = 0; level < 5000; level += 1) deep = { type: 'array', items: deep };
  assert.ok(JSON.stringify(lower(deep)).length < 5000);
});

test('allOf is merged, booleans are schemas, tuples are prefixItems', () => {
  assert.deepEqual(
    lower({
      allOf: [
        { properties: { a: { type: 'string' } }, required: ['a'] },
        { properties: { b: true }, required: ['b'] },
      ],
      properties: { c: false },
    }),
    { properties: { a: { type: 'string' }, b: {} }, required: ['a', 'b'] },
  );
  assert.deepEqual(lower({ description: 'd', allOf: [{ $ref: '#/$defs/A' }], $defs: { A: {} } }), {
    description: 'd',
    anyOf: [{ $ref: '#/$defs/A' }],
    $defs: { A: {} },
  });
  assert.deepEqual(lower({ items: [{ type: 'string' }], additionalItems: { type: 'number' } }), {
    prefixItems: [{ type: 'string' }],
    items: { type: 'number' },
  });
});

test('a root that only refers to a definition becomes that definition', () => {
  const schema = {
    $ref: '#/definitions/A',
    definitions: { A: { type: 'object', properties: { a: { $ref: '#/definitions/A' } } } },
  };
  assert.deepEqual(lower(schema), {
    type: 'object',
    properties: { a: { $ref: '#/$defs/A' } },
    $defs: { A: { type: 'object', properties: { a: { $ref: '#/$defs/A' } } } },
  });
  assert.deepEqual(lower({ $ref: '#', description: 'd' }), { description: 'd' });
  assert.deepEqual(lower({ $ref: '#/$defs/A', $defs: { A: { $ref: '#/$defs/A' } } }), { $defs: { A: { $ref: '#/$defs/A' } } });
});

test('bounds that exclude their value are said as bounds, where none is given', () => {
  assert.deepEqual(lower({ type: 'integer', exclusiveMinimum: 0, exclusiveMaximum: 5 }), {
    type: 'integer',
    minimum: 1,
    maximum: 4,
  });
  assert.deepEqual(lower({ type: 'number', exclusiveMinimum: 0, exclusiveMaximum: 5 }), {
    type: 'number',
    minimum: 0,
    maximum: 5,
  });
  assert.deepEqual(lower({ type: 'integer', exclusiveMinimum: 0.5 }), { type: 'integer', minimum: 0.5 });
  assert.deepEqual(lower({ type: 'number', exclusiveMinimum: 0, minimum: 3 }), { type: 'number', minimum: 3 });
  // Draft 4 says it with a boolean beside the bound.
  assert.deepEqual(lower({ type: 'number', exclusiveMinimum: true, minimum: 3 }), { type: 'number', minimum: 3 });
});

test('types in a list: none, one, beside branches, and with values that only some of them have', () => {
  assert.deepEqual(lower({ type: [] }), {});
  assert.deepEqual(lower({ type: ['null'] }), { type: 'null' });
  assert.deepEqual(lower({ type: ['string', 'null'], anyOf: [{ type: 'string' }] }), { anyOf: [{ type: 'string' }] });
  assert.deepEqual(lower({ type: ['integer', 'string'], enum: ['a', 1] }), {
    anyOf: [
      { type: 'integer', enum: [1] },
      { type: 'string', enum: ['a'] },
    ],
  });
});

test('the older tuples: what follows their entries', () => {
  const items = [{ type: 'string' }];
  assert.deepEqual(lower({ type: 'array', items, additionalItems: { type: 'number' } }), {
    type: 'array',
    prefixItems: items,
    items: { type: 'number' },
  });
  assert.deepEqual(lower({ type: 'array', additionalItems: { type: 'number' } }), { type: 'array', items: {} });
});

test('references into lists, by escapes, to anchors, and to what is not there', () => {
  const $defs = { 'a b': { type: 'string' } };
  const referring = (a: object): unknown =>
    (lower({ type: 'object', properties: { a }, $defs }) as { properties: { a: unknown } }).properties.a;
  assert.deepEqual(referring({ $ref: '#/$defs/a%20b' }), { $ref: '#/$defs/a b' });
  assert.deepEqual(referring({ $ref: '#anchor' }), { $ref: '#anchor' });
  for (const $ref of ['https://x.example/schema.json', '#/%E0%A4%A', '#/$defs/none'])
    assert.deepEqual(referring({ $ref }), {}, $ref);
  assert.deepEqual(lower({ anyOf: [{ type: 'string' }], properties: { a: { $ref: '#/anyOf/0' } } }), {
    anyOf: [{ type: 'string' }],
    properties: { a: { $ref: '#/$defs/0' } },
    $defs: { 0: { type: 'string' } },
  });
});

test('a schema is written out three times at most, however many references lead to it and to those around it', () => {
  const leaf = { type: 'object', properties: { x: { type: 'string', description: 'here' } } };
  let schema: object = leaf;
  for (let level = 0; level < 30; level += 1) schema = { type: 'object', properties: { inner: schema } };
  const pointers = Array.from({ length: 30 }, (_, level) => `#/properties/a${'/properties/inner'.repeat(level)}`);
  const properties = { a: schema, ...Object.fromEntries(pointers.map(($ref, at) => [`r${at}`, { $ref }])) };
  const text = JSON.stringify(lower({ type: 'object', properties }));
  assert.equal(text.split('"here"').length - 1, 4, 'three copies and a definition');
  for (const [, name = ''] of text.matchAll(/"#\/\$defs\/([^"]*)"/g)) assert.ok(text.includes(`"${name}":{`), name);
});

test('one schema under several spellings of its place is one definition', () => {
  const properties = { a: { $ref: '#/anyOf/0' }, b: { $ref: '#/anyOf/00' } };
  assert.deepEqual(lower({ anyOf: [{ type: 'string' }], properties }), {
    anyOf: [{ type: 'string' }],
    properties: { a: { $ref: '#/$defs/0' }, b: { $ref: '#/$defs/0' } },
    $defs: { 0: { type: 'string' } },
  });
});
