import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Citation } from '../../../src/codecs/canonical/item.ts';
import { codePointLength, convertPosition, convertSpan, fitCitations } from '../../../src/codecs/answers/citations.ts';

const text = 'aé漢😀z';
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
    assert.equal(convertPosition(text, codePoint, 'codePoint', 'utf16'), utf16);
    assert.equal(convertPosition(text, codePoint, 'codePoint', 'utf8'), utf8);
    assert.equal(convertPosition(text, utf8, 'utf8', 'codePoint'), codePoint);
    assert.equal(convertPosition(text, utf16, 'utf16', 'codePoint'), codePoint);
  }
  assert.equal(codePointLength(text), 5);
});

test('a position inside a character, negative, fractional or past the end fits nothing', () => {
  assert.equal(convertPosition(text, 2, 'utf8', 'codePoint'), undefined);
  assert.equal(convertPosition(text, 4, 'utf16', 'codePoint'), undefined);
  assert.equal(convertPosition(text, -1, 'utf8', 'codePoint'), undefined);
  assert.equal(convertPosition(text, 0.5, 'utf8', 'codePoint'), undefined);
  assert.equal(convertPosition(text, 12, 'utf8', 'codePoint'), undefined);
  assert.equal(convertSpan(text, { start: 3, end: 1 }, 'utf8', 'codePoint'), undefined);
  assert.deepEqual(convertSpan(text, { start: 1, end: 10 }, 'utf8', 'codePoint'), { start: 1, end: 4 });
});

test('a lone surrogate counts as one character of three bytes', () => {
  assert.equal(codePointLength('\ud800x'), 2);
  assert.equal(convertPosition('\ud800x', 3, 'utf8', 'codePoint'), 1);
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
