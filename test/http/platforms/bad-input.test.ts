/**
 * What goes wrong between the gateway and a cloud: the operator reads a name and a sentence without any credential in it, another Channel
 * answers where one can, and the client gets an error of its own protocol.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type TestContext, test } from 'node:test';
import type { AwsAccess } from '../../../src/simulator/clouds/aws.ts';
import { chunkMessage, exceptionMessage } from '../../../src/simulator/clouds/event-stream.ts';
import type { Script } from '../../../src/simulator/script.ts';
import { type Simulator, type SimulatorOptions, startSimulator } from '../../../src/simulator/simulator.ts';
import type { RequestLogEntry } from '../../../src/store/request-log.ts';
import { type Clock, systemClock } from '../../../src/streams/clock.ts';
import {
  AWS_KEYS,
  CLOUD_FORMS,
  type CloudForm,
  cloudChannel,
  ENTRA_SECRET,
  SECRETS,
  simulatedClouds,
} from '../../support/clouds.ts';
import { ask, eventually, MODELS, type TestGateway, testGateway } from '../../support/test-gateway.ts';

const formOf = (name: string, source?: string): CloudForm => {
  const form = CLOUD_FORMS.find((one) => one.name === name);
  if (form === undefined) throw new Error(name);
  return source === undefined ? form : { ...form, source };
};
const BEDROCK = formOf('messages on bedrock');
const VERTEX = formOf('messages on vertex');
const AZURE = formOf('chat on azure');

interface Rig {
  readonly simulator: Simulator;
  readonly gateway: TestGateway;
  /** The status, the body, and what the operator reads of each attempt. */
  ask(changes?: object): Promise<{
    status: number;
    text: string;
    row: RequestLogEntry | undefined;
    attempts: readonly (readonly [string, string])[];
  }>;
}

async function rig(
  t: TestContext,
  form: CloudForm,
  {
    options = {},
    clouds = {},
    simulator: more = {},
    second = false,
    clock,
    health = {},
  }: {
    options?: object;
    clouds?: Parameters<typeof simulatedClouds>[0];
    simulator?: SimulatorOptions;
    /** A plain Channel that comes after. */
    second?: boolean;
    clock?: Clock;
    health?: object;
  } = {},
): Promise<Rig> {
  const simulator = await startSimulator({ clouds: simulatedClouds(clouds), ...more });
  t.after(() => simulator.close());
  const after = { id: 'two', type: 'messages', base_url: simulator.url, models: ['m'], priority: 1 };
  const channels = [cloudChannel(form, simulator.url, { options }), ...(second ? [after] : [])];
  const gateway = await testGateway({ channels, models: MODELS, health }, clock === undefined ? {} : { clock });
  t.after(() => gateway[Symbol.asyncDispose]());
  return {
    simulator,
    gateway,
    async ask(changes = {}) {
      const before = gateway.store.settled.length;
      const answer = await gateway.post('/v1/messages', ask(changes));
      const text = await answer.text();
      await eventually(() => gateway.store.settled.length > before, 'a row');
      const attempts = (gateway.store.settled.at(-1)?.attempts ?? []).map(
        ({ errorCode = '', errorText = '' }) => [errorCode, errorText] as const,
      );
      const rows = JSON.stringify(gateway.store.settled, (_, value) => (typeof value === 'bigint' ? String(value) : value));
      const seen = text + gateway.logLines.join('') + rows;
      for (const secret of SECRETS) assert.ok(!seen.includes(secret), `${secret} was told: ${seen}`);
      return { status: answer.status, text, attempts, row: gateway.store.settled.at(-1) };
    },
  };
}

const told = (text: string): { type: string; message: string } => JSON.parse(text).error;

/** Both what a client of one Channel gets, and that the next Channel answers where there is one. */
async function failsOver(
  t: TestContext,
  form: CloudForm,
  options: Parameters<typeof rig>[2],
  code: string,
  words: RegExp,
): Promise<void> {
  const alone = await rig(t, form, options);
  const { status, text, attempts } = await alone.ask();
  assert.equal(status, 502, text);
  assert.equal(told(text).type, 'api_error');
  assert.equal(attempts[0]?.[0], code);
  assert.match(attempts[0]?.[1] ?? '', words);
  const two = await rig(t, form, { ...options, second: true });
  const saved = await two.ask();
  assert.equal(saved.status, 200, saved.text);
  assert.equal(saved.attempts.length, 2);
}

