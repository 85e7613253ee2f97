/** What a turn of the event loop spends on requests: those that come after a few milliseconds wait for a turn that follows. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'node:test';
import { Turns } from '../../src/http/turns.ts';

function work(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test('F47: a hundred that come at once are let in over many turns, in order, and none is forgotten', async () => {
  const turns = new Turns();
  const done: number[] = [];
  const serve = async (request: number): Promise<void> => {
    await Promise.resolve();
    work(2);
    done.push(request);
  };
  for (let request = 0; request < 100; request++) {
    const entered = turns.enter();
    void (entered === undefined ? serve(request) : entered.then(() => serve(request)));
    // As a request that was let in at once would.
    if (entered === undefined) work(1);
  }
  let most = 0;
  for (let before = 0; done.length < 100; before = done.length) {
    await nextTurn();
    most = Math.max(most, done.length - before);
  }
  // The first few had begun before anybody waited.
  assert.ok(most <= 12, `${most} requests of two milliseconds between two turns`);
  assert.deepEqual(done, [...Array(100).keys()]);
  assert.equal(turns.waiting, 0);
});

test('whoever comes alone does not wait, and nobody goes before those who do', async () => {
  const turns = new Turns();
  assert.equal(turns.enter(), undefined);
  assert.equal(turns.enter(), undefined, 'there is time left');
  work(6);
  assert.equal(turns.isOver, true);
  const order: string[] = [];
  const first = turns.enter();
  const second = turns.enter();
  assert.equal(turns.waiting, 2);
  void second?.then(() => order.push('second'));
  void first?.then(() => order.push('first'));
  await Promise.all([first, second]);
  assert.deepEqual(order, ['first', 'second']);
  await nextTurn();
  await nextTurn();
  assert.equal(turns.enter(), undefined);
});
