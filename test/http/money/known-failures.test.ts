/** Known failures of other gateways with usage and money (U1 to U15): each through real sockets to a row of the real ledger. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { RequestLogRow } from '../../../src/store/request-log.ts';
import type { Script } from '../../../src/simulator/script.ts';
import { CLIENTS, type MoneyGateway, moneyGateway, type Owner, PRICE, sse } from '../../support/money-gateway.ts';
import { VideoGateway } from '../videos/video-gateway.ts';

type ClientName = 'chat' | 'responses' | 'messages';
// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
type Json = any;

const FUNDS = 10n ** 12n;
const HELLO = [{ type: 'text', text: 'Good morning' }] as const;

/** The usage object that a client of the dialect is shown at the end. */
function usageShown(client: ClientName, stream: boolean, text: string): Json {
  if (!stream) return JSON.parse(text).usage;
  const events: Json[] = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json));
  if (client === 'responses') return events.at(-1).response.usage;
  return events.findLast(({ usage }) => usage !== undefined && usage !== null)?.usage;
}

async function asked(
  gateway: MoneyGateway,
  owner: Owner,
  client: ClientName,
  model: string,
  stream: boolean,
  script: Script,
): Promise<{ usage: Json; row: RequestLogRow; text: string; status: number }> {
  gateway.simulator.enqueue(script);
  const before = (await gateway.store.requestLog.list({ keyId: owner.key.id, limit: 1000 })).length;
  const { path, ask } = CLIENTS[client];
  const response = await gateway.post(owner, path, ask(model, stream));
  const text = await response.text();
  const row = (await gateway.settled(owner, before + 1)).at(-1);
  assert.ok(row);
  const usage = response.status === 200 && row.status === 'success' ? usageShown(client, stream, text) : undefined;
  return { usage, row, text, status: response.status };
}

async function gatewayOf(t: TestContext, file: object = {}): Promise<{ gateway: MoneyGateway; owner: Owner }> {
  const gateway = await moneyGateway(t, file);
  return { gateway, owner: await gateway.owner(FUNDS) };
}

const dollars = (row: RequestLogRow): bigint | undefined => row.charge?.total;

test('U1: 6 input, 159 217 written to the cache and 2 745 output cost $1.06376125, whatever dialect says it to whom', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const usage = { input: 159_223, cacheWrite: 159_217, output: 2_745 };
  let spent = 0n;
  for (const model of ['messages', 'chat_completion', 'responses']) {
    for (const client of ['messages', 'chat', 'responses'] as const) {
      for (const stream of [true, false]) {
        const what = `${client} over ${model}, ${stream ? 'stream' : 'whole'}`;
        const { usage: shown, row } = await asked(gateway, owner, client, model, stream, { reply: { pieces: HELLO, usage } });
        assert.equal(dollars(row), 1_063_761_250n, what);
        spent += 1_063_761_250n;
        const { input, cacheWrite5m = 0, cacheWriteUnsplit = 0, output } = row.usage ?? {};
        assert.deepEqual([input, cacheWrite5m + cacheWriteUnsplit, output], [6, 159_217, 2_745], what);
        if (client === 'messages') {
          assert.deepEqual(
            [shown.input_tokens, shown.cache_creation_input_tokens, shown.output_tokens],
            [6, 159_217, 2_745],
            what,
          );
        } else if (client === 'chat') {
          assert.deepEqual([shown.prompt_tokens, shown.completion_tokens, shown.total_tokens], [159_223, 2_745, 161_968], what);
        } else {
          assert.deepEqual([shown.input_tokens, shown.output_tokens, shown.total_tokens], [159_223, 2_745, 161_968], what);
        }
      }
    }
  }
  assert.equal(await gateway.wallet(owner), FUNDS - spent);
});

const chatChunk = (more: object) => ({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', ...more });
const delta = (content: string, finish: string | null = null) => [{ index: 0, delta: { content }, finish_reason: finish }];
const raw = (...events: (object | string)[]) => ({
  raw: { headers: { 'content-type': 'text/event-stream' }, body: sse(...events) },
});

test('U2, F12: usage null on every chunk but the last is not usage', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const { row } = await asked(
    gateway,
    owner,
    'chat',
    'chat_completion',
    true,
    raw(
      chatChunk({ choices: delta('a'), usage: null }),
      chatChunk({ choices: delta('b', 'stop'), usage: null }),
      chatChunk({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 4, total_tokens: 14 } }),
      '[DONE]',
    ),
  );
  assert.deepEqual(row.usage, { input: 10, output: 4 });
  assert.equal(dollars(row), 10n * 5_000n + 4n * 25_000n);
});

