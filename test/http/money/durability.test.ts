/** `ledger.durability`: with `strict` the end of an answer waits until its charge is on disk; by default no byte waits for anything. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startSimulator } from '../../../src/http/simulator/simulator.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { eventually, testGateway } from '../../support/test-gateway.ts';

const messages = [{ role: 'user', content: 'hi' }];
const ASKS: Readonly<Record<string, readonly [path: string, body: object]>> = {
  'a chat stream': ['/v1/chat/completions', { model: 'm', stream: true, messages }],
  'a chat answer': ['/v1/chat/completions', { model: 'm', messages }],
  'a responses stream': ['/v1/responses', { model: 'm', stream: true, input: 'hi' }],
  'a messages stream': ['/v1/messages', { model: 'm', stream: true, max_tokens: 10, messages }],
  'an embedding': ['/v1/embeddings', { model: 'e', input: 'hi' }],
  'a picture': ['/v1/images/generations', { model: 'i', prompt: 'a hill' }],
  'a stream of a picture': ['/v1/images/generations', { model: 'i', prompt: 'a hill', stream: true }],
};

/** How a stream ends well in any dialect. */
const SUCCESS = /"finish_reason":"|response\.completed|message_stop|image_generation\.completed/;

/** What came of a body, and whether its connection was cut before its end. */
async function received(response: Response): Promise<{ readonly text: string; readonly isCut: boolean }> {
  let text = '';
  try {
    for await (const bytes of response.body ?? []) text += Buffer.from(bytes).toString();
    return { text, isCut: false };
  } catch {
    return { text, isCut: true };
  }
}

async function gatewayWith(t: TestContext, durability: string) {
  const simulator = await startSimulator({ pace: { ms: 0 } });
  t.after(() => simulator.close());
  const channel = (id: string, type: string, model: string) => ({
    id,
    type,
    base_url: simulator.url,
    api_key: 'k',
    models: [model],
  });
  const gateway = await testGateway(
    {
      ledger: { durability },
      channels: [channel('t', 'messages', 'm'), channel('e', 'chat_completion', 'e'), channel('i', 'openai_image', 'i')],
      models: {
        m: { price: { input: '1', output: '2' } },
        e: { kind: 'embedding', price: { input: '1' } },
        i: { kind: 'image', price: { input: '1', output: '2' } },
      },
    },
    { level: 'error' },
  );
  return Object.assign(gateway, { simulator });
}

for (const [what, [path, body]] of Object.entries(ASKS)) {
  test(`strict: ${what} is whole only when its charge is on disk`, async (t) => {
    await using gateway = await gatewayWith(t, 'strict');
    const disk = Promise.withResolvers<void>();
    gateway.store.disk = disk.promise;
    let whole = false;
    const answer = gateway.post(path, body).then(async (response) => {
      const text = await response.text();
      whole = true;
      return { status: response.status, text };
    });
    await eventually(() => gateway.store.settled.length === 1, 'it is settled');
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(whole, false, 'the client has it all before the disk has its charge');
    disk.resolve();
    const { status, text } = await answer;
    assert.equal(status, 200, text);
    assert.doesNotMatch(text, /"error":\{/);
    const [row] = gateway.store.settled;
    assert.equal(row?.status, 'success');
    assert.equal(typeof row?.firstByteMs, 'number');
    assert.equal(gateway.store.settled.length, 1);
  });

  test(`strict: nothing of ${what} is asked upstream before its opening is on disk`, async (t) => {
    await using gateway = await gatewayWith(t, 'strict');
    const disk = Promise.withResolvers<void>();
    gateway.store.openDisk = disk.promise;
    const answer = gateway.post(path, body).then((response) => response.text());
    await eventually(() => gateway.store.opened.length === 1, 'it is opened');
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.deepEqual(gateway.simulator.requests, []);
    disk.resolve();
    assert.notEqual(await answer, '');
    assert.equal(gateway.simulator.requests.length, 1);
  });

  test(`strict: ${what} whose charge cannot be written is no success`, async (t) => {
    await using gateway = await gatewayWith(t, 'strict');
    const { settlements } = gateway.store;
    const settle = settlements.settle.bind(settlements);
    t.mock.method(settlements, 'settle', (settlement: Parameters<typeof settle>[0]) => {
      settle(settlement);
      return Promise.reject(new StoreError('disk_full', 'nothing was written'));
    });
    const response = await gateway.post(path, body);
    const { text, isCut } = await received(response);
    assert.doesNotMatch(text, SUCCESS);
    const hasWords = /store_unavailable/.test(text);
    if ('stream' in body) assert.ok(isCut || (hasWords && /^event: error\n[\s\S]*\n\ndata: \[DONE\]\n\n$/m.test(text)), text);
    else assert.deepEqual([response.status, hasWords], [503, true], text);
    if (what === 'a stream of a picture') assert.equal(isCut, false, 'nothing was said before: there are words left');
    assert.equal(gateway.store.held.size, 0);
    assert.equal(gateway.store.settled.length, 1);
  });

  test(`by default ${what} does not wait for the disk`, async (t) => {
    await using gateway = await gatewayWith(t, 'batched');
    const disk = Promise.withResolvers<void>();
    gateway.store.disk = disk.promise;
    const response = await gateway.post(path, body);
    assert.notEqual(await response.text(), '');
    disk.resolve();
  });
}

test('strict: a request whose opening the disk refused is refused, and reserves nothing any more', async (t) => {
  await using gateway = await gatewayWith(t, 'strict');
  for (const [what, [path, body]] of Object.entries(ASKS)) {
    gateway.store.openDisk = Promise.reject(new StoreError('disk_full', 'nothing was written'));
    // Nobody may be waiting for it yet: who opens an exchange is.
    gateway.store.openDisk.catch(() => undefined);
    const response = await gateway.post(path, body);
    // The head of that one goes out at once.
    assert.equal(response.status, what === 'a stream of a picture' ? 200 : 503, what);
    assert.match(await response.text(), /store_unavailable/, what);
    assert.deepEqual([gateway.store.held.size, gateway.simulator.requests.length], [0, 0], what);
  }
});
