/**
 * Limits by time and at once, over real sockets: who is refused when, in which shape, what the headers say, and what is given
 * back.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test, type TestContext } from 'node:test';
import { WebSocket } from 'ws';
import { durationText } from '../../../src/http/limits/headers.ts';
import type { RateLimits } from '../../../src/store/rate-limits.ts';
import { CLIENTS, type MoneyGateway, moneyGateway, type Owner, PRICE, UPSTREAM_TYPES } from '../../support/money-gateway.ts';
import { socketClient } from '../websocket/socket-client.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
type Json = any;

const RICH = 1_000_000_000_000n;
const owner = (gateway: MoneyGateway, rateLimits: RateLimits): Promise<Owner> => gateway.owner(RICH, { rateLimits });

/** An upstream whose answers wait until they are released. */
async function heldUpstream(t: TestContext) {
  const waiting: ServerResponse[] = [];
  const server = createServer((request, response) => {
    request.resume();
    waiting.push(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.closeAllConnections());
  t.after(() => void server.close());
  const message = { role: 'assistant', content: 'hi' };
  const usage = { prompt_tokens: 40, completion_tokens: 60, total_tokens: 100 };
  const body = {
    id: 'x',
    object: 'chat.completion',
    created: 1,
    model: 'm',
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage,
  };
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Resolves when so many requests wait. */
    async arrived(count: number): Promise<void> {
      while (waiting.length < count) await new Promise((resolve) => setTimeout(resolve, 2));
    },
    release(status = 200): void {
      for (const response of waiting.splice(0)) {
        response.writeHead(status, { 'content-type': 'application/json' });
        response.end(JSON.stringify(status === 200 ? body : { error: { message: 'no' } }));
      }
    },
  };
}

async function heldGateway(t: TestContext, file: object = {}) {
  const upstream = await heldUpstream(t);
  const gateway = await moneyGateway(t, {
    channels: [{ id: 'held', type: 'chat_completion', base_url: upstream.url, api_key: 'k', models: ['chat_completion'] }],
    models: { chat_completion: { price: PRICE } },
    ...file,
  });
  const { path, ask } = CLIENTS.chat;
  return { upstream, gateway, ask: (who: Owner, text = 'hi') => gateway.post(who, path, ask('chat_completion', false, text)) };
}

async function codeOf(response: Response): Promise<string> {
  const body: Json = await response.json();
  return body.error.code;
}

test('over its limit of requests a key is 429 in every dialect, whole and streamed; answers say how much is left', async (t) => {
  const gateway = await moneyGateway(t);
  gateway.simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'Good' }] }, times: 1_000 });
  for (const [client, { path, ask }] of Object.entries(CLIENTS)) {
    for (const stream of [false, true]) {
      const who = await owner(gateway, { requestsPerMinute: 2 });
      const sent = gateway.simulator.requests.length;
      for (const left of ['1', '0']) {
        const response = await gateway.post(who, path, ask('messages', stream));
        await response.text();
        assert.equal(response.status, 200, client);
        assert.equal(response.headers.get('x-ratelimit-limit-requests'), '2');
        assert.equal(response.headers.get('x-ratelimit-remaining-requests'), left);
        assert.match(response.headers.get('x-ratelimit-reset-requests') ?? '', /^(1m0s|\d+(\.\d+)?s)$/);
        assert.equal(response.headers.get('x-ratelimit-limit-tokens'), null);
        assert.equal(response.headers.has('anthropic-ratelimit-requests-limit'), client === 'messages');
      }
      const refused = await gateway.post(who, path, ask('messages', stream));
      const body: Json = await refused.json();
      assert.equal(refused.status, 429, client);
      assert.match(refused.headers.get('content-type') ?? '', /^application\/json/);
      assert.equal(body.error.code, 'rate_limit_exceeded');
      assert.equal(body.error.type, 'rate_limit_error');
      assert.match(body.error.message, /2 requests a minute for this API key. Please try again in ([12]?\d|30)(\.\d+)?s\.$/);
      const wait = Number(refused.headers.get('retry-after'));
      assert.ok(wait > 10 && wait <= 30, `${wait} s`);
      assert.equal(refused.headers.get('x-ratelimit-remaining-requests'), '0');
      assert.match(
        refused.headers.get('access-control-expose-headers') ?? '',
        /x-ratelimit-reset-tokens.*anthropic-ratelimit-tokens-reset/,
      );
      if (client === 'messages') {
        assert.equal(body.type, 'error');
        assert.equal(refused.headers.get('anthropic-ratelimit-requests-limit'), '2');
        assert.equal(refused.headers.get('anthropic-ratelimit-requests-remaining'), '0');
        const reset = refused.headers.get('anthropic-ratelimit-requests-reset') ?? '';
        assert.match(reset, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
        assert.ok(Date.parse(reset) > Date.now() + 30_000 && Date.parse(reset) < Date.now() + 62_000);
      }
      assert.equal(gateway.simulator.requests.length, sent + 2);
      await gateway.settled(who, 2);
      const [row] = await gateway.store.requestLog.list({ keyId: who.key.id, limit: 1 });
      assert.deepEqual([row?.errorCode, row?.httpStatus, row?.charge], ['rate_limit_exceeded', 429, undefined]);
    }
  }
});

