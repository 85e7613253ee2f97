/** Whatever schema a tool has, the arguments made for it fit. Judged by an independent validator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { Check } from 'typebox/schema';
import type { JsonObject } from '../../src/simulator/json.ts';
import { seededRandom } from '../../src/simulator/random.ts';
import { sampleSchema } from '../../src/simulator/sample-schema.ts';

const range = fc
  .tuple(fc.integer({ min: -50, max: 50 }), fc.integer({ min: 0, max: 30 }))
  .map(([low, span]) => [low, low + span] as const);
const schema: fc.Arbitrary<JsonObject> = fc.letrec<{ any: JsonObject }>((tie) => ({
  any: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    fc.constant<JsonObject>({ type: 'string' }),
    range.map(([low, high]): JsonObject => ({ type: 'integer', minimum: low, maximum: high })),
    range.map(([low, high]): JsonObject => ({ type: 'number', minimum: low, exclusiveMaximum: high + 1 })),
    range.map(([low, high]): JsonObject => ({ type: 'string', minLength: Math.max(0, low), maxLength: Math.max(0, high) })),
    fc.constantFrom<JsonObject>(
      { type: 'boolean' },
      { type: 'null' },
      { type: ['string', 'null'] },
      { const: 7 },
      { enum: ['a', 2, null] },
    ),
    fc.constantFrom<JsonObject>({ type: 'string', pattern: '^[A-Z]{3}-[0-9]{2}$' }, { type: 'string', pattern: '^\\d{4}$' }),
    tie('any').map((items): JsonObject => ({ type: 'array', items, minItems: 1, maxItems: 3 })),
    fc.array(tie('any'), { minLength: 1, maxLength: 3 }).map((anyOf): JsonObject => ({ anyOf })),
    fc.dictionary(fc.constantFrom('a', 'b', 'c', '__proto__'), tie('any'), { maxKeys: 4, noNullPrototype: true }).map(
      (properties): JsonObject => ({
        type: 'object',
        properties,
        required: Object.keys(properties).slice(0, 2),
        additionalProperties: false,
      }),
    ),
  ),
})).any;

test('a sample fits its schema', () => {
  fc.assert(
    fc.property(schema, fc.nat(), (made, seed) => {
      const value = sampleSchema(made, seededRandom(seed));
      assert.ok(Check(made, value), `${JSON.stringify(value)} for ${JSON.stringify(made)}`);
    }),
    { numRuns: 300 },
  );
});

test('references, also to itself, and allOf', () => {
  const tree: JsonObject = {
    $ref: '#/$defs/node',
    $defs: {
      node: {
        type: 'object',
        properties: { name: { type: 'string' }, children: { type: 'array', items: { $ref: '#/$defs/node' } } },
        required: ['name', 'children'],
      },
    },
  };
  const both: JsonObject = {
    allOf: [
      { type: 'object', properties: { a: { type: 'integer' } }, required: ['a'] },
      { type: 'object', properties: { b: { type: 'string' } }, required: ['b'] },
    ],
  };
  const chain: JsonObject = {
    type: 'object',
    properties: { next: { anyOf: [{ $ref: '#' }, { type: 'null' }] } },
    required: ['next'],
  };
  for (let seed = 0; seed < 20; seed += 1) {
    assert.ok(Check(chain, sampleSchema(chain, seededRandom(seed))));
    assert.ok(Check(tree, sampleSchema(tree, seededRandom(seed))));
    assert.ok(Check(both, sampleSchema(both, seededRandom(seed))));
  }
});
