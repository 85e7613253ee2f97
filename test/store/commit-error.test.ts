/** The cause of a failed commit, which lmdb-js tells in a promise beside its error, or never. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { commitErrorOf } from '../../src/store/lmdb/commit-error.ts';

function failed(commitError?: Promise<unknown>): Error {
  return Object.assign(new Error('Commit failed (see commitError for details)'), commitError && { commitError });
}

function clockOf() {
  const waiting = new Set<() => void>();
  return {
    waiting,
    after(_ms: number, callback: () => void): () => void {
      waiting.add(callback);
      return () => waiting.delete(callback);
    },
  };
}

test('F31: a cause that is told, one that is not, and one that is never told: nobody waits for ever', async () => {
  const clock = clockOf();
  const cause = Object.assign(new Error('no space'), { code: 28 });
  assert.equal(await commitErrorOf(failed(Promise.reject(cause)), clock), cause);
  const bare = failed();
  assert.equal(await commitErrorOf(bare, clock), bare);
  assert.equal(await commitErrorOf('text', clock), 'text');

  const { promise, reject } = Promise.withResolvers<never>();
  const silent = failed(promise);
  const told = commitErrorOf(silent, clock);
  assert.equal(clock.waiting.size, 1);
  for (const late of clock.waiting) late();
  assert.equal(await told, silent);
  assert.equal(clock.waiting.size, 0, 'no timer is left');
  reject(cause); // later than anybody waits: handled all the same
});