test('durations are spelled as OpenAI spells them', () => {
  const all = { 0: '0s', 12: '12ms', 1000: '1s', 8640: '8.64s', 59999: '59.999s', 360000: '6m0s', 7200000: '2h0m0s' };
  for (const [ms, text] of Object.entries(all)) assert.equal(durationText(Number(ms)), text);
});

test('tokens are the estimate at admission and what was used at settlement; a bucket in debt refuses until it is paid', async (t) => {
  const { upstream, gateway, ask } = await heldGateway(t);
  const who = await owner(gateway, { tokensPerMinute: 120 });
  const first = ask(who, 'x'.repeat(80));
  await upstream.arrived(1);
  const second = ask(who, 'x'.repeat(80));
  await upstream.arrived(2);
  upstream.release();
  const [one, two] = [await first, await second];
  const left = (response: Response): number => Number(response.headers.get('x-ratelimit-remaining-tokens'));
  assert.equal(one.headers.get('x-ratelimit-limit-tokens'), '120');
  assert.ok(left(one) >= 90 && left(one) < 120, `${left(one)} after the estimate`);
  assert.ok(left(two) < left(one));
  await gateway.settled(who, 2);
  // 2 × 100 were used: 80 in debt, which two a second pay.
  const refused = await ask(who);
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get('x-ratelimit-remaining-tokens'), '0');
  assert.match(refused.headers.get('x-ratelimit-reset-tokens') ?? '', /^1m\d+(\.\d+)?s$/);
  const wait = Number(refused.headers.get('retry-after'));
  assert.ok(wait >= 20 && wait <= 42, `${wait} s`);
  assert.equal(await codeOf(refused), 'rate_limit_exceeded');
});

test('a request that is larger than the whole limit is admitted when nothing is taken, and pays for it afterwards', async (t) => {
  const { upstream, gateway, ask } = await heldGateway(t);
  const who = await owner(gateway, { tokensPerMinute: 5 });
  const first = ask(who, 'x'.repeat(4_000));
  await upstream.arrived(1);
  upstream.release();
  assert.equal((await first).status, 200);
  assert.equal((await ask(who)).status, 429);
});