const START = (usage: object) => ({
  type: 'message_start',
  message: {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'm',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage,
  },
});
const TEXT = [
  { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
  { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Good morning' } },
  { type: 'content_block_stop', index: 0 },
];
const STOP = (usage?: object) => [
  { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, ...(usage === undefined ? {} : { usage }) },
  { type: 'message_stop' },
];

test('U3: what message_start said of the cache survives a stream that breaks off', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const start = START({ input_tokens: 6, cache_creation_input_tokens: 1_000, cache_read_input_tokens: 500, output_tokens: 1 });
  const { row, text } = await asked(gateway, owner, 'messages', 'messages', true, raw(start, ...TEXT.slice(0, 2)));
  assert.match(text, /event: error/);
  assert.equal(row.status, 'error');
  assert.deepEqual(row.usage, { input: 6, cachedInput: 500, cacheWriteUnsplit: 1_000, output: 1 });
});

test('U3: a report that came before the first word alone knows the input at most; the rest is counted and flagged', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  for (const [usage, billed] of [
    [
      { input_tokens: 6, cache_read_input_tokens: 500, output_tokens: 1 },
      { input: 6, cachedInput: 500, output: 2 },
    ],
    [
      { input_tokens: 0, output_tokens: 1 },
      { input: 1, output: 2 },
    ],
  ] as const) {
    for (const client of ['chat', 'messages'] as const) {
      const script = raw(START(usage), ...TEXT, ...STOP());
      const { row } = await asked(gateway, owner, client, 'messages', true, script);
      assert.deepEqual([row.status, row.usage, row.charge?.flags], ['success', billed, ['estimated']], client);
    }
  }
});

test('U3: a report that leaves a part out is completed by a count, flagged; what it says stays', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  for (const [usage, billed] of [
    [{ completion_tokens: 40 }, { input: 1, output: 40 }],
    [
      { prompt_tokens: -10, completion_tokens: 40 },
      { input: 1, output: 40 },
    ],
    [{ prompt_tokens: 70 }, { input: 70, output: 2 }],
    [
      { prompt_tokens: 70, completion_tokens: 5_000_000_000_000 },
      { input: 70, output: 2 },
    ],
    [
      { prompt_tokens: 70, completion_tokens: 0 },
      { input: 70, output: 2 },
    ],
  ] as const) {
    for (const stream of [true, false]) {
      const script = stream
        ? raw(chatChunk({ choices: delta('Good morning', 'stop') }), chatChunk({ choices: [], usage }), '[DONE]')
        : {
            raw: {
              headers: { 'content-type': 'application/json' },
              body: JSON.stringify({
                ...chatChunk({ object: 'chat.completion', usage }),
                choices: [{ index: 0, message: { role: 'assistant', content: 'Good morning' }, finish_reason: 'stop' }],
              }),
            },
          };
      const { row } = await asked(gateway, owner, 'chat', 'chat_completion', stream, script);
      assert.deepEqual(row.usage, billed, JSON.stringify(usage));
      assert.ok(row.charge?.flags.includes('estimated'));
    }
  }
});

test('U4, F12: message_delta repeats and corrects the input and the cache; the last value of each field counts, nothing is summed', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const { row } = await asked(
    gateway,
    owner,
    'messages',
    'messages',
    true,
    raw(
      START({ input_tokens: 100, cache_read_input_tokens: 7, cache_creation_input_tokens: 3, output_tokens: 1 }),
      ...TEXT,
      ...STOP({ input_tokens: 110, cache_read_input_tokens: null, output_tokens: 20 }),
    ),
  );
  assert.deepEqual(row.usage, { input: 110, cachedInput: 7, cacheWriteUnsplit: 3, output: 20 });
});

