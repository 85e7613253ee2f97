/**
 * A large text parsed in steps is what `JSON.parse` makes of it, whether that is a value or an error; and the same of writing it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { isObject, tryJson } from '../../../src/codecs/canonical/json.ts';
import { isObjectInSteps, parseInSteps } from '../../../src/codecs/json/parse-in-steps.ts';
import { writeInSteps } from '../../../src/codecs/json/write-in-steps.ts';
import { atOnce } from '../../../src/codecs/steps.ts';
import { drawn, isWhole } from '../../support/sampled.ts';

const outcome = (parse: () => unknown): string => {
  try {
    return JSON.stringify(parse());
  } catch (thrown) {
    assert.ok(thrown instanceof SyntaxError);
    return 'no JSON';
  }
};

const filler = (size: number): string => JSON.stringify(Array.from({ length: size / 8 }, (_, at) => at % 10_000));
const long = filler(40_000);
const SAMPLES: readonly string[] = [
  `{"a":${long},"b":[${long},${long}],"c":{"d":{"e":${long}}},"f":1}`,
  `[${long},[],{},"x",${long},null]`,
  ` { "__proto__" : { "x" : ${long} } , "a" : 1 , "a" : ${long}, "2":0, "1":[${long}] } `,
  `{"\\u0061\\"":${long},"text":"${'[{\\"'.repeat(20_000)}"}`,
  `[${' '.repeat(40_000)}]`,
  `{${'\n'.repeat(40_000)}}`,
  `${'['.repeat(50)}${long}${']'.repeat(50)}`,
  `{${Array.from({ length: 5_000 }, (_, at) => `"key ${at % 4_000}":"value"`).join()}}`,
];

/** Strings that are read and written in pieces, with whatever may stand where two meet. */
const MEGABYTE = 1024 * 1024;
const LONG_STRINGS: readonly string[] = [
  'x'.repeat(3 * MEGABYTE),
  `\\`.repeat(MEGABYTE),
  `a${'\\\\'.repeat(MEGABYTE)}`,
  ...[0, 1, 2, 3, 4, 5].map((at) => `${'x'.repeat(MEGABYTE - at)}${'\\u00e9'.repeat(9)}${'y'.repeat(MEGABYTE)}`),
  ...[0, 1].map((at) => `${'x'.repeat(MEGABYTE - at)}${'😀'.repeat(9)}${'y'.repeat(MEGABYTE)}`),
  ...[0, 1].map((at) => `${'x'.repeat(at)}${'😀'.repeat(MEGABYTE)}`),
  `${'\\ud83d\\ude00'.repeat(MEGABYTE / 6)}\\ud83d`,
  `${'\\n\\"\\u0041'.repeat(MEGABYTE / 5)}`,
];

test('long strings are the same, whatever stands where two pieces meet', () => {
  for (const [index, string] of drawn(LONG_STRINGS, 5, 'long strings').entries()) {
    const text = `{"a":"${string}","b":["${string}" , 1],"${string}":{"c":"${string}"}}`;
    const value = JSON.parse(text);
    assert.ok(isDeepStrictEqual(atOnce(parseInSteps(text)), value), `string ${index} is read as another`);
    assert.ok(atOnce(writeInSteps(value)) === JSON.stringify(value), `string ${index} is written as another`);
    let steps = 0;
    for (const parse = parseInSteps(text); parse.next().done !== true; ) steps += 1;
    assert.ok(steps > 6, `${steps} steps`);
    // What is in the strings should not matter here.
    if (index > 0 && !isWhole) continue;
    for (const broken of [
      text.replace('"a"', '"a'),
      `${text.slice(0, -2)}}`,
      text.replace(' , 1', ' 1'),
      text.replace('"b":', '"b"'),
    ])
      assert.throws(() => atOnce(parseInSteps(broken)), SyntaxError);
  }
});

test('what is valid is the same value, with members in the same order', () => {
  for (const text of SAMPLES) {
    const parsed = atOnce(parseInSteps(text));
    assert.equal(JSON.stringify(parsed), JSON.stringify(JSON.parse(text)));
    assert.deepEqual(parsed, JSON.parse(text));
  }
});

