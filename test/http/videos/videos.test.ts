import assert from 'node:assert/strict';
import { test } from 'node:test';
import { USD } from '../../../src/store/money.ts';
import { eventually } from '../../support/test-gateway.ts';
import { VideoGateway } from './video-gateway.ts';

const BODY = { model: 'ark', prompt: 'A cat runs', duration: 5 };

test('a task is accepted with 202 and Location, made upstream once, and its price settled once', async (t) => {
  const gateway = await VideoGateway.start(t);
  const created = await gateway.create(BODY, 'one');
  assert.equal(created.status, 202);
  assert.match(created.body.id, /^video_[0-9a-f]{32}$/);
  assert.equal(created.headers.get('location'), `/v1/videos/${created.body.id}`);
  assert.deepEqual(created.body.billing, { status: 'held', currency: 'USD', frozen: '0.50', charged: '0.00' });
  assert.equal(await gateway.balance('alice'), 5n * USD - USD / 2n);
  const done = await gateway.until(created.body.id, 'succeeded');
  assert.match(done.body.output.url, /^http/);
  assert.deepEqual(done.body.billing, { status: 'settled', currency: 'USD', frozen: '0.50', charged: '0.50' });
  assert.equal(gateway.submissions(), 1);
  assert.equal(await gateway.balance('alice'), 5n * USD - USD / 2n);
  const verified = await gateway.store.ledger.verify();
  assert.deepEqual(verified.differences, []);
});

test('F29: the same key and body answer the same 202 again and hold nothing twice, also at once and after a restart', async (t) => {
  const gateway = await VideoGateway.start(t);
  const all = await Promise.all(Array.from({ length: 20 }, () => gateway.create(BODY, 'same')));
  assert.equal(new Set(all.map(({ body }) => JSON.stringify(body))).size, 1);
  assert.ok(all.every(({ status }) => status === 202));
  const reordered = await gateway.create({ duration: 5, prompt: 'A cat runs', model: 'ark' }, 'same');
  assert.deepEqual(reordered.body, all[0]?.body);
  const other = await gateway.create({ ...BODY, duration: 6 }, 'same');
  assert.deepEqual([other.status, other.body.error.code], [409, 'idempotency_key_reused']);
  const foreign = await gateway.create(BODY, 'same', 'sk-mizu-bob');
  assert.notEqual(foreign.body.id, all[0]?.body.id);
  await gateway.stop();
  await gateway.begin();
  assert.deepEqual((await gateway.create(BODY, 'same')).body, all[0]?.body);
  await gateway.until(all[0]?.body.id, 'succeeded');
  assert.equal(await gateway.balance('alice'), 5n * USD - USD / 2n);
});

test('what was accepted stays so, whatever the key may by now: its 202 comes again, and only new work is refused', async (t) => {
  const gateway = await VideoGateway.start(t);
  const first = await gateway.create(BODY, 'before');
  const [key] = (await gateway.store.keys.list()).filter(({ name }) => name === 'alice');
  assert.equal((await gateway.store.keys.change(key?.id ?? '', { models: ['hailuo'] }, { id: 'narrow', by: 'test' })).ok, true);
  assert.deepEqual(await gateway.create(BODY, 'before').then(({ status, body }) => [status, body]), [202, first.body]);
  assert.equal((await gateway.create({ ...BODY, duration: 6 }, 'before')).body.error.code, 'idempotency_key_reused');
  assert.equal((await gateway.create(BODY, 'after')).body.error.code, 'model_not_allowed');
  await gateway.until(first.body.id, 'succeeded');
  assert.equal(await gateway.balance('alice'), 5n * USD - USD / 2n);
});

test('a last frame that was asked for is in the result, and none that was not', async (t) => {
  const gateway = await VideoGateway.start(t);
  const plain = await gateway.create(BODY, 'plain');
  const asked = await gateway.create({ ...BODY, provider_options: { return_last_frame: true } }, 'asked');
  const output = async (id: string) => (await gateway.until(id, 'succeeded')).body.output;
  assert.deepEqual(Object.keys(await output(plain.body.id)), ['url']);
  assert.match((await output(asked.body.id)).last_frame_url, /^http.+\.png$/);
});

