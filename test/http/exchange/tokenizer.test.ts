import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { countTokens } from 'gpt-tokenizer';
import { Tokenizer } from '../../../src/http/exchange/tokenizer.ts';

test('counts asked together are each answered with their own', async () => {
  const tokenizer = new Tokenizer();
  const texts = ['', 'water', 'water finds its level', '水'.repeat(50), '<|endoftext|>'];
  const counts = await Promise.all(texts.map((text) => tokenizer.count(text)));
  assert.deepEqual(
    counts,
    texts.map((text) => countTokens(text, { disallowedSpecial: new Set() })),
  );
});

test('the event loop goes on while the vocabulary is loaded and a text is counted', async () => {
  const tokenizer = new Tokenizer();
  let turns = 0;
  let counted = false;
  const counting = tokenizer.count('stone '.repeat(10_000)).finally(() => {
    counted = true;
  });
  while (!counted) {
    turns++;
    await pause(1);
  }
  assert.equal(await counting, 10_001);
  assert.ok(turns > 5, `${turns} turns`);
});

test('a thread that ends takes only what it had not answered with it, and the next count starts another', async () => {
  const tokenizer = new Tokenizer(new URL('./support/fragile-thread.ts', import.meta.url));
  assert.equal(await tokenizer.count('five'), 4);
  const lost = [tokenizer.count('throw'), tokenizer.count('after it')];
  for (const each of lost)
    await assert.rejects(each, (error: Error) => error.cause instanceof Error && error.cause.message === 'thrown');
  const left = tokenizer.count('exit');
  await assert.rejects(left, /ended/);
  assert.equal(await tokenizer.count('again'), 5);
});
