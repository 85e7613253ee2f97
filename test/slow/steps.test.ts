/**
 * The longest step of requests at the limits that are there by default: see test/support/linear/steps.ts. Those that once took
 * longest, and a sample of the others; `MIZU_STEPS=all` tries every one, and `MIZU_SEED` repeats a sample.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LARGEST_REQUESTS, type LargestRequest } from '../support/linear/steps.ts';
import { machinePace } from '../support/machine-pace.ts';

/** Measured again before it fails: collections count, too. */
const TRIES = 6;
/** Milliseconds that a step may take: fifty, and a fifth as much for noise. */
const MOST_MS = 60;
/** Milliseconds for the sample. */
const BUDGET_MS = 60_000;

const ONCE_LONGEST = [
  'chat to chat: members that nobody knows',
  'chat to gemini: tool: references to each level of a deep schema',
  'responses to messages: format: references to each level of a deep schema',
  'responses to gemini: format: allOf within allOf, all at the bottom',
  'responses to messages: format: several types within each other',
  'responses to chat: format: properties that look like numbers',
  'chat to messages: a call whose arguments are a list',
  'chat to gemini: a call whose arguments are many members',
  'responses to chat: a call whose arguments are quotes',
  'messages to chat: a call whose input holds a text of quotes',
];

function check({ longestStep }: LargestRequest): void {
  let least = Number.POSITIVE_INFINITY;
  for (let tried = 0; tried < TRIES && least > MOST_MS; tried++) {
    const pace = machinePace();
    const longest = longestStep();
    least = Math.min(least, longest / Math.max(pace, machinePace()));
  }
  assert.ok(least <= MOST_MS, `a step took ${least.toFixed(1)} ms; ${MOST_MS} are allowed`);
}

const isWhole = process.env['MIZU_STEPS'] === 'all';

for (const name of isWhole ? LARGEST_REQUESTS.map((one) => one.name) : ONCE_LONGEST) {
  const found = LARGEST_REQUESTS.find((one) => one.name === name);
  test(`steps: ${name}`, () => {
    if (found === undefined) throw new Error('no such request');
    check(found);
  });
}

const seed = Number(process.env['MIZU_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

test(`steps: a sample of ${LARGEST_REQUESTS.length} requests, seed ${seed}`, { skip: isWhole }, async (t) => {
  const until = performance.now() + BUDGET_MS;
  for (let state = seed; performance.now() < until; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const one = LARGEST_REQUESTS[Math.floor((state / 2 ** 32) * LARGEST_REQUESTS.length)];
    if (one !== undefined) await t.test(one.name, () => check(one));
  }
});
