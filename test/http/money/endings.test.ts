/** Every way in which an exchange can end settles it once: through real sockets to the real ledger. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Script } from '../../../src/simulator/script.ts';
import type { RequestLogRow } from '../../../src/store/request-log.ts';
import { CLIENTS, FORMS, type MoneyGateway, moneyGateway, type Owner, PRICE, sse } from '../../support/money-gateway.ts';
import { fakeUpstream, wholeMessage } from '../../support/fake-upstream.ts';
import { testGateway } from '../../support/test-gateway.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
type Json = any;

const FUNDS = 10n ** 12n;
const HELLO = [{ type: 'text', text: 'Good morning to you' }] as const;
const USAGE = { input: 11, output: 4 };
const CHARGE = 11n * 5_000n + 4n * 25_000n;
const lenient = { health: { failures: 1_000 } };

async function gatewayOf(t: TestContext, more: object = {}): Promise<{ gateway: MoneyGateway; owner: Owner }> {
  const gateway = await moneyGateway(t, { ...lenient, ...more });
  return { gateway, owner: await gateway.owner(FUNDS) };
}

interface Ended {
  readonly row: RequestLogRow;
  readonly status: number;
  readonly text: string;
}

async function ended(
  gateway: MoneyGateway,
  client: keyof typeof CLIENTS,
  model: string,
  stream: boolean,
  script: Script,
): Promise<Ended> {
  const owner = await gateway.owner(FUNDS);
  gateway.simulator.enqueue(script);
  const { path, ask } = CLIENTS[client];
  const response = await gateway.post(owner, path, ask(model, stream, 'say good morning'));
  const text = await response.text().catch((error: unknown) => String(error));
  const [row] = await gateway.settled(owner, 1);
  assert.ok(row);
  // Once: one journal row of the exchange where it cost something, none where it was free, and the wallet says the same.
  const journal = await gateway.store.ledger.journal({ ref: row.exchangeId });
  const total = row.charge?.total ?? 0n;
  assert.deepEqual(
    journal.map(({ kind, nanos }) => [kind, nanos]),
    total > 0n ? [['charge', total]] : [],
  );
  assert.equal(await gateway.wallet(owner), FUNDS - total);
  assert.equal(gateway.store.admission.reserved(owner.key.id), 0n, 'the reservation is released');
  return { row, status: response.status, text };
}

for (const stream of [true, false]) {
  const form = stream ? 'stream' : 'whole';

  test(`a success is charged by its report, in every pair of dialects (${form})`, async (t) => {
    const { gateway } = await gatewayOf(t);
    for (const client of Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]) {
      for (const { name: model } of FORMS) {
        const { row } = await ended(gateway, client, model, stream, { reply: { pieces: HELLO, usage: USAGE } });
        assert.equal(row.charge?.total, CHARGE, `${client} over ${model}`);
        assert.deepEqual(row.charge?.flags, [], `${client} over ${model}`);
        assert.equal(typeof row.firstByteMs, 'number', `${client} over ${model}`);
      }
    }
  });

  test(`a success without a report is counted with a tokenizer and flagged (${form})`, async (t) => {
    const { gateway } = await gatewayOf(t);
    for (const { name: model, type } of FORMS) {
      const { row, status } = await ended(gateway, 'chat', model, stream, { reply: { pieces: HELLO, usage: null } });
      assert.equal(status, 200);
      if (type === 'messages' && !stream) continue;
      assert.ok(row.charge?.flags.includes('estimated'), model);
      assert.equal(row.usage?.output, 4, `${model}: "Good morning to you" is four tokens`);
      assert.equal(row.usage?.input, 3, `${model}: "say good morning" is three`);
    }
  });

  test(`F1, F2: what fails without a report is free: a status, a cut, garbage, an error event, an answer that is none (${form})`, async (t) => {
    const { gateway } = await gatewayOf(t);
    const faults: Record<string, Script> = {
      'status 500': { faults: [{ type: 'status', status: 500 }] },
      'status 400': { faults: [{ type: 'status', status: 400 }] },
      html: { faults: [{ type: 'html' }] },
      cut: { reply: { pieces: HELLO, usage: USAGE }, faults: [{ type: 'cut', at: stream ? 2 : 0 }] },
      garbage: { reply: { pieces: HELLO, usage: USAGE }, faults: [{ type: 'garbage', at: stream ? 2 : 0, text: 'data: {\n\n' }] },
    };
    // Gemini reports what was used with each chunk: its cut stream has a report.
    const silent = FORMS.filter(({ type, cloud }) => type === 'chat_completion' || (cloud !== undefined && type !== 'gemini'));
    for (const [name, script] of Object.entries(faults)) {
      for (const { name: model } of silent) {
        const { row } = await ended(gateway, 'chat', model, stream, script);
        assert.equal(row.status, 'error', `${name} over ${model}`);
        assert.equal(row.charge?.total ?? 0n, 0n, `${name} over ${model}`);
      }
    }
  });

  test(`an answer that the gateway itself cannot say is an error to the client and is paid for (${form})`, async (t) => {
    const { gateway } = await gatewayOf(t);
    const pieces = [...HELLO, { type: 'image', data: Buffer.from('not really an image').toString('base64') } as const];
    const { row, status, text } = await ended(gateway, 'messages', 'responses', stream, { reply: { pieces, usage: USAGE } });
    assert.equal(status, stream ? 200 : 502);
    assert.match(text, /response_not_representable/);
    assert.equal(row.errorCode, 'response_not_representable');
    assert.ok((row.charge?.total ?? 0n) > 0n);
    assert.equal(row.charge?.flags.includes('estimated'), stream, 'a stream is refused before its report comes');
    const uncounted = await ended(gateway, 'messages', 'responses', stream, { reply: { pieces, usage: null } });
    assert.equal(uncounted.row.errorCode, 'response_not_representable');
    assert.ok(
      (uncounted.row.charge?.total ?? 0n) > 0n && uncounted.row.charge?.flags.includes('estimated'),
      'without a report, too',
    );
  });
}

test('a stream that the gateway cuts for its length was made and said until then: it is paid for', async (t) => {
  const gateway = await moneyGateway(t, { ...lenient, limits: { answer_bytes: 20_000 } });
  const reply = { pieces: [{ type: 'text', text: 'good morning '.repeat(2_000) }], usage: USAGE } as const;
  for (const { name: model } of FORMS) {
    const { row, text } = await ended(gateway, 'messages', model, true, { reply });
    assert.match(text, /morning.*event: error/s, model);
    assert.equal(row.status, 'error');
    assert.ok((row.usage?.output ?? 0) > 20 && row.charge?.flags.includes('estimated'), model);
  }
});

test('an answer that is too long for the gateway closes no Channel', async (t) => {
  const long = (count: number) =>
    JSON.stringify({ data: Array.from({ length: count }, (_, index) => ({ index, embedding: [1] })) });
  const upstream = await fakeUpstream(({ socket, path }) => {
    const body = path.endsWith('/embeddings') ? long(2_000) : JSON.stringify(wholeMessage('good morning '.repeat(5_000)));
    socket.write(`HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
  });
  t.after(() => upstream.close());
  const channels = ['one', 'two'].flatMap((id) => [
    { id, type: 'messages', base_url: upstream.url, api_key: 'sk-upstream', models: ['m'] },
    { id: `${id}-vectors`, type: 'chat_completion', base_url: upstream.url, api_key: 'sk-upstream', models: ['v'] },
  ]);
  const price = { input: '1', output: '2' };
  const models = { m: { price }, v: { kind: 'embedding', price } };
  await using gateway = await testGateway({ channels, models, limits: { answer_bytes: 20_000 }, health: { failures: 1 } });
  const asked: readonly (readonly [string, object])[] = [
    ['/v1/messages', { model: 'm', max_tokens: 500, messages: [{ role: 'user', content: 'say good morning' }] }],
    ['/v1/embeddings', { model: 'v', input: Array.from({ length: 2_000 }, () => 'good morning') }],
  ];
  for (const [path, body] of asked) {
    for (let times = 1; times <= 3; times += 1) {
      const before = upstream.requests.length;
      assert.equal((await gateway.post(path, body)).status, 502, `${path}, the ${times}th`);
      assert.equal(upstream.requests.length - before, 2, path);
      const row = gateway.store.settled.at(-1);
      assert.equal(row?.attempts.length, 2, path);
      assert.equal(gateway.store.held.size, 0);
    }
  }
});

test('F16: a client that leaves before the first byte costs nothing that is not known; the upstream is cut off', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  for (const stream of [true, false]) {
    gateway.simulator.enqueue({ reply: { pieces: HELLO, usage: USAGE }, pace: { firstMs: 10_000 } });
    const abort = new AbortController();
    const { path, ask } = CLIENTS.chat;
    const asking = gateway.post(owner, path, ask('chat_completion', stream), { signal: abort.signal });
    const before = gateway.simulator.requests.length;
    while (gateway.simulator.requests.length === before) await new Promise((resolve) => setTimeout(resolve, 5));
    abort.abort();
    await assert.rejects(asking);
    const rows = await gateway.settled(owner, stream ? 1 : 2);
    const row = rows.at(-1);
    assert.deepEqual([row?.clientGone, row?.charge?.total ?? 0n, row?.status], [true, 0n, 'success']);
    assert.equal(await gateway.simulator.requests.at(-1)?.over, 'left');
  }
  assert.equal(await gateway.wallet(owner), FUNDS);
});

test('a client that leaves after the report came pays the report', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  gateway.simulator.enqueue({
    reply: { pieces: HELLO, usage: { ...USAGE, cached: 5 } },
    faults: [{ type: 'stall', at: 6, ms: 5_000 }],
  });
  const abort = new AbortController();
  const { path, ask } = CLIENTS.messages;
  const response = await gateway.post(owner, path, ask('messages', true), { signal: abort.signal });
  await response.body?.getReader().read();
  abort.abort();
  const [row] = await gateway.settled(owner, 1);
  assert.equal(row?.usage?.cachedInput, 5, 'the input is known from message_start, the cache with it');
  assert.ok(row?.charge?.flags.includes('estimated'), 'the output is not known yet');
  assert.equal(await gateway.wallet(owner), FUNDS - (row?.charge?.total ?? 0n));
});

for (const model of ['chat_completion', 'messages'] as const) {
  test(`a client that leaves between the last report and the end pays that report, not its words alone (${model})`, async (t) => {
    const { gateway, owner } = await gatewayOf(t);
    // The last frame, `message_stop` or `[DONE]`, never comes; all others come in one read, so that whoever reads words has the
    // report behind it.
    const at = model === 'messages' ? 9 : 7;
    const reply = { pieces: HELLO, usage: { input: 11, output: 400 } };
    gateway.simulator.enqueue({ reply, pace: { cut: 'packet' }, faults: [{ type: 'stall', at }] });
    const abort = new AbortController();
    const { path, ask } = CLIENTS.chat;
    const response = await gateway.post(owner, path, ask(model, true), { signal: abort.signal });
    await response.body?.getReader().read();
    abort.abort();
    const [row] = await gateway.settled(owner, 1);
    assert.equal(row?.clientGone, true);
    assert.equal(row?.charge?.total, 11n * 5_000n + 400n * 25_000n);
  });
}

test('an unlimited account is journaled against the house and keeps its wallet; a sub-account pays alone', async (t) => {
  const gateway = await moneyGateway(t, lenient);
  const free = await gateway.owner(0n, {}, { unlimited: true });
  const sub = await gateway.owner(FUNDS, { subAccount: true });
  const moved = await gateway.store.keys.transfer(sub.key.id, 1_000_000n, { id: 'move', by: 'test' });
  assert.equal(moved.ok, true);
  for (const owner of [free, sub]) {
    gateway.simulator.enqueue({ reply: { pieces: HELLO, usage: USAGE } });
    assert.equal((await gateway.post(owner, CLIENTS.chat.path, CLIENTS.chat.ask('chat_completion', false))).status, 200);
    const [row] = await gateway.settled(owner, 1);
    assert.equal(row?.charge?.total, CHARGE);
  }
  assert.equal(await gateway.wallet(free), 0n);
  assert.equal(await gateway.wallet(sub), FUNDS - 1_000_000n);
  assert.equal((await gateway.store.keys.balance(sub.key.id))?.nanos, 1_000_000n - CHARGE);
  const [house] = await gateway.store.ledger
    .journal({ accountId: free.account.id, limit: 100_000 })
    .then((rows) => rows.slice(-1));
  assert.equal(house?.from, `house:${free.account.id}`);
});

test('the balance endpoints and the usage by day follow a charge at once, in both formats', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const poor = await gateway.owner(0n);
  const rich = await gateway.owner(0n, {}, { unlimited: true });
  gateway.simulator.enqueue({ reply: { pieces: HELLO, usage: USAGE } });
  await (await gateway.post(owner, CLIENTS.chat.path, CLIENTS.chat.ask('chat_completion', false))).text();
  const get = async (who: Owner, path: string): Promise<Json> => (await gateway.get(who, path)).json();
  assert.deepEqual(await get(owner, '/user/balance'), {
    is_available: true,
    balance_infos: [{ currency: 'USD', total_balance: '999.999845', granted_balance: '0.00', topped_up_balance: '999.999845' }],
  });
  assert.deepEqual(await get(owner, '/api/codex/usage'), {
    plan_type: 'unknown',
    rate_limit: null,
    credits: { has_credits: true, unlimited: false, balance: '999.999845' },
  });
  assert.deepEqual((await get(poor, '/api/codex/usage')).credits, { has_credits: false, unlimited: false, balance: '0.00' });
  assert.equal((await get(poor, '/user/balance')).is_available, false);
  assert.equal((await get(rich, '/api/codex/usage')).credits.unlimited, true);
  const today = new Date().toISOString().slice(0, 10);
  const { data } = await get(owner, `/v1/usage?from=${today}`);
  assert.deepEqual(
    data.map(({ requests, input_tokens, output_tokens, charged }: Json) => [requests, input_tokens, output_tokens, charged]),
    [[1, 11, 4, '0.000155']],
  );
  assert.deepEqual((await get(poor, '/v1/usage')).data, []);
  assert.equal((await gateway.get(owner, '/v1/usage?from=2026-02-30')).status, 400);
  assert.equal((await gateway.get(owner, '/v1/usage?note=why?&from=2026-02-30')).status, 400, 'a query may hold a question mark');

  await (await gateway.post(owner, CLIENTS.chat.path, CLIENTS.chat.ask('no-such-model', false))).text();
  const grouped = async (query: string): Promise<Json[]> => (await get(owner, `/v1/usage?${query}`)).data;
  const said = ({ requests, errors, input_tokens, output_tokens, charged }: Json) =>
    [requests, errors, input_tokens, output_tokens, charged].join(' ');
  const [hour, ...otherHours] = await grouped('group_by=hour');
  assert.match(hour?.hour, /^\d{4}-\d\d-\d\dT\d\d:00:00Z$/);
  assert.equal(otherHours.length <= 1, true, 'one hour, or two where it turned meanwhile');
  const byModel = await grouped(`group_by=model&from=${today}`);
  assert.deepEqual(
    byModel.map((row) => [row.model, said(row)]),
    [
      ['', '1 1 0 0 0.00'],
      ['chat_completion', '1 0 11 4 0.000155'],
    ],
  );
  const [dayOfModel] = await grouped('group_by=day,model&model=chat_completion');
  assert.deepEqual([dayOfModel?.day, dayOfModel?.model, said(dayOfModel)], [today, 'chat_completion', '1 0 11 4 0.000155']);
  assert.deepEqual(await grouped('model=other'), []);
  assert.deepEqual(await grouped('group_by=model&to=2026-01-01'), []);
  assert.deepEqual((await get(poor, '/v1/usage?group_by=model')).data, []);
  for (const [query, param] of [
    ['group_by=week', 'group_by'],
    ['group_by=', 'group_by'],
    ['group_by=hour,day', 'group_by'],
    ['group_by=model,model', 'group_by'],
    ['group_by=hour&from=2026-01-01', 'from'],
    ['group_by=model&to=yesterday', 'to'],
  ] as const) {
    const refused = await gateway.get(owner, `/v1/usage?${query}`);
    assert.deepEqual([refused.status, ((await refused.json()) as Json).error.param], [400, param], query);
  }
});

test('settlement delays no byte: an answer ends though the store never writes', async () => {
  const { startSimulator } = await import('../../../src/simulator/simulator.ts');
  const simulator = await startSimulator();
  try {
    await using gateway = await testGateway({
      channels: [{ id: 'one', type: 'messages', base_url: simulator.url, api_key: 'k', models: ['m'] }],
      models: { m: { price: { input: '1', output: '2' } } },
    });
    const never = <T>() => new Promise<T>(() => undefined);
    gateway.store.settlements.open = never;
    gateway.store.settlements.settle = never;
    for (const stream of [true, false]) {
      simulator.enqueue({ reply: { pieces: HELLO, usage: USAGE } });
      const { path, ask } = CLIENTS.messages;
      assert.match(await (await gateway.post(path, ask('m', stream))).text(), stream ? /message_stop/ : /end_turn/);
    }
  } finally {
    await simulator.close();
  }
});

const REPORTED = 7n * 5_000n + 3n * 25_000n;
const failedResponse = {
  id: 'resp_1',
  object: 'response',
  status: 'failed',
  model: 'm',
  output: [],
  error: { code: 'server_error', message: 'The model broke.' },
  usage: { input_tokens: 7, output_tokens: 3, total_tokens: 10 },
};
const failure = (stream: boolean): Script => ({
  match: ({ path }) => path.endsWith('/responses'),
  raw: stream
    ? {
        headers: { 'content-type': 'text/event-stream' },
        body: sse({ type: 'response.failed', sequence_number: 0, response: failedResponse }),
      }
    : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(failedResponse) },
});

for (const stream of [true, false]) {
  const form = stream ? 'stream' : 'whole';

  test(`with charge_failures "never" such a failure is free, and its attempt still says what it used (${form})`, async (t) => {
    const { gateway } = await gatewayOf(t, { ledger: { charge_failures: 'never' } });
    const { row } = await ended(gateway, 'chat', 'responses', stream, failure(stream));
    assert.equal(row.charge, undefined);
    assert.deepEqual(row.attempts.at(-1)?.usage, { input: 7, output: 3 });
    // What came after the first words is not such a failure.
    const later = await ended(gateway, 'chat', 'responses', stream, { reply: { pieces: HELLO, usage: USAGE } });
    assert.equal(later.row.charge?.total, CHARGE);
  });

  test(`a failure that says what it used, before a word, costs that where nothing else answers (${form})`, async (t) => {
    const { gateway } = await gatewayOf(t);
    for (const client of Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]) {
      const { row, status } = await ended(gateway, client, 'responses', stream, failure(stream));
      assert.deepEqual([status, row.status, row.charge?.total], [502, 'error', REPORTED], client);
      assert.deepEqual(row.attempts[0]?.usage, { input: 7, output: 3 });
    }
  });

  test(`where another Channel answers its answer is what is paid; the log keeps what the first one used (${form})`, async (t) => {
    const gateway = await moneyGateway(t, {
      ...lenient,
      models: { m: { price: PRICE } },
      channels: [
        { id: 'first', type: 'responses', base_url: 'SIMULATOR', api_key: 'k', models: ['m'], priority: 0 },
        { id: 'second', type: 'messages', base_url: 'SIMULATOR', api_key: 'k', models: ['m'], priority: 1 },
      ],
    });
    gateway.simulator.enqueue({ match: ({ path }) => path.endsWith('/messages'), reply: { pieces: HELLO, usage: USAGE } });
    const { row, status } = await ended(gateway, 'chat', 'm', stream, failure(stream));
    assert.deepEqual([status, row.status, row.charge?.total], [200, 'success', CHARGE]);
    assert.deepEqual(
      row.attempts.map(({ channelId, usage }) => [channelId, usage]),
      [
        ['first', { input: 7, output: 3 }],
        ['second', undefined],
      ],
    );
  });
}

/** Words, and then the end that `status` is. */
function brokenAnswer(stream: boolean, status: 'failed' | 'cancelled'): Script {
  const part = { type: 'output_text', text: 'half an', annotations: [] };
  const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'incomplete', content: [part] };
  const error = status === 'failed' ? failedResponse.error : null;
  const response = { ...failedResponse, status, error, output: [item] };
  if (!stream) return { raw: { headers: { 'content-type': 'application/json' }, body: JSON.stringify(response) } };
  const place = { item_id: 'msg_1', output_index: 0, content_index: 0 };
  const events = [
    { type: 'response.created', response: { ...response, status: 'in_progress', error: null, output: [], usage: null } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', ...place, delta: 'half an' },
    { type: `response.${status}`, response },
  ];
  const body = sse(...events.map((event, index) => ({ ...event, sequence_number: index })));
  return { raw: { headers: { 'content-type': 'text/event-stream' }, body } };
}