test('U5: a messages client over a chat upstream reads zeros in message_start and the real figures at the end', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const script = { reply: { pieces: HELLO, usage: { input: 50, cached: 30, output: 9 } } };
  const { text, row } = await asked(gateway, owner, 'messages', 'chat_completion', true, script);
  const events: Json[] = [...text.matchAll(/^data: (\{.*)$/gm)].map(([, json = '']) => JSON.parse(json));
  const start = events.find(({ type }) => type === 'message_start').message.usage;
  assert.deepEqual([start.cache_read_input_tokens, start.cache_creation_input_tokens], [0, 0]);
  const last = events.find(({ type }) => type === 'message_delta').usage;
  assert.deepEqual([last.input_tokens, last.cache_read_input_tokens, last.output_tokens], [20, 30, 9]);
  assert.deepEqual(row.usage, { input: 20, cachedInput: 30, output: 9, serviceTier: 'default' });
});

test('U6: incomplete and failed answers that report usage are billed by it; a failed one without is free', async (t) => {
  const { gateway, owner } = await gatewayOf(t, { health: { failures: 1_000 } });
  const usage = { input: 10, output: 4 };
  for (const client of ['responses', 'chat', 'messages'] as const) {
    for (const stream of [true, false]) {
      const what = `${client}, ${stream ? 'stream' : 'whole'}`;
      const cut = await asked(gateway, owner, client, 'responses', stream, { reply: { pieces: HELLO, finish: 'length', usage } });
      assert.equal(dollars(cut.row), 150_000n, `incomplete: ${what}`);
      assert.equal(cut.row.status, 'success');
      const failed = { reply: { pieces: HELLO, finish: 'failed', usage } };
      const broken = await asked(gateway, owner, client, 'responses', stream, failed);
      assert.equal(dollars(broken.row), 150_000n, `failed with usage: ${what}`);
      assert.equal(broken.row.status, 'error');
      const free = await asked(gateway, owner, client, 'responses', stream, { reply: { ...failed.reply, usage: null } });
      assert.equal(free.row.charge, undefined, `failed without usage: ${what}`);
      assert.equal(free.row.status, 'error');
    }
  }
});

test('U7: a client that leaves pays what was said until then, estimated and flagged; the upstream is cut off', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  gateway.simulator.enqueue({
    reply: { pieces: [{ type: 'text', text: 'word '.repeat(2_000) }], usage: { input: 9, output: 2_000 } },
    pace: { ms: 5 },
  });
  const abort = new AbortController();
  const { path, ask } = CLIENTS.messages;
  const response = await gateway.post(owner, path, ask('chat_completion', true), { signal: abort.signal });
  let read = '';
  for await (const chunk of response.body ?? []) {
    read += Buffer.from(chunk).toString();
    if (read.split('text_delta').length > 5) break;
  }
  abort.abort();
  const [row] = await gateway.settled(owner, 1);
  assert.ok(row);
  assert.equal(row.clientGone, true);
  assert.equal(row.status, 'success');
  assert.ok(row.charge?.flags.includes('estimated'));
  assert.ok((row.usage?.output ?? 0) >= 5 && (row.usage?.output ?? 0) < 2_000, `${row.usage?.output} tokens`);
  assert.equal(await gateway.wallet(owner), FUNDS - (dollars(row) ?? 0n));
  assert.equal(await gateway.simulator.requests[0]?.over, 'left');
});

const geminiChunk = (text: string, more: object = {}) => ({
  candidates: [{ content: { role: 'model', parts: [{ text }] }, index: 0, ...more }],
  modelVersion: 'm',
  responseId: 'r',
});

test('U8, F12: placeholders of zeros are skipped, the final figures are billed, and an answer of zeros alone is counted', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const zeros = { promptTokenCount: 0, candidatesTokenCount: 0, totalTokenCount: 0 };
  const first = { ...geminiChunk('Good '), usageMetadata: zeros };
  const real = { promptTokenCount: 8, candidatesTokenCount: 3, thoughtsTokenCount: 5, totalTokenCount: 16 };
  const last = { ...geminiChunk('morning', { finishReason: 'STOP' }), usageMetadata: real };
  const told = await asked(gateway, owner, 'chat', 'gemini', true, raw(first, last));
  assert.deepEqual(told.row.usage, { input: 8, output: 3, reasoning: 5 });
  const never = await asked(gateway, owner, 'chat', 'gemini', true, raw(first, { ...last, usageMetadata: zeros }));
  assert.ok(never.row.charge?.flags.includes('estimated'));
  assert.equal(never.row.usage?.output, 2);
});