const busy = (headers: Readonly<Record<string, string>>) => ({
  match: ({ method }: { readonly method: string }) => method === 'POST',
  faults: [{ type: 'status' as const, status: 429, headers }],
});

test('a Channel that names a short wait is asked again, once, when no other takes the task', async (t) => {
  const gateway = await VideoGateway.start(t);
  gateway.simulator.enqueue(busy({ 'retry-after-ms': '30' }));
  const { body } = await gateway.create(BODY, 'busy');
  await gateway.until(body.id, 'succeeded');
  assert.equal(gateway.submissions(), 2);
  gateway.simulator.enqueue({ ...busy({ 'retry-after-ms': '1' }), times: 100 });
  const always = await gateway.create({ ...BODY, model: 'h3' }, 'always');
  assert.equal((await gateway.until(always.body.id, 'failed')).body.error.code, 'upstream_error');
  assert.equal(gateway.submissions(), 2 + 2);
});

test('a Channel that names a long wait, or none, is not waited for by the task that it refused', async (t) => {
  const gateway = await VideoGateway.start(t);
  for (const [model, headers] of [
    ['ark', { 'retry-after': '60' }],
    ['h3', {}],
  ] as const) {
    const before = gateway.submissions();
    gateway.simulator.enqueue(busy(headers));
    const { body } = await gateway.create({ ...BODY, model }, model);
    assert.equal((await gateway.until(body.id, 'failed')).body.billing.status, 'refunded');
    assert.equal(gateway.submissions() - before, 1);
  }
});

test('a task whose Channels are all cooled stays queued, may be cancelled, and is made when one may be asked again', async (t) => {
  const gateway = await VideoGateway.start(t, {}, 'primary', { top: { health: { failures: 1, cooldown_ms: 1_500 } } });
  gateway.simulator.enqueue({ match: ({ method }) => method === 'POST', faults: [{ type: 'cut', at: 0 }] });
  const lost = await gateway.create(BODY, 'lost');
  await gateway.until(lost.body.id, 'unknown');
  const [waits, leaves] = [await gateway.create(BODY, 'waits'), await gateway.create(BODY, 'leaves')];
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.equal((await gateway.ask('GET', `/v1/videos/${waits.body.id}`)).body.status, 'queued');
  assert.equal(gateway.submissions(), 1, 'an open circuit lets nothing through');
  assert.equal((await gateway.ask('POST', `/v1/videos/${leaves.body.id}/cancel`)).body.billing.status, 'refunded');
  assert.equal((await gateway.until(waits.body.id, 'succeeded')).body.billing.status, 'settled');
  assert.equal(gateway.submissions(), 2);
  const { ledger } = gateway.store;
  assert.deepEqual((await ledger.verify()).differences, []);
});

test('no Channel can be asked for ten minutes: the task fails, and what it held is given back', async (t) => {
  const gateway = await VideoGateway.start(t);
  gateway.running.gateway.dispatcher.health.enter('ark', 'ark')?.refused();
  const { principal } = await gateway.principal('sk-mizu-alice');
  const made = await gateway.store.videos.create({
    id: 'video_old',
    principal,
    model: 'ark',
    requestJson: JSON.stringify(BODY),
    priceNanos: USD / 2n,
    idempotencyKey: 'old',
    bodyHash: 'h',
    nowMs: Date.now() - 10 * 60_000,
  });
  assert.ok(made.ok);
  const failed = await gateway.until('video_old', 'failed');
  assert.equal(failed.body.billing.status, 'refunded');
  assert.equal(gateway.submissions(), 0);
});

