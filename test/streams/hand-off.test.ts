import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createHandOff } from '../../src/streams/hand-off.ts';
import { collect, settled } from '../support/batches.ts';

function setUp() {
  const cancels: unknown[] = [];
  return { cancels, hop: createHandOff<string>((reason) => cancels.push(reason)) };
}

test('what the reader asked for is asked for until it is given', async () => {
  const { hop } = setUp();
  const demand = hop.demand();
  assert.ok(demand instanceof Promise, 'nobody has asked');
  const read = hop.readable.getReader().read();
  await demand;
  assert.equal(hop.demand(), undefined);
  hop.give([]);
  assert.equal(hop.demand(), undefined, 'nothing was given');
  hop.give(['a']);
  assert.deepEqual(await read, { done: false, value: ['a'] });
  assert.ok(hop.demand() instanceof Promise);
});

test('a reader that leaves: whoever waits for it is told why, and nothing that is said later breaks', async () => {
  for (const [given, told] of [
    [new Error('left'), 'left'],
    [undefined, 'the reader left'],
  ] as const) {
    const { hop, cancels } = setUp();
    const demand = hop.demand();
    const rejected = assert.rejects(async () => demand, { message: told });
    await hop.readable.cancel(given);
    await rejected;
    assert.deepEqual(
      cancels.map((reason) => reason instanceof Error && reason.message),
      [told],
    );
    hop.give(['a']);
    hop.fail(['b'], new Error('late'));
    hop.close(['c']);
  }
});

test('an end is said once, be it a good one or a failure, with its last batch before it', async () => {
  const ends = [
    [(hop: ReturnType<typeof setUp>['hop']) => hop.close(['z']), ['a', 'z'], undefined],
    [(hop: ReturnType<typeof setUp>['hop']) => hop.close([]), ['a'], undefined],
    [(hop: ReturnType<typeof setUp>['hop']) => hop.fail(['z'], 'died'), ['a', 'z'], 'died'],
    [(hop: ReturnType<typeof setUp>['hop']) => hop.fail([], 'died'), ['a'], 'died'],
  ] as const;
  for (const [end, values, failure] of ends) {
    const { hop } = setUp();
    const collected = collect(hop.readable);
    await hop.demand();
    hop.give(['a']);
    await settled();
    end(hop);
    hop.give(['late']);
    hop.close(['late']);
    hop.fail(['late'], 'late');
    const got = await collected;
    assert.deepEqual([got.values, got.failure], [values, failure]);
  }
});
