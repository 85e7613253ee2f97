import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CanonicalEvent, ItemHead } from '../../../src/codecs/canonical/event.ts';
import { Fold, fold } from '../../../src/codecs/canonical/fold.ts';

const START: CanonicalEvent = { type: 'response.start' };
const ITEM: CanonicalEvent = { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } };
const word = (text: string): CanonicalEvent => ({ type: 'item.delta', index: 0, delta: { kind: 'text', text } });
const report = (input: number, output: number): CanonicalEvent => ({ type: 'usage.report', usage: { input, output } });

function folded(...events: readonly CanonicalEvent[]): Fold {
  const one = new Fold();
  for (const event of events) one.push(event);
  return one;
}

test('what was reported before the last output is early: later figures, or an answer without items, are final', () => {
  assert.equal(folded(START, ITEM).isUsageEarly, false, 'none');
  assert.equal(folded(START, report(9, 0)).isUsageEarly, false, 'no items');
  assert.equal(folded(START, report(9, 0), ITEM).isUsageEarly, true);
  assert.equal(folded(START, report(9, 0), report(9, 1), ITEM).isUsageEarly, true, 'twice');
  assert.equal(folded(START, ITEM, report(9, 1)).isUsageEarly, false);
  const final = folded(START, report(9, 0), ITEM, report(9, 7));
  assert.equal(final.isUsageEarly, false);
  assert.equal(folded(START, ITEM, word('a'), report(9, 1), word('b')).isUsageEarly, true, 'more came after it');
  assert.deepEqual(final.usage, { input: 9, output: 7 });
});

test('an answer that is cut has what was said of its open items, and the ending that it is given', () => {
  const cut = { status: 'incomplete', reason: 'max_output' } as const;
  const whole = folded({ ...START, createdAt: 5 }, ITEM, word('a'), word('b')).whole(cut);
  assert.deepEqual(whole, {
    createdAt: 5,
    items: [{ item: { kind: 'text', role: 'assistant', text: 'ab', citations: [] }, status: 'incomplete' }],
    outcome: cut,
  });
  const done = { status: 'completed', stop: 'end' } as const;
  assert.deepEqual(folded(START, { type: 'response.end', outcome: done }).whole(cut), { items: [], outcome: done });
});

test('a piece with more logprobs than a call takes arguments', () => {
  const logprobs = Array.from({ length: 200_000 }, () => ({ token: 'a', logprob: -1 }));
  const said = folded(START, ITEM, { type: 'item.delta', index: 0, delta: { kind: 'text', text: 'a', logprobs } });
  assert.equal(said.open(0)?.logprobs?.length, 200_000);
});

test('an item that was cut keeps the id that it began with', () => {
  const heads: readonly ItemHead[] = [
    { kind: 'text', role: 'assistant' },
    { kind: 'refusal' },
    { kind: 'reasoning' },
    { kind: 'toolCall', toolType: 'function', callId: 'c', tool: { name: 'f' } },
  ];
  for (const head of heads) {
    const idOf = (given: ItemHead): string | undefined => {
      const [open] = folded(START, { type: 'item.start', index: 0, head: given }).whole({
        status: 'completed',
        stop: 'end',
      }).items;
      return open?.item.id;
    };
    assert.equal(idOf({ ...head, id: 'x_1' }), 'x_1', head.kind);
    assert.equal(idOf(head), undefined, head.kind);
  }
});

test('a list of events without an end is no answer', () => {
  assert.throws(() => fold([START, ITEM]), /response\.end/);
});
