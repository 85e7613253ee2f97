/**
 * What a Channel behind a cloud sends is what the vendor's own package sends for the same request at the same clock: method, path, query,
 * body and headers. The exceptions are these tables.
 */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk';
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk';
import { BedrockRuntimeClient, InvokeModelCommand, InvokeModelWithResponseStreamCommand } from '@aws-sdk/client-bedrock-runtime';
import { GoogleGenAI } from '@google/genai';
import { AzureOpenAI } from 'openai';
import type { ReceivedRequest } from '../../../src/simulator/journal.ts';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import { type TestGateway, testConfig, testGateway } from '../../support/test-gateway.ts';

/** Sent by one side alone, each for a reason. */
const ALONE: Readonly<Record<string, string>> = {
  'user-agent': 'everybody names himself',
  'accept-encoding': 'a compressed stream arrives in blocks: the gateway asks for none',
  'accept-language': 'of fetch',
  'sec-fetch-mode': 'of fetch',
  connection: 'of the connection',
  'x-goog-api-client': 'the name of the package',
  authorization: 'a signature covers the other headers; a token is the test’s own: both are checked by themselves',
  'x-amz-user-agent': 'the name of the package',
  'amz-sdk-invocation-id': 'a count of the package’s own repeats',
  'amz-sdk-request': 'a count of the package’s own repeats',
};

interface Compared {
  readonly method: string;
  readonly path: string;
  readonly query: object;
  readonly headers: object;
  readonly body: unknown;
}

function comparable({ method, path, query, headers, body }: ReceivedRequest, less: readonly string[] = []): Compared {
  const kept = Object.entries(headers).filter(
    ([name]) => ALONE[name] === undefined && !name.startsWith('x-stainless-') && !less.includes(name),
  );
  return { method, path, query, headers: Object.fromEntries(kept.sort()), body };
}

const KEYS = { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG', session_token: 'session' };
const USER = { role: 'user' as const, content: 'hi' };
const TOOL = {
  name: 'read',
  description: 'Reads.',
  input_schema: { type: 'object' as const, properties: { path: { type: 'string' } } },
};

const MESSAGES = [
  { max_tokens: 10, messages: [USER] },
  { max_tokens: 2000, messages: [USER], stream: true, system: 'Be brief. ü', temperature: 0.5, stop_sequences: ['x'] },
  {
    max_tokens: 2000,
    messages: [USER],
    tools: [TOOL],
    tool_choice: { type: 'auto' },
    thinking: { type: 'enabled', budget_tokens: 1024 },
  },
  {
    max_tokens: 100,
    stream: true,
    tools: [TOOL],
    messages: [
      USER,
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: '/x y' } }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'ok' }] },
    ],
  },
] as const;
const BETAS = [undefined, ['interleaved-thinking-2025-05-14', 'context-1m-2025-08-07']] as const;

function memberOf(body: unknown, name: string): unknown {
  return typeof body === 'object' && body !== null ? Object.entries(body).find(([key]) => key === name)?.[1] : undefined;
}

async function answered(promise: PromiseLike<unknown>): Promise<void> {
  const answer = await promise;
  if (typeof answer === 'object' && answer !== null && Symbol.asyncIterator in answer)
    for await (const _event of answer as AsyncIterable<unknown>);
}

const models = (kind?: string): object => ({
  m: { ...(kind === undefined ? {} : { kind }), price: { input: '1', output: '2' } },
});

type Asked = readonly [path: string, body: object, headers?: Record<string, string>];

/** What the package sent, and what the gateway sent for what the package would have sent to the vendor itself. */
async function both(
  gateway: TestGateway,
  simulator: Simulator,
  sdk: () => PromiseLike<unknown>,
  [path, body, headers]: Asked,
): Promise<readonly [theirs: ReceivedRequest, ours: ReceivedRequest]> {
  simulator.reset();
  await answered(sdk());
  const answer = await gateway.post(path, body, headers === undefined ? {} : { headers });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  const [theirs, ours] = simulator.requests;
  assert.ok(theirs !== undefined && ours !== undefined);
  return [theirs, ours];
}

function gatewayOf(simulator: Simulator, channel: object, kind?: string): Promise<TestGateway> {
  return testGateway({ channels: [{ id: 'one', base_url: simulator.url, ...channel }], models: models(kind) });
}

async function simulated(t: TestContext): Promise<Simulator> {
  const simulator = await startSimulator({ pace: { ms: 0 } });
  t.after(() => simulator.close());
  return simulator;
}

function create(client: AnthropicBedrock | AnthropicVertex, asked: object, isBeta: boolean): PromiseLike<unknown> {
  return isBeta ? client.beta.messages.create(asked as never) : client.messages.create(asked as never);
}