test('a task of a model that only another gateway on the store has as yet stays queued, for ten minutes at most', async (t) => {
  const gateway = await VideoGateway.start(t);
  const { principal } = await gateway.principal('sk-mizu-alice');
  const create = (id: string, nowMs: number) =>
    gateway.store.videos.create({
      ...{ id, principal, model: 'newest', requestJson: JSON.stringify({ ...BODY, model: 'newest' }), priceNanos: USD / 2n },
      ...{ idempotencyKey: id, bodyHash: 'h', nowMs },
    });
  assert.ok((await create('video_new', Date.now())).ok);
  assert.ok((await create('video_old', Date.now() - 10 * 60_000)).ok);
  assert.equal((await gateway.until('video_old', 'failed')).body.billing.status, 'refunded');
  assert.equal((await gateway.ask('GET', '/v1/videos/video_new')).body.status, 'queued');
  assert.equal((await gateway.ask('POST', '/v1/videos/video_new/cancel')).body.billing.status, 'refunded');
});

test('what holds of every attempt holds of submissions: parameters, headers, Channel limits, metrics', async (t) => {
  const options = {
    parameters: { callback_url: 'https://operator.example/hook' },
    drop_parameters: ['duration'],
    headers: { 'x-extra': 'yes' },
    max_concurrency: 1,
    poll_interval_ms: 20,
  };
  const gateway = await VideoGateway.start(t, {}, 'primary', { channels: { ark: { options } } });
  const slow = { match: ({ method }: { method: string }) => method === 'POST', times: 3 };
  gateway.simulator.enqueue({ ...slow, faults: [{ type: 'slow-headers', ms: 120 }] });
  const most = { value: 0 };
  const { concurrency } = gateway.running.gateway.dispatcher;
  const watch = setInterval(() => {
    most.value = Math.max(most.value, concurrency.running('ark'));
  }, 5);
  t.after(() => clearInterval(watch));
  const tasks = await Promise.all([1, 2, 3].map((n) => gateway.create(BODY, `n${n}`)));
  for (const { body } of tasks) await gateway.until(body.id, 'succeeded');
  assert.equal(most.value, 1);
  const sent = gateway.simulator.requests.filter(({ method }) => method === 'POST');
  assert.equal(sent.length, 3);
  for (const { text, headers } of sent) {
    const body = JSON.parse(text);
    assert.deepEqual(
      [body.callback_url, 'duration' in body, headers['x-extra']],
      ['https://operator.example/hook', false, 'yes'],
    );
  }
  const metrics = await gateway.running.gateway.metrics.registry.metrics();
  assert.match(metrics, /mizu_attempts_total\{channel="ark",outcome="success",reason=""\} 3/);
});

test('a submission has the time of its Channel; what was sent by then is unclear', async (t) => {
  const gateway = await VideoGateway.start(t, {}, 'primary', { channels: { ark: { timeouts: { first_data_ms: 100 } } } });
  gateway.simulator.enqueue({ match: ({ method }) => method === 'POST', faults: [{ type: 'silent' }] });
  const { body } = await gateway.create(BODY, 'silent');
  await gateway.until(body.id, 'unknown');
  assert.equal(gateway.submissions(), 1);
});