for (const stream of [true, false]) {
  for (const status of ['failed', 'cancelled'] as const) {
    test(`an answer that ends as ${status} after words: an error in every dialect, paid by its report, and a fault of its Channel (${stream ? 'stream' : 'whole'})`, async (t) => {
      for (const client of Object.keys(CLIENTS) as (keyof typeof CLIENTS)[]) {
        const gateway = await moneyGateway(t, { health: { failures: 1 } });
        const said = await ended(gateway, client, 'responses', stream, brokenAnswer(stream, status));
        assert.deepEqual([said.row.status, said.row.charge?.total, said.row.charge?.flags], ['error', REPORTED, []], client);
        const [attempt] = said.row.attempts;
        assert.notEqual(attempt?.errorCode, undefined, 'an attempt that failed');
        assert.doesNotMatch(said.text, /finish_reason":"|response\.completed|message_stop|"stop_reason":"/, client);
        // Responses clients are shown what there is of it (spec, conversion rule 8).
        const isShown = client === 'responses';
        assert.equal(said.status, stream || isShown ? 200 : 502, client);
        if (isShown) assert.match(said.text, /"status":"failed".*half an/s);
        if (stream) assert.match(said.text, /half an/, client);
        const { path, ask } = CLIENTS[client];
        const next = await gateway.post(await gateway.owner(FUNDS), path, ask('responses', stream, 'again'));
        assert.match(await next.text(), /no_healthy_upstream/, client);
      }
    });
  }
}

const wrapperChunks = [
  { delta: { role: 'assistant', content: null } },
  {
    delta: {
      tool_calls: [
        {
          index: 0,
          id: 'c1',
          type: 'function',
          function: { name: 'parallel', arguments: '{"tool_uses":[{"recipient_name":"functions.f","parameters":{"q":1}}]}' },
        },
      ],
    },
  },
  { delta: {}, finish_reason: 'tool_calls' },
];
const chunkOf = (choice: object): object => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'm',
  choices: [choice],
});

