/** Connections of a Channel: what they speak, what a handshake says and comes to, and which belong together. */
import assert from 'node:assert/strict';
import { createSecureServer } from 'node:http2';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { askModelList, judgeModelList } from '../../../src/http/dispatch/model-list.ts';
import { joinList, Upstreams } from '../../../src/http/dispatch/upstream.ts';
import { readErrorText } from '../../../src/http/dispatch/upstream-body.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { CA, GOOD_CERT, GOOD_KEY } from '../../support/certificates.ts';
import { AWS_KEYS, CLOUD_FORMS, cloudChannel } from '../../support/clouds.ts';
import { type FakeAnswer, fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, eventually, MODELS, testConfig, testGateway } from '../../support/test-gateway.ts';

const signal = new AbortController().signal;
const sending = { stream: false, signal, clientHeaders: {}, upstreamModel: 'up' };
const BEDROCK = CLOUD_FORMS.find(({ platform }) => platform === 'bedrock') ?? assert.fail('no form of Bedrock');

function upstreamsOf(t: TestContext): Upstreams {
  const upstreams = new Upstreams(systemClock);
  t.after(() => upstreams.close());
  return upstreams;
}

function channelOf(made: object) {
  const [one] = testConfig({ channels: [made], models: MODELS }).channels;
  return one ?? assert.fail('no Channel');
}

const rawAnswer =
  (text: string): FakeAnswer =>
  ({ socket }) =>
    void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${text.length}\r\n\r\n${text}`);

async function listen(t: TestContext, server: Server): Promise<number> {
  const open = new Set<Socket>();
  server.on('connection', (socket) => open.add(socket));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

test('an upstream that offers HTTP/2 is asked by HTTP/1.1: a stream that breaks there takes no other with it', async (t) => {
  const server = createSecureServer({ cert: GOOD_CERT, key: GOOD_KEY, allowHTTP1: true }, (request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ version: request.httpVersion }));
  });
  const port = await listen(t, server);
  const to = channelOf(channel(`https://127.0.0.1:${port}`, { options: { ca: CA } }));
  const head = await upstreamsOf(t).send(to, { path: '/messages', headers: {}, body: '{}' }, sending);
  assert.equal(await readErrorText(head, systemClock), '{"version":"1.1"}');
});

test('a handshake of a WebSocket asks for no type and no compression; one that is refused is asked over HTTP from then on', async (t) => {
  await using upstream = await fakeUpstream(jsonAnswer(404, {}));
  const to = channelOf(channel(upstream.url, { type: 'responses', options: { websocket: true } }));
  const upstreams = upstreamsOf(t);
  for (let asked = 0; asked < 2; asked++) assert.equal(await upstreams.connect(to, '/responses', sending, 1000), undefined);
  assert.equal(upstream.requests.length, 1);
  const [request] = upstream.requests;
  assert.equal(request?.headers.get('upgrade'), 'websocket');
  assert.equal(request?.headers.get('authorization'), 'Bearer sk-upstream');
  for (const name of ['accept', 'accept-encoding']) assert.equal(request?.headers.has(name), false, name);
});

test('a handshake without a connection in time is the end of the attempt: over HTTP there would be none either', async (t) => {
  const port = await listen(
    t,
    createServer((socket) => void socket.resume()),
  );
  const options = { websocket: true, ca: CA };
  const to = channelOf(
    channel(`https://127.0.0.1:${port}`, { type: 'responses', options, timeouts: { connect_ms: 100, first_data_ms: 5_000 } }),
  );
  const upstreams = upstreamsOf(t);
  await assert.rejects(upstreams.connect(to, '/responses', sending, 1000), { code: 'UND_ERR_CONNECT_TIMEOUT' });
});

test('the models of a region are listed at an address of their own, and requests still go to theirs', async (t) => {
  await using lists = await fakeUpstream(jsonAnswer(200, { modelSummaries: [] }));
  await using runtime = await fakeUpstream(jsonAnswer(200, {}));
  const made = channelOf(cloudChannel(BEDROCK, runtime.url));
  assert.ok(made.platform?.platform === 'bedrock');
  // A base URL of one's own stands for both; without one they are two addresses of AWS.
  const to = { ...made, platform: { ...made.platform, controlOrigin: lists.url } };
  const upstreams = upstreamsOf(t);
  const ask = () => upstreams.send(to, { path: '/v1/messages', headers: {}, body: '{"max_tokens":1}' }, sending);
  for (const way of [ask, () => askModelList(upstreams, to, signal, systemClock), ask]) assert.equal((await way()).status, 200);
  assert.deepEqual([lists.requests.length, runtime.requests.length], [1, 2]);
});