test('created, refused, submitted and ended are lines of the log; the words of a refusal are there and in `mizu videos show`', async (t) => {
  const gateway = await VideoGateway.start(t);
  const made = await gateway.create(BODY, 'made');
  await gateway.until(made.body.id, 'succeeded');
  const lines = (id: string) => gateway.logLines.filter(({ task }) => task === id);
  // The line follows what clients see.
  await eventually(() => lines(made.body.id).length === 3);
  assert.deepEqual(
    lines(made.body.id).map(({ msg, state, channel }) => [msg, state, channel]),
    [
      ['video created', undefined, undefined],
      ['video submitted', undefined, 'ark'],
      ['video ended', 'succeeded', 'ark'],
    ],
  );
  gateway.simulator.enqueue({ faults: [{ type: 'status', status: 400, code: 'InvalidParameter', message: 'bad duration' }] });
  const refused = await gateway.create(BODY, 'refused');
  await gateway.until(refused.body.id, 'failed');
  await eventually(() => lines(refused.body.id).length === 3);
  const [, line, ended] = lines(refused.body.id);
  assert.deepEqual(
    [line?.['msg'], line?.['error_code'], line?.['failed_attempts']],
    ['video refused', 'InvalidParameter', ['ark status_400']],
  );
  assert.match(String(line?.['upstream_text']), /bad duration/);
  assert.deepEqual([ended?.['msg'], ended?.['state'], ended?.['charge_nanos']], ['video ended', 'failed', '0']);
  let printed = '';
  await gateway.verb(['show', refused.body.id], {}, (text) => {
    printed += text;
  });
  assert.match(printed, /bad duration/);
  const shown = await gateway.ask('GET', `/v1/videos/${refused.body.id}`);
  assert.deepEqual(Object.keys(shown.body.error), ['code', 'message']);

  const denied = await gateway.create({ ...BODY, nonsense: 1 }, 'denied');
  assert.equal(denied.status, 400);
  const line400 = gateway.logLines.find(({ msg }) => msg === 'refused');
  assert.deepEqual([line400?.['route'], line400?.['status'], line400?.['error_code']], ['videos', 400, denied.body.error.code]);
});

test('an explicit failure of the upstream refunds once', async (t) => {
  const gateway = await VideoGateway.start(t, {
    video: { queueMs: 1, runMs: 1, outcome: 'failed', code: 'OutputVideoSensitiveContentDetected', message: 'no' },
  });
  const { body } = await gateway.create(BODY, 'fails');
  const failed = await gateway.until(body.id, 'failed');
  assert.equal(failed.body.error.code, 'OutputVideoSensitiveContentDetected');
  assert.equal(failed.body.billing.status, 'refunded');
  assert.equal(await gateway.balance('alice'), 5n * USD);
});

test('a refused submission refunds; an unreachable upstream took nothing', async (t) => {
  const gateway = await VideoGateway.start(t);
  gateway.simulator.enqueue({ faults: [{ type: 'status', status: 400, code: 'InvalidParameter', message: 'bad duration' }] });
  const refused = await gateway.create(BODY, 'refused');
  assert.equal((await gateway.until(refused.body.id, 'failed')).body.error.code, 'InvalidParameter');
  const unreachable = await gateway.create({ model: 'unreachable', prompt: 'p' }, 'unreachable');
  assert.equal((await gateway.until(unreachable.body.id, 'failed')).body.billing.status, 'refunded');
  assert.equal(await gateway.balance('alice'), 5n * USD);
});

test('F30: a lost answer leaves the task unknown: the hold stays and it is never submitted again', async (t) => {
  const gateway = await VideoGateway.start(t);
  gateway.simulator.enqueue({ faults: [{ type: 'cut', at: 0 }] });
  const { body } = await gateway.create(BODY, 'lost');
  const lost = await gateway.until(body.id, 'unknown');
  assert.equal(lost.body.billing.status, 'held');
  assert.equal((await gateway.ask('POST', `/v1/videos/${body.id}/cancel`)).status, 409);
  await gateway.stop();
  await gateway.begin();
  await gateway.until(body.id, 'unknown');
  assert.equal(gateway.submissions(), 1);
  assert.equal(await gateway.balance('alice'), 5n * USD - USD / 2n);
});

test('a query error keeps the hold and is asked again', async (t) => {
  const gateway = await VideoGateway.start(t);
  const broken = {
    match: ({ method }: { method: string }) => method === 'GET',
    times: 3,
    faults: [{ type: 'status' as const, status: 500 }],
  };
  gateway.simulator.enqueue(broken);
  const { body } = await gateway.create(BODY, 'flaky');
  assert.equal((await gateway.until(body.id, 'succeeded')).body.billing.status, 'settled');
});

test('cancel after submission has begun is 409, also when it is over', async (t) => {
  const gateway = await VideoGateway.start(t);
  const { body } = await gateway.create(BODY, 'late');
  await gateway.until(body.id, 'succeeded');
  const late = await gateway.ask('POST', `/v1/videos/${body.id}/cancel`);
  assert.deepEqual([late.status, late.body.error.code], [409, 'video_submission_started']);
});

