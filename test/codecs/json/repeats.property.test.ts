import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { JsonRepeats } from '../../../src/codecs/json/repeats.ts';
import { editShape, fill, holeValue, type JsonShape, jsonOf } from '../../../src/codecs/json/shape.ts';
import { editJson } from '../../../src/codecs/json/edit.ts';

const PATHS = [['choices', 0, 'delta', 'content'], ['created'], ['delta'], ['sequence_number']] as const;

const scalar = fc.oneof(
  fc.string({ unit: 'grapheme' }),
  fc.constantFrom('', '"', '\\', '\\"', '\n', '\u2028', '","x":"', '水', 'a\\', '}]}'),
  fc.integer(),
  fc.double(),
  fc.constantFrom(null, true, 0, -1, 1e21, 12.5),
  fc.dictionary(fc.string(), fc.string(), { maxKeys: 2 }),
);
const event = fc.record(
  {
    id: fc.constantFrom('a', 'b'),
    __proto__: fc.constant(1),
    choices: fc.array(
      fc.record({ index: fc.constant(0), delta: fc.record({ content: scalar, role: fc.constantFrom('x', 'y') }) }),
      {
        maxLength: 2,
      },
    ),
    created: scalar,
    delta: scalar,
    sequence_number: scalar,
    usage: fc.constantFrom(null, 1),
  },
  { requiredKeys: ['id'] },
);
const spacing = fc.constantFrom(undefined, 1);
/** Mostly the same event with other scalars, as in a stream. */
const stream = fc
  .tuple(event, fc.array(fc.tuple(event, fc.boolean()), { minLength: 1, maxLength: 12 }), spacing)
  .map(([first, rest, space]) =>
    rest.map(([other, fresh]) =>
      JSON.stringify(
        fresh ? other : { ...first, delta: other.delta ?? 'x', sequence_number: other.sequence_number ?? 7 },
        null,
        space,
      ),
    ),
  );

/** Damage that must not be taken for a repetition. */
const damage = fc.constantFrom(
  (text: string) => text,
  (text: string) => `${text} `,
  (text: string) => text.slice(0, -1),
  (text: string) => text.replace('"delta":"', '"delta":"\n'),
  (text: string) => text.replace('"delta":', '"delta":0'),
  (text: string) => text.replace('"delta":"', '"delta":"\\x'),
  (text: string) => text.replace(/"sequence_number":(\d)/, '"sequence_number":0$1'),
  (text: string) => text.replace('"id":"a"', '"id":"a","delta":"first"'),
);

test('a recognised text parses to what JSON.parse says, and nothing that does not parse is recognised', () => {
  fc.assert(
    fc.property(stream, fc.array(damage, { minLength: 12, maxLength: 12 }), (texts, damages) => {
      const repeats = new JsonRepeats(PATHS);
      for (const [at, clean] of texts.entries()) {
        const text = damages[at]?.(clean) ?? clean;
        const repeat = repeats.match(text);
        if (repeat !== undefined) {
          assert.deepEqual(jsonOf(repeat), JSON.parse(text));
          assert.equal(fill(repeat.shape.literals, repeat.raws), text);
          continue;
        }
        let json: unknown;
        try {
          json = JSON.parse(text);
        } catch (error) {
          assert.ok(error instanceof SyntaxError);
          continue;
        }
        const learnt = repeats.learn(text, JSON.parse(text));
        if (learnt !== undefined) assert.deepEqual(jsonOf(learnt), json);
      }
    }),
    { numRuns: 2000 },
  );
});