/** Each body, with betas and without: byte for byte what the package sends. `more` is held of what the gateway sent. */
async function sameMessages(
  gateway: TestGateway,
  simulator: Simulator,
  client: AnthropicBedrock | AnthropicVertex,
  model: string,
  more: (ours: ReceivedRequest) => void = () => undefined,
): Promise<void> {
  for (const body of MESSAGES) {
    for (const betas of BETAS) {
      const headers = { 'anthropic-version': VERSION, ...(betas === undefined ? {} : { 'anthropic-beta': betas.join(',') }) };
      const asked = { ...structuredClone(body), model, ...(betas === undefined ? {} : { betas: [...betas] }) };
      const [theirs, ours] = await both(gateway, simulator, () => create(client, asked, betas !== undefined), [
        '/v1/messages',
        { ...body, model: 'm' },
        headers,
      ]);
      assert.deepEqual(comparable(ours), comparable(theirs));
      assert.equal(ours.text, theirs.text);
      more(ours);
    }
  }
}

/** The clock stands still. */
function frozen(t: { readonly mock: typeof test.mock }): void {
  t.mock.timers.enable({ apis: ['Date'], now: Date.parse('2026-03-04T05:06:07Z') });
}

const VERSION = '2026-10-21';

for (const upstream of [
  'us.anthropic.claude-sonnet-4-20250514-v1:0',
  'arn:aws:bedrock:us-east-1:1:application-inference-profile/abc',
]) {
  test(`bedrock sends what @anthropic-ai/bedrock-sdk sends, for ${upstream}`, async (t) => {
    frozen(t);
    const simulator = await simulated(t);
    const client = new AnthropicBedrock({
      ...{ awsRegion: 'us-east-1', baseURL: simulator.url },
      ...{ awsAccessKey: KEYS.access_key_id, awsSecretKey: KEYS.secret_access_key, awsSessionToken: KEYS.session_token },
    });
    const options = { region: 'us-east-1', credentials: { static: KEYS } };
    const channel = { type: 'messages', platform: 'bedrock', models: { m: upstream }, options };
    await using gateway = await gatewayOf(simulator, channel);
    await sameMessages(gateway, simulator, client, upstream);
  });
}

test('bedrock asks the path of @aws-sdk/client-bedrock-runtime, which spells the colon of a model as %3A, with its date and hash', async (t) => {
  frozen(t);
  const simulator = await simulated(t);
  const upstream = 'anthropic.claude-v2:1';
  const sent: { method: string; path: string; headers: Record<string, string>; body: Uint8Array }[] = [];
  const client = new BedrockRuntimeClient({
    ...{ region: 'us-east-1', endpoint: simulator.url, maxAttempts: 1 },
    credentials: { accessKeyId: KEYS.access_key_id, secretAccessKey: KEYS.secret_access_key, sessionToken: KEYS.session_token },
    // Its own would speak HTTP/2.
    requestHandler: { handle: (request: (typeof sent)[0]) => Promise.reject(new Error(`kept ${sent.push(request)}`)) } as never,
  });
  const options = { region: 'us-east-1', credentials: { static: KEYS } };
  const channel = { type: 'messages', platform: 'bedrock', models: { m: upstream }, options };
  await using gateway = await gatewayOf(simulator, channel);
  const text = JSON.stringify({ max_tokens: 10, messages: [USER], anthropic_version: 'bedrock-2023-05-31' });
  for (const stream of [false, true]) {
    const input = { modelId: upstream, body: text, contentType: 'application/json', accept: 'application/json' };
    const command = stream ? new InvokeModelWithResponseStreamCommand(input) : new InvokeModelCommand(input);
    await assert.rejects(client.send(command as InvokeModelCommand), /kept/);
    await (
      await gateway.post('/v1/messages', { max_tokens: 10, messages: [USER], model: 'm', ...(stream ? { stream } : {}) })
    ).text();
    const [theirs, ours] = [sent.at(-1), simulator.requests.at(-1)];
    assert.ok(theirs !== undefined && ours !== undefined);
    assert.equal(ours.method, theirs.method);
    assert.equal(ours.path, decodeURIComponent(theirs.path));
    assert.equal(ours.text, Buffer.from(theirs.body).toString());
    const { headers } = theirs;
    // A stream's `accept` has another name there, which means the same.
    const accept = headers['accept'] ?? headers['x-amzn-bedrock-accept'];
    const expected = { ...headers, accept, 'x-amzn-bedrock-accept': undefined };
    for (const [name, value] of Object.entries(expected)) {
      if (ALONE[name] === undefined && value !== undefined) assert.equal(ours.headers[name], value, name);
    }
  }
  client.destroy();
});