test('U3: a final report counts, though what it counts was only begun at the end of the stream', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const spoken = { choices: [{ index: 0, delta: { audio: { id: 'a', data: 'aGk=', transcript: 'Hi' } }, finish_reason: null }] };
  const script = raw(
    chatChunk(spoken),
    chatChunk({ choices: delta('', 'stop') }),
    chatChunk({ choices: [], usage: { prompt_tokens: 70, completion_tokens: 40 } }),
    '[DONE]',
  );
  const { row } = await asked(gateway, owner, 'chat', 'chat_completion', true, script);
  assert.deepEqual(row.usage, { input: 70, output: 40 });
  assert.deepEqual(row.charge?.flags, []);
});

test('U9: compaction passes are added to the main generation once; message passes and declined fallbacks are not', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const pass = (type: string, input: number, output: number) => ({
    type,
    input_tokens: input,
    output_tokens: output,
    cache_read_input_tokens: 0,
    cache_creation_input_tokens: 0,
  });
  const usage = {
    input_tokens: 100,
    output_tokens: 50,
    iterations: [pass('compaction', 1_000, 200), pass('fallback_message', 7_777, 777), pass('message', 100, 50)],
  };
  for (const client of ['messages', 'chat'] as const) {
    const { row } = await asked(
      gateway,
      owner,
      client,
      'messages',
      true,
      raw(START({ input_tokens: 100, output_tokens: 1 }), ...TEXT, ...STOP(usage)),
    );
    assert.deepEqual(row.usage, { input: 1_100, output: 250 }, client);
    assert.equal(dollars(row), 1_100n * 5_000n + 250n * 25_000n, client);
  }
});

test('U9: what a compaction pass wrote to the cache is billed by its lifetime', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const compaction = {
    type: 'compaction',
    input_tokens: 10,
    output_tokens: 2,
    cache_creation_input_tokens: 700,
    cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 600 },
  };
  const usage = { input_tokens: 1, output_tokens: 1, iterations: [compaction] };
  const stream = raw(START({ input_tokens: 1, output_tokens: 1 }), ...TEXT, ...STOP(usage));
  const { row } = await asked(gateway, owner, 'messages', 'messages', true, stream);
  assert.deepEqual(row.usage, { input: 11, cacheWrite5m: 100, cacheWrite1h: 600, output: 3 });
});

test('U10: overlapping cancels refund once', async (t) => {
  const videos = await VideoGateway.start(t, { video: { queueMs: 60_000 } });
  const { store } = videos;
  const owner = await store.keys.list().then((keys) => keys.find(({ name }) => name === 'alice'));
  assert.ok(owner);
  const account = await store.accounts.find('alice');
  assert.ok(account);
  const made = await store.videos.create({
    id: 'video_u10',
    principal: { key: owner, account },
    model: 'nobody-submits-this',
    requestJson: '{}',
    priceNanos: 500_000_000n,
    idempotencyKey: 'u10',
    bodyHash: 'h',
    nowMs: Date.now(),
    dueAtMs: Date.now() + 3_600_000,
  });
  assert.equal(made.ok, true);
  assert.equal(await videos.balance('alice'), account.walletNanos - 500_000_000n);
  const answers = await Promise.all(Array.from({ length: 10 }, () => videos.ask('POST', '/v1/videos/video_u10/cancel')));
  assert.deepEqual(new Set(answers.map(({ status }) => status)), new Set([200]));
  assert.equal(await videos.balance('alice'), account.walletNanos);
  assert.equal((await store.ledger.journal({ ref: 'video_u10' })).filter(({ kind }) => kind === 'refund').length, 1);
  assert.deepEqual(await store.spend.spend(owner.id, Date.now()), { total: 0n, hourly: 0n, daily: 0n, held: 0n });
  assert.deepEqual((await store.ledger.verify()).differences, []);
});

