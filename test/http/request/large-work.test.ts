/** Work on large bodies: in turns of the event loop, a few milliseconds in each, and for nobody who has left. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'node:test';
import { atOnce, type Steps } from '../../../src/codecs/steps.ts';
import { isLarge, LargeWork } from '../../../src/http/request/large-work.ts';

/** Steps of some three milliseconds each, told by name as they are done. */
function* busy(name: string, count: number, told: string[]): Steps<string> {
  for (let step = 0; step < count; step++) {
    const until = performance.now() + 3;
    while (performance.now() < until);
    told.push(name);
    yield;
  }
  return name;
}

test('several bodies take turns, and others come to theirs between any two of them', async () => {
  const work = new LargeWork();
  const told: string[] = [];
  const all = Promise.all(['a', 'b', 'c'].map((name) => work.run(busy(name, 8, told))));
  let turns = 0;
  let seen = 0;
  let isDone = false;
  all.then(() => {
    isDone = true;
  });
  while (!isDone) {
    await nextTurn();
    turns += 1;
    const fresh = told.slice(seen);
    seen = told.length;
    // Two turns of the work lie between two of another at most.
    assert.ok(fresh.length <= 6, `${fresh.join()} between two turns of another`);
  }
  assert.deepEqual(await all, ['a', 'b', 'c']);
  assert.ok(turns >= 8, `${turns} turns`);
  assert.ok(told.indexOf('c') < told.lastIndexOf('a'), 'the last one does not wait for the first one’s end');
  await nextTurn();
  assert.equal(work.waiting, 0);
});

test('whoever has left is worked for no further, and a step that throws ends its own work only', async () => {
  const work = new LargeWork();
  const told: string[] = [];
  const gone = new AbortController();
  const left = work.run(busy('left', 100, told), gone.signal);
  const stays = work.run(busy('stays', 4, told));
  await nextTurn();
  gone.abort(new Error('gone'));
  await assert.rejects(left, /gone/);
  assert.equal(await stays, 'stays');
  assert.ok(told.filter((name) => name === 'left').length < 20);
  const broken = function* (): Steps<never> {
    yield;
    throw new Error('broken');
  };
  await assert.rejects(work.run(broken()), /broken/);
  assert.equal(await work.run(busy('after', 1, told)), 'after');
});

test('what follows work that has used up its turn has one of its own', async () => {
  const work = new LargeWork();
  const told: string[] = [];
  // The last step is as long as two.
  const long = function* (): Steps<string> {
    yield;
    return atOnce(busy('step', 2, told));
  };
  const turn = nextTurn().then(() => told.push('turn'));
  await Promise.all([work.run(long()).then(() => told.push('what follows')), turn]);
  assert.deepEqual(told, ['step', 'step', 'turn', 'what follows']);
  const gone = new AbortController();
  const left = work.run(long(), gone.signal);
  gone.abort(new Error('gone'));
  await assert.rejects(left, /gone/, 'it has left before the work was handed on');
});

test('a small body is done at once', () => {
  const told: string[] = [];
  assert.equal(new LargeWork().of('x', busy('small', 2, told)), 'small');
  assert.equal(isLarge('x'.repeat(32 * 1024)), true);
  assert.equal(isLarge('x'.repeat(32 * 1024 - 1)), false);
});