const METADATA = (url: string): object => ({ metadata: { url } });
const TOKEN = { getRequestHeaders: () => Promise.resolve(new Headers({ authorization: 'Bearer token' })), projectId: 'p' };

test('vertex sends what @anthropic-ai/vertex-sdk sends', async (t) => {
  const simulator = await simulated(t);
  const upstream = 'claude-sonnet-4@20250514';
  const client = new AnthropicVertex({
    ...{ region: 'us-east5', projectId: 'p', baseURL: `${simulator.url}/v1` },
    authClient: TOKEN as never,
  });
  const options = { project: 'p', location: 'us-east5', credentials: METADATA(simulator.url) };
  const channel = { type: 'messages', platform: 'vertex', models: { m: upstream }, options };
  await using gateway = await gatewayOf(simulator, channel);
  await sameMessages(gateway, simulator, client, upstream, (ours) =>
    assert.match(ours.headers.authorization ?? '', /^Bearer token_/),
  );
});

test('a client of the first version is named to each cloud by that cloud’s own word for it', async (t) => {
  const simulator = await simulated(t);
  for (const [platform, options, word] of [
    ['bedrock', { region: 'us-east-1', credentials: { static: KEYS } }, 'bedrock-2023-05-31'],
    ['vertex', { project: 'p', location: 'global', credentials: METADATA(simulator.url) }, 'vertex-2023-10-16'],
  ] as const) {
    for (const path of ['/v1/messages', '/v1/chat/completions']) {
      simulator.reset();
      const channel = { id: 'one', type: 'messages', platform, base_url: simulator.url, models: ['m'], options };
      await using gateway = await testGateway({ channels: [channel], models: { m: { price: { input: '1', output: '2' } } } });
      const answer = await gateway.post(path, { model: 'm', max_tokens: 10, messages: [USER] });
      assert.equal(answer.status, 200, await answer.text());
      const sent = simulator.requests.at(-1);
      assert.equal(memberOf(sent?.body, 'anthropic_version'), word);
      assert.equal(sent?.headers['anthropic-version'], undefined);
    }
  }
});

function withoutHabits(body: unknown): unknown {
  const { systemInstruction, generationConfig, ...others } = body as {
    systemInstruction?: { role?: string };
    generationConfig?: object;
  };
  const isEmpty = Object.keys(generationConfig ?? {}).length === 0;
  const rest = isEmpty ? others : { ...others, generationConfig };
  if (systemInstruction === undefined) return rest;
  const { role, ...system } = systemInstruction;
  assert.equal(role, 'user');
  return { ...rest, systemInstruction: system };
}

const FUNCTION = { name: 'read', description: 'Reads.', parametersJsonSchema: TOOL.input_schema };
const GEMINI = [
  [{ contents: [{ role: 'user', parts: [{ text: 'hi' }] }] }, { messages: [USER] }],
  [
    {
      contents: [{ role: 'user', parts: [{ text: 'hi' }] }],
      config: { systemInstruction: 'Be brief.', temperature: 0.5, topP: 0.9, stopSequences: ['x'], maxOutputTokens: 100 },
    },
    {
      messages: [{ role: 'system', content: 'Be brief.' }, USER],
      ...{ temperature: 0.5, top_p: 0.9, stop: ['x'], max_completion_tokens: 100 },
    },
  ],
  [
    { contents: [{ role: 'user', parts: [{ text: 'hi' }] }], config: { tools: [{ functionDeclarations: [FUNCTION] }] } },
    {
      messages: [USER],
      tools: [{ type: 'function', function: { name: 'read', description: 'Reads.', parameters: TOOL.input_schema } }],
    },
  ],
] as const;

test('vertex sends what @google/genai sends', async (t) => {
  const simulator = await simulated(t);
  const client = new GoogleGenAI({
    ...{ vertexai: true, project: 'p', location: 'us-central1' },
    ...{ googleAuthOptions: { authClient: TOKEN as never }, httpOptions: { baseUrl: simulator.url } },
  });
  const options = { project: 'p', location: 'us-central1', credentials: METADATA(simulator.url) };
  const channel = { type: 'gemini', platform: 'vertex', models: { m: 'gemini-2.5-pro' }, options };
  await using gateway = await gatewayOf(simulator, channel);
  for (const [asked, body] of GEMINI) {
    for (const stream of [false, true]) {
      const parameters = { model: 'gemini-2.5-pro', ...structuredClone(asked) } as never;
      const sdk = (): PromiseLike<unknown> =>
        stream ? client.models.generateContentStream(parameters) : client.models.generateContent(parameters);
      const [theirs, ours] = await both(gateway, simulator, sdk, [
        '/v1/chat/completions',
        { model: 'm', ...body, ...(stream ? { stream } : {}) },
      ]);
      // The package lets fetch ask for anything, orders members as it likes, calls the system a user, and sends an empty configuration.
      const less = ['accept', 'content-length'];
      const expected = comparable(theirs, less);
      assert.deepEqual(comparable(ours, less), { ...expected, body: withoutHabits(expected.body) });
    }
  }
});