test('a hole is read without the rest as it is read with it, and of no text that is not recognised', () => {
  fc.assert(
    fc.property(stream, fc.array(damage, { minLength: 12, maxLength: 12 }), (texts, damages) => {
      const [whole, alone] = [new JsonRepeats(PATHS), new JsonRepeats(PATHS)];
      let shape: JsonShape | undefined;
      for (const [at, clean] of texts.entries()) {
        const text = damages[at]?.(clean) ?? clean;
        const repeat = whole.match(text);
        for (const [hole] of shape?.holes.entries() ?? []) {
          const expected = repeat === undefined ? undefined : holeValue(repeat, hole);
          assert.deepEqual(shape && alone.valueIn(text, shape, hole), expected);
        }
        if (repeat !== undefined || !isJson(text)) continue;
        whole.learn(text, JSON.parse(text));
        shape = alone.learn(text, JSON.parse(text))?.shape;
      }
    }),
    { numRuns: 1000 },
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

test('edits of a shape are the edits of each text, or none where a hole is touched', () => {
  const edits = [
    { path: ['id'], value: '"mine"' },
    { path: ['model'], value: '"m"' },
    { path: ['usage'], value: undefined },
  ];
  fc.assert(
    fc.property(stream, (texts) => {
      const repeats = new JsonRepeats(PATHS);
      for (const text of texts) {
        const repeat = repeats.match(text) ?? repeats.learn(text, JSON.parse(text));
        if (repeat === undefined) continue;
        const literals = editShape(repeat.shape, edits);
        assert.ok(literals !== undefined);
        assert.equal(fill(literals, repeat.raws), editJson(text, edits));
        for (const { path } of repeat.shape.holes) assert.equal(editShape(repeat.shape, [{ path, value: '0' }]), undefined);
      }
    }),
  );
});

const WORDS = ['wa', 'ter', '水 "quoted" \\ \n', 'é'];

function recognised(texts: readonly string[]): boolean[] {
  const repeats = new JsonRepeats(PATHS);
  return texts.map((text) => {
    const repeat = repeats.match(text);
    if (repeat === undefined) repeats.learn(text, JSON.parse(text));
    return repeat !== undefined;
  });
}

test('a stream is recognised from its second text on', () => {
  const texts = WORDS.map((content) => JSON.stringify({ id: 'a', created: 7, choices: [{ index: 0, delta: { content } }] }));
  assert.deepEqual(recognised(texts), [false, true, true, true]);
});

test('a number that changes is a hole from its first change on', () => {
  const counted = WORDS.map((delta, at) => JSON.stringify({ delta, sequence_number: at }));
  assert.deepEqual(recognised(counted), [false, false, true, true]);
  const announced = [JSON.stringify({ type: 'created', sequence_number: 5 }), ...counted.map((text) => text)];
  assert.deepEqual(recognised(announced), [false, false, true, true, true]);
});

test('a stream that never repeats itself is let be for a while, and looked at again', () => {
  const repeats = new JsonRepeats(PATHS);
  const learnt = Array.from({ length: 49 }, (_, at) => {
    const text = JSON.stringify({ delta: 'a', at });
    return repeats.learn(text, JSON.parse(text)) !== undefined;
  });
  const [some, none] = [Array(16).fill(true), Array(16).fill(false)];
  assert.deepEqual(learnt, [...some, ...none, true, ...Array(16).fill(true)]);
});

test('a text that fits begins the count anew', () => {
  const repeats = new JsonRepeats(PATHS);
  for (let at = 0; at < 100; at++) {
    const text = JSON.stringify({ delta: 'a', at: at >> 1 });
    if (repeats.match(text) !== undefined) continue;
    assert.ok(repeats.learn(text, JSON.parse(text)), String(at));
  }
});

test('what says no word has no shape: an empty one, or a number that changes alone', () => {
  const repeats = new JsonRepeats(PATHS);
  for (const json of [{ delta: '' }, { sequence_number: 1 }, { sequence_number: 2 }, { delta: '', sequence_number: 3 }]) {
    const text = JSON.stringify(json);
    assert.equal(repeats.learn(text, json), undefined, text);
  }
});

test('a number that stays is no hole, so that a text in which it changes is parsed', () => {
  const repeats = new JsonRepeats(PATHS);
  const textOf = (delta: string, created: number): string => JSON.stringify({ created, delta });
  repeats.learn(textOf('a', 7), { created: 7, delta: 'a' });
  repeats.learn(textOf('b', 7), { created: 7, delta: 'b' });
  assert.ok(repeats.match(textOf('c', 7)));
  assert.equal(repeats.match(textOf('c', 8)), undefined);
});

test('a long text is no shape, and nothing of it is kept', () => {
  const repeats = new JsonRepeats(PATHS);
  const text = (delta: string): string => JSON.stringify({ delta });
  assert.ok(repeats.learn(text('a'), { delta: 'a' }) !== undefined);
  const long = 'x'.repeat(20_000);
  assert.equal(repeats.learn(text(long), { delta: long }), undefined);
  assert.equal(repeats.match(text('b')), undefined);
  assert.ok(repeats.learn(text('c'), { delta: 'c' }) !== undefined);
  assert.ok(repeats.match(text('d')) !== undefined);
});
