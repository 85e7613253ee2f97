/**
 * Claude behind Bedrock and Vertex is asked byte for byte as `@anthropic-ai/bedrock-sdk` and `@anthropic-ai/vertex-sdk` ask, over
 * a corpus of requests and of names of models; what one side sends alone is in `test/support/sent-by-packages.ts`. Neither
 * package has embeddings or pictures, and clients of the gateway have no `count_tokens`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AnthropicBedrock } from '@anthropic-ai/bedrock-sdk';
import { AnthropicVertex } from '@anthropic-ai/vertex-sdk';
import { SignatureV4 } from '@smithy/signature-v4';
import type { ReceivedRequest } from '../../../../src/simulator/journal.ts';
import type { Simulator } from '../../../../src/simulator/simulator.ts';
import { both, comparable, frozen, gatewayOf, Sha256, simulated } from '../../../support/sent-by-packages.ts';
import { type TestGateway, testConfig, testGateway } from '../../../support/test-gateway.ts';

const KEYS = { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG', session_token: 'session' };
const USER = { role: 'user', content: 'hi' };
const CACHED = { cache_control: { type: 'ephemeral', ttl: '1h' } };
const TOOL = {
  name: 'read',
  description: 'Reads.',
  input_schema: { type: 'object', properties: { path: { type: 'string' } } },
};
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

const MESSAGES: readonly object[] = [
  { max_tokens: 10, messages: [USER] },
  { max_tokens: 2000, messages: [USER], stream: true, system: 'Be brief. ü', temperature: 0.5, stop_sequences: ['x'] },
  { max_tokens: 10, messages: [USER], top_k: 5, top_p: 0.9, metadata: { user_id: 'u-1' }, service_tier: 'auto' },
  {
    max_tokens: 2000,
    messages: [USER],
    tools: [TOOL],
    tool_choice: { type: 'auto', disable_parallel_tool_use: true },
    thinking: { type: 'enabled', budget_tokens: 1024 },
  },
  {
    max_tokens: 100,
    stream: true,
    tools: [{ ...TOOL, ...CACHED }],
    messages: [
      USER,
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: 'Hm. 😀', signature: 'c2lnbmF0dXJl' },
          { type: 'redacted_thinking', data: 'cmVkYWN0ZWQ=' },
          { type: 'text', text: 'I read.' },
          { type: 'tool_use', id: 'toolu_1', name: 'read', input: { path: '/x y', deep: [{ a: null }], big: 1e21 } },
        ],
      },
      {
        role: 'user',
        content: [
          {
            type: 'tool_result',
            tool_use_id: 'toolu_1',
            is_error: false,
            content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } }],
          },
        ],
      },
    ],
  },
  {
    max_tokens: 100,
    system: [{ type: 'text', text: 'Long.', ...CACHED }],
    messages: [
      {
        role: 'user',
        content: [
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL }, ...CACHED },
          {
            type: 'document',
            source: { type: 'text', media_type: 'text/plain', data: 'A paper.' },
            citations: { enabled: true },
          },
          { type: 'text', text: 'What is this? \u2028 </script>', cache_control: { type: 'ephemeral' } },
        ],
      },
    ],
  },
  {
    max_tokens: 100,
    stream: true,
    messages: [USER],
    tools: [{ type: 'bash_20250124', name: 'bash' }, TOOL],
    tool_choice: { type: 'any' },
  },
  { max_tokens: 100, messages: [USER, { role: 'assistant', content: 'Begun:' }] },
];
const BETAS = [undefined, ['interleaved-thinking-2025-05-14', 'context-1m-2025-08-07']] as const;
const VERSION = '2026-10-21';

/** Each body, with betas and without: byte for byte what the package sends. `more` is held of what the gateway sent. */
async function sameMessages(
  gateway: TestGateway,
  simulator: Simulator,
  client: AnthropicBedrock | AnthropicVertex,
  model: string,
  {
    bodies = MESSAGES,
    more = async () => undefined,
  }: { bodies?: readonly object[]; more?: (ours: ReceivedRequest) => Promise<void> },
): Promise<void> {
  for (const body of bodies) {
    for (const betas of BETAS) {
      const headers = { 'anthropic-version': VERSION, ...(betas === undefined ? {} : { 'anthropic-beta': betas.join(',') }) };
      const asked = { ...structuredClone(body), model, ...(betas === undefined ? {} : { betas: [...betas] }) } as never;
      const sdk = (): PromiseLike<unknown> =>
        betas === undefined ? client.messages.create(asked) : client.beta.messages.create(asked);
      const [theirs, ours] = await both(gateway, simulator, sdk, ['/v1/messages', { ...body, model: 'm' }, headers]);
      assert.deepEqual(comparable(ours), comparable(theirs));
      assert.equal(ours.text, theirs.text);
      await more(ours);
    }
  }
}

const ARN = 'arn:aws:bedrock:us-east-1:111122223333';
const BEDROCK_NAMES = [
  'us.anthropic.claude-sonnet-4-20250514-v1:0',
  ...['eu', 'apac', 'jp', 'au', 'us-gov', 'global'].map((place) => `${place}.anthropic.claude-sonnet-4-20250514-v1:0`),
  'anthropic.claude-3-haiku-20240307-v1:0:200k',
  `${ARN}:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0`,
  `${ARN}:application-inference-profile/abc123`,
  `${ARN}:provisioned-model/abc123`,
  'arn:aws-us-gov:bedrock:us-gov-west-1::foundation-model/anthropic.claude-3-haiku-20240307-v1:0',
  'a name with spaces, 100% odd?#ü&=',
];