/** A clock of its own time of day. */
const shifted = (ms: number): Clock => ({ ...systemClock, now: () => Date.now() + ms });

test('a clock that is an hour off is put right by the service’s own, and the request goes well', async (t) => {
  for (const ms of [3_600_000, -3_600_000]) {
    const { ask: asked, simulator } = await rig(t, BEDROCK, { clock: shifted(ms) });
    const first = await asked();
    assert.equal(first.status, 200, first.text);
    assert.equal(simulator.requests.length, 2);
    assert.equal((await asked()).status, 200);
    assert.equal(simulator.requests.length, 3, 'the difference is remembered');
  }
});

test('keys that are not known, or signed for another region, are named', async (t) => {
  const other = { accepted: () => [{ ...AWS_KEYS, accessKeyId: 'AKIDOTHER' }] };
  await failsOver(t, BEDROCK, { clouds: { aws: other } }, 'UnrecognizedClientException', /security token .* is invalid/);
  await failsOver(t, BEDROCK, { options: { region: 'eu-west-1' } }, 'InvalidSignatureException', /scoped to a valid region/);
  const changed = { accepted: () => [{ ...AWS_KEYS, secretAccessKey: 'another' }] };
  await failsOver(
    t,
    BEDROCK,
    { clouds: { aws: changed } },
    'InvalidSignatureException',
    /signature we calculated does not match/,
  );
});

test('keys of a role that expired before their time are asked for again, once, and the request goes well', async (t) => {
  const access = (name: string): AwsAccess => ({ ...AWS_KEYS, accessKeyId: name, expiresAtMs: Date.now() + 3_600_000 });
  let role = access('AKIDFIRST');
  let now = 0;
  const aws = { role: () => role, accepted: () => [role] };
  const clock: Clock = { ...systemClock, monotonic: () => performance.now() + now };
  const { ask: asked, simulator } = await rig(t, { ...BEDROCK, source: 'container' }, { clouds: { aws }, clock });
  assert.equal((await asked()).status, 200);
  role = access('AKIDSECOND');
  now += 60_000;
  const second = await asked();
  assert.equal(second.status, 200, second.text);
  assert.equal(second.attempts.length, 1);
  assert.equal(simulator.asides.length, 2);
});

test('a revoked role, of an instance and of a container', async (t) => {
  const aws = { role: () => undefined };
  await failsOver(
    t,
    { ...BEDROCK, source: 'instance' },
    { clouds: { aws } },
    'credential_refused',
    /security-credentials\/ answered 404/,
  );
  await failsOver(
    t,
    { ...BEDROCK, source: 'container' },
    { clouds: { aws } },
    'credential_refused',
    /answered 403: the role was revoked/,
  );
});

test('a revoked account and a wrong secret, in the words of the token endpoint, without the secret', async (t) => {
  await failsOver(
    t,
    VERTEX,
    { clouds: { google: { accounts: [] } } },
    'credential_refused',
    /answered 400: invalid_grant: .*account not found/,
  );
  const application = { tenantId: 'simulated-tenant', clientId: 'simulated-client', clientSecret: 'another' };
  await failsOver(t, AZURE, { clouds: { azure: { application } } }, 'credential_refused', /AADSTS7000215: .*\[redacted\]/);
});

test('tokens that are revoked in use: one more is asked for, and then the refusal is told', async (t) => {
  const google = { revoked: () => true };
  await failsOver(t, VERTEX, { clouds: { google } }, 'UNAUTHENTICATED', /invalid authentication credentials/);
  await failsOver(t, AZURE, { clouds: { azure: { revoked: () => true } } }, '401', /invalid subscription key/);
});

