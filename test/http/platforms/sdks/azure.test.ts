/**
 * Azure OpenAI is asked as `AzureOpenAI` of the package openai asks, over a corpus of every endpoint; what one side sends alone
 * is in `test/support/sent-by-packages.ts`. What the gateway says of its own accord in such a request is the plain protocol's
 * affair, and tested there.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AzureOpenAI, toFile } from 'openai';
import type { ReceivedRequest } from '../../../../src/simulator/journal.ts';
import { type Asked, both, comparable, gatewayOf, simulated } from '../../../support/sent-by-packages.ts';

const MODEL = 'my-deployment';
const USER = { role: 'user', content: 'hi' };
const PARAMETERS = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'], additionalProperties: false };
const FUNCTION = { name: 'read', description: 'Reads.', parameters: PARAMETERS, strict: true };
const TOOLS = [{ type: 'function', function: FUNCTION }];
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const URL_OF_PIXEL = `data:image/png;base64,${PIXEL}`;
const STREAM = { stream: true, stream_options: { include_usage: true } };

const CHAT: readonly object[] = [
  { messages: [USER], temperature: 0.5 },
  { messages: [USER], ...STREAM },
  { messages: [{ role: 'developer', content: 'Be brief. ü' }, USER], reasoning_effort: 'low', max_completion_tokens: 100 },
  { messages: [USER], tools: TOOLS, tool_choice: 'required', parallel_tool_calls: false, ...STREAM },
  {
    messages: [
      USER,
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'read', arguments: '{"path":"/x"}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'blue' },
    ],
    tools: TOOLS,
  },
  {
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'What?' },
          { type: 'image_url', image_url: { url: URL_OF_PIXEL, detail: 'low' } },
        ],
      },
    ],
  },
  { messages: [USER], response_format: { type: 'json_schema', json_schema: { name: 'a', schema: PARAMETERS, strict: true } } },
  { messages: [USER], logprobs: true, top_logprobs: 2, seed: 7, user: 'u-1', prompt_cache_key: 'k' },
];

const RESPONSES: readonly object[] = [
  { input: 'hi' },
  { input: 'hi', stream: true, instructions: 'Be brief. ü', reasoning: { effort: 'low', summary: 'auto' } },
  { input: [{ role: 'user', content: [{ type: 'input_image', image_url: URL_OF_PIXEL, detail: 'auto' }] }], store: false },
  {
    input: [
      { role: 'user', content: 'hi' },
      { type: 'function_call', call_id: 'call_1', name: 'read', arguments: '{"path":"/x"}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'blue' },
    ],
    tools: [{ type: 'function', ...FUNCTION }],
    ...{ stream: true, store: false, include: ['reasoning.encrypted_content'], parallel_tool_calls: false },
  },
  { input: 'hi', text: { format: { type: 'json_schema', name: 'a', schema: PARAMETERS, strict: true } }, max_output_tokens: 100 },
];

const EMBEDDINGS: readonly object[] = [
  { input: 'hi', encoding_format: 'float' },
  { input: ['hi', 'ü'], dimensions: 8, encoding_format: 'base64' },
];
const PICTURES: readonly object[] = [
  { prompt: 'a cat' },
  { prompt: 'a cat', n: 1, size: '1024x1024', quality: 'high', output_format: 'png', background: 'transparent' },
];

const KEY = { api_key: 'azure-key' };
const VERSIONS = ['2024-10-21', '2025-04-01-preview'];
const channel = (type: string, version: string, more: object = {}): object => ({
  ...{ type, platform: 'azure', ...KEY, models: { m: MODEL }, options: { api_version: version } },
  ...more,
});

interface Endpoint {
  readonly type: string;
  readonly path: string;
  readonly bodies: readonly object[];
  readonly ask: (client: AzureOpenAI, body: never) => PromiseLike<unknown>;
  readonly kind?: string;
}

const ENDPOINTS: Readonly<Record<string, Endpoint>> = {
  chat: {
    ...{ type: 'chat_completion', path: '/v1/chat/completions', bodies: CHAT },
    ask: (client, body) => client.chat.completions.create(body),
  },
  responses: {
    type: 'responses',
    path: '/v1/responses',
    bodies: RESPONSES,
    ask: (client, body) => client.responses.create(body),
  },
  embeddings: {
    ...{ type: 'chat_completion', path: '/v1/embeddings', bodies: EMBEDDINGS, kind: 'embedding' },
    ask: (client, body) => client.embeddings.create(body),
  },
  pictures: {
    ...{ type: 'openai_image', path: '/v1/images/generations', bodies: PICTURES, kind: 'image' },
    ask: (client, body) => client.images.generate(body),
  },
};

/** Members that the gateway adds to a request which does not have them. */
const OWN = ['store', 'stream_options'];

function same(ours: ReceivedRequest, theirs: ReceivedRequest, name: string): void {
  const sent = ours.body as Record<string, unknown>;
  const given = theirs.body as Record<string, unknown>;
  const own = OWN.filter((member) => member in sent && !(member in given)).map((member) => [member, sent[member]]);
  const less = ['content-length'];
  assert.deepEqual(comparable(ours, less), { ...comparable(theirs, less), body: { ...given, ...Object.fromEntries(own) } }, name);
}

