/** What goes to an upstream beside the body of a request, what its list of models says of it, and what clients are told of it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { quotingNoCredentials } from '../../../src/http/dispatch/credentials.ts';
import { askModelList, hasModelList, judgeModelList } from '../../../src/http/dispatch/model-list.ts';
import { ReceivedBody } from '../../../src/http/dispatch/received-body.ts';
import { Upstreams } from '../../../src/http/dispatch/upstream.ts';
import type { UpstreamHead } from '../../../src/http/dispatch/upstream-call.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { ask, channel, MODELS, testConfig, testGateway } from '../../support/test-gateway.ts';

const signal = new AbortController().signal;
const sending = { stream: false, signal, clientHeaders: {}, upstreamModel: 'up' };

const nothing = (): undefined => undefined;

function channelOf(url: string, changes: object = {}) {
  const [made] = testConfig({ channels: [channel(url, changes)], models: MODELS }).channels;
  assert.ok(made);
  return made;
}

test('a whole answer and a stream are asked for by their types, uncompressed, with the credential where the Channel has it', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, {}));
  const upstreams = new Upstreams(systemClock);
  const credentials = ['authorization', 'x-api-key', 'x-goog-api-key'];
  for (const [auth, name, value] of [
    ['bearer', 'authorization', 'Bearer sk-upstream'],
    ['x-api-key', 'x-api-key', 'sk-upstream'],
    ['x-goog-api-key', 'x-goog-api-key', 'sk-upstream'],
    ['none', undefined, undefined],
  ] as const) {
    const to = channelOf(upstream.url, { options: { auth } });
    await upstreams.send(to, { path: '/messages', headers: {}, body: '{}' }, { ...sending, stream: auth === 'bearer' });
    const headers = upstream.requests.at(-1)?.headers;
    assert.deepEqual(
      credentials.flatMap((each) => (headers?.has(each) === true ? [[each, headers.get(each)]] : [])),
      name === undefined ? [] : [[name, value]],
    );
    assert.equal(headers?.get('accept'), auth === 'bearer' ? 'text/event-stream' : 'application/json');
    assert.equal(headers?.get('accept-encoding'), 'identity');
  }
  await upstreams.close();
});

test('the version and betas of a messages client go on to its kind of upstream as it wrote them', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('hi')));
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const sent = async (given: Record<string, string>): Promise<(string | undefined)[]> => {
    const response = await gateway.post('/v1/messages', ask(), { headers: given });
    assert.equal(response.status, 200, await response.text());
    const headers = upstream.requests.at(-1)?.headers;
    return ['anthropic-version', 'anthropic-beta'].map((name) => headers?.get(name));
  };
  assert.deepEqual(await sent({ 'anthropic-version': '2026-02-01', 'anthropic-beta': 'b-1' }), ['2026-02-01', 'b-1']);
  assert.deepEqual(await sent({ 'anthropic-version': '', 'anthropic-beta': '' }), ['2023-06-01', undefined]);
  assert.deepEqual(await sent({}), ['2023-06-01', undefined]);
});

test('an error that quotes no credential goes on as it is; of one that does the client and the row get the rest', () => {
  const to = channelOf('http://127.0.0.1:1');
  const upstream = { status: 401, text: 'No.' };
  const plain = new GatewayError('upstream_error', 'Oh.', { reason: 'http_status', upstream });
  assert.equal(quotingNoCredentials(plain, to), plain);
  const quoting = new GatewayError('upstream_error', 'Oh.', {
    upstream: { status: 401, text: 'Your key sk-upstream is wrong.' },
  });
  const { message, details } = quotingNoCredentials(quoting, to);
  assert.deepEqual([message, details.upstream], ['Oh.', { status: 401, text: 'Your key [redacted] is wrong.' }]);
  const worded = quotingNoCredentials(new GatewayError('upstream_error', 'Not sk-upstream.', {}), to);
  assert.equal(worded.message, 'Not [redacted].');
});

test('a path of the operator’s own takes the query of the endpoint, unless it has one', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, {}));
  const upstreams = new Upstreams(systemClock);
  for (const [path, sent] of [
    ['/own/{model}', '/own/up?beta=true'],
    ['/own?key=1', '/own?key=1'],
  ]) {
    const to = channelOf(upstream.url, { options: { path } });
    await upstreams.send(to, { path: '/messages?beta=true', headers: {}, body: '{}' }, sending);
    assert.equal(upstream.requests.at(-1)?.path, sent);
  }
  await upstreams.close();
});

test('a list of models is asked for where each kind of upstream has it, and videos have none', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, {}));
  const upstreams = new Upstreams(systemClock);
  for (const [type, path, version] of [
    ['messages', '/v1/models', '2023-06-01'],
    ['chat_completion', '/v1/models', undefined],
    ['openrouter_image', '/v1/images/models', undefined],
  ] as const) {
    assert.equal(hasModelList(type), true);
    // A path of its own is one for requests.
    const to = channelOf(`${upstream.url}/v1`, { type, options: { path: '/own' } });
    await askModelList(upstreams, to, signal, systemClock);
    const sent = upstream.requests.at(-1);
    assert.deepEqual([sent?.method, sent?.path, sent?.headers.get('anthropic-version')], ['GET', path, version]);
  }
  assert.deepEqual([hasModelList('ark_video'), hasModelList('minimax_video')], [false, false]);
  await upstreams.close();
});

test('what the answer to a list says of a Channel', () => {
  const to = channelOf('http://127.0.0.1:1');
  const judged = (status: number, contentType = 'application/json') => {
    const body = new ReceivedBody({ pause: nothing, resume: nothing, abort: nothing }, systemClock);
    const head: UpstreamHead = { status, headers: { 'content-type': contentType }, body };
    return judgeModelList(head, to);
  };
  assert.deepEqual(judged(200), { result: 'good', note: 'reached' });
  assert.equal(judged(299).result, 'good');
  assert.match(judged(200, 'text/html; charset=utf-8').note, /web page/);
  for (const status of [300, 308, 399]) assert.match(judged(status).note, /redirects/, String(status));
  for (const status of [400, 500, 503]) assert.deepEqual(judged(status), { result: 'bad', note: 'the upstream failed' });
  for (const status of [401, 403]) assert.equal(judged(status).note, 'the key was refused');
  assert.equal(judged(402).result, 'bad');
  for (const status of [404, 405]) assert.equal(judged(status).result, 'good');
  assert.equal(judged(429).result, 'unsure');
});

test('clients are told which Channel answered where the operator wants it, and which model where others may answer', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('hi')));
  const models = { m: MODELS.m, other: { ...MODELS.m, fallbacks: ['m'] } };
  const channels = [channel(upstream.url, { models: ['m', 'other'] })];
  const told = async (model: string): Promise<(string | null)[]> => {
    const response = await gateway.post('/v1/messages', ask({ model }));
    assert.equal(response.status, 200, await response.text());
    return ['x-mizu-channel', 'x-mizu-model'].map((name) => response.headers.get(name));
  };
  await using gateway = await testGateway({ channels, models });
  assert.deepEqual(
    [await told('m'), await told('other')],
    [
      [null, null],
      [null, 'other'],
    ],
  );
  gateway.configure({ channels, models, channel_header: true });
  assert.deepEqual(
    [await told('m'), await told('other')],
    [
      ['one', null],
      ['one', 'other'],
    ],
  );
});

test('the body of an answer says when it was made, and of a response also when it was done, in seconds', async () => {
  await using upstream = await fakeUpstream(jsonAnswer(200, wholeMessage('hi')));
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const before = Math.floor(Date.now() / 1000);
  const response = await gateway.post('/v1/chat/completions', ask());
  const { created } = (await response.json()) as { created: number };
  assert.ok(created >= before && created <= Date.now() / 1000, String(created));
  const later = await gateway.post('/v1/responses', { model: 'm', input: 'hi' });
  const { created_at, completed_at } = (await later.json()) as { created_at: number; completed_at: number };
  assert.ok(before <= created_at && created_at <= completed_at && completed_at <= Date.now() / 1000, `${completed_at}`);
});