test('an answer that costs nothing takes no tokens, but its request counts', async (t) => {
  const { upstream, gateway, ask } = await heldGateway(t, { dispatch: { max_attempts: 1 } });
  const who = await owner(gateway, { tokensPerMinute: 1_000, requestsPerMinute: 10 });
  const failing = ask(who, 'x'.repeat(2_000));
  await upstream.arrived(1);
  upstream.release(400);
  const failed = await failing;
  assert.equal(failed.status, 400);
  assert.ok(failed.headers.has('x-ratelimit-remaining-tokens'), 'an error says how much is left, too');
  const next = ask(who);
  await upstream.arrived(1);
  upstream.release();
  const answered = await next;
  assert.equal(answered.headers.get('x-ratelimit-remaining-requests'), '8');
  assert.ok(Number(answered.headers.get('x-ratelimit-remaining-tokens')) >= 990);
});

test('requests at once: the one too many is refused at once, and a place is free again when an answer has ended', async (t) => {
  const { upstream, gateway, ask } = await heldGateway(t);
  const who = await owner(gateway, { maxConcurrency: 2 });
  const both = [ask(who), ask(who)];
  await upstream.arrived(2);
  const refused = await ask(who);
  assert.equal(refused.status, 429);
  assert.equal(refused.headers.get('retry-after'), '1');
  assert.match(((await refused.json()) as Json).error.message, /2 requests at once for this API key/);
  upstream.release();
  for (const one of both) assert.equal((await one).status, 200);
  const next = ask(who);
  await upstream.arrived(1);
  upstream.release();
  assert.equal((await next).status, 200);
});

test('a client that sends one request after another is never too many, in any dialect', async (t) => {
  const gateway = await moneyGateway(t);
  gateway.simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'Good' }] }, times: 1_000 });
  const who = await owner(gateway, { maxConcurrency: 1 });
  for (let round = 0; round < 8; round++) {
    for (const { path, ask } of Object.values(CLIENTS)) {
      for (const stream of [true, false]) {
        const response = await gateway.post(who, path, ask('chat_completion', stream));
        assert.equal(response.status, 200, `${path} in round ${round}`);
        await response.text();
      }
    }
  }
});