test('a token endpoint that answers with a page, redirects, breaks or says nothing of use', async (t) => {
  const answers: readonly (readonly [Script['raw'], string, RegExp])[] = [
    [
      { body: '<html>Sign in</html>', headers: { 'content-type': 'text/html' } },
      'credential_unreadable',
      /\/token answered with a web page/,
    ],
    [
      { status: 302, headers: { location: 'http://127.0.0.1:9/' }, body: '' },
      'credential_unreadable',
      /redirects, which is not followed/,
    ],
    [{ status: 503, body: 'away' }, 'credential_unavailable', /answered 503/],
    [{ body: '{}' }, 'credential_unreadable', /without a token/],
    [{ body: '{"access_token":"abc"}' }, 'credential_unreadable', /without the time that it lasts/],
    [{ body: 'x'.repeat(300_000) }, 'credential_unreadable', /more than 262144 bytes/],
  ];
  for (const [raw, code, words] of answers) {
    if (raw === undefined) continue;
    const script = { raw, times: 100, match: ({ path }: { path: string }) => path === '/token' };
    await failsOver(t, VERTEX, { simulator: { script } }, code, words);
  }
});

test('a token endpoint that hangs keeps a request for five seconds, and requests beside it do not ask again', {
  timeout: 30_000,
}, async (t) => {
  const hanging = createServer(() => undefined).listen(0, '127.0.0.1');
  await once(hanging, 'listening');
  t.after(() => {
    hanging.closeAllConnections();
    hanging.close();
  });
  const address = hanging.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  let asked = 0;
  hanging.on('request', () => {
    asked += 1;
  });
  const credentials = { client_secret: { tenant_id: 't', client_id: 'c', client_secret: ENTRA_SECRET, url } };
  const { gateway, ask: one } = await rig(t, AZURE, { options: { credentials }, second: true });
  const started = performance.now();
  const [first, ...others] = await Promise.all([one(), ...Array.from({ length: 20 }, () => gateway.post('/v1/messages', ask()))]);
  assert.ok(performance.now() - started < 15_000);
  assert.equal(first?.status, 200, first?.text);
  for (const answer of others) assert.equal(answer.status, 200);
  assert.equal(asked, 1);
  assert.ok(gateway.store.settled.some(({ attempts }) => attempts[0]?.errorCode === 'credential_timeout'));
});

test('a file with a token that is missing or empty', async (t) => {
  const files = { tenant_id: 't', client_id: 'c', token_file: '/nowhere/token', url: 'http://127.0.0.1:9' };
  await failsOver(
    t,
    AZURE,
    { options: { credentials: { workload_identity: files } } },
    'credential_unavailable',
    /\/nowhere\/token cannot be read \(ENOENT\)/,
  );
  const profile = { name: 'none', file: '/nowhere/credentials' };
  await failsOver(t, BEDROCK, { options: { credentials: { profile } } }, 'credential_unavailable', /ENOENT/);
});

test('a region, a project or a resource that lacks the model rests the Channel for that model, whatever the status says', async (t) => {
  await failsOver(t, BEDROCK, { clouds: { aws: { models: ['another'] } } }, 'ValidationException', /model identifier is invalid/);
  await failsOver(
    t,
    VERTEX,
    { clouds: { google: { models: ['another'] } } },
    'NOT_FOUND',
    /was not found or your project does not have access/,
  );
  await failsOver(
    t,
    VERTEX,
    { options: { location: 'us-central1' } },
    'FAILED_PRECONDITION',
    /not servable in region us-central1/,
  );
  await failsOver(
    t,
    AZURE,
    { clouds: { azure: { deployments: ['another'] } } },
    'DeploymentNotFound',
    /deployment for this resource does not exist/,
  );
  const denied = {
    faults: [
      {
        type: 'status',
        status: 403,
        code: 'AccessDeniedException',
        message: "You don't have access to the model with the specified model ID.",
      },
    ],
  } as const;
  await failsOver(
    t,
    BEDROCK,
    { simulator: { script: { ...denied, match: ({ headers }) => headers['x-amz-date'] !== undefined } } },
    'AccessDeniedException',
    /have access to the model/,
  );
});

