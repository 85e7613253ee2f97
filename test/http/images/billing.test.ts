/** What pictures cost: by token, by piece, by both, never by the square of their number. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ImageAnswer, ImageRequest } from '../../../src/codecs/images/index.ts';
import { readUsage } from '../../../src/codecs/responses/answer/outcome.ts';
import { billableUsage } from '../../../src/http/money/billable.ts';
import { imageUsage } from '../../../src/http/images/billing.ts';
import { chargeFor } from '../../../src/store/charge.ts';
import type { Rates, TokenClass } from '../../../src/store/prices.ts';

const DOLLAR = 1_000_000_000n;
const rates = (tokens: readonly (readonly [TokenClass, bigint])[], image?: bigint): Rates => ({
  tokens: new Map(tokens),
  pieces: new Map(image === undefined ? [] : [['image', image]]),
  meters: new Map(),
  serviceTiers: new Map(),
});
const request: ImageRequest = {
  operation: 'generation',
  model: 'm',
  prompt: 'x'.repeat(40),
  images: [],
  count: 1,
  countGiven: true,
  stream: false,
  parameters: new Map(),
  unsent: [],
};
const picture = { data: 'iVBORw0KGgo=', facts: {}, beside: {} };
const answer = (images: number, billed?: object): ImageAnswer => ({
  images: Array.from({ length: images }, () => picture),
  ...(billed === undefined ? {} : { usage: { billed, shown: {} } }),
});
const charge = (made: ImageAnswer, of: Rates) => chargeFor(billableUsage(imageUsage(request, made, of)), of);

test('by piece: each picture that came back once', () => {
  const each = rates([], DOLLAR / 25n);
  assert.equal(charge(answer(1), each).total, DOLLAR / 25n);
  assert.equal(charge(answer(2), each).total, (DOLLAR / 25n) * 2n);
  assert.deepEqual(charge(answer(1), each).flags, []);
});

test('by token: text and picture apart', () => {
  const byToken = rates([
    ['input', 5n * DOLLAR],
    ['image_input', 10n * DOLLAR],
    ['image_output', 40n * DOLLAR],
  ]);
  const { total, flags } = charge(answer(1, { input: 100, imageInput: 60, output: 1000, imageOutput: 1000 }), byToken);
  assert.equal(total, (40n * 5n * DOLLAR + 60n * 10n * DOLLAR + 1000n * 40n * DOLLAR) / 1_000_000n);
  assert.deepEqual(flags, []);
});

test('by both, where both are configured', () => {
  const both = rates([['output', DOLLAR]], DOLLAR);
  assert.equal(charge(answer(1, { input: 0, output: 1_000_000, imageOutput: 1_000_000 }), both).total, 2n * DOLLAR);
});

test('no report: counted for a model that is priced by token, and flagged', () => {
  const usage = imageUsage(request, answer(1), rates([['output', DOLLAR]]));
  assert.equal(usage.estimated, true);
  assert.equal(usage.input, 10);
  assert.ok((usage.imageOutput ?? 0) > 0);
});

test('no report: tokens that have a price beside that of the picture are counted, others are not', () => {
  const prompt = [['input', 5n * DOLLAR]] as const;
  const drawn = [['image_output', 40n * DOLLAR]] as const;
  const of = (made: Rates) => [charge(answer(1), made).total, imageUsage(request, answer(1), made).estimated];
  const [asked, picture] = [(10n * 5n * DOLLAR) / 1_000_000n, (1056n * 40n * DOLLAR) / 1_000_000n];
  assert.deepEqual(of(rates([...prompt, ...drawn], DOLLAR / 100n)), [DOLLAR / 100n + asked + picture, true]);
  assert.deepEqual(of(rates(prompt, DOLLAR / 25n)), [DOLLAR / 25n + asked, true]);
  assert.deepEqual(of(rates([['input', 0n]], DOLLAR / 25n)), [DOLLAR / 25n, undefined]);
});

test('U3: what a report leaves out is counted and flagged, what it says stays', () => {
  const byToken = rates([['output', DOLLAR]]);
  const usage = (billed: object, of = byToken) => imageUsage(request, answer(2, billed), of);
  const drawn = { output: 2112, imageOutput: 2112, images: 2, estimated: true };
  assert.deepEqual(usage({ input: 7 }), { input: 7, ...drawn });
  // No picture has no tokens.
  assert.deepEqual(usage({ input: 7, output: 0, imageOutput: 0 }), { input: 7, ...drawn });
  const asked = { input: 10, imageInput: 0, images: 2, estimated: true };
  assert.deepEqual(usage({ output: 20, imageOutput: 20 }), { output: 20, imageOutput: 20, ...asked });
  assert.deepEqual(usage({ cacheRead: 3, output: 20 }), { cacheRead: 3, output: 20, images: 2 });
  assert.deepEqual(usage({ input: 7 }, rates([], DOLLAR)), { input: 7, images: 2 });
});

test('I8 a picture made in a responses conversation is billed: by its piece, and by the tool’s own tokens', () => {
  const usage = readUsage({
    output: [
      { type: 'image_generation_call', result: 'iVBORw0KGgo=' },
      { type: 'image_generation_call', result: null },
    ],
    usage: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
    tool_usage: {
      image_gen: { input_tokens: 50, input_tokens_details: { image_tokens: 40 }, output_tokens: 200, total_tokens: 250 },
    },
  });
  if (usage === undefined) throw new Error('no usage');
  assert.deepEqual(billableUsage(usage), { input: 110, output: 10, imageInput: 40, imageOutput: 200, images: 1 });
  const cached = { cached_tokens: 45, cached_tokens_details: { cached_image_tokens: 38, cached_text_tokens: 7 } };
  const again = readUsage({
    output: [],
    tool_usage: {
      image_gen: {
        input_tokens: 50,
        input_tokens_details: { image_tokens: 40 },
        output_tokens: 200,
        total_tokens: 250,
        ...cached,
      },
    },
    usage: { input_tokens: 100, output_tokens: 10, total_tokens: 110 },
  });
  if (again === undefined) throw new Error('no usage');
  assert.deepEqual(billableUsage(again), { input: 103, cachedInput: 45, output: 10, imageInput: 2, imageOutput: 200 });
  const quiet = readUsage({
    output: [],
    usage: { input_tokens: 1 },
    tool_usage: { image_gen: { input_tokens: 0, output_tokens: 0 } },
  });
  assert.deepEqual(quiet, { input: 1 });
});