const bedrock = (upstream: string, more: object = {}): object => ({
  ...{ type: 'messages', platform: 'bedrock', models: { m: upstream } },
  options: { region: 'us-east-1', credentials: { static: KEYS }, ...more },
});
const bedrockClient = (baseURL: string): AnthropicBedrock =>
  new AnthropicBedrock({
    ...{ awsRegion: 'us-east-1', baseURL, maxRetries: 0 },
    ...{ awsAccessKey: KEYS.access_key_id, awsSecretKey: KEYS.secret_access_key, awsSessionToken: KEYS.session_token },
  });

/** The signature is that of AWS's own signer over the very headers that were sent. */
async function signedAsAws({ method, path, query, headers, text }: ReceivedRequest): Promise<void> {
  const { authorization, 'content-length': _length, ...sent } = headers;
  const { hostname, port } = new URL(`http://${headers.host ?? ''}`);
  const signer = new SignatureV4({
    ...{ service: 'bedrock', region: 'us-east-1', sha256: Sha256 as never },
    credentials: { accessKeyId: KEYS.access_key_id, secretAccessKey: KEYS.secret_access_key, sessionToken: KEYS.session_token },
  });
  const asked = { method, protocol: 'http:', hostname, port: Number(port), path, query, headers: sent, body: text };
  const theirs = await signer.sign(asked as never, { signingDate: new Date(Date.now()), unsignableHeaders: new Set<string>() });
  assert.equal(authorization, theirs.headers['authorization']);
}

test('bedrock sends what @anthropic-ai/bedrock-sdk sends, signed as @smithy/signature-v4 signs it', async (t) => {
  frozen(t);
  const simulator = await simulated(t);
  for (const upstream of BEDROCK_NAMES) {
    await using gateway = await gatewayOf(simulator, bedrock(upstream));
    const bodies = upstream === BEDROCK_NAMES[0] ? MESSAGES : MESSAGES.slice(0, 2);
    await sameMessages(gateway, simulator, bedrockClient(simulator.url), upstream, { bodies, more: signedAsAws });
  }
});

test('a profile of a user that a client names in a header reaches Bedrock in the body', async (t) => {
  frozen(t);
  const simulator = await simulated(t);
  const [upstream = ''] = BEDROCK_NAMES;
  await using gateway = await gatewayOf(simulator, bedrock(upstream, { forward_headers: ['anthropic-user-profile-id'] }));
  for (const given of [{}, { user_profile_id: 'profile of the body' }]) {
    const body = { max_tokens: 10, messages: [USER], ...given };
    const sdk = (): PromiseLike<unknown> =>
      bedrockClient(simulator.url).messages.create({ ...body, user_profile_id: 'profile', model: upstream } as never);
    const headers = { 'anthropic-version': VERSION, 'anthropic-user-profile-id': 'profile' };
    const [theirs, ours] = await both(gateway, simulator, sdk, ['/v1/messages', { ...body, model: 'm' }, headers]);
    if (given.user_profile_id === undefined) assert.equal(ours.text, theirs.text);
    assert.equal(ours.headers['anthropic-user-profile-id'], undefined);
    assert.equal((ours.body as { user_profile_id?: string }).user_profile_id, given.user_profile_id ?? 'profile');
  }
});

const METADATA = (url: string): object => ({ metadata: { url } });
const TOKEN = { getRequestHeaders: () => Promise.resolve(new Headers({ authorization: 'Bearer token' })), projectId: 'p' };

test('vertex sends what @anthropic-ai/vertex-sdk sends', async (t) => {
  const simulator = await simulated(t);
  for (const [location, upstream] of [
    ['us-east5', 'claude-sonnet-4@20250514'],
    ['global', 'claude-sonnet-4-6'],
    ['us', 'claude-sonnet-4@20250514'],
    ['eu', 'claude-opus-4-1@20250805'],
    ['europe-west1', 'claude;x/y ü?#100%'],
  ] as const) {
    const client = new AnthropicVertex({
      ...{ region: location, projectId: 'p', baseURL: `${simulator.url}/v1`, maxRetries: 0 },
      authClient: TOKEN as never,
    });
    const options = { project: 'p', location, credentials: METADATA(simulator.url) };
    const channel = { type: 'messages', platform: 'vertex', models: { m: upstream }, options };
    await using gateway = await gatewayOf(simulator, channel);
    await sameMessages(gateway, simulator, client, upstream, {
      bodies: location === 'us-east5' ? MESSAGES : MESSAGES.slice(0, 2),
      more: async (ours) => assert.match(ours.headers.authorization ?? '', /^Bearer token_/),
    });
  }
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
      assert.equal((sent?.body as { anthropic_version?: string } | undefined)?.anthropic_version, word);
      assert.equal(sent?.headers['anthropic-version'], undefined);
    }
  }
});

/** Where the packages go by themselves. */
test('addresses follow from regions and locations as in the packages', () => {
  const origin = (channel: object): string | undefined =>
    testConfig({ channels: [{ id: 'one', models: ['m'], ...channel }], models: { m: { price: { input: '1', output: '2' } } } })
      .channels[0]?.origin;
  for (const region of ['us-east-1', 'eu-central-1', 'ap-northeast-3', 'us-gov-west-1']) {
    const theirs = new AnthropicBedrock({ awsRegion: region, awsAccessKey: 'a', awsSecretKey: 'b' }).baseURL;
    const options = { region, credentials: { static: KEYS } };
    assert.equal(origin({ type: 'messages', platform: 'bedrock', options }), theirs);
  }
  for (const location of ['us-east5', 'europe-west1', 'global', 'us', 'eu']) {
    const theirs = new AnthropicVertex({ region: location, projectId: 'p', authClient: TOKEN as never }).baseURL;
    const options = { project: 'p', location, credentials: METADATA('http://h') };
    assert.equal(`${origin({ type: 'messages', platform: 'vertex', options })}/v1`, theirs);
  }
});
