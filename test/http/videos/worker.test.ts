/** What the worker does with many tasks, and with upstreams that do not answer. */
import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { test } from 'node:test';
import { Upstreams } from '../../../src/http/dispatch/upstream.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { PollBatch } from '../../../src/http/videos/poll-batch.ts';
import { startVideoWorker } from '../../../src/http/videos/worker.ts';
import { VIDEO_WORKER } from '../../../src/store/leases.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import type { NextPoll } from '../../../src/store/videos.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { VideoGateway } from './video-gateway.ts';

const at = (path: string, method: string) => (request: { readonly method: string; readonly path: string }) =>
  request.method === method && request.path.startsWith(path);

test('a Channel that answers no query takes the worker from nobody, and nothing waits for it at the end', async (t) => {
  const gateway = await VideoGateway.start(t);
  await gateway.addAccount('carol', '1000', 'sk-mizu-carol');
  gateway.simulator.enqueue({ match: at('/api/v3', 'GET'), times: 10_000, faults: [{ type: 'silent' }] });
  const slow = Array.from({ length: 80 }, (_, n) =>
    gateway.create({ model: 'ark', prompt: `${n}` }, `slow-${n}`, 'sk-mizu-carol'),
  );
  assert.ok((await Promise.all(slow)).every(({ status }) => status === 202));
  const quick = await gateway.create({ model: 'hailuo', prompt: 'quick' }, 'quick');
  assert.match((await gateway.until(quick.body.id, 'succeeded')).body.output.url, /^http/);
  const asked = gateway.simulator.requests.filter(at('/api/v3', 'GET')).length;
  assert.ok(asked <= 32, `${asked} polls of one Channel at once`);
  const stopping = performance.now();
  await gateway.stop();
  assert.ok(performance.now() - stopping < 10_000, 'a poll that is cut short loses nothing');
});

test('submissions that hang do not stop the polls of what is under way', async (t) => {
  const gateway = await VideoGateway.start(t, { video: { queueMs: 5, runMs: 300 } });
  await gateway.addAccount('carol', '1000', 'sk-mizu-carol');
  const running = await gateway.create({ model: 'hailuo', prompt: 'p' }, 'first');
  await gateway.until(running.body.id, 'running');
  gateway.simulator.enqueue({ match: at('/api/v3', 'POST'), times: 10_000, faults: [{ type: 'slow-headers', ms: 1_500 }] });
  for (let n = 0; n < 40; n++) await gateway.create({ model: 'ark', prompt: `${n}` }, `hangs-${n}`, 'sk-mizu-carol');
  const done = await gateway.until(running.body.id, 'succeeded');
  assert.equal(done.body.billing.status, 'settled');
});

test('a task whose submission has not begun is cancelled, once however often that is asked, and what it held is given back', async (t) => {
  const gateway = await VideoGateway.start(t);
  await gateway.addAccount('carol', '1000', 'sk-mizu-carol');
  gateway.simulator.enqueue({ match: at('/api/v3', 'POST'), times: 10_000, faults: [{ type: 'slow-headers', ms: 20_000 }] });
  for (let n = 0; n < 32; n++) await gateway.create({ model: 'ark', prompt: `${n}` }, `hangs-${n}`, 'sk-mizu-carol');
  while (gateway.submissions() < 32) await new Promise((resolve) => setTimeout(resolve, 5));
  const { body } = await gateway.create({ model: 'ark', prompt: 'late' }, 'late');
  const before = await gateway.balance('alice');
  for (const _ of [1, 2]) {
    const cancelled = await gateway.ask('POST', `/v1/videos/${body.id}/cancel`);
    assert.deepEqual([cancelled.status, cancelled.body.status, cancelled.body.billing.status], [200, 'cancelled', 'refunded']);
  }
  assert.equal(await gateway.balance('alice'), before + BigInt(Number(body.billing.frozen) * 1e9));
});