test("F37: a foreign task is as unknown as one that never was, and a list shows one's own", async (t) => {
  const gateway = await VideoGateway.start(t);
  const ids: string[] = [];
  for (let index = 0; index < 5; index++)
    ids.unshift((await gateway.create({ ...BODY, model: 'hailuo', prompt: `${index}` }, `n${index}`)).body.id);
  for (const [method, path] of [
    ['GET', `/v1/videos/${ids[0]}`],
    ['POST', `/v1/videos/${ids[0]}/cancel`],
    ['GET', `/v1/videos/video_${'0'.repeat(32)}`],
  ] as const) {
    const answer = await gateway.ask(method, path, { key: 'sk-mizu-bob' });
    assert.deepEqual([answer.status, answer.body.error.code], [404, 'video_not_found']);
  }
  assert.deepEqual((await gateway.ask('GET', '/v1/videos', { key: 'sk-mizu-bob' })).body, {
    object: 'list',
    data: [],
    has_more: false,
    next_cursor: null,
  });
  const first = await gateway.ask('GET', '/v1/videos?limit=2');
  const second = await gateway.ask('GET', `/v1/videos?limit=3&after=${first.body.next_cursor}`);
  assert.equal(first.body.has_more, true);
  assert.equal(second.body.has_more, false);
  assert.deepEqual(
    [...first.body.data, ...second.body.data].map(({ id }: { id: string }) => id),
    ids,
  );
  assert.equal((await gateway.ask('GET', '/v1/videos?limit=100')).body.data.length, ids.length);
  for (const query of [
    'limit=0',
    'limit=-1',
    'limit=101',
    'limit=1000',
    'limit=1.5',
    'limit=',
    'limit=x',
    'after=video_nothing',
  ]) {
    const answer = await gateway.ask('GET', `/v1/videos?${query}`);
    assert.deepEqual([answer.status, answer.body.error.param], [400, query.split('=')[0]]);
  }
});

test('both minimax versions make videos', async (t) => {
  const gateway = await VideoGateway.start(t);
  const v1 = await gateway.create({ model: 'hailuo', prompt: 'p', duration: 6 }, 'v1');
  const v2 = await gateway.create({ model: 'h3', prompt: 'p' }, 'v2');
  assert.match((await gateway.until(v1.body.id, 'succeeded')).body.output.url, /^http/);
  assert.match((await gateway.until(v2.body.id, 'succeeded')).body.output.url, /^http/);
  const sent = gateway.simulator.requests.filter(({ method }) => method === 'POST').map(({ path }) => path);
  assert.deepEqual(sent, ['/v1/video_generation', '/v2/video_generation']);
});

