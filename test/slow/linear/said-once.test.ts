/**
 * What is said once is not repeated for each of many things: see test/support/linear/said-once.ts. A sample by seed;
 * `MIZU_SAID_ONCE=all` tries every shape, and `MIZU_SEED` repeats a sample.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SAID_ONCE } from '../../support/linear/said-once.ts';

/** Milliseconds for the sample. */
const BUDGET_MS = 60_000;
const isWhole = process.env['MIZU_SAID_ONCE'] === 'all';
const seed = Number(process.env['MIZU_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

test(`said once: a sample of ${SAID_ONCE.length} shapes, seed ${seed}`, { skip: isWhole }, async (t) => {
  const until = performance.now() + BUDGET_MS;
  for (let state = seed; performance.now() < until; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const one = SAID_ONCE[Math.floor((state / 2 ** 32) * SAID_ONCE.length)];
    if (one !== undefined) await t.test(one.name, () => assert.equal(one.tooOften(), undefined));
  }
});

for (const { name, tooOften } of isWhole ? SAID_ONCE : []) test(`said once: ${name}`, () => assert.equal(tooOften(), undefined));