test('R20: calls out of a wrapper are paid by the report, which came while the wrapper was held back', async (t) => {
  const { gateway, owner } = await gatewayOf(t);
  const usage = { prompt_tokens: 7, completion_tokens: 3, total_tokens: 10 };
  const chunks = wrapperChunks.map((choice) => chunkOf({ index: 0, ...choice }));
  gateway.simulator.enqueue({
    raw: {
      headers: { 'content-type': 'text/event-stream' },
      body: sse(...chunks, { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [], usage }, '[DONE]'),
    },
  });
  const tools = [{ type: 'function', name: 'f', parameters: { type: 'object' } }];
  const { path, ask } = CLIENTS.responses;
  const text = await (await gateway.post(owner, path, { ...ask('chat_completion', true), tools })).text();
  assert.match(text, /response\.completed/);
  const [row] = await gateway.settled(owner, 1);
  assert.deepEqual([row?.charge?.total, row?.charge?.flags], [REPORTED, []]);
});

for (const [name, chunks] of Object.entries({
  'a finish that is a failure (U6)': [{ index: 0, finishReason: 'MALFORMED_FUNCTION_CALL' }],
  'a candidate that is not the first': [
    { index: 1, content: { role: 'model', parts: [{ text: 'one two three four five' }] } },
    { index: 1, content: { role: 'model', parts: [] }, finishReason: 'STOP' },
  ],
})) {
  test(`a gemini stream is paid by its report where that came before its end: ${name}`, async (t) => {
    const { gateway, owner } = await gatewayOf(t);
    const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 };
    const body = sse(...chunks.map((candidate) => ({ candidates: [candidate], usageMetadata })));
    gateway.simulator.enqueue({ raw: { headers: { 'content-type': 'text/event-stream' }, body } });
    await (await gateway.post(owner, CLIENTS.chat.path, CLIENTS.chat.ask('gemini', true))).text();
    const [row] = await gateway.settled(owner, 1);
    assert.deepEqual([row?.charge?.total, row?.charge?.flags], [REPORTED, []]);
  });
}
