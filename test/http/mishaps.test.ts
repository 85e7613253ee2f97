/**
 * What changes, or breaks in the gateway itself, while an exchange is open: a price, and code that throws what nobody foresaw.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CodecSet } from '../../src/codecs/codec-set.ts';
import { codecs } from '../../src/codecs/registry.ts';
import { bodyOf, chunk, endingOf, GOOD, rig, STREAM_HEAD } from '../slow/faults/support/rig.ts';
import { fakeUpstream } from '../support/fake-upstream.ts';
import { ask, channel, eventually, testGateway } from '../support/test-gateway.ts';
import { StoreError } from '../../src/store/store-error.ts';
import type { Store } from '../../src/store/store.ts';

const frames = GOOD.messages.map((frame) => chunk(frame).toString());
const whole = `${STREAM_HEAD}${frames.join('')}0\r\n\r\n`;

test('F36: a price that changes in mid-stream is that of the next request; one that goes away refuses it', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => void socket.write(STREAM_HEAD + frames.slice(0, 4).join('')));
  t.after(() => upstream.close());
  const file = (model: object): object => ({ channels: [channel(upstream.url)], models: { m: model } });
  await using gateway = await testGateway(file({ price: { input: '1', output: '2' } }));
  gateway.store.walletNanos = 10n ** 12n;
  const open = await gateway.post('/v1/messages', ask({ stream: true }));
  gateway.configure(file({ price: { input: '100', output: '200' } }));
  const [first] = upstream.requests;
  first?.socket.write(`${frames.slice(4).join('')}0\r\n\r\n`);
  assert.match(await open.text(), /message_stop/);
  await eventually(() => gateway.store.settled.length === 1);
  assert.equal(gateway.store.settled[0]?.charge?.total, 17_000n, '7 tokens in and 5 out, at the price of its beginning');
  upstream.answer = ({ socket }) => void socket.write(whole);
  await (await gateway.post('/v1/messages', ask({ stream: true }))).text();
  await eventually(() => gateway.store.settled.length === 2);
  assert.equal(gateway.store.settled[1]?.charge?.total, 1_700_000n);
  gateway.configure(file({}));
  const refused = await gateway.post('/v1/messages', ask({ stream: true }));
  assert.equal(refused.status, 403);
  assert.match(await refused.text(), /model_pricing_required/);
  assert.equal(upstream.requests.length, 2);
});

test('F41: code that throws before an answer costs that request a 500, and no other anything', async () => {
  await using r = await rig();
  r.answer = ({ socket }) => void socket.write(whole);
  const { admission } = r.gateway.store;
  const { admit } = admission;
  let calls = 0;
  Object.assign(admission, {
    admit: (...args: Parameters<typeof admit>) => {
      calls += 1;
      if (calls % 2 === 0) throw new TypeError('planted at http://10.0.0.1/secret');
      return admit.apply(admission, args);
    },
  });
  const answers = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const response = await r.gateway.post('/v1/messages', bodyOf('messages', 'messages', true));
      return { status: response.status, text: await response.text() };
    }),
  );
  const good = answers.filter(({ status }) => status === 200);
  assert.equal(good.length, 5);
  for (const { text } of good) assert.equal(endingOf('messages', text), 'success');
  for (const { status, text } of answers.filter((answer) => !good.includes(answer))) {
    assert.equal(status, 500);
    assert.match(text, /internal_error/);
    assert.doesNotMatch(text, /planted|secret/);
  }
  assert.match(r.gateway.logLines.join(''), /planted/);
  await r.quiet(5);
});

/** Every encoder throws at the fourth step of every second stream; `speechless`: and at the words of that, too. */
function breaking(how: 'speaking' | 'speechless' = 'speaking'): CodecSet {
  let streams = 0;
  return {
    ...codecs,
    client(dialect) {
      const real = codecs.client(dialect);
      return {
        ...real,
        encodeEvents(context) {
          const stage = real.encodeEvents(context);
          streams += 1;
          const breaks = streams % 2 === 0;
          let steps = 0;
          return {
            get ended() {
              return stage.ended;
            },
            push(step, out) {
              steps += 1;
              if (breaks && steps === 4) throw new RangeError('planted');
              stage.push(step, out);
            },
            end: (out) => stage.end(out),
            fail(failure, out) {
              if (how === 'speechless') throw new RangeError('planted');
              stage.fail(failure, out);
            },
            failInstead: (failure, out) => stage.failInstead(failure, out),
          };
        },
      };
    },
  };
}

test('F41: code that throws in mid-stream ends that stream with its error, settles it, and no other is touched', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => void socket.write(whole));
  t.after(() => upstream.close());
  const file = { channels: [channel(upstream.url)], models: { m: { price: { input: '1', output: '2' } } } };
  await using gateway = await testGateway(file, { codecs: breaking() });
  gateway.store.walletNanos = 10n ** 12n;
  const texts = await Promise.all(
    Array.from({ length: 8 }, async () => await (await gateway.post('/v1/messages', ask({ stream: true }))).text()),
  );
  const endings = texts.map((text) => endingOf('messages', text));
  assert.equal(endings.filter((ending) => ending === 'success').length, 4);
  assert.equal(endings.filter((ending) => ending === 'failure').length, 4);
  await eventually(() => gateway.store.settled.length === 8);
  assert.equal(gateway.store.settled.filter(({ errorCode }) => errorCode === 'internal_error').length, 4);
  assert.equal(gateway.store.held.size, 0);
  await eventually(() => upstream.sockets.size <= 8);
});

