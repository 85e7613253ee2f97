/** Tokens where nobody reported any: what of a request and of an answer is counted, and how. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Whole } from '../../../src/codecs/canonical/fold.ts';
import type { Item, Media, OutputItem } from '../../../src/codecs/canonical/item.ts';
import { asSent, type Tool } from '../../../src/codecs/canonical/request.ts';
import { completedUsage, countedUsage, estimateInput, estimateOutput, withPictures } from '../../../src/http/money/estimate.ts';
import type { Model } from '../../../src/http/config/config.ts';
import type { Usage } from '../../../src/codecs/canonical/usage.ts';
import { Tokenizer } from '../../../src/http/money/tokenizer.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { machinePace } from '../../support/machine-pace.ts';
import { MODELS, testConfig } from '../../support/test-gateway.ts';
import { requestOf } from '../../support/wire.ts';

const tokenizer = new Tokenizer(systemClock, createLogger('silent', { write: () => undefined }));
await tokenizer.firstTry;

const LONG = 'A'.repeat(400_000);
const text = (words: string): Item & OutputItem => ({ kind: 'text', role: 'assistant', text: words, citations: [] });
const image = (source: Media['source']): Item & OutputItem => ({
  kind: 'media',
  role: 'assistant',
  media: { type: 'image', source },
});
const call = (name: string, input: string): Item & OutputItem => ({
  kind: 'toolCall',
  toolType: 'function',
  callId: 'call_never_counted',
  tool: { name },
  input,
});
const tool: Tool = { kind: 'function', tool: { name: 'f' }, description: 'd'.repeat(100), at: 'tools[0]' };

const inputOf = (...items: Item[]): number => estimateInput(requestOf('chat', { items }));
const wholeOf = (...items: OutputItem[]): Whole => ({
  items: items.map((item) => ({ item, status: 'completed' })),
  outcome: { status: 'completed', stop: 'end' },
});

test('the input of a request: four characters a token of all that is said, a thousand tokens a piece of media', () => {
  assert.equal(inputOf(), 0);
  assert.equal(inputOf(text('x'.repeat(8))), 2);
  assert.equal(inputOf(text('x'.repeat(9))), 3);
  assert.equal(inputOf(text('xxx'), text('y')), 1, 'rounded once');
  assert.equal(inputOf({ kind: 'refusal', text: 'x'.repeat(8) }), 2);
  assert.equal(inputOf({ kind: 'reasoning', raw: 'x'.repeat(8), summary: ['y'.repeat(4), 'z'.repeat(4)] }), 4);
  assert.equal(inputOf({ kind: 'reasoning', summary: ['y'.repeat(8)] }, { kind: 'reasoning', raw: 'x'.repeat(8) }), 4);
  assert.equal(inputOf(call('four', 'x'.repeat(8))), 3);
  assert.equal(inputOf(image({ from: 'inline', mime: 'image/png', data: LONG }), image({ from: 'url', url: LONG })), 2_000);
  assert.equal(inputOf(image({ from: 'text', text: 'x'.repeat(8) })), 2, 'a document of words');
  const content = [
    { kind: 'text', text: 'x'.repeat(8) },
    { kind: 'media', media: { type: 'image', source: { from: 'inline', mime: 'image/png', data: LONG } } },
    { kind: 'native', dialect: 'messages', body: 'x'.repeat(6) },
  ] as const;
  assert.equal(
    inputOf({ kind: 'toolResult', toolType: 'function', callId: 'call_never_counted', content, isError: false }),
    1_004,
  );
  const withTool = estimateInput(requestOf('chat', { items: [text('x'.repeat(8))], tools: [tool] }));
  assert.ok(withTool > 2 + 25 && withTool < 2 + 50, `${withTool} with a tool`);
  const own: Tool = { kind: 'native', dialect: 'responses', type: 'own', body: { type: 'x'.repeat(29) }, at: 'tools[0]' };
  assert.equal(estimateInput(requestOf('responses', { tools: [own] })), 10, 'a tool of its protocol as it is written');
});

test('media in what only one protocol can read are pieces, too: screenshots, fetched documents, videos', () => {
  const url = `data:image/png;base64,${LONG}`;
  for (const body of [
    { type: 'computer_call_output', call_id: 'c', output: { type: 'computer_screenshot', image_url: url } },
    { type: 'code_interpreter_call', code: 'plot()', outputs: [{ type: 'image', url }] },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: LONG } },
    { type: 'video_url', video_url: { url } },
  ]) {
    const estimated = inputOf({ kind: 'native', dialect: 'responses', body });
    assert.ok(estimated > 1_000 && estimated < 1_100, `${estimated} for ${body.type}`);
  }
  const two = {
    outputs: [
      { type: 'image', url },
      { type: 'image', url },
      { type: 'logs', logs: 'x'.repeat(4_000) },
    ],
  };
  const estimated = inputOf({ kind: 'native', dialect: 'responses', body: two });
  assert.ok(estimated > 3_000 && estimated < 3_100, `${estimated} for two pictures and a log`);
  const words = { output: 'a text that says data:image/png;base64, and "base64"', data: 'x'.repeat(4_000) };
  assert.ok(inputOf({ kind: 'native', dialect: 'responses', body: words }) > 1_000, 'words are words');
});

test('the output is what the client allows, else the operator, else 4096 tokens', () => {
  const model = testConfig({ channels: [], models: { m: { ...MODELS.m, max_output_tokens: 300 }, n: MODELS.m } }).models;
  const [capped, plain] = [model.get('m'), model.get('n')];
  assert.ok(capped !== undefined && plain !== undefined);
  assert.equal(estimateOutput(requestOf('chat', { maxOutputTokens: 20 }), capped), 20);
  assert.equal(estimateOutput(requestOf('chat'), capped), 300);
  assert.equal(estimateOutput(requestOf('chat'), plain), 4_096);
});

test('an answer without a report is counted: words by a tokenizer, reasoning named apart, media by the piece', async () => {
  const request = asSent(requestOf('chat', { items: [text('Good morning')], tools: [] }));
  const count = (...items: OutputItem[]) => countedUsage(tokenizer, request, wholeOf(...items));
  assert.deepEqual(await count(), { input: 2, output: 0, estimated: true });
  assert.deepEqual(await count(text('Good '), text('morning')), { input: 2, output: 2, estimated: true }, 'one text in pieces');
  assert.deepEqual(await count({ kind: 'reasoning', raw: 'Good morning', summary: ['never beside the raw text'] }), {
    input: 2,
    output: 2,
    reasoning: 2,
    estimated: true,
  });
  const summed = await count({ kind: 'reasoning', summary: ['Good morning'] }, text('Good morning'));
  assert.deepEqual(summed, { input: 2, output: 4, reasoning: 2, estimated: true });
  const picture = image({ from: 'inline', mime: 'image/png', data: LONG });
  const drawn = { input: 2, output: 1_002, imageOutput: 1_000, estimated: true };
  assert.deepEqual(await count(picture, text('Good morning')), drawn);
  assert.deepEqual(await count(call('Good', ' morning')), { input: 2, output: 2, estimated: true });
  const asked = asSent(requestOf('chat', { items: [picture, image({ from: 'text', text: 'Good morning' })], tools: [tool] }));
  const { input = 0 } = await countedUsage(tokenizer, asked, wholeOf());
  assert.ok(input > 1_002 && input < 1_100, `${input} for a picture, a document of two words and a tool`);
  const two = asSent(requestOf('chat', { items: [text('Good mor'), text('ning')] }));
  const { input: apart } = await countedUsage(tokenizer, two, wholeOf());
  assert.equal(apart, await tokenizer.count('Good mor\nning'), 'what is asked in two texts is no word across them');
  assert.notEqual(apart, await tokenizer.count('Good morning'));
  const special = await count(text('<|endoftext|>'));
  assert.ok((special.output ?? 0) > 1, 'a special token in a text is words');
});

test('a text without an end of a word takes no longer than others: nobody holds up the event loop with one', async () => {
  const count = async (words: string): Promise<number> => {
    const { output = 0 } = await countedUsage(tokenizer, asSent(requestOf('chat')), wholeOf(text(words)));
    return output;
  };
  await count('the tables of the tokenizer');
  const pace = machinePace();
  const before = process.threadCpuUsage();
  for (const run of ['a', 'aé', '漢', 'ก', ' ', '\n', '!', '😀', 'a\u0301']) {
    const tokens = await count(run.repeat(65_536 / run.length));
    assert.ok(tokens > 500 && tokens <= 65_536, `${JSON.stringify(run)}: ${tokens}`);
  }
  const { user, system } = process.threadCpuUsage(before);
  const ms = (user + system) / 1000 / Math.max(pace, machinePace());
  assert.ok(ms < 2_000, `${ms} ms`);
  assert.equal(await count('a'.repeat(640)), 80, 'whole tokens are not cut');
  assert.equal(await count('Good morning. '.repeat(1000)), 3000 + 1);
});

test('a text too long for a tokenizer is counted by its bytes', async () => {
  const { output } = await countedUsage(tokenizer, asSent(requestOf('chat')), wholeOf(text('世'.repeat(65_537))));
  assert.equal(output, Math.ceil((65_537 * 3) / 4));
});

test('U3: what a report leaves out is counted and flagged, what it says stays', async () => {
  const request = asSent(requestOf('chat', { items: [text('Good morning')] }));
  const said = wholeOf(text('Good morning'));
  const complete = (usage: Usage | undefined, whole = said) => completedUsage(tokenizer, usage, request, () => whole);
  const cached = [{ cacheRead: 1 }, { cacheWrite: 1 }, { cacheWrite5m: 1 }, { cacheWrite1h: 1 }];
  for (const known of [{ input: 1 }, ...cached.map((counts) => ({ input: 0, ...counts }))]) {
    const reported = { ...known, output: 5 };
    assert.equal(complete(reported), reported, 'nothing is missing, and nobody waits');
    assert.deepEqual(await complete(known), { ...known, output: 2, estimated: true });
  }
  for (const known of cached)
    assert.deepEqual(
      await complete({ ...known, output: 5 }),
      { ...known, input: 1, output: 5, estimated: true },
      'a report of the cache alone leaves out the rest of the input',
    );
  for (const zeros of [{}, { input: 0 }, { cacheRead: 0 }, { input: 0, cacheRead: 0, cacheWrite5m: 0, cacheWrite1h: 0 }]) {
    assert.deepEqual(
      await complete({ ...zeros, output: 5 }),
      { ...zeros, input: 2, output: 5, estimated: true },
      'no input is free',
    );
  }
  const compacted = { input: 0, output: 0, extra: [{ type: 'compaction', input: 5, cacheRead: 0, cacheWrite: 0, output: 1 }] };
  assert.equal(complete(compacted), compacted, 'passes beside the answer are all there was');
  assert.deepEqual(
    await complete({ input: 7, reasoning: 100 }),
    { input: 7, output: 102, reasoning: 100, estimated: true },
    'reasoning that nobody was shown comes on top of what was said',
  );
  for (const zero of [{ output: 0 }, { output: 0, reasoning: 0 }]) {
    assert.deepEqual(
      await complete({ input: 7, ...zero }),
      { input: 7, ...zero, output: 2, estimated: true },
      'no output is free',
    );
    const empty = { input: 7, ...zero };
    assert.equal(await complete(empty, wholeOf()), empty, 'nothing was said, as the report says');
  }
  assert.deepEqual(
    await complete({}, wholeOf()),
    { input: 2, output: 0, estimated: true },
    'what was asked has a price, though nothing was said',
  );
  assert.deepEqual(await complete(undefined), { input: 2, output: 2, estimated: true });
  assert.deepEqual(await complete({ input: 7 }, wholeOf()), { input: 7 }, 'nothing was said');
  const meters = new Map([['web_search', 1]]);
  const counted = { input: 2, output: 2, meters, serviceTier: 'flex', estimated: true };
  assert.deepEqual(
    await complete({ input: 0, output: 0, meters, serviceTier: 'flex' }),
    counted,
    'zeros beside calls are no report',
  );
  assert.deepEqual(await complete({ meters, serviceTier: 'flex' }), counted);
  const priced = { input: 1, output: 0, meters };
  assert.equal(await complete(priced, wholeOf()), priced);
});

test('pictures and sound that are counted are named apart on both sides, since they have prices of their own', async () => {
  const media = (type: 'image' | 'audio' | 'file'): OutputItem => ({
    kind: 'media',
    role: 'assistant',
    media: { type, source: { from: 'url', url: 'https://x' } },
  });
  const items = [media('image'), media('audio'), media('audio'), media('file')];
  const request = asSent(requestOf('chat', { items, tools: [] }));
  const answer = wholeOf(media('image'), media('audio'));
  const counted = await countedUsage(tokenizer, request, answer);
  const asked = { input: 4_000, imageInput: 1_000, audioInput: 2_000 };
  const made = { output: 2_000, imageOutput: 1_000, audioOutput: 1_000 };
  assert.deepEqual(counted, { ...asked, ...made, estimated: true });
  // A share goes with the count that it is a part of.
  const filled = (reported: Usage) => completedUsage(tokenizer, reported, request, () => answer);
  assert.deepEqual(await filled({ input: 7 }), { input: 7, ...made, estimated: true });
  assert.deepEqual(await filled({ output: 7 }), { output: 7, ...asked, estimated: true });
});

test('I8: pictures are counted where the report does not', () => {
  const picture = image({ from: 'url', url: 'https://x' });
  const voice: OutputItem = {
    kind: 'media',
    role: 'assistant',
    media: { type: 'audio', source: { from: 'url', url: 'https://x' } },
  };
  assert.deepEqual(withPictures({ output: 1 }, wholeOf(picture, text('a'), picture, voice)), { output: 1, images: 2 });
  assert.deepEqual(withPictures({ output: 1, images: 1 }, wholeOf(picture, picture)), { output: 1, images: 1 });
  assert.deepEqual(withPictures({ output: 1 }, wholeOf(text('a'), voice)), { output: 1 });
});

test('a reservation is never for more than the model can say, whatever the client asks for', () => {
  const model = (maxOutputTokens?: number): Model => ({
    ...(testConfig({ models: MODELS }).models.get('m') ?? assert.fail()),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  });
  const asking = (maxOutputTokens?: number) => requestOf('chat', maxOutputTokens === undefined ? {} : { maxOutputTokens });
  assert.equal(estimateOutput(asking(), model()), 4_096);
  assert.equal(estimateOutput(asking(10 ** 12), model()), 131_072);
  assert.equal(estimateOutput(asking(10 ** 12), model(8_000)), 8_000);
  assert.equal(estimateOutput(asking(100), model(8_000)), 100);
  assert.equal(estimateOutput(asking(), model(8_000)), 8_000);
  // A summary is asked for without the client's cap.
  assert.equal(estimateOutput(asking(16), model(), true), 4_096);
  assert.equal(estimateOutput(asking(16), model(8_000), true), 8_000);
  assert.equal(estimateOutput(asking(6_000), model(), true), 6_000);
});