test('a client that leaves gives its place back', async (t) => {
  const { upstream, gateway, ask } = await heldGateway(t);
  const who = await owner(gateway, { maxConcurrency: 1 });
  const left = new AbortController();
  const { path, ask: body } = CLIENTS.chat;
  const going = gateway.post(who, path, body('chat_completion', true), { signal: left.signal });
  await upstream.arrived(1);
  left.abort();
  await assert.rejects(going);
  for (let tries = 0; (await Promise.race([ask(who), upstream.arrived(2).then(() => undefined)])) !== undefined; tries++) {
    assert.ok(tries < 200, 'the place stays taken');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  upstream.release();
});

test('key, account, model and class must all admit; who is refused by one takes nothing of the others', async (t) => {
  const limits = { limits: { requests_per_minute: 3 } };
  const gateway = await moneyGateway(t, {
    models: { chat_completion: { price: PRICE, ...limits }, responses: { price: PRICE } },
    channels: UPSTREAM_TYPES.slice(0, 2).map((type) => ({ id: type, type, base_url: 'SIMULATOR', api_key: 'k', models: [type] })),
    classes: { gold: { limits: { requests_per_minute: 4 } }, silver: {} },
  });
  const made = await owner(gateway, { requestsPerMinute: 1 });
  const cause = (id: string) => ({ id, by: 'test' });
  const change = await gateway.store.accounts.change(
    made.account.id,
    { class: 'gold', rateLimits: { requestsPerMinute: 2 } },
    cause('a'),
  );
  assert.ok(change.ok);
  const second = await gateway.store.keys.create({ accountId: made.account.id, name: 'second' }, cause('b'));
  assert.ok(second.ok);
  const ask = (secret: string, model: string) => gateway.post(secret, CLIENTS.chat.path, CLIENTS.chat.ask(model, false));
  const refusedBy = async (response: Response): Promise<string> => {
    assert.equal(response.status, 429);
    return ((await response.json()) as Json).error.message;
  };
  // The tightest of four is told.
  const first = await ask(made.secret, 'chat_completion');
  assert.deepEqual(
    [first.status, first.headers.get('x-ratelimit-limit-requests'), first.headers.get('x-ratelimit-remaining-requests')],
    [200, '1', '0'],
  );
  for (let n = 0; n < 5; n++)
    assert.match(await refusedBy(await ask(made.secret, 'chat_completion')), /1 requests a minute for this API key/);
  // What the first key was refused took nothing of the account.
  const other = await ask(second.value.secret, 'responses');
  assert.deepEqual([other.status, other.headers.get('x-ratelimit-remaining-requests')], [200, '0']);
  assert.match(await refusedBy(await ask(second.value.secret, 'responses')), /2 requests a minute for this account/);
  // Other accounts share the class and the model.
  const golden = async (): Promise<Owner> => {
    const one = await gateway.owner(RICH);
    assert.ok((await gateway.store.accounts.change(one.account.id, { class: 'gold' }, cause(one.key.id))).ok);
    return one;
  };
  assert.equal((await ask((await golden()).secret, 'chat_completion')).status, 200);
  assert.equal((await ask((await golden()).secret, 'chat_completion')).status, 200);
  assert.match(
    await refusedBy(await ask((await golden()).secret, 'responses')),
    /4 requests a minute for accounts of this class/,
  );
  assert.match(
    await refusedBy(await ask((await gateway.owner(RICH)).secret, 'chat_completion')),
    /3 requests a minute for this model/,
  );
  const free = await ask((await gateway.owner(RICH)).secret, 'responses');
  assert.deepEqual([free.status, free.headers.get('x-ratelimit-limit-requests')], [200, null]);
});

test('what is refused for another reason comes before the limit, and takes nothing of it', async (t) => {
  const gateway = await moneyGateway(t, {
    models: { ...Object.fromEntries(UPSTREAM_TYPES.map((type) => [type, { price: PRICE }])), unpriced: {} },
    channels: UPSTREAM_TYPES.map((type) => ({ id: type, type, base_url: 'SIMULATOR', api_key: 'k', models: [type, 'unpriced'] })),
  });
  const limited = { rateLimits: { requestsPerMinute: 1, tokensPerMinute: 100_000, maxConcurrency: 1 } };
  const who = await gateway.owner(RICH, { ...limited, models: ['chat_completion', 'unpriced', 'nothing'] });
  const poor = await gateway.owner(0n, limited);
  const ask = (secret: Owner, model: string, changes: object = {}) =>
    gateway.post(secret, CLIENTS.chat.path, { ...CLIENTS.chat.ask(model, false), ...changes });
  for (let round = 0; round < 2; round++) {
    assert.equal((await ask(who, 'chat_completion', { messages: 1 })).status, 400);
    assert.equal((await ask(who, 'responses')).status, 403);
    assert.equal((await ask(who, 'unpriced')).status, 403);
    assert.equal((await ask(who, 'nothing')).status, 404);
    const broke = await ask(poor, 'chat_completion');
    assert.deepEqual([broke.status, broke.headers.get('x-ratelimit-limit-requests')], [402, null]);
    // In the second round the limit is used up, and they are refused as before.
    assert.equal((await ask(who, 'chat_completion')).status, round === 0 ? 200 : 429);
  }
  await gateway.store.settlements.flush();
  assert.equal(gateway.store.admission.reserved(who.key.id), 0n);
});

test('a limit that is changed counts for the next request', async (t) => {
  const gateway = await moneyGateway(t);
  const who = await owner(gateway, { requestsPerMinute: 1 });
  const ask = () => gateway.post(who, CLIENTS.chat.path, CLIENTS.chat.ask('chat_completion', false));
  const limit = (requestsPerMinute: number | null, id: string) =>
    gateway.store.keys.change(who.key.id, { rateLimits: { requestsPerMinute } }, { id, by: 'test' });
  assert.equal((await ask()).status, 200);
  assert.equal((await ask()).status, 429);
  await limit(3, 'more');
  assert.equal((await ask()).headers.get('x-ratelimit-remaining-requests'), '1');
  await limit(null, 'none');
  const free = await ask();
  assert.deepEqual([free.status, free.headers.get('x-ratelimit-limit-requests')], [200, null]);
});

test('embeddings, compaction, pictures and videos count; what only reads does not', async (t) => {
  const simulated = (id: string, type: string, models: readonly string[]) => ({
    id,
    type,
    base_url: 'SIMULATOR',
    api_key: 'k',
    models,
  });
  const gateway = await moneyGateway(t, {
    channels: [
      simulated('text', 'responses', ['responses']),
      simulated('vectors', 'chat_completion', ['vectors']),
      simulated('pictures', 'openai_image', ['pictures']),
      simulated('films', 'ark_video', ['films']),
    ],
    models: {
      responses: { price: PRICE },
      vectors: { kind: 'embedding', price: { input: '1' } },
      pictures: { kind: 'image', price: { image: '0.01' } },
      films: { kind: 'video', price: { video: '0.01' } },
    },
  });
  const requests: Record<
    string,
    readonly [path: string, body: object, status: number, taken: number, headers?: Record<string, string>]
  > = {
    embeddings: ['/v1/embeddings', { model: 'vectors', input: 'hi' }, 200, 1],
    compaction: ['/v1/responses/compact', { model: 'responses', input: 'hi' }, 200, 1],
    'one picture': ['/v1/images/generations', { model: 'pictures', prompt: 'a cat' }, 200, 1],
    'three pictures': ['/v1/images/generations', { model: 'pictures', prompt: 'a cat', n: 3 }, 200, 3],
    'a video': ['/v1/videos', { model: 'films', prompt: 'a cat' }, 202, 1, { 'idempotency-key': 'one' }],
  };
  for (const [what, [path, body, status, taken, headers = {}]] of Object.entries(requests)) {
    const who = await owner(gateway, { requestsPerMinute: taken, maxConcurrency: 1 });
    for (const read of ['/v1/models', '/user/balance', '/v1/usage', '/v1/videos'])
      assert.equal((await gateway.get(who, read)).status, 200);
    const served = await gateway.post(who, path, body, { headers });
    assert.equal(served.status, status, `${what}: ${await served.text()}`);
    assert.equal(served.headers.get('x-ratelimit-remaining-requests'), '0', what);
    const refused = await gateway.post(who, path, body, { headers: { ...headers, 'idempotency-key': 'another' } });
    assert.deepEqual([refused.status, await codeOf(refused)], [429, 'rate_limit_exceeded'], what);
    // A repetition makes nothing.
    if (status === 202) assert.equal((await gateway.post(who, path, body, { headers })).status, 202);
  }
});

test('a turn of a WebSocket that is over the limit is an error event with the status, and the connection goes on', async (t) => {
  const gateway = await moneyGateway(t);
  const who = await owner(gateway, { requestsPerMinute: 1, maxConcurrency: 1 });
  const ws = new WebSocket(`${gateway.url.replace('http', 'ws')}/v1/responses`, {
    headers: { authorization: `Bearer ${who.secret}` },
  });
  const client = socketClient(ws);
  await once(ws, 'open');
  t.after(() => ws.terminate());
  const create = { type: 'response.create', model: 'responses', input: 'hi' };
  assert.equal((await client.turn(create)).at(-1)?.type, 'response.completed');
  for (let n = 0; n < 2; n++) {
    const refused: Json = (await client.turn(create)).at(-1);
    assert.deepEqual([refused.type, refused.status, refused.error.code], ['error', 429, 'rate_limit_exceeded']);
    assert.ok(Number(refused.headers['retry-after']) > 30);
    assert.equal(refused.headers['x-ratelimit-remaining-requests'], '0');
  }
  await gateway.store.keys.change(who.key.id, { rateLimits: { requestsPerMinute: 5 } }, { id: 'more', by: 'test' });
  assert.equal((await client.turn(create)).at(-1)?.type, 'response.completed');
});