test('throttling is a limit, and a request that is wrong stays the client’s own', async (t) => {
  const throttled = { type: 'status', status: 429, message: 'Too many requests, please wait before trying again.' } as const;
  const limited = await rig(t, BEDROCK, { simulator: { script: { faults: [throttled] } } });
  const { status, attempts } = await limited.ask();
  assert.equal(status, 502);
  assert.equal(attempts[0]?.[0], 'ThrottlingException');
  const wrong = await rig(t, BEDROCK, {
    simulator: { script: { faults: [{ type: 'status', status: 400, message: 'messages: at least one message is required' }] } },
  });
  const refused = await wrong.ask();
  assert.equal(refused.status, 400, refused.text);
  assert.match(told(refused.text).message, /at least one message/);
});

const EVENTS = [
  {
    type: 'message_start',
    message: {
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: { input_tokens: 3, output_tokens: 1 },
    },
  },
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello' } },
  { type: 'content_block_stop', index: 0 },
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 2 } },
  { type: 'message_stop' },
].map((event) => chunkMessage(JSON.stringify(event)));
const STREAM = { 'content-type': 'application/vnd.amazon.eventstream' };

/** A stream of these bytes behind Bedrock, as a messages client reads it. */
async function streamed(t: TestContext, chunks: readonly Uint8Array[]) {
  const { ask: asked } = await rig(t, BEDROCK, { simulator: { script: { raw: { headers: STREAM, chunks } } } });
  return await asked({ stream: true });
}

test('frames that are damaged or cut off in mid-stream end it with an error, named for the operator', async (t) => {
  const whole = await streamed(t, EVENTS);
  assert.match(whole.text, /message_stop/);
  const third = Buffer.from(EVENTS[3] ?? Buffer.alloc(0));
  third[third.length - 1] = (third.at(-1) ?? 0) ^ 1;
  const cases: readonly (readonly [string, readonly Uint8Array[], RegExp])[] = [
    ['a bad checksum', [...EVENTS.slice(0, 3), third], /damaged on its way.*checksum of a message/],
    [
      'a frame that is cut off',
      [...EVENTS.slice(0, 3), (EVENTS[3] ?? third).subarray(0, 30)],
      /before its answer was complete.*into a message/,
    ],
    ['no end', EVENTS.slice(0, 4), /complete|end/],
    [
      'a page in the middle',
      [...EVENTS.slice(0, 3), Buffer.from('<html>502 Bad Gateway</html>')],
      /damaged on its way.*checksum of a prelude/,
    ],
  ];
  for (const [name, chunks, words] of cases) {
    const { text, status, row } = await streamed(t, chunks);
    assert.equal(status, 200);
    assert.match(text, /Hello/, name);
    assert.match(text, /event: error\ndata: \{"type":"error","error":\{"type":"api_error"/, name);
    assert.ok(!text.includes('message_stop'), name);
    assert.equal(row?.errorCode, 'upstream_error', name);
    assert.match(row?.errorText ?? '', words, name);
  }
});

test('exceptions in mid-stream are errors of the protocol, and before the first word the next Channel answers', async (t) => {
  const cases = [
    ['throttlingException', 'rate_limit_error'],
    ['modelStreamErrorException', 'api_error'],
    ['serviceUnavailableException', 'overloaded_error'],
    ['expiredTokenException', 'api_error'],
    ['somethingNewException', 'api_error'],
  ] as const;
  for (const [name, type] of cases) {
    const { text } = await streamed(t, [...EVENTS.slice(0, 3), exceptionMessage(name, 'The words of the vendor.')]);
    assert.match(text, /Hello/);
    assert.match(text, new RegExp(`event: error\\ndata: \\{"type":"error","error":\\{"type":"${type}"`), name);
    const early = { raw: { headers: STREAM, chunks: [exceptionMessage(name, 'The words of the vendor.')] } };
    const { ask: asked } = await rig(t, BEDROCK, {
      second: true,
      simulator: { script: { ...early, match: ({ path }) => path === '/v1/messages' } },
    });
    const saved = await asked({ stream: true });
    assert.match(saved.text, /message_stop/, name);
  }
});
