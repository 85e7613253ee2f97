/**
 * Gemini on Vertex is asked as `@google/genai` asks, over a corpus of requests that clients of the gateway can make: they speak
 * another protocol, so each has both forms. What one side sends alone is in `test/support/sent-by-packages.ts`, and beside it
 * what {@link withoutHabits} takes away.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GoogleGenAI } from '@google/genai';
import { both, comparable, gatewayOf, simulated } from '../../../support/sent-by-packages.ts';
import { testConfig } from '../../../support/test-gateway.ts';

const USER = { role: 'user', content: 'hi' };
const CONTENTS = [{ role: 'user', parts: [{ text: 'hi' }] }];
const PARAMETERS = { type: 'object', properties: { path: { type: 'string' } } };
const FUNCTION = { name: 'read', description: 'Reads.', parametersJsonSchema: PARAMETERS };
const TOOL = { type: 'function', function: { name: 'read', description: 'Reads.', parameters: PARAMETERS } };
const SCHEMA = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

/** The request in the words of the package, and of a client of chat. */
const CORPUS: Readonly<Record<string, readonly [asked: object, body: object]>> = {
  'a word': [{ contents: CONTENTS }, { messages: [USER] }],
  sampling: [
    {
      contents: CONTENTS,
      config: {
        ...{ systemInstruction: 'Be brief.', temperature: 0.5, topP: 0.9, stopSequences: ['x'], maxOutputTokens: 100 },
        ...{ seed: 7, presencePenalty: 0.25, frequencyPenalty: 0.5, responseLogprobs: true, logprobs: 2 },
      },
    },
    {
      messages: [{ role: 'system', content: 'Be brief.' }, USER],
      ...{ temperature: 0.5, top_p: 0.9, stop: ['x'], max_completion_tokens: 100 },
      ...{ seed: 7, presence_penalty: 0.25, frequency_penalty: 0.5, logprobs: true, top_logprobs: 2 },
    },
  ],
  tools: [
    { contents: CONTENTS, config: { tools: [{ functionDeclarations: [FUNCTION] }] } },
    { messages: [USER], tools: [TOOL] },
  ],
  'a tool that must be called': [
    {
      contents: CONTENTS,
      config: {
        tools: [{ functionDeclarations: [FUNCTION] }],
        toolConfig: { functionCallingConfig: { mode: 'ANY', allowedFunctionNames: ['read'] } },
      },
    },
    { messages: [USER], tools: [TOOL], tool_choice: { type: 'function', function: { name: 'read' } } },
  ],
  'a call and its result': [
    {
      contents: [
        ...CONTENTS,
        {
          role: 'model',
          parts: [
            {
              functionCall: { id: 'call_1', name: 'read', args: { path: '/x' } },
              thoughtSignature: 'skip_thought_signature_validator',
            },
          ],
        },
        { role: 'user', parts: [{ functionResponse: { id: 'call_1', name: 'read', response: { output: 'blue' } } }] },
      ],
      config: { tools: [{ functionDeclarations: [FUNCTION] }] },
    },
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
      tools: [TOOL],
    },
  ],
  'a picture': [
    { contents: [{ role: 'user', parts: [{ text: 'What?' }, { inlineData: { mimeType: 'image/png', data: PIXEL } }] }] },
    {
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'What?' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
          ],
        },
      ],
    },
  ],
  thinking: [
    { contents: CONTENTS, config: { thinkingConfig: { thinkingBudget: 1024 } } },
    { messages: [USER], reasoning_effort: 'low' },
  ],
  'a schema': [
    { contents: CONTENTS, config: { responseMimeType: 'application/json', responseJsonSchema: SCHEMA } },
    { messages: [USER], response_format: { type: 'json_schema', json_schema: { name: 'a', schema: SCHEMA, strict: true } } },
  ],
};

/** The package calls the system a user, and sends an empty configuration. */
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

const TOKEN = { getRequestHeaders: () => Promise.resolve(new Headers({ authorization: 'Bearer token' })), projectId: 'p' };
const client = (location: string, baseUrl?: string): GoogleGenAI =>
  new GoogleGenAI({
    ...{ vertexai: true, project: 'p', location, googleAuthOptions: { authClient: TOKEN as never } },
    ...(baseUrl === undefined ? {} : { httpOptions: { baseUrl } }),
  });
const channelOf = (location: string, model: string, url = 'http://h'): object => ({
  ...{ type: 'gemini', platform: 'vertex', models: { m: model } },
  options: { project: 'p', location, credentials: { metadata: { url } } },
});

for (const [name, [asked, body]] of Object.entries(CORPUS)) {
  test(`vertex sends what @google/genai sends: ${name}`, async (t) => {
    const simulator = await simulated(t);
    const { models } = client('us-central1', simulator.url);
    const model = 'gemini-2.5-pro';
    await using gateway = await gatewayOf(simulator, channelOf('us-central1', model, simulator.url));
    for (const stream of [false, true]) {
      const parameters = { model, ...structuredClone(asked) } as never;
      const sdk = (): PromiseLike<unknown> =>
        stream ? models.generateContentStream(parameters) : models.generateContent(parameters);
      const request = { model: 'm', ...body, ...(stream ? { stream } : {}) };
      const [theirs, ours] = await both(gateway, simulator, sdk, ['/v1/chat/completions', request]);
      // The package lets fetch ask for anything, and orders members as it likes.
      const less = ['accept', 'content-length'];
      const expected = comparable(theirs, less);
      assert.deepEqual(comparable(ours, less), { ...expected, body: withoutHabits(expected.body) });
    }
  });
}

test('places and names: locations, publishers, versions and resources', async (t) => {
  const simulator = await simulated(t);
  for (const [location, model] of [
    ['global', 'gemini-2.5-flash'],
    ['us', 'gemini-2.5-flash'],
    ['eu', 'gemini-2.5-flash-lite@001'],
    ['europe-west4', 'gemini-2.0-flash-001'],
    ['us-central1', 'publishers/google/models/gemini-2.5-pro'],
    ['us-central1', 'models/1234567890'],
    ['us-central1', 'meta/llama-4'],
    ['us-central1', 'projects/p/locations/us-central1/endpoints/1234567890'],
    ['us-central1', 'projects/q/locations/europe-west4/publishers/google/models/gemini-2.5-pro'],
  ] as const) {
    await using gateway = await gatewayOf(simulator, channelOf(location, model, simulator.url));
    const sdk = (): PromiseLike<unknown> =>
      client(location, simulator.url)
        .models.generateContent({ model, contents: CONTENTS })
        .catch(() => undefined);
    const [theirs, ours] = await both(gateway, simulator, sdk, ['/v1/chat/completions', { model: 'm', messages: [USER] }]);
    assert.equal(ours.path, theirs.path);
    const [built] = testConfig({
      ...{ channels: [{ id: 'one', ...channelOf(location, model) }] },
      models: { m: { price: { input: '1', output: '2' } } },
    }).channels;
    const { httpOptions } = (
      client(location).models as unknown as { apiClient: { clientOptions: { httpOptions: { baseUrl: string } } } }
    ).apiClient.clientOptions;
    assert.equal(`${built?.origin}/`, httpOptions.baseUrl);
  }
});
