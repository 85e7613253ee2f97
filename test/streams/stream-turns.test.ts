/** What a turn of the event loop spends on streams: after some milliseconds they wait, and no party waits for the crowd of another. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'node:test';
import { StreamTurns } from '../../src/streams/stream-turns.ts';

function work(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test('F47: a thousand streams of one party that have work at once are served in order, over many turns', async () => {
  const turns = new StreamTurns();
  const done: number[] = [];
  for (let stream = 0; stream < 1_000; stream++) {
    turns.do('a', () => {
      work(0.1);
      done.push(stream);
    });
  }
  let most = done.length;
  assert.ok(most <= 70, `${most} streams of a tenth of a millisecond in the turn that they came in`);
  for (let before = most; done.length < 1_000; before = done.length) {
    await nextTurn();
    most = Math.max(most, done.length - before);
  }
  assert.ok(most <= 120, `${most} streams of a tenth of a millisecond between two turns`);
  assert.deepEqual(done, [...Array(1_000).keys()]);
  assert.equal(turns.waiting, 0);
});

test('F47: a stream of another party is served next, however many wait', async () => {
  const turns = new StreamTurns();
  const done: string[] = [];
  const serve = (party: string, ms: number): void =>
    turns.do(party, () => {
      work(ms);
      done.push(party);
    });
  for (let stream = 0; stream < 100; stream++) serve('a', 2);
  const before = done.length;
  assert.ok(before < 10);
  serve('b', 0);
  serve('c', 0);
  serve('c', 0);
  while (!done.includes('b')) await nextTurn();
  assert.ok(done.indexOf('b') <= before + 1, `${done.indexOf('b') - before} others came first`);
  while (turns.waiting > 0) await nextTurn();
  assert.deepEqual(done.slice(before, before + 6), ['a', 'b', 'c', 'a', 'c', 'a']);
});

test('what a stream sets off by promises counts as its work', async () => {
  const turns = new StreamTurns();
  let done = 0;
  for (let stream = 0; stream < 100; stream++) {
    turns.do('a', () => {
      work(1);
      void Promise.resolve()
        .then(() => work(1))
        .then(() => {
          work(1);
          done += 1;
        });
    });
  }
  await Promise.resolve();
  let most = 0;
  for (let before = done; done < 100; before = done) {
    await nextTurn();
    most = Math.max(most, done - before);
  }
  // The first few came in one turn, before their promises were kept.
  assert.ok(most <= 10, `${most} streams of three milliseconds between two turns`);
});

test('whoever waits by a promise is in the same order', async () => {
  const turns = new StreamTurns();
  assert.equal(turns.enter('a'), undefined);
  turns.do('a', () => work(7));
  assert.equal(turns.enter('a'), undefined, 'a turn is watched from the first millisecond of work on');
  work(6);
  const order: string[] = [];
  turns.do('a', () => void order.push('first'));
  const second = turns.enter('a')?.then(() => order.push('second'));
  assert.equal(turns.waiting, 2);
  assert.notEqual(second, undefined);
  await second;
  assert.deepEqual(order, ['first', 'second']);
});

test('a stream that is alone waits for nobody, however long it goes on', async () => {
  const turns = new StreamTurns();
  for (let event = 0; event < 50; event++) {
    let isDone = false;
    turns.do('a', () => {
      work(0.5);
      isDone = true;
    });
    assert.ok(isDone, `event ${event}`);
    await nextTurn();
  }
  assert.equal(turns.waiting, 0);
});

test('what was done elsewhere counts, too', () => {
  const turns = new StreamTurns();
  const from = performance.now();
  work(2);
  turns.worked(from);
  work(6);
  assert.notEqual(turns.enter('a'), undefined);
});