const REFUSALS: readonly (readonly [
  string,
  { body?: unknown; key?: string; headers?: Record<string, string> },
  number,
  string,
])[] = [
  ['no key', { key: 'sk-mizu-nobody', body: BODY }, 401, 'unauthorized'],
  ['no Idempotency-Key', { body: BODY }, 400, 'idempotency_key_required'],
  [
    'an Idempotency-Key of 300 characters',
    { body: BODY, headers: { 'idempotency-key': 'x'.repeat(300) } },
    400,
    'invalid_request',
  ],
  [
    'an unknown field',
    { body: { ...BODY, callback_url: 'https://x' }, headers: { 'idempotency-key': 'a' } },
    400,
    'invalid_request',
  ],
  [
    'a model that does not exist',
    { body: { ...BODY, model: 'nothing' }, headers: { 'idempotency-key': 'a' } },
    404,
    'model_not_found',
  ],
  [
    'a model without a price',
    { body: { ...BODY, model: 'unpriced' }, headers: { 'idempotency-key': 'a' } },
    403,
    'model_pricing_required',
  ],
  [
    'a model that makes no videos',
    { body: { ...BODY, model: 'talk' }, headers: { 'idempotency-key': 'a' } },
    400,
    'model_kind_mismatch',
  ],
  [
    'a model whose Channels are out of service',
    { body: { ...BODY, model: 'resting' }, headers: { 'idempotency-key': 'a' } },
    503,
    'no_healthy_upstream',
  ],
  [
    'an option of another Channel',
    { body: { model: 'hailuo', prompt: 'p', provider_options: { seed: 1 } }, headers: { 'idempotency-key': 'a' } },
    400,
    'invalid_request',
  ],
  [
    'aspect_ratio on minimax v1',
    { body: { model: 'hailuo', prompt: 'p', aspect_ratio: '1:1' }, headers: { 'idempotency-key': 'a' } },
    400,
    'unsupported_parameter',
  ],
  ['no JSON', { body: '{"model":', headers: { 'idempotency-key': 'a' } }, 400, 'invalid_request'],
  [
    'a form',
    { body: 'x', headers: { 'idempotency-key': 'a', 'content-type': 'multipart/form-data; boundary=b' } },
    415,
    'unsupported_media_type',
  ],
  [
    'more than 1 MiB',
    { body: JSON.stringify({ ...BODY, prompt: 'x'.repeat(1024 * 1024) }), headers: { 'idempotency-key': 'a' } },
    413,
    'request_too_large',
  ],
];

test('every refusal has its status and code, holds nothing and reaches no upstream', async (t) => {
  const gateway = await VideoGateway.start(t);
  for (const [what, request, status, code] of REFUSALS) {
    const answer = await gateway.ask('POST', '/v1/videos', request);
    assert.deepEqual([what, answer.status, answer.body.error.code], [what, status, code]);
  }
  assert.equal(gateway.submissions(), 0);
  assert.equal(await gateway.balance('alice'), 5n * USD);
});

test('a balance that is too low is refused before anything is sent', async (t) => {
  const gateway = await VideoGateway.start(t);
  await gateway.addAccount('carol', '1', 'sk-mizu-carol');
  const answers = await Promise.all(['a', 'b', 'c'].map((id) => gateway.create(BODY, id, 'sk-mizu-carol')));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [202, 202, 402]);
});

test('what a key may not do, or not any more, is refused, also where it changes meanwhile', async (t) => {
  const gateway = await VideoGateway.start(t);
  const { keys, videos } = gateway.store;
  const account = await gateway.store.accounts.find('alice');
  const [key] = await keys.list(account?.id);
  assert.ok(key);
  let changes = 0;
  const change = async (wanted: Parameters<typeof keys.change>[1]): Promise<void> => {
    const changed = await keys.change(key.id, wanted, { id: `change-${++changes}`, by: 'test' });
    assert.ok(changed.ok);
  };
  const refused = async (): Promise<unknown[]> => {
    const { status, body } = await gateway.create(BODY, `refused-${changes}`);
    return [status, body.error?.code, body.error?.message];
  };
  await change({ models: ['hailuo'] });
  assert.deepEqual((await refused()).slice(0, 2), [403, 'model_not_allowed']);
  for (const window of ['hourly', 'daily', 'total'] as const) {
    await change({ models: null, limits: { hourly: null, daily: null, total: null, [window]: USD / 2n - 1n } });
    assert.deepEqual(await refused(), [
      402,
      'api_key_spend_limit_reached',
      `The ${window} spend limit of this API key is used up.`,
    ]);
  }
  await change({ limits: { total: USD / 2n } });
  const earlier = videos.earlier.bind(videos);
  t.mock.method(videos, 'earlier', async (asked: Parameters<typeof earlier>[0]) => {
    await change({ disabled: true });
    return earlier(asked);
  });
  assert.deepEqual((await refused()).slice(0, 2), [401, 'unauthorized']);
  t.mock.restoreAll();
  assert.deepEqual((await refused()).slice(0, 2), [401, 'unauthorized']);
  await change({ disabled: false });
  assert.equal((await gateway.create(BODY, 'last')).status, 202, 'a price that fills the limit fits');
  assert.deepEqual((await refused()).slice(0, 2), [402, 'api_key_spend_limit_reached']);
  assert.deepEqual((await gateway.store.ledger.verify()).differences, []);
});

