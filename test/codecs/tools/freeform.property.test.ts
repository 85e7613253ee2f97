/** Freeform texts through the function that stands for them: whole, in pieces, and as models misspell them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FreeformReader, unwrapFreeform, wrapFreeform } from '../../../src/codecs/tools/freeform.ts';
import { fractions, text } from '../../support/arbitraries/response.ts';

/** JSON text cut anywhere, inside escapes and surrogate pairs too. */
function pieces(wire: string, at: readonly number[]): string[] {
  const points = [0, ...at.map((fraction) => Math.floor(fraction * wire.length)).sort((a, b) => a - b), wire.length];
  return points.slice(1).map((point, index) => wire.slice(points[index], point));
}

/** Every character spelled as an escape. */
const spelledOut = (value: string): string =>
  [...value.split('')].map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`).join('');

test('any text comes out as it went in, whatever the cuts, and never half a character at a time', () => {
  fc.assert(
    fc.property(text(), fractions, fc.boolean(), (value, cuts, escaped) => {
      const wire = escaped ? ` { "input" : "${spelledOut(value)}" } ` : wrapFreeform(value);
      assert.equal(unwrapFreeform(wire), value);
      const reader = new FreeformReader();
      const said = [...pieces(wire, cuts).map((piece) => reader.push(piece)), reader.end()];
      assert.equal(said.join(''), value);
      assert.equal(reader.text, value);
      assert.ok(said.every((piece) => piece.isWellFormed()));
      assert.ok(reader.isWhole);
    }),
  );
});

test('whatever the arguments are, pieces say what the whole says', () => {
  const json = fc.jsonValue({ maxDepth: 2 }).map((value) => JSON.stringify(value));
  const wild = fc.oneof(
    json,
    fc.string(),
    fc.string().map((value) => `{"input":"${value}`),
  );
  fc.assert(
    fc.property(wild, fractions, (wire, cuts) => {
      const reader = new FreeformReader();
      const said = [...pieces(wire, cuts).map((piece) => reader.push(piece)), reader.end()];
      assert.equal(said.join(''), reader.text);
      assert.equal(reader.text, unwrapFreeform(wire));
    }),
  );
});

test('megabytes in one piece, many escapes and endless white space are read once', () => {
  const plain = 'x'.repeat(20_000_000);
  assert.equal(unwrapFreeform(wrapFreeform(plain)), plain);
  const escaped = 'a\\"\n'.repeat(400_000);
  assert.equal(unwrapFreeform(wrapFreeform(escaped)), escaped);
  const spaces = new FreeformReader();
  for (let piece = 0; piece < 100_000; piece++) spaces.push('   ');
  assert.equal(spaces.push('{"input":"a"}') + spaces.end(), 'a');
});

test('the only string of another object, bare text, unknown escapes and a cut', () => {
  assert.equal(unwrapFreeform('{"patch":"text"}'), 'text');
  assert.equal(unwrapFreeform('{"why":"x","input":"text"}'), 'text');
  assert.equal(unwrapFreeform('{"a":"x","b":"y"}'), '{"a":"x","b":"y"}');
  assert.equal(unwrapFreeform('{"input":{"a":1}}'), '{"input":{"a":1}}');
  assert.equal(unwrapFreeform('*** Begin Patch'), '*** Begin Patch');
  assert.equal(unwrapFreeform('{ not json'), '{ not json');
  assert.equal(unwrapFreeform(''), '');
  assert.equal(unwrapFreeform('{"input":"a\\d\\u12x\nb"}'), 'a\\d\\u12x\nb');
  assert.equal(unwrapFreeform('{"input":"\\d\\u0041\\n"}'), '\\dA\n');
  // Beside what is no JSON the known ones are what they are.
  assert.equal(unwrapFreeform('{"input":"\n\\"\\\\\\/\\b\\f\\n\\r\\t"}'), '\n"\\/\b\f\n\r\t');
  const cut = new FreeformReader();
  assert.equal(cut.push('{"input":"half\\u00') + cut.end(), 'half');
  assert.equal(cut.isWhole, false);
});
