/**
 * An upstream that others wrote: what a client reads from it directly must equal what it reads through the gateway, for every pair of
 * client protocol and upstream dialect. Foreign code at both ends, so that a misunderstanding of ours cannot cancel itself out.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { LLMock } from '@copilotkit/aimock';
import OpenAI from 'openai';
import { KEY, type TestGateway, testGateway } from '../support/test-gateway.ts';

const UPSTREAMS = ['chat_completion', 'responses', 'messages', 'gemini'] as const;
const CLIENTS = ['chat', 'responses', 'messages'] as const;
const TEXT = 'Hello from a foreign upstream: 水 flows down.';

let mock: LLMock;
let gateway: TestGateway;
let generation = 0;

before(async () => {
  mock = new LLMock({ port: 0 });
  mock.onMessage('say hello', { content: TEXT });
  mock.onMessage('think first', { content: TEXT, reasoning: 'Rivers find the sea.' });
  mock.onMessage('call two', {
    toolCalls: [
      { name: 'get_weather', arguments: '{"city":"Kyoto"}' },
      { name: 'get_time', arguments: '{"zone":"Asia/Tokyo","format":"24h"}' },
    ],
  });
  mock.onMessage('fail now', { error: { message: 'broken on purpose', type: 'server_error' }, status: 500 });
  await mock.start();
  gateway = await testGateway(freshConfig());
});

after(async () => {
  await gateway[Symbol.asyncDispose]();
  await mock.stop();
});

/** What every protocol can say of an answer. */
interface Said {
  readonly text: string;
  readonly calls: readonly (readonly [string, unknown])[];
}

const TOOLS = ['get_weather', 'get_time'].map((name) => ({ name, schema: { type: 'object' as const, properties: {} } }));

async function ask(
  client: (typeof CLIENTS)[number],
  url: string,
  key: string,
  model: string,
  text: string,
  stream: boolean,
): Promise<Said> {
  if (client === 'messages') {
    const sdk = new Anthropic({ apiKey: key, baseURL: url, maxRetries: 0 });
    const body = {
      model,
      max_tokens: 500,
      messages: [{ role: 'user' as const, content: text }],
      tools: TOOLS.map(({ name, schema }) => ({ name, input_schema: schema })),
    };
    const message = stream ? await sdk.messages.stream(body).finalMessage() : await sdk.messages.create(body);
    return {
      text: message.content.map((block) => (block.type === 'text' ? block.text : '')).join(''),
      calls: message.content.flatMap((block) => (block.type === 'tool_use' ? [[block.name, block.input] as const] : [])),
    };
  }
  const sdk = new OpenAI({ apiKey: key, baseURL: `${url}/v1`, maxRetries: 0 });
  if (client === 'responses') {
    const body = {
      model,
      input: text,
      store: false,
      tools: TOOLS.map(({ name, schema }) => ({ type: 'function' as const, name, parameters: schema, strict: false })),
    };
    const response = stream ? await sdk.responses.stream(body).finalResponse() : await sdk.responses.create(body);
    return {
      text: response.output_text,
      calls: response.output.flatMap((item) =>
        item.type === 'function_call' ? [[item.name, JSON.parse(item.arguments)] as const] : [],
      ),
    };
  }
  const body = {
    model,
    messages: [{ role: 'user' as const, content: text }],
    tools: TOOLS.map(({ name, schema }) => ({ type: 'function' as const, function: { name, parameters: schema } })),
  };
  const completion = stream
    ? await sdk.chat.completions.stream(body).finalChatCompletion()
    : await sdk.chat.completions.create(body);
  const message = completion.choices[0]?.message;
  return {
    text: message?.content ?? '',
    calls: (message?.tool_calls ?? []).flatMap((call) =>
      call.type === 'function' ? [[call.function.name, JSON.parse(call.function.arguments)] as const] : [],
    ),
  };
}

for (const client of CLIENTS) {
  for (const upstream of UPSTREAMS) {
    for (const stream of [false, true]) {
      test(`${client} client, ${upstream} upstream, ${stream ? 'streamed' : 'whole'}: through the gateway as directly`, async () => {
        for (const text of ['say hello', 'think first', 'call two']) {
          const direct = await ask(client, mock.url, 'mock', 'gpt-4o', text, stream);
          assert.ok(direct.text !== '' || direct.calls.length > 0);
          assert.deepEqual(await ask(client, gateway.url, KEY, upstream, text, stream), direct);
        }
        await assert.rejects(ask(client, mock.url, 'mock', 'gpt-4o', 'fail now', stream));
        await assert.rejects(ask(client, gateway.url, KEY, upstream, 'fail now', stream), /502|upstream/i);
        // A failing Channel opens its circuit; the next test begins with a closed one.
        gateway.configure(freshConfig());
      });
    }
  }
}

/** Channels with new names: their circuits are closed. */
function freshConfig(): object {
  generation += 1;
  return {
    channels: UPSTREAMS.map((type) => ({
      id: `${type}-${generation}`,
      type,
      base_url: mock.url,
      api_key: 'mock',
      models: { [type]: type === 'gemini' ? 'gemini-2.5-flash' : 'gpt-4o' },
    })),
    models: Object.fromEntries(UPSTREAMS.map((type) => [type, { price: { input: '1', output: '2' } }])),
  };
}