test('U11, U12, U13: a task costs what was held, once; queries that fail keep the hold; it cannot be cancelled once submitted', async (t) => {
  const videos = await VideoGateway.start(t);
  const before = await videos.balance('alice');
  const { body } = await videos.create({ model: 'ark', prompt: 'a boat', duration: 5 }, 'u11');
  assert.equal(body.billing.frozen, '0.50');
  const ended = await videos.until(body.id, 'succeeded');
  assert.deepEqual([ended.body.billing.status, ended.body.billing.charged], ['settled', '0.50']);
  const again = await Promise.all(Array.from({ length: 5 }, () => videos.ask('GET', `/v1/videos/${body.id}`)));
  assert.ok(again.every(({ body: task }) => task.billing.charged === '0.50'));
  assert.equal((await videos.ask('POST', `/v1/videos/${body.id}/cancel`)).status, 409);
  assert.equal(await videos.balance('alice'), before - 500_000_000n);
  const kinds = (await videos.store.ledger.journal({ ref: body.id })).map(({ kind }) => kind);
  assert.deepEqual(kinds, ['hold', 'settle']);
  assert.equal(videos.submissions(), 1);

  videos.simulator.enqueue({ match: ({ method }) => method === 'GET', times: 3, faults: [{ type: 'status', status: 500 }] });
  const shaky = await videos.create({ model: 'ark', prompt: 'a storm', duration: 5 }, 'u13');
  assert.equal((await videos.until(shaky.body.id, 'succeeded')).body.billing.status, 'settled');
  assert.deepEqual((await videos.store.ledger.verify()).differences, []);
});

test('U14: reasoning that was counted beside the output is billed as output', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const beside = [
    { prompt_tokens: 9, completion_tokens: 0, completion_tokens_details: { reasoning_tokens: 15_203 } },
    { prompt_tokens: 9, completion_tokens: 0, total_tokens: 15_212, completion_tokens_details: { reasoning_tokens: 15_203 } },
  ];
  for (const usage of beside) {
    const { row, usage: shown } = await asked(
      gateway,
      owner,
      'messages',
      'chat_completion',
      true,
      raw(
        chatChunk({ choices: delta('a') }),
        chatChunk({ choices: delta('b', 'stop') }),
        chatChunk({ choices: [], usage }),
        '[DONE]',
      ),
    );
    assert.equal(dollars(row), 9n * 5_000n + 15_203n * 25_000n);
    assert.equal(shown.output_tokens, 15_203);
  }
  const { data }: Json = await (await gateway.get(owner, '/v1/usage')).json();
  assert.deepEqual([data[0].output_tokens, data[0].reasoning_tokens], [30_406, 30_406], 'the day of the owner counts likewise');
});

test('U15: thinking tokens of a messages upstream are reasoning tokens to chat and responses clients, inside the output', async (t) => {
  const { gateway, owner } = await gatewayOf(t, {
    models: { messages: { price: { ...PRICE, reasoning: '30' } } },
    channels: [{ id: 'messages', type: 'messages', base_url: 'SIMULATOR', api_key: 'k', models: ['messages'] }],
  });
  const script = { reply: { pieces: HELLO, usage: { input: 10, output: 100, reasoning: 60 } } };
  for (const client of ['chat', 'responses'] as const) {
    for (const stream of [true, false]) {
      const { usage, row } = await asked(gateway, owner, client, 'messages', stream, script);
      const details = client === 'chat' ? usage.completion_tokens_details : usage.output_tokens_details;
      assert.equal(details.reasoning_tokens, 60, client);
      assert.equal(client === 'chat' ? usage.completion_tokens : usage.output_tokens, 100, client);
      assert.deepEqual(row.usage, { input: 10, output: 40, reasoning: 60, serviceTier: 'standard', geo: 'not_available' });
      assert.equal(dollars(row), 10n * 5_000n + 40n * 25_000n + 60n * 30_000n);
    }
  }
});

test('I8: a picture in a conversation is paid by its piece where the model has a price for each, whatever upstream drew it', async (t) => {
  const types = ['chat_completion', 'responses', 'gemini'];
  const { gateway, owner } = await gatewayOf(t, {
    models: Object.fromEntries(types.map((type) => [type, { price: { ...PRICE, image: '0.04' } }])),
    channels: types.map((type) => ({ id: type, type, base_url: 'SIMULATOR', api_key: 'k', models: [type] })),
  });
  const data = Buffer.from('a picture').toString('base64');
  const pieces = [...HELLO, { type: 'image', data, mimeType: 'image/png' } as const];
  const script = { reply: { pieces, usage: { input: 10, output: 100 } } };
  for (const model of types) {
    for (const client of ['chat', 'responses'] as const) {
      for (const stream of [true, false]) {
        const { row } = await asked(gateway, owner, client, model, stream, script);
        const what = `${client} over ${model}, ${stream ? 'stream' : 'whole'}`;
        assert.equal(row.usage?.images, 1, what);
        assert.equal(dollars(row), 10n * 5_000n + 100n * 25_000n + 40_000_000n, what);
      }
    }
  }
});
