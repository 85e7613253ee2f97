/**
 * The linearity law, sampled: four times as much of anything that a client or an upstream sends takes about four times the
 * processor time. Some of the shapes that once took the square of it are always among the sample; `npm run test:linear` tries
 * all of them. `MIZU_SEED` repeats a sample.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LINEAR_CASES } from '../support/linear/all.ts';
import { assertLinear } from '../support/linear/growth.ts';
import { LINES, SQUARES } from '../support/linear/planted.ts';
import { drawn } from '../support/sampled.ts';

const ONCE_SQUARE = [
  'chat to gemini: tool: allOf, a property each',
  'chat to gemini: tool: allOf within allOf, all at the bottom',
  'responses to gemini: format: a chain of references at the root, a keyword each',
  'chat to gemini: tool: references into a list',
  'responses to chat: allowed tools',
  'responses to gemini: tools in namespaces, called',
  'responses to chat: tools in one namespace of a long name',
  'responses to chat: carriers of signatures in front of their calls',
  'stream chat to chat: usage in every chunk, a new member each',
  'stream messages to chat: usage, a new member each, between blocks',
  'stream chat to messages: content and reasoning in turn',
  'stream chat to messages: arguments in pieces with other ids, braces within a text',
  'stream chat to responses: a freeform call with space behind its only name',
  'stream responses to chat: a terminal with texts under other ids, far behind',
  'stream responses to messages: items that only the terminal has, beside streamed ones',
  'stream gemini to chat: grounding of texts all over',
  'stream gemini to chat: grounding, one long link for all',
  'stream chat to messages: citations between texts and thoughts',
  'whole chat to chat: calls without ids',
  'whole responses to chat: texts and thoughts in turn',
  'generation of a picture by openai_image: one member, spelt as an element of a list',
  'whole picture of responses: finished calls',
  'whole picture of responses: texts beside pictures',
  'edits of a text whose long values are known',
  'stream of a picture of responses: calls, then all of them again',
  'refusal of a picture: a quote that is not closed, and spaces',
];
/** A quarter of what the whole law takes. */
const COUNT = 500;
/** Milliseconds for the rest of the sample. */
const BUDGET_MS = 1_500;

for (const name of drawn(ONCE_SQUARE, 6, 'once square')) {
  const found = LINEAR_CASES.find((one) => one.name === name);
  test(`linear: ${name}`, () => {
    if (found === undefined) throw new Error('no such case');
    return assertLinear(found, COUNT);
  });
}

test('each case has a name of its own: a verdict finds it by that', () => {
  const names = LINEAR_CASES.map(({ name }) => name);
  assert.deepEqual(
    names.filter((name, at) => names.indexOf(name) !== at),
    [],
  );
});

const seed = Number(process.env['MIZU_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

test(`linear: a sample of ${LINEAR_CASES.length} cases, seed ${seed}`, async (t) => {
  const until = performance.now() + BUDGET_MS;
  for (let state = seed; performance.now() < until; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const one = LINEAR_CASES[Math.floor((state / 2 ** 32) * LINEAR_CASES.length)];
    if (one !== undefined) await t.test(one.name, () => assertLinear(one, COUNT));
  }
});

for (const one of SQUARES)
  test(`the law finds ${one.name}`, async () => {
    // A busy machine may hide a square from one look, but not from several.
    const look = async (): Promise<void> => {
      for (let times = 0; times < 4; times += 1) await assertLinear(one, COUNT, 1);
    };
    await assert.rejects(look(), /times as much took/);
  });

for (const one of LINES) test(`the law passes ${one.name}`, () => assertLinear(one, COUNT));