test('azure sends what AzureOpenAI of the package openai sends', async (t) => {
  const simulator = await simulated(t);
  const client = new AzureOpenAI({ endpoint: simulator.url, apiKey: 'azure-key', apiVersion: '2024-10-21' });
  const channel = (type: string, more: object = {}): object => ({
    ...{ type, platform: 'azure', api_key: 'azure-key', models: { m: 'my-deployment' } },
    options: { api_version: '2024-10-21', ...more },
  });
  const model = 'my-deployment';
  const chat = { messages: [USER], temperature: 0.5 };
  const cases: readonly [string, () => PromiseLike<unknown>, readonly [string, object], object, string?][] = [
    [
      'chat',
      () => client.chat.completions.create({ ...chat, model }),
      ['/v1/chat/completions', { ...chat, model: 'm' }],
      channel('chat_completion'),
    ],
    [
      'a chat stream',
      () => client.chat.completions.create({ ...chat, model, stream: true, stream_options: { include_usage: true } }),
      ['/v1/chat/completions', { ...chat, model: 'm', stream: true, stream_options: { include_usage: true } }],
      channel('chat_completion'),
    ],
    [
      'responses',
      () => client.responses.create({ model, input: 'hi' }),
      ['/v1/responses', { model: 'm', input: 'hi' }],
      channel('responses'),
    ],
    [
      'responses of a deployment for all models',
      () => client.responses.create({ model, input: 'hi' }),
      ['/v1/responses', { model: 'm', input: 'hi' }],
      { ...channel('responses', { deployment: model }), models: ['m'] },
    ],
    [
      'embeddings',
      () => client.embeddings.create({ model, input: 'hi', encoding_format: 'float' }),
      ['/v1/embeddings', { model: 'm', input: 'hi', encoding_format: 'float' }],
      channel('chat_completion'),
      'embedding',
    ],
    [
      'pictures',
      () => client.images.generate({ model, prompt: 'a cat' }),
      ['/v1/images/generations', { model: 'm', prompt: 'a cat' }],
      channel('openai_image'),
      'image',
    ],
  ];
  for (const [name, sdk, asked, one, kind] of cases) {
    await using gateway = await gatewayOf(simulator, one, kind);
    const [theirs, ours] = await both(gateway, simulator, sdk, asked);
    // What the gateway says of its own accord in such a request is the plain protocol's affair, and tested there.
    const own =
      (ours.body as Record<string, unknown>)['store'] === undefined ? {} : { store: (ours.body as { store?: unknown }).store };
    const less = ['content-length'];
    assert.deepEqual(comparable(ours, less), { ...comparable(theirs, less), body: { ...(theirs.body as object), ...own } }, name);
    assert.equal(ours.headers['api-key'], 'azure-key');
  }
});

/** Where the packages go by themselves. */
test('addresses follow from regions and locations as in the packages', () => {
  const origin = (channel: object): string | undefined =>
    testConfig({ channels: [{ id: 'one', models: ['m'], ...channel }], models: { m: { price: { input: '1', output: '2' } } } })
      .channels[0]?.origin;
  for (const region of ['us-east-1', 'eu-central-1', 'us-gov-west-1']) {
    const theirs = new AnthropicBedrock({ awsRegion: region, awsAccessKey: 'a', awsSecretKey: 'b' }).baseURL;
    const options = { region, credentials: { static: KEYS } };
    assert.equal(origin({ type: 'messages', platform: 'bedrock', options }), theirs);
  }
  for (const location of ['us-east5', 'europe-west1', 'global', 'us', 'eu']) {
    const theirs = new AnthropicVertex({ region: location, projectId: 'p', authClient: TOKEN as never }).baseURL;
    const options = { project: 'p', location, credentials: METADATA('http://h') };
    assert.equal(`${origin({ type: 'messages', platform: 'vertex', options })}/v1`, theirs);
    assert.equal(
      origin({ type: 'gemini', platform: 'vertex', options }),
      origin({ type: 'messages', platform: 'vertex', options }),
    );
  }
});
