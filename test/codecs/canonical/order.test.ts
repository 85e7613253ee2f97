import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { GatewayError, upstreamFault } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, Step } from '../../../src/codecs/canonical/event.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import { answer, eventsOf, fractions, stepsOf } from '../../support/arbitraries/response.ts';

const OWNER = { channelType: 'responses', scope: 'https://up.example', model: 'up-model' } as const;
const EVERYTHING = {
  refusal: true,
  custom: true,
  citations: true,
  logprobs: true,
  phase: true,
  raw: true,
  summary: true,
  opaque: true,
  images: true,
  toolSignature: true,
};

function run(events: readonly CanonicalEvent[]): Order {
  const order = new Order();
  const out: Step[] = [];
  for (const step of stepsOf(events)) order.push(step, out);
  order.end();
  return order;
}

test('property: every arbitrary answer is in order, and folds back to itself however it was cut', () => {
  fc.assert(
    fc.property(answer(EVERYTHING, OWNER), fractions, fc.boolean(), (said, cuts, interleave) => {
      const events = eventsOf(said, cuts, interleave);
      run(events);
      const whole = fold(events);
      assert.deepEqual(
        whole.items.map(({ item }) => item),
        said.items,
      );
      assert.deepEqual(whole.usage, said.usage);
    }),
  );
});

test('law 3: every proper prefix is a truncation, blamed on the upstream', () => {
  fc.assert(
    fc.property(answer(EVERYTHING, OWNER), fractions, fc.nat(), (said, cuts, pick) => {
      const events = eventsOf(said, cuts);
      assert.throws(
        () => run(events.slice(0, pick % events.length)),
        (error) => error instanceof GatewayError && error.blame === 'upstream',
      );
    }),
  );
});

const start: CanonicalEvent = { type: 'response.start' };
const textStart: CanonicalEvent = { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } };
const textDelta = (value: string): CanonicalEvent => ({ type: 'item.delta', index: 0, delta: { kind: 'text', text: value } });
const textEnd = (value: string): CanonicalEvent => ({
  type: 'item.end',
  index: 0,
  item: { kind: 'text', role: 'assistant', text: value, citations: [] },
  status: 'completed',
});
const done: CanonicalEvent = { type: 'response.end', outcome: { status: 'completed', stop: 'end' } };
const failed: CanonicalEvent = { type: 'response.end', outcome: { status: 'failed', error: upstreamFault('error_event', 'no') } };

const ILLEGAL: readonly (readonly [string, readonly CanonicalEvent[]])[] = [
  ['an item before the start', [textStart]],
  ['two starts', [start, start]],
  ['a delta of an item that never started', [start, textDelta('a')]],
  ['a delta after the end of its item', [start, textStart, textEnd('a'), textDelta('b')]],
  ['a second end of an item', [start, textStart, textEnd('a'), textEnd('a')]],
  ['an item out of number', [start, { type: 'item.start', index: 1, head: { kind: 'refusal' } }]],
  ['a success with an open item', [start, textStart, textDelta('a'), done]],
  ['anything after the end', [start, done, textStart]],
  ['a success without a start', [done]],
  ['a delta of the wrong kind', [start, textStart, { type: 'item.delta', index: 0, delta: { kind: 'input', text: '{' } }]],
  ['a final text that contradicts its deltas', [start, textStart, textDelta('ab'), textEnd('ac')]],
];

for (const [what, events] of ILLEGAL) {
  test(`refused: ${what}`, () => {
    assert.throws(() => run(events), GatewayError);
  });
}

test('law 9: a refused event changes nothing', () => {
  const order = new Order();
  const out: Step[] = [];
  for (const step of stepsOf([start, textStart, textDelta('ab')])) order.push(step, out);
  assert.throws(() => order.push({ events: [textEnd('x')] }, out));
  assert.throws(() => order.push({ events: [start] }, out));
  for (const step of stepsOf([textEnd('abc'), done])) order.push(step, out);
  assert.equal(order.ended, true);
});

test('a failure may leave items open: they count as incomplete, with what was said', () => {
  const order = run([start, textStart, textDelta('par'), failed]);
  const whole = order.fold.whole({ status: 'completed', stop: 'end' });
  assert.equal(whole.outcome.status, 'failed');
  assert.deepEqual(whole.items, [
    { item: { kind: 'text', role: 'assistant', text: 'par', citations: [] }, status: 'incomplete' },
  ]);
});

test('a failure may come before anything else', () => {
  assert.equal(run([failed]).ended, true);
});
