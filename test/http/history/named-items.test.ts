/** Items that a request names by their ids: what a reference may cost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { namedItems } from '../../../src/http/history/named-items.ts';
import { itemTexts, NO_ITEMS, pastTurn } from '../../../src/http/history/past-turn.ts';

const turn = pastTurn({
  parent: undefined,
  input: NO_ITEMS,
  output: itemTexts(['{"id":"a","n":1}', '{"id":"b"}']),
  itemIds: ['a', 'b'],
});
const size = turn.output.bytes.length;

test('an item is said once a request, however often it is named, and its turn is counted once', () => {
  const item = namedItems((id) => (id === 'c' ? undefined : turn), size);
  assert.deepEqual([item('a'), item('a'), item('b'), item('c')], [{ id: 'a', n: 1 }, undefined, { id: 'b' }, undefined]);
  assert.deepEqual(namedItems(() => turn, size)('a'), { id: 'a', n: 1 }, 'the next request names it again');
});

test('what is named is no more than a conversation may be', () => {
  const other = { ...turn };
  const item = namedItems((id) => (id === 'a' ? turn : other), 2 * size - 1);
  assert.deepEqual(item('a'), { id: 'a', n: 1 });
  assert.throws(
    () => item('b'),
    (error: unknown) => error instanceof GatewayError && error.code === 'request_too_large',
  );
});
