/** What a turn of the event loop spends on clients: what comes after some milliseconds waits, and no party waits for another's crowd. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'node:test';
import { LoopTurns } from '../../src/streams/loop-turns.ts';

function work(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

test('F47: a hundred that come at once are let in over many turns, in order, and none is forgotten', async () => {
  const turns = new LoopTurns();
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
  const turns = new LoopTurns();
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

test('F47: a thousand streams of one party that have work at once are served in order, over many turns', async () => {
  const turns = new LoopTurns();
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
  const turns = new LoopTurns();
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

test('a party that was served is forgotten: who comes later, and waits, is not behind it', async () => {
  const turns = new LoopTurns();
  const done: string[] = [];
  for (const parties of [['a', 'b'], ['c'], ['d', 'a']]) {
    // The time of this turn is over.
    turns.do('', () => work(6));
    for (const party of parties) turns.do(party, () => void done.push(party));
    assert.equal(turns.waiting, parties.length);
    for (let more = 0; turns.waiting > 0; more++) {
      assert.ok(more < 10, 'all of them fit into one turn');
      await nextTurn();
    }
    // The next time begins in a turn of its own.
    do await nextTurn();
    while (!turns.isOver);
    await nextTurn();
  }
  assert.deepEqual(done, ['a', 'b', 'c', 'd', 'a']);
});

test('in the time of one turn as many are served as fit', async () => {
  const turns = new LoopTurns();
  turns.do('', () => work(6));
  const done: number[] = [];
  for (let stream = 0; stream < 1_000; stream++) turns.do('a', () => void done.push(stream));
  let over = 0;
  for (; done.length < 1_000; over++) await nextTurn();
  assert.ok(over <= 100, `a thousand short pieces take ${over} turns`);
});

test('what a stream sets off by promises counts as its work', async () => {
  const turns = new LoopTurns();
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
  const turns = new LoopTurns();
  assert.equal(turns.enter('a'), undefined);
  // Whatever was done meanwhile counts, by whomever.
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
  const turns = new LoopTurns();
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
