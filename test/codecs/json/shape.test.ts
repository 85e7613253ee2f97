/**
 * Which texts have the shape of another, and what they say. What a parser would refuse, or read otherwise, must never be
 * recognised.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type JsonValue, parseJson, tryJson } from '../../../src/codecs/canonical/json.ts';
import { editShape, fill, holeAt, holeValue, type JsonShape, jsonOf, rawsOf, shapeOf } from '../../../src/codecs/json/shape.ts';
import { editJson } from '../../../src/codecs/json/edit.ts';
import type { JsonPath } from '../../../src/codecs/json/text.ts';

const NUMBER: JsonPath = ['n'];
const WORD: JsonPath = ['c', 1, 'w'];
const of = (number: string, word: string): string => `{"n":${number},"c":["x",{"w":${word},"y":[1]}],"z":"\\\\x"}`;

function shapeIn(text: string, paths: readonly JsonPath[]): JsonShape {
  return shapeOf(text, parseJson(text), paths) ?? assert.fail('it has holes');
}

const shape = shapeIn(of('1', '"a"'), [WORD, NUMBER]);

/** What the text says where it is recognised; asserts that a parser reads the same. */
function read(text: string): JsonValue | undefined {
  const raws = rawsOf(text, shape);
  if (raws === undefined) return undefined;
  const said = jsonOf({ shape, raws });
  assert.deepEqual(said, tryJson(text), text);
  assert.equal(fill(shape.literals, raws), text);
  return said;
}

test('plain whole numbers are read, whatever else a number can be is left to the parser', () => {
  for (const number of ['0', '7', '9', '10', '19', '90', '123456789012345']) assert.ok(read(of(number, '"a"')), number);
  for (const number of [
    '',
    '-1',
    '01',
    '00',
    '1.5',
    '1e3',
    '1234567890123456',
    '/',
    ':',
    '1:',
    ' 1',
    '1 ',
    'null',
    '"1"',
    'true',
  ])
    assert.equal(read(of(number, '"a"')), undefined, number);
});

test('whole strings are read, with every escape that is one', () => {
  const strings = [
    '""',
    '"b"',
    '"b c"',
    '"水"',
    '"\\n"',
    '"\\u00e9"',
    '"\\\\"',
    '"\\""',
    '"a\\"b"',
    '"}],"',
    '"\\\\\\""',
    '"\u007f"',
  ];
  for (const word of strings) assert.ok(read(of('1', word)), word);
});

test('what is no string, or none that a parser takes, is not recognised', () => {
  const others = [
    '',
    'a',
    '7',
    'null',
    '"',
    '"a',
    '"a\\"',
    '"\\x"',
    '"\\u12"',
    '"\\u12g4"',
    '"a\nb"',
    '"\t"',
    '"\u0000"',
    '"\u001f"',
    '"a" ',
    ' "a"',
  ];
  for (const word of others) assert.equal(read(of('1', word)), undefined, word);
  // Nothing at all, where the rest of the text follows at once.
  const list = shapeIn('["a"]', [[0]]);
  assert.deepEqual([rawsOf('["b"]', list), rawsOf('[]', list), rawsOf('[5]', list)], [['"b"'], undefined, undefined]);
});

test('everything around the holes is the same to the last character', () => {
  const text = of('2', '"b"');
  assert.ok(read(text));
  for (let at = 0; at < text.length; at++) {
    if (/[2b]/.test(text.charAt(at))) continue;
    assert.equal(rawsOf(`${text.slice(0, at)}~${text.slice(at + 1)}`, shape), undefined, String(at));
  }
  for (const other of [`${text} `, ` ${text}`, text.slice(0, -1), '', `${text}${text}`])
    assert.equal(rawsOf(other, shape), undefined, other);
});

test('a text that is recognised takes nothing from the one that it was learnt from', () => {
  const before = structuredClone(shape.json);
  const said = read(of('5', '"new"'));
  assert.deepEqual(said, { n: 5, c: ['x', { w: 'new', y: [1] }], z: '\\x' });
  assert.deepEqual(shape.json, before);
});

test('holes stand in the order of the text, and are found by their path', () => {
  assert.deepEqual([holeAt(shape, NUMBER), holeAt(shape, WORD), holeAt(shape, ['z'])], [0, 1, -1]);
  const repeat = { shape, raws: ['12', '"a\\tb"'] };
  assert.equal(holeValue(repeat, 0), 12);
  assert.equal(holeValue(repeat, 1), 'a\tb');
  assert.equal(holeValue({ shape, raws: ['12', '"plain"'] }, 1), 'plain');
});

test('without a hole there is no shape, and a path that leads nowhere is none', () => {
  const text = of('1', '"a"');
  assert.equal(shapeOf(text, parseJson(text), []), undefined);
  assert.deepEqual(
    shapeIn(text, [WORD, ['c', 7]]).holes.map(({ path }) => path),
    [WORD],
  );
});

test('edits beside the holes are edits of every such text; one that touches a hole is none', () => {
  const edits = [
    { path: ['z'], value: undefined },
    { path: ['c', 1, 'y'], value: '2' },
    { path: ['c', 0], value: undefined },
    { path: ['added'], value: 'true' },
  ];
  const literals = editShape(shape, edits) ?? assert.fail('they touch no hole');
  for (const [number, word] of [
    ['1', '"a"'],
    ['77', '"b\\n"'],
  ] as const)
    assert.equal(fill(literals, rawsOf(of(number, word), shape) ?? []), editJson(of(number, word), edits));
  for (const path of [NUMBER, WORD, ['c'], ['c', 1], []]) {
    assert.equal(editShape(shape, [{ path, value: '0' }]), undefined, JSON.stringify(path));
    assert.equal(
      editShape(shape, [
        { path: ['z'], value: '0' },
        { path, value: '0' },
      ]),
      undefined,
      JSON.stringify(path),
    );
  }
});
