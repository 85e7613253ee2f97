/** Clients that leave together are let go of one after another, so that others come to their turn between them. */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'node:test';
import { OneATurn } from '../../../src/http/one-a-turn.ts';

test('F16: the first at once, one in each turn after it, in order, and none is forgotten', async () => {
  const leavers = new OneATurn();
  const gone: number[] = [];
  for (let client = 0; client < 100; client++) leavers.do(() => void gone.push(client));
  assert.deepEqual(gone, [0]);
  assert.equal(leavers.waiting, 99);
  for (let turn = 1; turn < 10; turn++) {
    await nextTurn();
    assert.ok(gone.length <= turn + 2, `${gone.length} were let go of in ${turn} turns`);
  }
  leavers.do(() => void gone.push(100));
  while (gone.length < 101) await nextTurn();
  assert.deepEqual(gone, [...Array(101).keys()]);
  await nextTurn();
  await nextTurn();
  assert.equal(leavers.waiting, 0);
  leavers.do(() => void gone.push(101));
  assert.equal(gone.at(-1), 101, 'alone it does not wait');
});

test('one that fails to be let go of holds up nobody', async () => {
  const leavers = new OneATurn();
  const gone: string[] = [];
  assert.throws(() =>
    leavers.do(() => {
      throw new Error('broken');
    }),
  );
  leavers.do(() => void gone.push('next'));
  while (gone.length < 1) await nextTurn();
});