test('F32: a replica serves no video endpoint', async (t) => {
  const gateway = await VideoGateway.start(t, {}, 'replica');
  for (const [method, path] of [
    ['POST', '/v1/videos'],
    ['GET', '/v1/videos'],
    ['GET', '/v1/videos/video_1'],
    ['POST', '/v1/videos/video_1/cancel'],
  ] as const) {
    const answer = await gateway.ask(method, path, method === 'POST' ? { body: BODY } : {});
    assert.deepEqual([answer.status, answer.body.error.code], [503, 'video_primary_required']);
  }
});

test('videos have no alias, and never enter the request log', async (t) => {
  const gateway = await VideoGateway.start(t);
  for (const path of ['/videos', '/api/v1/videos', '/api/videos']) assert.equal((await gateway.ask('GET', path)).status, 404);
  const { body } = await gateway.create(BODY, 'unlogged');
  await gateway.until(body.id, 'succeeded');
  await gateway.store.settlements.flush();
  const rows = await gateway.store.requestLog.list();
  assert.equal(rows.length, 0);
});

test('an operator resolves a task whose outcome nobody knows, once', async (t) => {
  const gateway = await VideoGateway.start(t);
  gateway.simulator.enqueue({ faults: [{ type: 'cut', at: 0 }] }, { faults: [{ type: 'cut', at: 0 }] });
  const good = await gateway.create(BODY, 'good');
  await gateway.until(good.body.id, 'unknown');
  const bad = await gateway.create(BODY, 'bad');
  await gateway.until(bad.body.id, 'unknown');
  assert.equal(await gateway.verb([]), 0, 'the verb alone lists');
  const printed: string[] = [];
  await gateway.verb(['show', good.body.id], {}, (text) => printed.push(text));
  const { price, request, ...record } = JSON.parse(printed.join(''));
  assert.deepEqual([price, request.model, record.state], ['0.50', 'ark', 'unknown']);
  assert.deepEqual(
    Object.keys(record).filter((name) => /nanos|json|token|number/i.test(name)),
    [],
  );
  for (const url of ['', 'v.mp4', 'javascript:alert(1)', 'file:///v.mp4'])
    await assert.rejects(gateway.verb(['resolve', good.body.id], { succeeded: url }), /HTTP\(S\) URL/);
  for (const both of [{ succeeded: 'https://r.example/v.mp4', failed: 'lost' }, {}])
    await assert.rejects(gateway.verb(['resolve', good.body.id], both), /give --succeeded URL or --failed MESSAGE/);
  assert.equal(await gateway.verb(['resolve', good.body.id], { succeeded: 'https://r.example/v.mp4' }), 0);
  const caused = { failed: '', cause: 'ticket-7', note: 'the vendor lost it' };
  for (const _time of ['first', 'again']) assert.equal(await gateway.verb(['resolve', bad.body.id], caused), 0);
  const [refund] = (await gateway.store.ledger.journal({ ref: bad.body.id })).slice(-1);
  assert.deepEqual([refund?.kind, refund?.by, refund?.note], ['refund', 'cli', 'ticket-7: the vendor lost it']);
  assert.equal((await gateway.ask('GET', `/v1/videos/${good.body.id}`)).body.output.url, 'https://r.example/v.mp4');
  assert.equal((await gateway.ask('GET', `/v1/videos/${bad.body.id}`)).body.billing.status, 'refunded');
  assert.equal(await gateway.balance('alice'), 5n * USD - USD / 2n);
  await assert.rejects(gateway.verb(['resolve', good.body.id], { failed: 'again' }), /succeeded/);
  assert.equal((await gateway.ask('GET', `/v1/videos/${bad.body.id}`)).body.error.message, 'The generation failed.');
});
