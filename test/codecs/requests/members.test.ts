import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import { CLIENTS } from '../../../src/codecs/registry.ts';
import {
  optionalArray,
  optionalBoolean,
  optionalInteger,
  optionalNumber,
  optionalObject,
  optionalString,
  optionalStrings,
  requiredName,
  requiredString,
} from '../../../src/codecs/requests/members.ts';

function refusal(read: () => unknown): string {
  try {
    return `no refusal: ${JSON.stringify(read())}`;
  } catch (error) {
    assert.ok(error instanceof GatewayError);
    return `${error.code} ${error.details.param}: ${error.message}`;
  }
}

const OPTIONAL = {
  optionalString: ['text', 1, 'a string'],
  optionalBoolean: [false, 0, 'a boolean'],
  optionalNumber: [0.5, '0.5', 'a number'],
  optionalInteger: [-3, 0.5, 'an integer'],
  optionalObject: [{}, [], 'an object'],
  optionalArray: [[], {}, 'an array'],
  optionalStrings: [['a', ''], 'a', 'an array'],
} as const;
const READERS = {
  optionalString,
  optionalBoolean,
  optionalNumber,
  optionalInteger: (json: JsonObject, key: string, path?: string) => optionalInteger(json, key, {}, path),
  optionalObject,
  optionalArray,
  optionalStrings,
};

for (const [name, read] of Object.entries(READERS)) {
  test(`${name}: null is absent, another type is refused at its path`, () => {
    const [good, bad, wanted] = OPTIONAL[name as keyof typeof OPTIONAL];
    assert.deepEqual(read({ member: good }, 'member'), good);
    assert.deepEqual([read({}, 'member'), read({ member: null }, 'member')], [undefined, undefined]);
    assert.equal(
      refusal(() => read({ member: bad }, 'member', 'tools[0]')),
      `invalid_request tools[0].member: 'tools[0].member' must be ${wanted}.`,
    );
  });
}

test('numbers: none that JSON spells and no number holds, and integers within their bounds', () => {
  const json: JsonObject = JSON.parse('{"huge": 1e999, "rough": 9007199254740993, "four": 4}');
  const said = [
    refusal(() => optionalNumber(json, 'huge')),
    refusal(() => optionalInteger(json, 'rough')),
    refusal(() => optionalInteger(json, 'four', { least: 5 })),
    refusal(() => optionalInteger(json, 'four', { most: 3 }, 'at')),
    optionalInteger(json, 'four', { least: 4, most: 4 }),
  ];
  assert.deepEqual(said, [
    "invalid_request huge: 'huge' must be a number.",
    "invalid_request rough: 'rough' must be an integer.",
    "invalid_request four: 'four' must be at least 5.",
    "invalid_request at.four: 'at.four' must be at most 3.",
    4,
  ]);
});

test('required: a string may be empty, a name may not, and neither may be missing', () => {
  assert.equal(requiredString({ text: '' }, 'text'), '');
  assert.equal(
    refusal(() => requiredName({ name: '' }, 'name')),
    "invalid_request name: 'name' must not be empty.",
  );
  assert.equal(
    refusal(() => requiredName({ name: null }, 'name', 'tool')),
    "invalid_request tool.name: Missing required parameter: 'tool.name'.",
  );
});

test('an entry of a list of strings is named', () => {
  assert.equal(
    refusal(() => optionalStrings({ stop: ['a', 1] }, 'stop')),
    "invalid_request stop[1]: 'stop[1]' must be a string.",
  );
});

test('every client protocol refuses a temperature that no number holds', () => {
  const context = { mint: (prefix: string) => prefix, open: () => undefined };
  for (const codec of Object.values(CLIENTS)) {
    const text =
      '{"model":"m","messages":[{"role":"user","content":"hi"}],"input":"hi","prompt":"hi","max_tokens":9,"temperature":1e999}';
    assert.equal(
      refusal(() => codec.decodeRequest(text, JSON.parse(text), context)),
      "invalid_request temperature: 'temperature' must be a number.",
      codec.dialect,
    );
  }
});
