/** Something that may be awaited: before and after its end, by many, by nobody. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Deferred } from '../../src/store/settlements/deferred.ts';

test('whoever waits, before or after, is told the same', async () => {
  const [good, bad] = [new Deferred<number>(), new Deferred<number>()];
  const early = [good.then((n) => n + 1), bad.then(null, (error: unknown) => error)];
  good.resolve(1);
  bad.reject('no');
  good.resolve(2);
  bad.resolve(3);
  assert.deepEqual(await Promise.all(early), [2, 'no']);
  assert.equal(await good, 1);
  await assert.rejects(async () => bad, /no/);
});

test('a failure that nobody waits for is not unhandled', async (t) => {
  const unhandled = t.mock.fn();
  process.on('unhandledRejection', unhandled);
  t.after(() => process.off('unhandledRejection', unhandled));
  new Deferred<void>().reject(new Error('told elsewhere'));
  await new Promise((resolve) => setTimeout(resolve, 5));
  assert.equal(unhandled.mock.callCount(), 0);
});