for (const [name, { type, path, bodies, ask, kind }] of Object.entries(ENDPOINTS)) {
  test(`azure sends what AzureOpenAI sends: ${name}`, async (t) => {
    const simulator = await simulated(t);
    for (const version of VERSIONS) {
      const client = new AzureOpenAI({ endpoint: simulator.url, apiKey: 'azure-key', apiVersion: version, maxRetries: 0 });
      await using gateway = await gatewayOf(simulator, channel(type, version), kind);
      for (const body of bodies) {
        const sdk = (): PromiseLike<unknown> => ask(client, { ...body, model: MODEL } as never);
        const [theirs, ours] = await both(gateway, simulator, sdk, [path, { ...body, model: 'm' }]);
        same(ours, theirs, JSON.stringify(body));
        assert.equal(ours.headers['api-key'], 'azure-key');
      }
    }
  });
}

test('one deployment for all models, odd names, and the interface without dates', async (t) => {
  const simulator = await simulated(t);
  const endpoint = simulator.url;
  for (const [client, options, model] of [
    [{ endpoint, apiVersion: '2024-10-21', deployment: MODEL }, { api_version: '2024-10-21', deployment: MODEL }, 'other'],
    [{ endpoint, apiVersion: '2024-10-21' }, { api_version: '2024-10-21' }, 'a name/ü 100%?#'],
    [{ baseURL: `${endpoint}/openai/v1`, apiVersion: 'preview' }, { api_version: 'preview' }, MODEL],
  ] as const) {
    await using gateway = await gatewayOf(simulator, channel('responses', '', { models: { m: model }, options }));
    const azure = new AzureOpenAI({ ...client, apiKey: 'azure-key', maxRetries: 0 });
    const sdk = (): PromiseLike<unknown> =>
      azure.responses.create({ input: 'hi', model: 'deployment' in options ? options.deployment : model });
    same(
      ...((await both(gateway, simulator, sdk, ['/v1/responses', { model: 'm', input: 'hi' }])).toReversed() as [
        ReceivedRequest,
        ReceivedRequest,
      ]),
      model,
    );
    if (options.api_version === 'preview') continue;
    await using chat = await gatewayOf(simulator, channel('chat_completion', '', { models: { m: model }, options }));
    const sdkChat = (): PromiseLike<unknown> =>
      azure.chat.completions.create({ messages: [{ role: 'user', content: 'hi' }], model });
    const [theirs, ours] = await both(chat, simulator, sdkChat, ['/v1/chat/completions', { model: 'm', messages: [USER] }]);
    same(ours, theirs, model);
  }
});

test('pictures are edited by the same form', async (t) => {
  const simulator = await simulated(t);
  const client = new AzureOpenAI({
    endpoint: simulator.url,
    apiKey: 'azure-key',
    apiVersion: '2025-04-01-preview',
    maxRetries: 0,
  });
  await using gateway = await gatewayOf(simulator, channel('openai_image', '2025-04-01-preview'), 'image');
  const png = Buffer.from(PIXEL, 'base64');
  const sdk = async (): Promise<unknown> =>
    client.images.edit({ model: MODEL, prompt: 'a dog', image: await toFile(png, 'a.png', { type: 'image/png' }) });
  const form = new FormData();
  form.set('model', 'm');
  form.set('prompt', 'a dog');
  form.set('image', new File([png], 'a.png', { type: 'image/png' }));
  const asked: Asked = ['/v1/images/edits', form];
  const [theirs, ours] = await both(gateway, simulator, sdk, asked);
  const less = ['content-length', 'content-type', 'transfer-encoding'];
  assert.deepEqual(comparable(ours, less), comparable(theirs, less));
  const parts = ({ parts: all }: ReceivedRequest): unknown[] =>
    all.map(({ name, filename, mimeType, bytes }) => [name, filename, mimeType, Buffer.from(bytes).toString('base64')]).sort();
  assert.deepEqual(parts(ours), parts(theirs));
});

test('a token of Entra stands where AzureOpenAI puts it', async (t) => {
  const simulator = await simulated(t);
  const tokens = { azureADTokenProvider: () => Promise.resolve('token') };
  const client = new AzureOpenAI({ endpoint: simulator.url, apiVersion: '2024-10-21', maxRetries: 0, ...tokens });
  const credentials = { client_secret: { tenant_id: 't', client_id: 'c', client_secret: 's', url: simulator.url } };
  const { api_key: _none, ...open } = channel('chat_completion', '', { options: { api_version: '2024-10-21', credentials } }) as {
    api_key?: string;
  };
  await using gateway = await gatewayOf(simulator, open);
  const sdk = (): PromiseLike<unknown> =>
    client.chat.completions.create({ messages: [{ role: 'user', content: 'hi' }], model: MODEL });
  const [theirs, ours] = await both(gateway, simulator, sdk, ['/v1/chat/completions', { model: 'm', messages: [USER] }]);
  same(ours, theirs, 'entra');
  assert.match(`${theirs.headers.authorization}`, /^Bearer token$/);
  assert.match(`${ours.headers.authorization}`, /^Bearer token_/);
});
