/**
 * Bedrock as `@aws-sdk/client-bedrock-runtime` asks it: where, with which headers, date and hash. What one side sends alone is in
 * `test/support/sent-by-packages.ts`; that package signs for HTTP/2, so its signatures are those of `@smithy/signature-v4` in
 * `anthropic.test.ts`.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  BedrockRuntimeClient,
  CountTokensCommand,
  InvokeModelCommand,
  InvokeModelWithResponseStreamCommand,
} from '@aws-sdk/client-bedrock-runtime';
import { ALONE, frozen, gatewayOf, simulated } from '../../../support/sent-by-packages.ts';
import { testConfig } from '../../../support/test-gateway.ts';

const KEYS = { access_key_id: 'AKIDEXAMPLE', secret_access_key: 'wJalrXUtnFEMI/K7MDENG', session_token: 'session' };
const CREDENTIALS = {
  accessKeyId: KEYS.access_key_id,
  secretAccessKey: KEYS.secret_access_key,
  sessionToken: KEYS.session_token,
};

interface Kept {
  readonly method: string;
  readonly protocol: string;
  readonly hostname: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Uint8Array;
}

/** The client, and what it would have sent. */
function keeping(region: string, endpoint?: string): { client: BedrockRuntimeClient; sent: Kept[] } {
  const sent: Kept[] = [];
  const client = new BedrockRuntimeClient({
    ...{ region, maxAttempts: 1, credentials: CREDENTIALS },
    ...(endpoint === undefined ? {} : { endpoint }),
    // Its own would speak HTTP/2.
    requestHandler: { handle: (request: Kept) => Promise.reject(new Error(`kept ${sent.push(request)}`)) } as never,
  });
  return { client, sent };
}

const USER = { role: 'user', content: 'hi' };
const BODIES: readonly object[] = [
  { max_tokens: 10, messages: [USER] },
  { max_tokens: 10, messages: [USER], system: 'ü 😀', tools: [{ name: 'read', input_schema: { type: 'object' } }] },
  { max_tokens: 2000, messages: [USER], thinking: { type: 'enabled', budget_tokens: 1024 } },
];
const NAMES = [
  'anthropic.claude-v2:1',
  'global.anthropic.claude-sonnet-4-20250514-v1:0',
  'arn:aws:bedrock:us-east-1:111122223333:inference-profile/us.anthropic.claude-sonnet-4-20250514-v1:0',
  'arn:aws:bedrock:us-east-1:111122223333:application-inference-profile/abc',
];

test('bedrock asks as @aws-sdk/client-bedrock-runtime does, which spells the colon of a model as %3A', async (t) => {
  frozen(t);
  const simulator = await simulated(t);
  const { client, sent } = keeping('us-east-1', simulator.url);
  for (const upstream of NAMES) {
    const options = { region: 'us-east-1', credentials: { static: KEYS } };
    await using gateway = await gatewayOf(simulator, { type: 'messages', platform: 'bedrock', models: { m: upstream }, options });
    for (const body of BODIES) {
      for (const stream of [false, true]) {
        const text = JSON.stringify({ ...body, anthropic_version: 'bedrock-2023-05-31' });
        const input = { modelId: upstream, body: text, contentType: 'application/json', accept: 'application/json' };
        const command = stream ? new InvokeModelWithResponseStreamCommand(input) : new InvokeModelCommand(input);
        await assert.rejects(client.send(command as InvokeModelCommand), /kept/);
        await (await gateway.post('/v1/messages', { ...body, model: 'm', ...(stream ? { stream } : {}) })).text();
        const [theirs, ours] = [sent.at(-1), simulator.requests.at(-1)];
        assert.ok(theirs !== undefined && ours !== undefined);
        assert.equal(ours.method, theirs.method);
        assert.equal(ours.path.replaceAll(':', '%3A'), theirs.path);
        assert.deepEqual(ours.query, {});
        assert.equal(ours.text, Buffer.from(theirs.body).toString());
        // A stream's `accept` has another name there, which means the same.
        const { 'x-amzn-bedrock-accept': named, ...headers } = theirs.headers;
        const expected = { ...headers, accept: headers['accept'] ?? named };
        for (const [name, value] of Object.entries(expected))
          if (ALONE[name] === undefined) assert.equal(ours.headers[name], value, name);
        const added = Object.keys(ours.headers).filter((name) => ALONE[name] === undefined && !(name in expected));
        assert.deepEqual(added, []);
      }
    }
  }
  client.destroy();
});

test('a region is reached where the package reaches it, in every partition', async () => {
  for (const region of [
    'us-east-1',
    'ap-southeast-2',
    'us-gov-west-1',
    'cn-north-1',
    'us-iso-east-1',
    'us-isob-east-1',
    'eusc-de-east-1',
  ]) {
    const { client, sent } = keeping(region);
    await assert.rejects(client.send(new CountTokensCommand({ modelId: 'm', input: { converse: { messages: [] } } })), /kept/);
    client.destroy();
    const options = { region, credentials: { static: KEYS } };
    const channel = { id: 'one', type: 'messages', platform: 'bedrock', models: ['m'], options };
    const [built] = testConfig({ channels: [channel], models: { m: { price: { input: '1', output: '2' } } } }).channels;
    const theirs = sent[0] ?? assert.fail();
    assert.equal(built?.origin, `${theirs.protocol}//${theirs.hostname}`);
    assert.equal(built?.platform?.platform === 'bedrock' && built.platform.controlOrigin, built?.origin.replace('-runtime', ''));
  }
});
