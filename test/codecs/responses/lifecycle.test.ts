import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import { ResponsesOrder } from '../../../src/codecs/responses/lifecycle.ts';
import { checkResponsesStream } from '../../support/client-order/responses.ts';

const CREATED: JsonObject = { type: 'response.created', response: {} };
const ADDED: JsonObject = { type: 'response.output_item.added', output_index: 0, item: { type: 'message', id: 'm' } };
const PART: JsonObject = {
  type: 'response.content_part.added',
  output_index: 0,
  content_index: 0,
  part: { type: 'output_text' },
};

function orderAfter(...events: JsonObject[]): ResponsesOrder {
  const order = new ResponsesOrder();
  for (const event of events) order.accept(String(event['type']), event);
  return order;
}

const REFUSED: [string, JsonObject[], JsonObject][] = [
  ['a second response.created', [CREATED], CREATED],
  ['an item before the response', [], ADDED],
  ['the same item twice', [CREATED, ADDED], ADDED],
  ['a part of an unknown item', [CREATED], PART],
  ['the same part twice', [CREATED, ADDED, PART], PART],
  ['a part that leaves one out', [CREATED, ADDED], { ...PART, content_index: 1 }],
  [
    'a delta of another class of item',
    [CREATED, ADDED],
    { type: 'response.function_call_arguments.delta', output_index: 0, delta: 'x' },
  ],
  [
    'a delta after its text is done',
    [CREATED, ADDED, PART, { type: 'response.output_text.done', output_index: 0, content_index: 0, text: '' }],
    { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'x' },
  ],
  [
    'an item that changes its type',
    [CREATED, ADDED],
    { type: 'response.output_item.done', output_index: 0, item: { type: 'reasoning' } },
  ],
  [
    'anything after the terminal',
    [CREATED, { type: 'response.completed', response: {} }],
    { type: 'response.completed', response: {} },
  ],
];

for (const [title, before, event] of REFUSED) {
  test(`order: refuses ${title}, and nothing has changed`, () => {
    const order = orderAfter(...before);
    const state = order.state;
    const tracks = JSON.stringify(order.get(0) ?? null);
    assert.throws(() => order.accept(String(event['type']), event), { name: 'LifecycleError' });
    assert.equal(order.state, state);
    assert.equal(JSON.stringify(order.get(0) ?? null), tracks);
  });
}

test('order: items are found by output index, by item id where the index is absent', () => {
  const order = orderAfter(CREATED, ADDED, PART);
  const delta = { type: 'response.output_text.delta', content_index: 0, delta: 'x' };
  assert.equal(order.accept(delta.type, { ...delta, output_index: 0, item_id: 'rotated' })?.outputIndex, 0);
  assert.equal(order.accept(delta.type, { ...delta, item_id: 'm' })?.outputIndex, 0);
  assert.throws(() => order.accept(delta.type, delta), { code: 'upstream_error' });
});

test('checkResponsesStream: refuses what our own streams must never do', () => {
  const frames = (...events: JsonObject[]) =>
    events.map((event, index) => ({ event: String(event['type']), data: JSON.stringify({ sequence_number: index, ...event }) }));
  const done = { type: 'response.output_item.done', output_index: 0, item: { type: 'message', id: 'm' } };
  const completed = (output: JsonObject[]) => ({ type: 'response.completed', response: { output } });
  checkResponsesStream(frames(CREATED, ADDED, done, completed([done.item])));
  assert.throws(() => checkResponsesStream(frames(CREATED, ADDED, done, completed([]))));
  assert.throws(() => checkResponsesStream(frames(CREATED, ADDED, completed([done.item]))));
  assert.throws(() => checkResponsesStream(frames(CREATED, ADDED, done)));
  assert.throws(() => checkResponsesStream(frames(CREATED, completed([]), completed([]))));
  assert.throws(() => checkResponsesStream(frames(CREATED, { ...completed([]), sequence_number: 0 })));
});
