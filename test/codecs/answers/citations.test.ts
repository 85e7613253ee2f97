import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Citation } from '../../../src/codecs/canonical/item.ts';
import {
  codePointLength,
  fitCitations,
  CodePointCounter,
  TextPositions,
  type TextUnit,
} from '../../../src/codecs/answers/citations.ts';

const text = 'aé漢😀z';
const places = new TextPositions(text);
const cite = (start?: number, end?: number): Citation => ({
  kind: 'url',
  url: 'https://e.x',
  ...(start === undefined ? {} : { start }),
  ...(end === undefined ? {} : { end }),
});

test('positions convert between code points, UTF-16 units and UTF-8 bytes', () => {
  const table = [
    [0, 0, 0],
    [1, 1, 1],
    [2, 2, 3],
    [3, 3, 6],
    [4, 5, 10],
    [5, 6, 11],
  ] as const;
  for (const [codePoint, utf16, utf8] of table) {
    assert.equal(places.convert(codePoint, 'codePoint', 'utf16'), utf16);
    assert.equal(places.convert(codePoint, 'codePoint', 'utf8'), utf8);
    assert.equal(places.convert(utf8, 'utf8', 'codePoint'), codePoint);
    assert.equal(places.convert(utf16, 'utf16', 'codePoint'), codePoint);
  }
  assert.equal(codePointLength(text), 5);
});

test('thousands of positions near the end of a long text are found without walking there each time', () => {
  const long = 'aé漢😀'.repeat(250_000);
  const [bytes, positions] = [Buffer.byteLength(long), new TextPositions(long)];
  const before = process.threadCpuUsage();
  for (let at = 0; at < 5_000; at += 1) assert.ok(positions.convert(bytes - 10 * at, 'utf8', 'codePoint') !== undefined);
  const { user, system } = process.threadCpuUsage(before);
  assert.ok(user + system < 2e6, `${(user + system) / 1000} ms`);
});

test('a position inside a character, negative, fractional or past the end fits nothing', () => {
  assert.equal(places.convert(2, 'utf8', 'codePoint'), undefined);
  assert.equal(places.convert(4, 'utf16', 'codePoint'), undefined);
  assert.equal(places.convert(-1, 'utf8', 'codePoint'), undefined);
  assert.equal(places.convert(0.5, 'utf8', 'codePoint'), undefined);
  assert.equal(places.convert(12, 'utf8', 'codePoint'), undefined);
  assert.equal(places.convertSpan({ start: 3, end: 1 }, 'utf8', 'codePoint'), undefined);
  assert.deepEqual(places.convertSpan({ start: 1, end: 10 }, 'utf8', 'codePoint'), { start: 1, end: 4 });
});

test('a lone surrogate counts as one character of three bytes', () => {
  assert.equal(codePointLength('\ud800x'), 2);
  assert.equal(new TextPositions('\ud800x').convert(3, 'utf8', 'codePoint'), 1);
});

test('citations that no longer fit lose their position, not their URL', () => {
  assert.deepEqual(fitCitations('abc', [cite(0, 3), cite(0, 4), cite(2, 1), cite(1), cite()]), [
    cite(0, 3),
    cite(),
    cite(),
    cite(),
    cite(),
  ]);
  const native: Citation = { kind: 'native', dialect: 'messages', body: { type: 'char_location' } };
  assert.deepEqual(fitCitations('', [native]), [native]);
});

const anyText = fc.array(fc.constantFrom('a', 'é', '漢', '😀', '\ud800', '\udc00', 'word '.repeat(40)), { maxLength: 60 });

test('property: places of a long text are those that counting from its beginning finds, in whatever order they are asked for', () => {
  const question = fc.record({ place: fc.nat(3000), from: unit(), to: unit() });
  fc.assert(
    fc.property(anyText, fc.array(question, { maxLength: 20 }), (pieces, questions) => {
      const whole = pieces.join('');
      const asked = new TextPositions(whole);
      const all = placesOf(whole);
      for (const { place, from, to } of questions)
        assert.equal(asked.convert(place, from, to), all.find((counts) => counts[from] === place)?.[to]);
    }),
  );
});

test('property: a text that grows has the length that it would have counted anew', () => {
  fc.assert(
    fc.property(anyText, (pieces) => {
      const length = new CodePointCounter();
      let whole = '';
      // Long pieces are counted another way.
      for (const piece of [...pieces, ...pieces.map((each) => each.repeat(300)), ...pieces]) {
        whole += piece;
        assert.equal(length.add(piece), codePointLength(whole));
      }
    }),
  );
});

function unit() {
  return fc.constantFrom<TextUnit>('codePoint', 'utf16', 'utf8');
}

/** Every place between two characters, in all units. */
function placesOf(whole: string): Record<TextUnit, number>[] {
  const found = [{ codePoint: 0, utf16: 0, utf8: 0 }];
  let [utf16, utf8] = [0, 0];
  for (const [index, character] of [...whole].entries()) {
    utf16 += character.length;
    utf8 += Buffer.byteLength(character);
    found.push({ codePoint: index + 1, utf16, utf8 });
  }
  return found;
}
