/**
 * An upstream that others wrote: what a client reads from it directly must equal what it reads through the gateway, for every
 * pair of client protocol and upstream dialect. Foreign code at both ends, so that a misunderstanding of ours cannot cancel
 * itself out.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { LLMock } from '@copilotkit/aimock';
import OpenAI from 'openai';
import type { Simulator } from '../../src/simulator/simulator.ts';
import { KEY, type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formChannel, startVendors, upstreamForms } from '../support/upstream-forms.ts';

// Of Vertex it serves Gemini alone, of Azure no responses, and in the streams of Bedrock it leaves out the base64.
const UNSERVED: ReadonlySet<string> = new Set(['messages-vertex', 'responses-azure']);
const FORMS = upstreamForms(import.meta.filename).filter(({ name }) => !UNSERVED.has(name));
const CLIENTS = ['chat', 'responses', 'messages'] as const;
const TEXT = 'Hello from a foreign upstream: 水 flows down.';

let mock: LLMock;
/** Gives the tokens of the clouds. */
let vendors: Simulator;
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
  vendors = await startVendors();
  gateway = await testGateway(freshConfig());
});

after(async () => {
  await gateway[Symbol.asyncDispose]();
  await mock.stop();
  await vendors.close();
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
  for (const { name: upstream } of FORMS) {
    for (const stream of upstream === 'messages-bedrock' ? [false] : [false, true]) {
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
    channels: FORMS.map((form) =>
      formChannel(form, vendors.url, {
        id: `${form.name}-${generation}`,
        base_url: mock.url,
        models: { [form.name]: form.type === 'gemini' ? 'gemini-2.5-flash' : 'gpt-4o' },
        // The one version that it has.
        options: form.name === 'gemini-vertex' ? { api_version: 'v1' } : {},
      }),
    ),
    models: Object.fromEntries(FORMS.map(({ name }) => [name, { price: { input: '1', output: '2' } }])),
  };
}