test('what is not is an error, wherever it is broken', () => {
  // A comma at the very end, behind whole pieces and behind a rest of one.
  for (const count of [40_000, 50_000, 60_001])
    for (const broken of [`[${'1,'.repeat(count)}]`, `{${'"a":1,'.repeat(count)}}`, `[[${'1,'.repeat(count)}],2]`])
      assert.throws(() => atOnce(parseInSteps(broken)), SyntaxError, String(count));
  const structure = fc.constantFrom('', ',', ':', '{', '}', '[', ']', '"', '1', ' ', 'null', ',,', '\\', '[]', '"a":');
  fc.assert(
    fc.property(
      fc.constantFrom(...SAMPLES),
      fc.double({ min: 0, max: 1, noNaN: true }),
      structure,
      fc.boolean(),
      (text, where, put, near) => {
        // Mostly where two pieces meet: at the ends of the long lists.
        const ends = [...text.matchAll(/\[0,1,2|\]\s*[,\]}]|"\s*:/g)].map(({ index }) => index);
        const at = near ? (ends[Math.floor(where * ends.length)] ?? 0) : Math.floor(where * text.length);
        const broken = text.slice(0, at) + put + text.slice(at + 1);
        assert.equal(
          outcome(() => atOnce(parseInSteps(broken))),
          outcome(() => JSON.parse(broken)),
        );
      },
    ),
    { numRuns: 300 },
  );
});

test('it takes as many steps as the text has pieces, however it is nested', () => {
  for (const text of [SAMPLES[0] ?? '', `${'['.repeat(400)}${filler(4_000_000)}${']'.repeat(400)}`]) {
    let steps = 0;
    for (const parse = parseInSteps(text); parse.next().done !== true; ) steps += 1;
    assert.ok(steps >= text.length / 64 / 1024, `${steps} steps for ${text.length} characters`);
  }
});

test('what is nested hundreds of thousands deep is read as the parser reads it, and takes no call for each level', () => {
  const deep = 200_000;
  for (const text of [
    `${'{"a":'.repeat(deep)}1${'}'.repeat(deep)}`,
    `{"content":"x","extra":${'['.repeat(deep)}${']'.repeat(deep)}}`,
    `[${'['.repeat(400)}${filler(40_000)}${']'.repeat(400)},${'['.repeat(600)}${filler(40_000)}${']'.repeat(600)}]`,
  ]) {
    const value = atOnce(parseInSteps(text));
    let depth = 0;
    // Comparing, and writing, would take a call for each level.
    for (let each: unknown = value; typeof each === 'object' && each !== null; depth++) each = Object.values(each).at(-1);
    assert.ok(depth > 600 && isObject(value) === text.startsWith('{'));
  }
});

test('a text is an object exactly where the parser says so, however broken it is, and nothing of it is kept', () => {
  const verdict = (text: string): boolean => isObject(tryJson(text));
  for (const text of SAMPLES) {
    assert.equal(atOnce(isObjectInSteps(text)), verdict(text));
    const held = ` {"a":${text}, "b":"${'x'.repeat(1_100_000)}"} `;
    assert.equal(atOnce(isObjectInSteps(held)), true);
    for (const at of [1, 5, held.length / 3, held.length / 2, held.length - 3].map(Math.floor)) {
      const broken = `${held.slice(0, at)}}${held.slice(at + 1)}`;
      assert.equal(atOnce(isObjectInSteps(broken)), verdict(broken), `broken at ${at}`);
    }
  }
  for (const text of ['', ' ', '{', '{}', ' {"a":1} ', '[]', '"{}"', '{"a":1}}', 'null'])
    assert.equal(atOnce(isObjectInSteps(text)), verdict(text), text);
  assert.equal(atOnce(isObjectInSteps(`${'{"a":'.repeat(600)}1${'}'.repeat(600)}`)), false, 'deeper than any real call');
});

test('a long text deep in a value is written in pieces, too', () => {
  const quotes = '\\"x'.repeat(2_000_000);
  let steps = 0;
  for (const write = writeInSteps({ messages: [{ calls: [{ f: { input: quotes } }] }] }); write.next().done !== true; )
    steps += 1;
  assert.ok(steps >= quotes.length / 1024 / 1024, `${steps} steps`);
  const mixed = { a: ['b', quotes, 'c', { d: quotes, e: 'f' }], g: 1, h: quotes };
  assert.ok(atOnce(writeInSteps(mixed)) === JSON.stringify(mixed));
});

test('what is written in steps is what `JSON.stringify` writes', () => {
  for (const text of SAMPLES) {
    const value = JSON.parse(text);
    assert.equal(atOnce(writeInSteps(value)), JSON.stringify(value));
  }
  const gaps = Array.from({ length: 9_000 }, (_, at) => ({
    [`m${at}`]: at % 2 === 0 ? undefined : at,
    n: [undefined, null, Number.POSITIVE_INFINITY],
  }));
  assert.equal(atOnce(writeInSteps([gaps, { gaps }] as never)), JSON.stringify([gaps, { gaps }]));
});
