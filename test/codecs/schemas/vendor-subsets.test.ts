/** What the messages vendor and OpenAI take of JSON Schema in formats and strict tools. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { transformJSONSchema } from '@anthropic-ai/sdk/lib/transform-json-schema';
import { isObject, type JsonObject, parseJson } from '../../../src/codecs/canonical/json.ts';
import { rewriteText as rewriteInSteps } from '../../../src/codecs/schemas/exact-text.ts';
import { lowerForMessages as lowerInSteps } from '../../../src/codecs/schemas/messages-subset.ts';
import { type Steps, whole } from '../../../src/codecs/steps.ts';
import { closedForOpenAi, strictFunction } from '../../../src/codecs/schemas/openai-strict.ts';

const string = { type: 'string' };
const person = {
  type: 'object',
  title: 'Person',
  properties: {
    name: { type: 'string', minLength: 1, description: 'Full name' },
    age: { type: 'integer', minimum: 0, maximum: 150 },
    mail: { type: 'string', format: 'email' },
    phone: { type: 'string', pattern: '^\\d+$', format: 'phone' },
    tags: { type: 'array', items: string, minItems: 1, maxItems: 5, uniqueItems: true },
    few: { type: 'array', items: string, minItems: 3 },
    kind: { enum: ['a', 'b', null] },
    fixed: { const: 1 },
    either: { oneOf: [string, { type: 'null' }] },
    other: { anyOf: [{ type: 'number', multipleOf: 2 }, string], default: 'x' },
    friend: { $ref: '#/$defs/Friend' },
  },
  required: ['name', 'age'],
  $defs: { Friend: { type: 'object', properties: { name: string }, required: ['name'] } },
};

const lowerForMessages = whole(lowerInSteps);
const rewriteText = (text: string, rewrite: (schema: JsonObject) => JsonObject | undefined): string | undefined =>
  whole(rewriteInSteps)(text, function* (schema): Steps<JsonObject | undefined> {
    yield;
    return rewrite(schema);
  });

test('a schema that the messages vendor can say is lowered as its own SDK lowers it', () => {
  const { schema, isFaithful } = lowerForMessages(person);
  assert.deepEqual(schema, transformJSONSchema(person));
  assert.equal(isFaithful, true);
  assert.deepEqual(lowerForMessages(schema).schema, schema, 'a lowered schema stays as it is');
});

test('what pydantic, zod and others write beside it: several types, older definitions, nullable, no type', () => {
  const { schema, isFaithful } = lowerForMessages({
    properties: { a: { type: ['string', 'null'], maxLength: 4, description: 'd' }, b: { $ref: '#/definitions/B' } },
    definitions: { B: { type: 'string', nullable: true } },
  });
  assert.equal(isFaithful, true);
  assert.deepEqual(schema, {
    $defs: { B: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
    type: 'object',
    properties: {
      a: { description: 'd', anyOf: [{ type: 'string', description: '{maxLength: 4}' }, { type: 'null' }] },
      b: { $ref: '#/$defs/B' },
    },
    additionalProperties: false,
  });
});

test('each branch of several types is told what is said of its own type, and nothing of the others', () => {
  const { schema, isFaithful } = lowerForMessages({
    ...{ type: ['object', 'array', 'string', 'integer', 'null'], description: 'd' },
    ...{ properties: { x: string }, items: string, minItems: 2, minLength: 2, minimum: 1 },
  });
  assert.deepEqual(schema, {
    description: 'd',
    anyOf: [
      { type: 'object', properties: { x: string }, additionalProperties: false },
      { type: 'array', items: string, description: '{minItems: 2}' },
      { type: 'string', description: '{minLength: 2}' },
      { type: 'integer', description: '{minimum: 1}' },
      { type: 'null' },
    ],
  });
  assert.equal(isFaithful, true);
});

test('an enumeration beside several types says what the strings may be; the branch of null needs none', () => {
  const { schema } = lowerForMessages({ type: 'object', properties: { a: { type: ['string', 'null'], enum: ['b', null] } } });
  const { a } = schema['properties'] as JsonObject;
  assert.deepEqual(a, { anyOf: [{ enum: ['b'] }, { type: 'null' }] });
});

test('what the vendor’s subset cannot say is known: maps, any value, recursion, foreign references, great depth', () => {
  const inObject = (a: JsonObject, more: JsonObject = {}): JsonObject => ({ type: 'object', properties: { a }, ...more });
  let deep: JsonObject = string;
  for (let depth = 0; depth < 200; depth += 1) deep = inObject(deep);
  const recursive = inObject({ $ref: '#/$defs/Tree' }, { $defs: { Tree: inObject({ $ref: '#/$defs/Tree' }) } });
  const cases = [
    { type: 'object' },
    { type: 'object', additionalProperties: true },
    inObject({ type: 'object', additionalProperties: string }),
    inObject({ type: 'object', patternProperties: { '^x': string } }),
    inObject({}),
    inObject({ type: 'array' }),
    inObject({ $ref: 'https://example.com/schema' }),
    inObject({ $ref: '#/$defs/Nothing' }),
    inObject({ $ref: '#' }),
    recursive,
    deep,
  ];
  for (const schema of cases) assert.equal(lowerForMessages(schema).isFaithful, false, JSON.stringify(schema).slice(0, 200));
  const shared = inObject({ $ref: '#/$defs/A' }, { $defs: { A: inObject({ $ref: '#/$defs/B' }), B: string } });
  assert.equal(lowerForMessages(shared).isFaithful, true, 'two references to one definition are no circle');
});

test('types and choices do not write a large schema many times over, and one with thousands of keywords is not written', () => {
  const types = ['string', 'number', 'integer', 'boolean'];
  const nested = (leaf: JsonObject): JsonObject => {
    let schema: JsonObject = { type: types, ...leaf };
    for (let level = 0; level < 6; level += 1) schema = { type: types, anyOf: [schema, { type: 'null' }] };
    return { type: 'object', properties: { a: schema } };
  };
  const values = Array.from({ length: 10_000 }, (_, at) => `v${at}`);
  for (const leaf of [
    { example: 'x'.repeat(100_000) },
    { description: 'x'.repeat(100_000) },
    { enum: values },
    { not: values },
  ]) {
    const schema = nested(leaf);
    const lowered = lowerForMessages(schema);
    assert.equal(lowered.isFaithful, false);
    // Eight times, and once more what stood in the way; quotes within a description have a backslash each.
    const times = JSON.stringify(lowered.schema).length / JSON.stringify(schema).length;
    assert.ok(times < 16, `${JSON.stringify(leaf).slice(0, 40)}: ${times}`);
  }
  assert.equal(lowerForMessages(nested({ example: 'x' })).isFaithful, true);
  const keywords = (count: number): JsonObject => Object.fromEntries(values.slice(0, count).map((name) => [name, 1]));
  const held = (count: number): JsonObject => ({ type: 'object', properties: { a: { type: 'string', ...keywords(count) } } });
  assert.equal(lowerForMessages(held(200)).isFaithful, true);
  const { schema, isFaithful } = lowerForMessages(held(10_000));
  assert.deepEqual([isFaithful, schema['properties']], [false, { a: {} }]);
});

test('a strict tool with more members than OpenAI takes is sent without strict, and one that is as it should be is not changed', () => {
  const wide = (count: number): JsonObject => {
    const names = Array.from({ length: count }, (_, at) => `p${at}`);
    const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
    return { type: 'object', properties, required: names, additionalProperties: false };
  };
  const sent = (parameters: JsonObject) =>
    strictFunction({ kind: 'function', tool: { name: 'f' }, parameters, strict: true, at: 'tools[0]' }, 'messages');
  assert.deepEqual(sent(wide(5000)), { parameters: wide(5000), strict: true, isChanged: false });
  assert.deepEqual(sent({ ...wide(2), required: ['p1', 'p0'] }), { parameters: wide(2), strict: true, isChanged: true });
  assert.deepEqual(sent(wide(30_000)), { parameters: wide(30_000), isChanged: true });
});

test('the time to lower grows with the schema, not with its square', () => {
  const timeOf = (count: number): number => {
    const names = Array.from({ length: count }, (_, at) => `p${at}`);
    const properties = Object.fromEntries(names.map((name) => [name, { type: 'string' }]));
    const schema = { type: 'object', properties, required: names };
    const started = performance.now();
    lowerForMessages(schema);
    closedForOpenAi(schema);
    return performance.now() - started;
  };
  timeOf(2000);
  const small = Math.max(1, Math.min(timeOf(10_000), timeOf(10_000), timeOf(10_000)));
  assert.ok(Math.min(timeOf(40_000), timeOf(40_000), timeOf(40_000)) < small * 12);
});

test('OpenAI takes a strict tool whose members are all required; its objects are closed', () => {
  const inner = { type: 'object', properties: { b: string }, required: ['b'] };
  const schema = { type: 'object', properties: { a: inner, list: { type: 'array', items: inner } }, required: ['list', 'a'] };
  const closed = { ...inner, additionalProperties: false };
  assert.deepEqual(closedForOpenAi(schema), {
    type: 'object',
    properties: { a: closed, list: { type: 'array', items: closed } },
    required: ['a', 'list'],
    additionalProperties: false,
  });
  const either = (branch: JsonObject): JsonObject => ({
    type: 'object',
    properties: { a: { anyOf: [branch, string] } },
    required: ['a'],
  });
  assert.deepEqual(closedForOpenAi(either(inner)), { ...either(closed), additionalProperties: false });
  for (const refused of [
    either({ ...inner, required: [] }),
    { ...schema, required: ['a'] },
    { ...schema, properties: { ...schema.properties, a: { ...inner, required: [] } } },
    { ...schema, properties: { a: { type: 'object' }, list: string } },
    { ...schema, additionalProperties: string },
    { ...schema, allOf: [inner] },
    { anyOf: [inner] },
  ])
    assert.equal(closedForOpenAi(refused), undefined, JSON.stringify(refused));
});

test('a schema of thousands of strings is marked in steps, and written in as many', () => {
  const text = JSON.stringify({ enum: Array.from({ length: 20_000 }, (_, at) => `${at}x`) });
  let steps = 0;
  const rewriting = rewriteInSteps(text, function* (schema): Steps<JsonObject | undefined> {
    yield;
    return schema;
  });
  for (let step = rewriting.next(); step.done !== true; step = rewriting.next()) steps += 1;
  assert.ok(steps >= 2 * Math.floor(20_000 / 256), `${steps} steps`);
});

test('rewriting keeps the order of keys like numbers, and numbers that JavaScript cannot hold', () => {
  const text = '{"b":12345678901234567890,"2":{"enum":["7",1.0]},"1":"a \\"quoted\\" 5"}';
  assert.equal(
    rewriteText(text, (schema) => schema),
    text,
  );
  assert.equal(
    rewriteText(text, () => undefined),
    undefined,
  );
  assert.equal(
    rewriteText('{"a":"\\u0001"}', (schema) => schema),
    undefined,
    'a text that holds the mark is not rewritten',
  );
  const schema = parseJson('{"type":"object","properties":{"n":{"type":"number","maximum":12345678901234567890}}}');
  assert.ok(isObject(schema));
  const exact = '{"type":"object","properties":{"n":{"type":"number","maximum":12345678901234567890}}}';
  const lowered = rewriteText(exact, (original) => lowerForMessages(original).schema);
  assert.match(lowered ?? '', /maximum: 12345678901234567890/);
});
