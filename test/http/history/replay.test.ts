/** Continuing by `previous_response_id` over every upstream dialect, through real sockets and the simulator. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HISTORY_TTL_MS } from '../../../src/http/history/response-history.ts';
import { createFakeClock } from '../../support/fake-clock.ts';
import { type TestGateway, testGateway } from '../../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../../support/upstream-forms.ts';

const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const PRICE = { price: { input: '1', output: '2' } };
const FORMS = upstreamForms(import.meta.filename);
const UPSTREAMS = FORMS.map(({ name }) => name);

function configOf(changes: object = {}): object {
  return {
    ...formsConfig(FORMS, simulator.url),
    ...changes,
  };
}

interface ResponseBody {
  readonly id: string;
  readonly status: string;
  readonly previous_response_id: string | null;
  readonly output: readonly { readonly type: string; readonly id: string; readonly [member: string]: unknown }[];
}

async function create(gateway: TestGateway, body: object, headers: Record<string, string> = {}): Promise<ResponseBody> {
  const answer = await gateway.post('/v1/responses', body, { headers });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  return JSON.parse(text);
}

async function refused(gateway: TestGateway, body: object, headers: Record<string, string> = {}) {
  const answer = await gateway.post('/v1/responses', body, { headers });
  const { error }: { error: { code: string; param: string | null } } = JSON.parse(await answer.text());
  return { status: answer.status, ...error };
}

function lastText(): string {
  return simulator.requests.at(-1)?.text ?? '';
}

const say = (text: string) => ({ reply: { pieces: [{ type: 'text' as const, text }] } });

for (const stream of [false, true]) {
  test(`S13: the end of an answer waits until it is remembered, however long that takes (${stream ? 'stream' : 'whole'})`, async (t) => {
    await using gateway = await testGateway(configOf());
    const { memory } = gateway.running.gateway;
    const kept = Promise.withResolvers<void>();
    const saved = Promise.withResolvers<void>();
    t.mock.method(memory, 'save', () => {
      saved.resolve();
      return kept.promise;
    });
    let isOver = false;
    const answer = gateway.post('/v1/responses', { model: 'messages', input: 'hi', stream }).then(async (response) => {
      const text = await response.text();
      isOver = true;
      return text;
    });
    await saved.promise;
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(isOver, false);
    kept.resolve();
    assert.match(await answer, /"status":"completed"/);
  });
}

for (const model of UPSTREAMS) {
  for (const stream of [false, true]) {
    test(`R24: a tool turn and its continuation over ${model}, ${stream ? 'stream' : 'whole'}`, async () => {
      await using gateway = await testGateway(configOf());
      simulator.enqueue({
        reply: {
          pieces: [
            { type: 'reasoning', summary: ['I look it up'], raw: 'raw thought', opaque: true },
            { type: 'tool', name: 'look', arguments: '{"at":"sky"}' },
          ],
        },
      });
      const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
      const ask = { model, input: 'what colour is it?', instructions: 'be brief', tools, stream };
      const first = stream ? terminalOf(await (await gateway.post('/v1/responses', ask)).text()) : await create(gateway, ask);
      assert.match(first.id, /^resp_mizu_[0-9a-f]{32}$/);
      const call = first.output.find(({ type }) => type === 'function_call');
      assert.ok(call !== undefined, JSON.stringify(first));
      simulator.enqueue(say('It is blue.'));
      const second = await create(gateway, {
        model,
        tools,
        previous_response_id: first.id,
        input: [{ type: 'function_call_output', call_id: call['call_id'], output: 'blue-ish' }],
      });
      assert.equal(second.previous_response_id, first.id);
      const sent = lastText();
      for (const piece of ['what colour is it?', 'look', 'sky', 'blue-ish'])
        assert.ok(sent.includes(piece), `${piece} in ${sent}`);
      assert.ok(!sent.includes('be brief'), 'instructions are not inherited');
      assert.ok(!sent.includes('previous_response_id'));
      assert.ok(!sent.includes('mz2.'), 'envelopes are opened');
      simulator.enqueue(say('Indeed.'));
      await create(gateway, { model, tools, previous_response_id: second.id, input: 'sure?' });
      assert.ok(lastText().includes('It is blue.') && lastText().includes('what colour is it?'));
    });
  }
}

function terminalOf(text: string): ResponseBody {
  const data = /event: response\.completed\ndata: (.*)\n/.exec(text)?.[1];
  assert.ok(data !== undefined, text);
  return JSON.parse(data).response;
}

for (const { name: model, type } of FORMS) {
  test(`items that a client names by their ids alone reach ${model} (the AI SDK does so)`, async () => {
    await using gateway = await testGateway(configOf());
    const pieces = [
      { type: 'text' as const, text: 'It was blue.' },
      { type: 'tool' as const, name: 'look', arguments: '{"at":"sky"}' },
    ];
    for (const stream of [false, true]) {
      simulator.enqueue({ reply: { pieces } });
      const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
      const ask = { model, tools, input: 'what colour?', stream };
      const { output } = stream
        ? terminalOf(await (await gateway.post('/v1/responses', ask)).text())
        : await create(gateway, ask);
      const call = output.find(({ type }) => type === 'function_call');
      const named = output.map(({ id }, at) => (at === 0 ? { id } : { type: 'item_reference', id }));
      simulator.enqueue(say('Yes.'));
      await create(gateway, {
        model,
        tools,
        store: false,
        input: [
          { role: 'user', content: 'what colour?' },
          ...named,
          { type: 'function_call_output', call_id: call?.['call_id'], output: 'blue-ish' },
        ],
      });
      const sent = lastText();
      if (type === 'responses') {
        for (const { id } of output) assert.ok(sent.includes(id) && !sent.includes('It was blue.'), sent);
      } else {
        const places = ['what colour?', 'It was blue.', 'sky', 'blue-ish'].map((piece) => sent.indexOf(piece));
        assert.ok(
          places.every((place, at) => place > (places[at - 1] ?? -1)),
          sent,
        );
      }
    }
  });
}

test('items that another Channel said are told to a responses upstream, which would look for their ids in vain', async () => {
  const elsewhere = { id: 'elsewhere', type: 'responses', base_url: simulator.url, api_key: 'k', models: ['elsewhere'] };
  const { channels, models } = configOf() as { channels: object[]; models: object };
  const config = { channels: [...channels, elsewhere], models: { ...models, elsewhere: PRICE } };
  await using gateway = await testGateway(config);
  const pieces = [
    { type: 'reasoning' as const, summary: ['I look it up'] },
    { type: 'text' as const, text: 'It was blue.' },
    { type: 'tool' as const, name: 'look', arguments: '{"at":"sky"}' },
  ];
  const tools = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
  for (const model of [...UPSTREAMS, 'elsewhere']) {
    simulator.enqueue({ reply: { pieces } });
    const { output } = await create(gateway, { model, tools, input: 'what colour?' });
    const call = output.find(({ type }) => type === 'function_call');
    const named = output.map(({ id }) => ({ type: 'item_reference', id }));
    const result = { type: 'function_call_output', call_id: call?.['call_id'], output: 'blue-ish' };
    for (const twice of [false, true]) {
      simulator.enqueue(say('Yes.'));
      const input = [{ role: 'user', content: 'what colour?' }, ...named, ...(twice ? named : []), result];
      await create(gateway, { model: 'responses', tools, store: false, input });
      const { input: sent }: { input: { type?: string }[] } = JSON.parse(lastText());
      const types = sent.map(({ type }) => type ?? 'message');
      // What the upstream holds itself, it looks up.
      const said = model === 'responses' ? named.map(() => 'item_reference') : ['message', 'function_call'];
      const again = model === 'responses' && twice ? said : [];
      assert.deepEqual(types, ['message', ...said, ...again, 'function_call_output'], `${model}: ${lastText()}`);
      assert.equal(lastText().includes('It was blue.'), model !== 'responses');
    }
  }
});

test('items that are named reach another responses Channel as what they said, and their own by name (the AI SDK switches models)', async () => {
  const channels = ['responses', 'messages', 'other'].map((id) => {
    const type = id === 'other' ? 'responses' : id;
    return { id, type, base_url: simulator.url, api_key: 'k', opaque_scope: id, models: [id] };
  });
  const models = Object.fromEntries(channels.map(({ id }) => [id, PRICE]));
  await using gateway = await testGateway({ channels, models });
  for (const first of ['messages', 'other']) {
    const pieces = [
      { type: 'reasoning' as const, summary: ['hm'], opaque: true as const },
      { type: 'text' as const, text: 'It was "blue".' },
    ];
    simulator.enqueue({ reply: { pieces } });
    const { output } = await create(gateway, { model: first, input: 'what colour?', include: ['reasoning.encrypted_content'] });
    simulator.enqueue(say('Yes.'));
    const named = output.map(({ id }) => ({ type: 'item_reference', id }));
    const ask = {
      model: 'responses',
      input: [{ role: 'user', content: 'what colour?' }, ...named, { role: 'user', content: '?' }],
    };
    const { output: answered } = await create(gateway, ask);
    const { input } = JSON.parse(lastText());
    const [, said] = input;
    assert.deepEqual([input.length, said.type, said.role, said.content[0].text], [3, 'message', 'assistant', 'It was "blue".']);
    simulator.enqueue(say('Sure.'));
    const own = answered.map(({ id }) => ({ type: 'item_reference', id }));
    await create(gateway, { ...ask, input: [...ask.input, ...own, { role: 'user', content: 'sure?' }] });
    assert.deepEqual(JSON.parse(lastText()).input.slice(0, -1), [...input, ...own]);
  }
});

test('reasoning without a value, replayed in full, goes to the Channel that stored it', async () => {
  await using gateway = await testGateway(configOf());
  simulator.enqueue({
    reply: {
      pieces: [
        { type: 'reasoning', summary: ['hm'] },
        { type: 'text', text: 'Blue.' },
      ],
    },
  });
  const { output } = await create(gateway, { model: 'responses', input: 'what colour?' });
  simulator.enqueue(say('Yes.'));
  const input = [{ role: 'user', content: 'what colour?' }, ...output, { role: 'user', content: 'sure?' }];
  await create(gateway, { model: 'responses', input });
  assert.deepEqual(JSON.parse(lastText()).input, input);
});

test('F37: nobody reads an item of another key, or one that is over, by its id', async () => {
  const clock = createFakeClock();
  await using gateway = await testGateway(configOf(), { clock });
  gateway.store.addKey('sk-mizu-other', { id: 'key_other' });
  simulator.enqueue(say('A secret.'));
  const { output } = await create(gateway, { model: 'messages', input: 'hi' });
  const input = [{ role: 'user', content: 'hi' }, ...output.map(({ id }) => ({ type: 'item_reference', id })), 'and?'];
  simulator.enqueue(say('Yes.'));
  await create(gateway, { model: 'chat_completion', input, store: false });
  assert.ok(lastText().includes('A secret.'));
  const ask = { model: 'chat_completion', input, store: false };
  const asked = simulator.requests.length;
  assert.equal((await refused(gateway, ask, { authorization: 'Bearer sk-mizu-other' })).code, 'item_not_found');
  clock.advance(HISTORY_TTL_MS);
  assert.equal((await refused(gateway, ask)).code, 'item_not_found');
  assert.equal(simulator.requests.length, asked);
});

test('F37: an unknown, a foreign and an expired id read the same', async () => {
  const clock = createFakeClock();
  await using gateway = await testGateway(configOf(), { clock });
  gateway.store.addKey('sk-mizu-other', { id: 'key_other' });
  gateway.store.addKey('sk-mizu-tenant', { id: 'key_tenant', accountId: 'acct_2' }, { id: 'acct_2' });
  const { id } = await create(gateway, { model: 'messages', input: 'hi' });
  const body = { model: 'messages', input: 'more', previous_response_id: id };
  const messageOf = (at: string) => `Previous response with id "${at}" not found.`;
  const expected = (at: string) => ({
    status: 400,
    code: 'previous_response_not_found',
    param: 'previous_response_id',
    type: 'invalid_request_error',
    message: messageOf(at),
  });
  for (const key of ['sk-mizu-other', 'sk-mizu-tenant']) {
    assert.deepEqual(await refused(gateway, body, { authorization: `Bearer ${key}` }), expected(id));
  }
  const unknown = `resp_mizu_${'0'.repeat(32)}`;
  assert.deepEqual(await refused(gateway, { ...body, previous_response_id: unknown }), expected(unknown));
  clock.advance(HISTORY_TTL_MS);
  assert.deepEqual(await refused(gateway, body), expected(id));
});

test('F37: store false is not kept, and a failed answer is not; conversation with a previous id is refused', async () => {
  await using gateway = await testGateway(configOf());
  const unstored = await create(gateway, { model: 'messages', input: 'hi', store: false });
  assert.equal(
    (await refused(gateway, { model: 'messages', input: 'x', previous_response_id: unstored.id })).code,
    'previous_response_not_found',
  );
  simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'half' }], finish: 'failed' } });
  const failed = await create(gateway, { model: 'responses', input: 'hi' });
  assert.equal(failed.status, 'failed');
  assert.equal(
    (await refused(gateway, { model: 'responses', input: 'x', previous_response_id: failed.id })).code,
    'previous_response_not_found',
  );
  const kept = await create(gateway, { model: 'responses', input: 'hi' });
  const both = await refused(gateway, { model: 'responses', input: 'x', previous_response_id: kept.id, conversation: 'conv_1' });
  assert.deepEqual([both.status, both.code, both.param], [400, 'invalid_request', 'previous_response_id']);
});

test('an incomplete answer can be continued', async () => {
  await using gateway = await testGateway(configOf());
  simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'cut he' }], finish: 'length' } });
  const first = await create(gateway, { model: 'messages', input: 'hi' });
  assert.equal(first.status, 'incomplete');
  await create(gateway, { model: 'messages', input: 'go on', previous_response_id: first.id });
  assert.ok(lastText().includes('cut he'));
});

test('S13: the id can be continued by whoever has read the terminal event', async () => {
  await using gateway = await testGateway(configOf());
  for (let round = 0; round < 20; round++) {
    simulator.enqueue({ ...say('hello'), pace: { cut: 'packet' } });
    const answer = await gateway.post('/v1/responses', { model: 'messages', input: 'hi', stream: true });
    const reader = answer.body?.getReader();
    let text = '';
    while (!text.includes('event: response.completed')) text += Buffer.from((await reader?.read())?.value ?? []).toString();
    const id = /"id":"(resp_mizu_[0-9a-f]{32})"/.exec(text)?.[1];
    const next = await gateway.post('/v1/responses', { model: 'messages', input: 'more', previous_response_id: id });
    assert.equal(next.status, 200, await next.text());
    await reader?.cancel();
  }
});

test('R23, R25: reasoning that only a Channel’s own store knows goes back to that Channel alone', async () => {
  const two = {
    channels: [
      { id: 'maker', type: 'responses', base_url: simulator.url, api_key: 'maker', models: ['m'] },
      { id: 'other', type: 'responses', base_url: simulator.url, api_key: 'other', models: ['m'], priority: 1 },
    ],
    models: { m: PRICE },
  };
  await using gateway = await testGateway(two);
  const item = { id: 'rs_stored', type: 'reasoning', summary: [] };
  simulator.enqueue({
    reply: {
      pieces: [
        { type: 'native', value: item },
        { type: 'text', text: 'done' },
      ],
    },
  });
  const first = await create(gateway, { model: 'm', input: 'hi' });
  simulator.enqueue(say('again'));
  await create(gateway, { model: 'm', input: 'more', previous_response_id: first.id });
  assert.ok(lastText().includes('rs_stored'), 'its maker gets it');
  simulator.enqueue({ faults: [{ type: 'status', status: 500 }] }, say('from the other'));
  await create(gateway, { model: 'm', input: 'more', previous_response_id: first.id });
  const [toMaker, toOther] = simulator.requests.slice(-2);
  assert.equal(toMaker?.headers['authorization'], 'Bearer maker');
  assert.ok(toMaker?.text.includes('rs_stored'));
  assert.equal(toOther?.headers['authorization'], 'Bearer other');
  assert.ok(!toOther?.text.includes('rs_stored'), 'another Channel does not');
  assert.ok(toOther?.text.includes('done'), 'what was said stays');
});

test('R25: a call that was not stored upstream leaves no reference to it', async () => {
  await using gateway = await testGateway({
    channels: [
      {
        id: 'maker',
        type: 'responses',
        base_url: simulator.url,
        api_key: 'k',
        models: ['m'],
        options: { parameters: { store: false } },
      },
    ],
    models: { m: PRICE },
  });
  const item = { id: 'rs_gone', type: 'reasoning', summary: [] };
  simulator.enqueue({
    reply: {
      pieces: [
        { type: 'native', value: item },
        { type: 'text', text: 'done' },
      ],
    },
  });
  const first = await create(gateway, { model: 'm', input: 'hi' });
  simulator.enqueue(say('again'));
  await create(gateway, { model: 'm', input: 'more', previous_response_id: first.id });
  assert.ok(!lastText().includes('rs_gone'));
});

test('paths in errors are those of the client’s own body', async () => {
  await using gateway = await testGateway(configOf());
  const { id } = await create(gateway, {
    model: 'messages',
    input: [
      { role: 'user', content: 'a' },
      { role: 'user', content: 'b' },
    ],
  });
  const input = [
    { role: 'user', content: 'fine' },
    { role: 'nobody', content: 'x' },
  ];
  const wrong = await refused(gateway, { model: 'messages', input, previous_response_id: id });
  assert.deepEqual([wrong.status, wrong.code, wrong.param], [400, 'invalid_request', 'input[1].role']);
  for (const none of [5, true, { role: 'user', content: 'x' }]) {
    const lost = await refused(gateway, { model: 'messages', input: none, previous_response_id: id });
    assert.deepEqual([lost.status, lost.code, lost.param], [400, 'invalid_request', 'input']);
  }
});

test('the client’s own text survives: numbers, unknown members and order of stored items', async () => {
  await using gateway = await testGateway(configOf());
  const text =
    '{"model":"responses","input":[{"role":"user","content":"a","x_note":1.50},\n {"content":"b","role":"user"}],"temperature":1.0}';
  const answer = await gateway.post('/v1/responses', text);
  const { id }: ResponseBody = JSON.parse(await answer.text());
  await create(gateway, { model: 'responses', input: 'c', previous_response_id: id });
  assert.ok(
    lastText().includes('"input":[{"role":"user","content":"a","x_note":1.50},{"content":"b","role":"user"},'),
    lastText(),
  );
});

test('what is brought back counts like a body: in bytes, in values, and in what its key holds', async () => {
  const limits = { json_bytes: 200_000, json_values: 2_000 };
  await using gateway = await testGateway(configOf({ limits }));
  const input = [{ role: 'user', content: 'x'.repeat(120_000) }];
  const first = await create(gateway, { model: 'messages', input });
  const over = await refused(gateway, { model: 'messages', previous_response_id: first.id, input });
  assert.deepEqual([over.status, over.code, over.param], [413, 'request_too_large', 'previous_response_id']);
  await create(gateway, { model: 'messages', previous_response_id: first.id, input: 'short' });
  const many = Array.from({ length: 400 }, () => ({ role: 'user', content: 'x' }));
  const wide = await create(gateway, { model: 'messages', input: many });
  const wider = await refused(gateway, { model: 'messages', previous_response_id: wide.id, input: many });
  assert.deepEqual([wider.status, wider.code], [413, 'request_too_large']);
  gateway.configure(configOf({ limits: { ...limits, key_body_bytes: 150_000 } }));
  simulator.enqueue({ ...say('one two three four five six'), pace: { ms: 40 } });
  const open = await gateway.post('/v1/responses', { model: 'messages', input: 'y'.repeat(40_000), stream: true });
  const full = await refused(gateway, { model: 'messages', previous_response_id: first.id, input: 'short' });
  assert.deepEqual([full.status, full.code], [429, 'rate_limited']);
  await open.text();
});
