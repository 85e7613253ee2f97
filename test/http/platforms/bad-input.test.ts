/**
 * What goes wrong between the gateway and a cloud: the operator reads a name and a sentence without any credential in it, another
 * Channel answers where one can, and the client gets an error of its own protocol.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { Agent } from 'undici';
import type { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { askEndpoint } from '../../../src/http/platforms/ask-endpoint.ts';
import type { AwsAccess } from '../../../src/simulator/clouds/aws.ts';
import type { Script } from '../../../src/simulator/script.ts';
import { type Clock, systemClock } from '../../../src/streams/clock.ts';
import { AZURE, BEDROCK, failsOver, rig, told, VERTEX } from '../../support/cloud-rig.ts';
import { AWS_KEYS, ENTRA_SECRET, SOURCES } from '../../support/clouds.ts';
import { ask } from '../../support/test-gateway.ts';

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

test('a date that no service can mean is not learnt: the next Channel answers, and the next request goes well', async (t) => {
  for (const date of ['+275760-09-13T00:00:00Z', '-271821-04-20T00:00:00Z', 'Fri, 31 Dec 10000 23:59:59 GMT', 'now']) {
    const raw = {
      status: 403,
      headers: { 'x-amzn-errortype': 'InvalidSignatureException', date, 'content-type': 'application/json' },
      body: '{"message":"Signature expired"}',
    };
    const script: Script = { raw, times: 100, match: ({ headers }) => headers['x-amz-date'] !== undefined };
    const health = { refused_cooldown_ms: 1 };
    const { ask: asked, gateway } = await rig(t, BEDROCK, { simulator: { script }, second: true, health });
    const first = await asked();
    assert.equal(first.status, 200, first.text);
    assert.equal(first.row?.channelId, 'two', date);
    assert.equal(first.attempts[0]?.[0], 'InvalidSignatureException');
    assert.equal((await asked()).status, 200);
    assert.doesNotMatch(gateway.logLines.join(''), /RangeError/);
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

test('a token endpoint that quotes the form that it was sent shows no secret, in whatever letters', async () => {
  const secret = 'a+b/c d~e=f';
  const dispatcher = new Agent();
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      response.writeHead(400, { 'content-type': 'application/json' });
      response.end(
        JSON.stringify({ error: 'invalid_request', error_description: `cannot read ${body} or ${encodeURIComponent(secret)}` }),
      );
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/token`;
  const body = new URLSearchParams({ grant_type: 'client_credentials', client_secret: secret }).toString();
  const asking = askEndpoint({ url, method: 'POST', body, secrets: [secret] }, { clock: systemClock, dispatcher });
  const refused = await asking.then(
    () => assert.fail('it was refused'),
    (error: GatewayError) => error,
  );
  assert.match(refused.details.upstream?.text ?? '', /client_secret=\[redacted\] or \[redacted\]$/);
  await dispatcher.close();
  server.close();
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

test('an address with a secret in its query, or as its user, is named without', async (t) => {
  const source = createServer((_request, response) => void response.end('{}')).listen(0, '127.0.0.1');
  await once(source, 'listening');
  t.after(() => source.close());
  const address = source.address();
  const host = `127.0.0.1:${typeof address === 'object' ? address?.port : 0}`;
  const url = `http://user:USERSECRET@${host}/issuer?code=QUERYSECRET`;
  const issuer = { workload_identity: { audience: 'a', url: `http://${host}/token`, token_url: url, token_field: 'value' } };
  for (const [form, credentials] of [
    [VERTEX, issuer],
    [BEDROCK, { container: { url } }],
  ] as const) {
    const { ask: asked } = await rig(t, form, { options: { credentials } });
    const { attempts } = await asked();
    assert.deepEqual([attempts[0]?.[0], attempts[0]?.[1].split(' ')[0]], ['credential_unreadable', `http://${host}/issuer`]);
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

/** What gives credentials, of every source. */
const GIVES = /^\/($|token$|v1\/token$|issuer\/|latest\/|v2\/credentials\/|computeMetadata\/|v1\/projects\/-\/|[^/]+\/oauth2\/)/;
const BAD: readonly (readonly [name: string, raw: NonNullable<Script['raw']>, code: RegExp])[] = [
  ['a page', { body: '<html>\n<h1>Sign in</h1></html>', headers: { 'content-type': 'text/html' } }, /^credential_unreadable$/],
  ['a redirect', { status: 307, headers: { location: 'http://127.0.0.1:9/' }, body: '' }, /^credential_unreadable$/],
  ['a failure', { status: 503, body: 'away' }, /^credential_unavailable$/],
  ['a refusal', { status: 403, body: '{"message":"no"}' }, /^credential_refused$/],
  ['nothing', { body: '' }, /^credential_unreadable$/],
];

for (const form of [BEDROCK, VERTEX, AZURE]) {
  for (const source of Object.keys(SOURCES[form.platform] ?? {}).filter((name) => name !== 'static' && name !== 'profile')) {
    test(`${form.platform}, ${source}: what is not a credential is named, and the next Channel answers`, async (t) => {
      for (const [name, raw, code] of BAD) {
        const script = { raw, times: 100, match: ({ path }: { path: string }) => GIVES.test(path) };
        const { ask: asked } = await rig(t, { ...form, source }, { simulator: { script }, second: true });
        const { status, text, attempts } = await asked();
        assert.equal(status, 200, text);
        assert.match(attempts[0]?.[0] ?? '', code, `${name}: ${attempts[0]?.[1]}`);
      }
    });
  }
}
