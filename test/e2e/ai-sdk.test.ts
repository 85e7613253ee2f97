/** The Vercel AI SDK over every pair: its three providers validate what they read with schemas of their own. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateImage, generateText, type LanguageModel, stepCountIs, streamText, tool } from 'ai';
import { z } from 'zod';
import type { Simulator } from '../../src/simulator/simulator.ts';
import { KEY, type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const FORMS = upstreamForms(import.meta.filename);
let simulator: Simulator;
let gateway: TestGateway;

before(async () => {
  simulator = await startVendors({ pace: { ms: 0 } });
  gateway = await testGateway(formsConfig(FORMS, simulator.url));
});

after(async () => {
  await gateway[Symbol.asyncDispose]();
  await simulator.close();
});

const PROVIDERS: Readonly<Record<string, (model: string) => LanguageModel>> = {
  'openai responses': (model) => createOpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1` })(model),
  'openai chat': (model) => createOpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1` }).chat(model),
  'openai-compatible': (model) =>
    createOpenAICompatible({ name: 'mizu', apiKey: KEY, baseURL: `${gateway.url}/v1`, includeUsage: true })(model),
  anthropic: (model) => createAnthropic({ apiKey: KEY, baseURL: `${gateway.url}/v1` })(model),
};

const weather = tool({
  description: 'The weather of a city',
  inputSchema: z.object({ city: z.string() }),
  execute: () => Promise.resolve('Sunny, 21 degrees.'),
});

for (const [name, provider] of Object.entries(PROVIDERS)) {
  for (const { name: upstream, type } of FORMS) {
    test(`${name} over a ${upstream} upstream: text and usage, whole and streamed`, async () => {
      const script = {
        reply: { pieces: [{ type: 'text' as const, text: ['Water ', 'flows.'] }], usage: { input: 12, output: 5 } },
      };
      simulator.enqueue(script, script);
      const whole = await generateText({ model: provider(upstream), prompt: 'hi', maxRetries: 0, maxOutputTokens: 500 });
      assert.deepEqual(
        [whole.text, whole.usage.inputTokens, whole.usage.outputTokens, whole.finishReason],
        ['Water flows.', 12, 5, 'stop'],
      );
      const stream = streamText({ model: provider(upstream), prompt: 'hi', maxRetries: 0, maxOutputTokens: 500 });
      assert.deepEqual(
        [await stream.text, (await stream.usage).outputTokens, await stream.finishReason],
        ['Water flows.', 5, 'stop'],
      );
    });

    test(`${name} over a ${upstream} upstream: what was said before is there in the next turn`, async () => {
      const said = (text: string) => ({ reply: { pieces: [{ type: 'text' as const, text }] } });
      simulator.enqueue(said('Water flows.'), said('Downhill.'));
      const model = provider(upstream);
      const first = await generateText({ model, prompt: 'hi', maxRetries: 0, maxOutputTokens: 500 });
      const messages = [...first.response.messages, { role: 'user' as const, content: 'Where to?' }];
      const second = await generateText({ model, messages, maxRetries: 0, maxOutputTokens: 500 });
      assert.equal(second.text, 'Downhill.');
      const sent = simulator.requests.at(-1)?.text ?? '';
      // A responses upstream looks up for itself what it is given by name.
      assert.ok(sent.includes('Water flows.') || (type === 'responses' && sent.includes('item_reference')), sent);
    });

    test(`${name} over a ${upstream} upstream: a tool loop of several turns`, async () => {
      const question = {
        model: provider(upstream),
        prompt: 'Weather in Kyoto? Use get_weather.',
        tools: { get_weather: weather },
        stopWhen: stepCountIs(3),
        maxRetries: 0,
      };
      const whole = await generateText(question);
      assert.equal(whole.steps[0]?.toolCalls[0]?.toolName, 'get_weather');
      assert.ok(whole.text.length > 0);
      const stream = streamText(question);
      assert.ok((await stream.text).length > 0);
      assert.ok((await stream.steps).length >= 2);
    });
  }
}

test('pictures of a GPT image model under a name of the operator’s, whole and edited: both providers', async () => {
  await using pictures = await testGateway({
    channels: [
      { id: 'i', type: 'openai_image', base_url: simulator.url, api_key: 'k', models: { 'our-pictures': 'gpt-image-1' } },
    ],
    models: { 'our-pictures': { kind: 'image', price: { input: '1', output: '2' } } },
  });
  const at = { apiKey: KEY, baseURL: `${pictures.url}/v1` };
  for (const model of [
    createOpenAI(at).image('our-pictures'),
    createOpenAICompatible({ name: 'mizu', ...at }).imageModel('our-pictures'),
  ]) {
    const drawn = await generateImage({ model, prompt: 'a red door', maxRetries: 0 });
    assert.equal(drawn.image.mediaType, 'image/png');
    const edited = await generateImage({ model, prompt: { text: 'blue', images: [drawn.image.uint8Array] }, maxRetries: 0 });
    assert.equal(edited.image.mediaType, 'image/png');
  }
});