test('an upstream that gives a task away twice: what is made for one is neither shown to another nor charged to both', async (t) => {
  let [status, asked] = ['running', 0];
  const upstream = createServer((request, response) => {
    request.resume();
    if (request.method === 'GET') asked += 1;
    const task = { id: 'cgt-1', status, content: { video_url: 'https://videos.example/of-the-first.mp4' } };
    response.end(JSON.stringify(request.method === 'POST' ? { id: 'cgt-1' } : task));
  });
  await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve));
  t.after(() => upstream.close());
  const address = upstream.address();
  const base_url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
  const gateway = await VideoGateway.start(t, {}, 'primary', { channels: { ark: { base_url } } });
  const first = await gateway.create({ model: 'ark', prompt: 'mine' }, 'first', 'sk-mizu-bob');
  const second = await gateway.create({ model: 'ark', prompt: 'a' }, 'a');
  const third = await gateway.create({ model: 'ark', prompt: 'b' }, 'b');
  const all = [first, second, third];
  const stateOf = async (id: string) => (await gateway.store.videos.inspect(id))?.state;
  for (const { body } of all)
    while (!['running', 'unknown'].includes((await stateOf(body.id)) ?? ''))
      await new Promise((resolve) => setTimeout(resolve, 5));
  const states = await Promise.all(all.map(({ body }) => stateOf(body.id)));
  assert.deepEqual(states.toSorted(), ['running', 'unknown', 'unknown']);

  // After a start, too: whoever is polled has it.
  await gateway.stop();
  asked = 0;
  await gateway.begin();
  while (asked === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const late = await gateway.create({ model: 'ark', prompt: 'late' }, 'late');
  assert.equal((await gateway.until(late.body.id, 'running', 'unknown', 'succeeded')).body.status, 'unknown');
  status = 'succeeded';
  const statesNow = () => Promise.all(all.map(({ body }) => stateOf(body.id)));
  while (!(await statesNow()).includes('succeeded')) await new Promise((resolve) => setTimeout(resolve, 5));
  assert.deepEqual((await statesNow()).toSorted(), ['succeeded', 'unknown', 'unknown']);
  assert.equal(await gateway.balance('bob'), 4_500_000_000n);

  // A server that numbers its tasks anew gives the same name to another when the first is over.
  const anew = await gateway.create({ model: 'ark', prompt: 'anew' }, 'anew');
  assert.equal((await gateway.until(anew.body.id, 'unknown', 'succeeded')).body.status, 'succeeded');
});