test('an encoder that cannot even say that it failed: its dialect does, the connection is cut, and what it asked for is settled', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => {
    socket.write(STREAM_HEAD + frames.slice(0, 3).join(''));
    setTimeout(() => socket.end(frames.slice(3).join('')), 30);
  });
  t.after(() => upstream.close());
  const file = { channels: [channel(upstream.url)], models: { m: { price: { input: '1', output: '2' } } } };
  const bodies: Readonly<Record<string, readonly [path: string, body: object, words: RegExp]>> = {
    chat: ['/v1/chat/completions', { messages: [] }, /\n\ndata: \{"error":\{[^\n]*"code":"internal_error"\}\}\n\n$/],
    responses: ['/v1/responses', { input: 'hi' }, /\n\nevent: error\ndata: \{"type":"error","code":"internal_error"[^\n]*\n\n$/],
    messages: ['/v1/messages', { max_tokens: 9, messages: [] }, /\n\nevent: error\ndata: [^\n]*"code":"internal_error"\}\}\n\n$/],
    completions: ['/v1/completions', { prompt: 'hi' }, /\n\ndata: \{"error":\{[^\n]*"code":"internal_error"\}\}\n\n$/],
  };
  for (const [dialect, [path, body, words]] of Object.entries(bodies)) {
    await using gateway = await testGateway(file, { codecs: breaking('speechless') });
    const ask = async (): Promise<{ text: string; isCut: boolean }> => {
      const messages = [{ role: 'user', content: 'hi' }];
      const response = await gateway.post(path, {
        model: 'm',
        stream: true,
        ...body,
        ...('messages' in body ? { messages } : {}),
      });
      let text = '';
      try {
        for await (const bytes of response.body ?? []) text += Buffer.from(bytes).toString();
        return { text, isCut: false };
      } catch {
        return { text, isCut: true };
      }
    };
    assert.equal((await ask()).isCut, false);
    const { text, isCut } = await ask();
    assert.match(text, words, dialect);
    assert.equal(isCut, true, dialect);
    await eventually(() => gateway.store.settled.length === 2);
    assert.equal(gateway.store.settled[1]?.errorCode, 'internal_error');
    assert.equal(gateway.store.held.size, 0);
  }
});

test('F31, F39: a store that is away when the gateway stops: what is open ends well, and nothing is left that keeps the process', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => void socket.write(STREAM_HEAD + frames.slice(0, 4).join('')));
  t.after(() => upstream.close());
  const file = {
    channels: [channel(upstream.url)],
    models: { m: { price: { input: '1', output: '2' } } },
    operations: { port: 0 },
  };
  await using gateway = await testGateway(file);
  const { store, running } = gateway;
  store.walletNanos = 10n ** 12n;
  const away = () => Promise.reject(new StoreError('unavailable', 'the database is away'));
  let isHeld = false;
  const acquire = async () => {
    isHeld = true;
    return { ok: true, value: { name: 'video_worker', holder: 'h', token: 1, expiresAtMs: 0 } };
  };
  const failures = () => gateway.logLines.filter((line) => line.includes('"video worker"')).length;
  let asked = 0;
  const refuse = () => {
    asked += 1;
    return away();
  };
  Object.assign(store, { leases: { acquire: refuse } });
  await eventually(() => asked >= 3);
  assert.equal(failures(), 1, 'a store that stays away is said once');
  Object.assign(store, {
    leases: { acquire, renew: away, release: away },
    videos: { loseAbandoned: async () => [], due: async () => [] },
  });
  const open = await gateway.post('/v1/messages', ask({ stream: true }));
  await eventually(() => isHeld);
  const { flush } = store.settlements;
  store.settlements.flush = away;
  let isOver = false;
  const stopped = running.stop().then(
    () => undefined,
    (error: unknown) => error,
  );
  void stopped.then(() => {
    isOver = true;
  });
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(isOver, false, 'a stream is open');
  upstream.requests[0]?.socket.write(`${frames.slice(4).join('')}0\r\n\r\n`);
  assert.match(await open.text(), /message_stop/);
  assert.ok((await stopped) instanceof StoreError, 'rows that could not be written are told');
  assert.equal(store.settled.length, 1);
  await assert.rejects(fetch(`http://127.0.0.1:${running.operationsPort}/healthz`));
  assert.ok(gateway.logLines.some((line) => line.includes('lease')));
  store.settlements.flush = flush;
});

test('F31: refusals while the store is unwell have no row: nothing is queued in memory that costs nothing', async () => {
  await using gateway = await testGateway({ channels: [], models: {} });
  const refused = async (): Promise<number> => {
    assert.equal((await gateway.post('/v1/messages', ask({ model: 'nobody' }))).status, 404);
    return gateway.store.settled.length;
  };
  assert.equal(await refused(), 1);
  const health: Store['health'] = () => ({ healthy: false, reason: 'write_failed', message: 'the disk is full' });
  Object.assign(gateway.store, { health });
  assert.equal(await refused(), 1);
  assert.equal(gateway.logLines.filter((line) => line.includes('"refused"')).length, 2, 'each has its line in the log');
});