test('a configuration that changes during a sign-in ends none of its requests, and keeps nothing of the old one open', async (t) => {
  const upstreams = upstreamsOf(t);
  const keys = { ...AWS_KEYS, accessKeyId: 'AKIDROLE' };
  const access = { AccessKeyId: keys.accessKeyId, SecretAccessKey: keys.secretAccessKey, Token: keys.sessionToken };
  const steps: readonly (readonly [path: string, answer: FakeAnswer])[] = [
    ['/latest/api/token', rawAnswer('token')],
    ['/latest/meta-data/iam/security-credentials/', rawAnswer('role')],
    [
      '/latest/meta-data/iam/security-credentials/role',
      jsonAnswer(200, { Code: 'Success', ...access, Expiration: '2099-01-01T00:00:00Z' }),
    ],
  ];
  const answers = new Map(steps);
  await using cloud = await fakeUpstream((request) => {
    upstreams.keepOnly([]);
    return (answers.get(request.path) ?? jsonAnswer(200, {}))(request);
  });
  const to = channelOf(cloudChannel({ ...BEDROCK, source: 'instance' }, cloud.url));
  const sent = Array.from({ length: 3 }, () => upstreams.send(to, { path: '/v1/messages', headers: {}, body: '{}' }, sending));
  for (const head of await Promise.all(sent)) assert.equal(head.status, 200);
  assert.equal(cloud.requests.length, steps.length + sent.length, 'one sign-in for all');
  const asked = cloud.requests.slice(0, steps.length).map(({ socket }) => socket);
  await eventually(() => asked.every((socket) => !cloud.sockets.has(socket)), 'the connections of the sign-in are closed');
});

test('a 403 of Bedrock is a key that is no good, or one that may not list: the name of the exception tells them apart', async (t) => {
  const upstreams = upstreamsOf(t);
  for (const [type, result] of [
    ['UnrecognizedClientException', 'bad'],
    ['AccessDeniedException:http://internal.amazon.com/', 'unsure'],
    [undefined, 'unsure'],
  ] as const) {
    const headers: Record<string, string> = type === undefined ? {} : { 'x-amzn-errortype': type };
    await using lists = await fakeUpstream(jsonAnswer(403, { message: 'No.' }, headers));
    const to = channelOf(cloudChannel(BEDROCK, lists.url));
    const head = await askModelList(upstreams, to, signal, systemClock);
    assert.equal(judgeModelList(head, to).result, result, String(type));
  }
});

test('the row of an attempt has the id that the upstream gave the request, under whichever name', async () => {
  for (const [headers, id] of [
    [{ 'request-id': 'req_a' }, 'req_a'],
    [{ 'x-request-id': 'req_x', 'request-id': 'req_a' }, 'req_x'],
    [{ 'x-amzn-requestid': 'a-cloud' }, undefined],
  ] as const) {
    await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('hi'), headers));
    await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
    assert.equal((await gateway.post('/v1/messages', ask())).status, 200);
    assert.equal(gateway.store.settled[0]?.attempts[0]?.upstreamRequestId, id);
  }
  for (const name of ['x-amzn-requestid', 'apim-request-id']) {
    await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('hi'), { [name]: 'a-cloud', 'request-id': 'inner' }));
    await using gateway = await testGateway({ channels: [cloudChannel(BEDROCK, upstream.url)], models: MODELS });
    assert.equal((await gateway.post('/v1/messages', ask())).status, 200);
    assert.equal(gateway.store.settled[0]?.attempts[0]?.upstreamRequestId, 'a-cloud', name);
  }
});

test('lists of a header are joined as they are written, each name once, and an empty one adds nothing', () => {
  for (const nothing of [undefined, '', ' ']) assert.equal(joinList(nothing, 'a,b'), 'a,b');
  assert.equal(joinList('a, b', 'b,c, ,a'), 'a, b,c');
  assert.equal(joinList('a', 'a'), 'a');
});
