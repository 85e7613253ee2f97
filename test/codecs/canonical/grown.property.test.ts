/** Law: a text that grew is the concatenation of its pieces, wherever it was joined. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { grown } from '../../../src/codecs/canonical/grown.ts';

const pieces = fc.array(fc.oneof(fc.string(), fc.string({ unit: 'binary', minLength: 200, maxLength: 3000 })), { maxLength: 60 });

test('a text that grew is the concatenation of its pieces', () => {
  fc.assert(
    fc.property(pieces, (said) => {
      assert.equal(said.reduce(grown, ''), said.join(''));
    }),
  );
});

test('pieces of one unit, over every place where it is joined', () => {
  let text = '';
  for (let index = 0; index < 20_000; index++) {
    text = grown(text, String.fromCharCode(0x61 + (index % 26)));
    assert.equal(text.length, index + 1);
  }
  assert.equal(text.slice(19_998), 'ef');
});
