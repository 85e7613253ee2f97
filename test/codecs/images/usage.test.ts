/** Usage of image upstreams: what is billed of each report, and what the client reads of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import type { ImageUsage } from '../../../src/codecs/images/answer.ts';
import { imagesApiUsage, responsesUsage, routerUsage } from '../../../src/codecs/images/usage.ts';

/** The bill without the report itself, which every bill carries. */
function billed(read: ImageUsage | undefined, native: JsonObject): object | undefined {
  if (read === undefined) return undefined;
  const { native: kept, ...counts } = read.billed;
  assert.deepEqual(kept, native);
  return counts;
}

const split = (text: number, images: number) => ({ text_tokens: text, image_tokens: images });

test('a report in the chat names is billed and told in those of the images API', () => {
  const cases: readonly (readonly [string, JsonObject, object, object])[] = [
    [
      'whole',
      {
        prompt_tokens: 50,
        completion_tokens: 30,
        total_tokens: 80,
        prompt_tokens_details: { image_tokens: 40 },
        completion_tokens_details: { image_tokens: 25, reasoning_tokens: 5 },
      },
      { input: 50, imageInput: 40, output: 30, reasoning: 5, imageOutput: 25 },
      {
        input_tokens: 50,
        input_tokens_details: split(10, 40),
        output_tokens: 30,
        output_tokens_details: split(5, 25),
        total_tokens: 80,
      },
    ],
    [
      'cached: the client reads all tokens of its images, the bill has the cached ones apart',
      { prompt_tokens: 50, completion_tokens: 30, prompt_tokens_details: { cached_tokens: 45, image_tokens: 40 } },
      { input: 5, cacheRead: 45, imageInput: 5, output: 30, imageOutput: 30 },
      {
        input_tokens: 50,
        input_tokens_details: split(10, 40),
        output_tokens: 30,
        output_tokens_details: split(0, 30),
        total_tokens: 80,
      },
    ],
    [
      'a part that is more than the whole is all of it',
      {
        prompt_tokens: 5,
        completion_tokens: 3,
        prompt_tokens_details: { image_tokens: 9 },
        completion_tokens_details: { image_tokens: 9, reasoning_tokens: 9 },
      },
      { input: 5, imageInput: 5, output: 3, reasoning: 3, imageOutput: 3 },
      {
        input_tokens: 5,
        input_tokens_details: split(0, 5),
        output_tokens: 3,
        output_tokens_details: split(0, 3),
        total_tokens: 8,
      },
    ],
    ['input alone', { prompt_tokens: 5 }, { input: 5 }, { input_tokens: 5, output_tokens: 0, total_tokens: 5 }],
    [
      'output alone, with parts of what was not said',
      { completion_tokens: 3, prompt_tokens_details: { image_tokens: 9 } },
      { imageInput: 0, output: 3, imageOutput: 3 },
      {
        input_tokens: 0,
        input_tokens_details: split(0, 0),
        output_tokens: 3,
        output_tokens_details: split(0, 3),
        total_tokens: 3,
      },
    ],
    [
      'parts of an output that was not said',
      { prompt_tokens: 5, completion_tokens_details: { image_tokens: 9, reasoning_tokens: 9 } },
      { input: 5, reasoning: 0, imageOutput: 0 },
      { input_tokens: 5, output_tokens: 0, output_tokens_details: split(0, 0), total_tokens: 5 },
    ],
    [
      'a total that is less than its part says nothing of the rest',
      { prompt_tokens: 5, total_tokens: 4 },
      { input: 5 },
      { input_tokens: 5, output_tokens: 0, total_tokens: 5 },
    ],
  ];
  for (const [what, report, bill, shown] of cases) {
    for (const usageOf of [routerUsage, imagesApiUsage]) {
      const read = usageOf(report);
      assert.deepEqual(billed(read, report), bill, what);
      assert.deepEqual(read?.shown, shown, what);
    }
  }
});

test('no counter is no report', () => {
  for (const usage of [
    undefined,
    null,
    5,
    [],
    {},
    { total_tokens: 9 },
    { prompt_tokens: -1 },
    { input_tokens: 0, output_tokens: 0 },
  ]) {
    for (const usageOf of [routerUsage, imagesApiUsage]) assert.equal(usageOf(usage), undefined);
    assert.equal(responsesUsage(usage, undefined), undefined);
    assert.equal(responsesUsage(usage, { image_gen: usage ?? null }), undefined);
  }
});

test('a responses object: the picture’s tokens, the model’s, or both', () => {
  const model = { input_tokens: 7, output_tokens: 2, total_tokens: 9 };
  const picture = { output_tokens: 20 };
  const both = responsesUsage(model, { image_gen: picture });
  assert.deepEqual(billed(both, { usage: model, tool_usage: { image_gen: picture } }), { input: 7, output: 22, imageOutput: 20 });
  assert.equal(both?.shown, picture);

  const alone = responsesUsage(null, { image_gen: picture });
  assert.deepEqual(billed(alone, { tool_usage: { image_gen: picture } }), { output: 20, imageOutput: 20 });
  assert.equal(alone?.shown, picture);

  // Words of a model are no picture, however many.
  const words = responsesUsage(model, undefined);
  assert.deepEqual(billed(words, { usage: model }), { input: 7, output: 2 });
  assert.deepEqual(words?.shown, model);
});
