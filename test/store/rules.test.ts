/** How the rules of the store are run: through at once, or with the engine's promises awaited, and never ahead of an answer. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { awaited, finished, got } from '../../src/store/books/books.ts';

function* sum(...answers: readonly (number | Promise<number>)[]) {
  let total = 0;
  for (const answer of answers) total += yield* got(answer);
  return total;
}

test('a rule runs through where its engine answers at once, and waits where it promises', async () => {
  assert.equal(finished(sum(1, 2)), 3);
  assert.equal(await awaited(sum(1, Promise.resolve(2), 3, Promise.resolve(4))), 10);
  await assert.rejects(awaited(sum(1, Promise.reject(new Error('no answer')))), /no answer/);
});

test('a rule that waits where nothing can, or goes on before its answer, is a fault and gives no value', () => {
  assert.throws(() => finished(sum(1, Promise.resolve(2))), {
    name: 'StoreError',
    code: 'corrupt',
    message: 'a rule waits inside a transaction that cannot',
  });
  const rule = sum(Promise.resolve(1));
  assert.equal(rule.next().done, false);
  assert.throws(() => rule.next(), {
    name: 'StoreError',
    code: 'corrupt',
    message: 'a rule went on before its engine had answered',
  });
});
