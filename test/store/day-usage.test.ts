/** What a request adds to the day of its key. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { addCounts, countsOf, NO_USAGE } from '../../src/store/day-usage.ts';

test('every class of a request counts once: pictures with the text, thoughts inside the output, writes of every lifetime together', () => {
  const usage = {
    input: 1,
    imageInput: 2,
    cachedInput: 4,
    cacheWrite5m: 8,
    cacheWrite1h: 16,
    cacheWriteUnsplit: 32,
    output: 64,
    reasoning: 128,
    imageOutput: 256,
    images: 512,
  };
  const counts = {
    inputTokens: 3,
    cachedInputTokens: 4,
    cacheWriteTokens: 56,
    outputTokens: 448,
    reasoningTokens: 128,
    images: 512,
  };
  assert.deepEqual(countsOf(usage), counts);
  const one = { ...NO_USAGE, ...counts, requests: 1, videos: 2, chargedNanos: 3n };
  assert.deepEqual(addCounts(NO_USAGE, one), one);
  assert.deepEqual(addCounts(one, one), {
    requests: 2,
    inputTokens: 6,
    cachedInputTokens: 8,
    cacheWriteTokens: 112,
    outputTokens: 896,
    reasoningTokens: 256,
    images: 1024,
    videos: 4,
    chargedNanos: 6n,
  });
});

test('F12: what is no count, or too large to be billed, is not added up', () => {
  for (const bad of [-1, 0.5, Number.NaN, 2 ** 53, 1_000_000_001])
    assert.equal(countsOf({ input: bad, output: 4 }).inputTokens, 0, String(bad));
  assert.equal(countsOf({ input: 1_000_000_000 }).inputTokens, 1_000_000_000);
});
