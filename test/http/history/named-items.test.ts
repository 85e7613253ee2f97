/** Items that a request names by their ids: what a reference may cost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { idsToFind, namedItems } from '../../../src/http/history/named-items.ts';
import { itemTexts, NO_ITEMS, pastTurn } from '../../../src/http/history/past-turn.ts';

const turn = pastTurn({
  parent: undefined,
  input: NO_ITEMS,
  output: itemTexts(['{"id":"a","n":1}', '{"id":"b"}']),
  itemIds: ['a', 'b'],
});
const size = turn.output.bytes.length;

test('an item is said once a request, however often it is named, and its turn is counted once', () => {
  const turns = new Map([
    ['a', turn],
    ['b', turn],
  ]);
  const item = namedItems(turns, { maxBytes: size, maxValues: 1_000 });
  assert.deepEqual([item('a'), item('a'), item('b'), item('c')], [{ id: 'a', n: 1 }, undefined, { id: 'b' }, undefined]);
  assert.deepEqual(
    namedItems(turns, { maxBytes: size, maxValues: 1_000 })('a'),
    { id: 'a', n: 1 },
    'the next request names it again',
  );
});

test('what is named is no more than a conversation may be', () => {
  const other = { ...turn };
  const turns = new Map([
    ['a', turn],
    ['b', other],
  ]);
  const item = namedItems(turns, { maxBytes: 2 * size - 1, maxValues: 1_000 });
  assert.deepEqual(item('a'), { id: 'a', n: 1 });
  assert.throws(
    () => item('b'),
    (error: unknown) => error instanceof GatewayError && error.code === 'request_too_large',
  );
});

test('what must be found: references and reasoning without a value, each once; not what speaks for itself', () => {
  const input = [
    { type: 'item_reference', id: 'a' },
    { id: 'b' },
    { type: 'item_reference', id: 'a' },
    { role: 'user', id: 'c', content: 'hi' },
    { type: 'reasoning', id: 'd', summary: [] },
    { type: 'reasoning', id: 'e', summary: [], encrypted_content: 'sealed' },
    { type: 'image_generation_call', id: 'f' },
    { type: 'image_generation_call', id: 'g', result: 'AAAA' },
    { type: 'reasoning', id: 'h', summary: [], encrypted_content: '' },
    { type: 'item_reference', id: 5 },
    'text',
    null,
  ];
  assert.deepEqual(idsToFind({ input }), ['a', 'b', 'd', 'f', 'h']);
  assert.deepEqual(idsToFind({ input: 'hello' }), []);
  assert.deepEqual(idsToFind({}), []);
});

test('named items are bounded in values, too: a megabyte of empty objects is small in bytes', () => {
  const turn = pastTurn({ parent: undefined, input: NO_ITEMS, output: itemTexts([`{"id":"a","x":[${'{},'.repeat(999)}{}]}`]) });
  assert.throws(() => namedItems(new Map([['a', turn]]), { maxBytes: 1e6, maxValues: 1_000 })('a'), {
    code: 'request_too_large',
  });
  assert.equal(namedItems(new Map([['a', turn]]), { maxBytes: 1e6, maxValues: 1_010 })('a')?.['id'], 'a');
});