test('a second signal waits for no submission: what was sent is unknown, and its hold stays', async (t) => {
  const gateway = await VideoGateway.start(t);
  gateway.simulator.enqueue({ match: at('/api/v3', 'POST'), times: 10_000, faults: [{ type: 'slow-headers', ms: 20_000 }] });
  const { body } = await gateway.create({ model: 'ark', prompt: 'p' }, 'hangs');
  await gateway.until(body.id, 'submitting');
  while (gateway.submissions() === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  const stopping = performance.now();
  await gateway.stop();
  assert.ok(performance.now() - stopping < 10_000, 'nobody waits for the upstream');
  await gateway.begin();
  const after = await gateway.ask('GET', `/v1/videos/${body.id}`);
  assert.equal(after.body.status, 'unknown');
  assert.equal(after.body.billing.status, 'held');
});

test('of several workers on one store one works, whichever others come and go: nothing is submitted twice', async (t) => {
  const gateway = await VideoGateway.start(t);
  const others = ['second', 'third'].map((holder) => {
    const upstreams = new Upstreams(systemClock);
    const worker = startVideoWorker({
      config: gateway.config,
      store: gateway.store,
      upstreams,
      dispatcher: gateway.running.gateway.dispatcher,
      metrics: gateway.running.gateway.metrics,
      clock: systemClock,
      random: Math.random,
      holder,
      log: createLogger('silent', { write: () => undefined }),
      tickMs: 5,
    });
    return { worker, upstreams };
  });
  const tasks: string[] = [];
  const create = async (n: number): Promise<void> => {
    tasks.push((await gateway.create({ model: 'hailuo', prompt: `${n}` }, `shared-${n}`)).body.id);
  };
  for (let n = 0; n < 6; n++) await create(n);
  for (const [n, { worker, upstreams }] of others.entries()) {
    await worker.stop();
    await upstreams.close();
    await create(6 + n);
  }
  for (const id of tasks) await gateway.until(id, 'succeeded');
  assert.equal(gateway.submissions(), tasks.length);
  assert.deepEqual((await gateway.store.ledger.verify()).differences, []);
});

test('F32: a worker whose lease is taken ends what it does under it, and takes it up again when it is free', async (t) => {
  const gateway = await VideoGateway.start(t, { video: { queueMs: 5, runMs: 300 } });
  const { leases, videos } = gateway.store;
  const running = await gateway.create({ model: 'hailuo', prompt: 'p' }, 'running');
  await gateway.until(running.body.id, 'running');
  gateway.simulator.enqueue({ match: at('/api/v3', 'POST'), faults: [{ type: 'slow-headers', ms: 20_000 }] });
  const hanging = await gateway.create({ model: 'ark', prompt: 'p' }, 'hanging');
  await gateway.until(hanging.body.id, 'submitting');
  while (gateway.submissions() < 2) await new Promise((resolve) => setTimeout(resolve, 5));

  const taken = await leases.acquire(VIDEO_WORKER, 'another', 60_000, Date.now() + 60_000);
  assert.ok(taken.ok);
  const waiting = await gateway.create({ model: 'hailuo', prompt: 'q' }, 'waiting');
  await new Promise((resolve) => setTimeout(resolve, 200));
  assert.equal((await gateway.ask('GET', `/v1/videos/${waiting.body.id}`)).body.status, 'queued');
  // The store may be away just when the lease is taken again.
  const away = t.mock.method(videos, 'loseAbandoned', () => Promise.reject(new Error('the store is away')), { times: 1 });
  await leases.release(VIDEO_WORKER, taken.value.token);
  for (const { body } of [running, waiting])
    assert.equal((await gateway.until(body.id, 'succeeded')).body.billing.status, 'settled');
  const lost = await gateway.until(hanging.body.id, 'unknown');
  assert.equal(lost.body.billing.status, 'held');
  assert.ok(away.mock.callCount() > 0);
  assert.equal(gateway.submissions(), 3, 'nothing is submitted twice');
  assert.deepEqual((await gateway.store.ledger.verify()).differences, []);
});

test('F31: what an upstream said to a submission is written when the store is back', async (t) => {
  const gateway = await VideoGateway.start(t);
  const { videos } = gateway.store;
  const change = videos.change.bind(videos);
  let refusals = 0;
  t.mock.method(videos, 'change', (...asked: Parameters<typeof change>) => {
    const [, { event }] = asked;
    if (event !== 'accept' || ++refusals > 2) return change(...asked);
    return Promise.reject(new StoreError('unavailable', 'the store is away'));
  });
  const { body } = await gateway.create({ model: 'hailuo', prompt: 'p' }, 'kept');
  assert.equal((await gateway.until(body.id, 'succeeded')).body.billing.status, 'settled');
  assert.equal(refusals, 3);
  assert.equal(gateway.submissions(), 1);
  // A worker that ends waits for no store: what it was told last is unknown to the next one.
  refusals = Number.NEGATIVE_INFINITY;
  const lost = await gateway.create({ model: 'hailuo', prompt: 'q' }, 'lost');
  while (gateway.submissions() < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  const stopping = performance.now();
  await gateway.stop();
  assert.ok(performance.now() - stopping < 10_000);
  await gateway.begin();
  assert.equal((await gateway.until(lost.body.id, 'unknown')).body.billing.status, 'held');
});

test('F31: a store that made a change and did not say so has made it: no task stays in submission, or is submitted twice', async (t) => {
  const gateway = await VideoGateway.start(t);
  const { videos } = gateway.store;
  const change = videos.change.bind(videos);
  const unsaid = new Set<string>();
  t.mock.method(videos, 'change', async (...asked: Parameters<typeof change>) => {
    const [id, { event }] = asked;
    const changed = await change(...asked);
    if (unsaid.has(`${id} ${event}`)) return changed;
    unsaid.add(`${id} ${event}`);
    throw new StoreError('unavailable', 'the connection broke; whether the change was made is not known');
  });
  const made = await gateway.create({ model: 'hailuo', prompt: 'p' }, 'unsaid');
  assert.equal((await gateway.until(made.body.id, 'succeeded')).body.billing.status, 'settled');
  assert.equal(gateway.submissions(), 1);
  assert.deepEqual(
    [...unsaid].map((one) => one.split(' ')[1]),
    ['submit', 'accept', 'succeed'],
  );
  const ends = (): number => gateway.logLines.filter(({ msg }) => msg === 'video ended').length;
  for (let tries = 0; ends() === 0 && tries < 400; tries += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.equal(ends(), 1);
  assert.deepEqual((await gateway.store.ledger.verify()).differences, []);
});

test('polls that decide nothing are written together, each told when it is on disk or why it is not', async () => {
  const written: (readonly NextPoll[])[] = [];
  let fails = false;
  const batch = new PollBatch({
    clock: systemClock,
    async write(polls) {
      if (fails) throw new Error('no disk');
      written.push(polls);
    },
  });
  const poll = (id: number): NextPoll => ({ id: `video_${id}`, dueAtMs: id });
  await Promise.all(Array.from({ length: 70 }, (_, id) => batch.add(poll(id))));
  assert.deepEqual(
    written.map(({ length }) => length),
    [32, 32, 6],
  );
  assert.deepEqual(
    written.flat().map(({ dueAtMs }) => dueAtMs),
    Array.from({ length: 70 }, (_, id) => id),
  );
  fails = true;
  const failing = [batch.add(poll(1)), batch.add(poll(2))];
  batch.flush();
  for (const each of failing) await assert.rejects(each, /no disk/);
  fails = false;
  await batch.add(poll(3));
  assert.deepEqual(written.at(-1), [poll(3)]);
});
