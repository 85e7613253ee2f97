/** References to items that nobody keeps: refused for the Channel of the attempt, never left out. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testGateway } from '../../support/test-gateway.ts';
import { formChannel, startVendors, upstreamForms } from '../../support/upstream-forms.ts';
import { connect } from '../websocket/socket-client.ts';

const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const PRICE = { price: { input: '1', output: '2' } };
const FORMS = upstreamForms(import.meta.filename);
const OTHERS = FORMS.filter(({ type }) => type !== 'responses').map(({ name }) => name);

function configOf(models: Readonly<Record<string, readonly string[]>> = {}): object {
  const channels = FORMS.map((form) => formChannel(form, simulator.url, { models: [form.name, ...(models[form.name] ?? [])] }));
  return { channels, models: Object.fromEntries([...FORMS.map(({ name }) => name), 'mixed'].map((name) => [name, PRICE])) };
}

const TOOLS = [{ type: 'function', name: 'look', parameters: { type: 'object', properties: {} } }];
const REFERENCES = [{ type: 'item_reference', id: 'fc_gone' }, { id: 'fc_gone' }];
const inputOf = (reference: object) => [
  { role: 'user', content: 'what colour?' },
  { role: 'assistant', content: 'I look.' },
  reference,
  { type: 'function_call_output', call_id: 'call_1', output: 'blue' },
];

for (const model of OTHERS) {
  test(`a reference that cannot be resolved is a 400 at its path towards ${model}, and nothing is asked`, async () => {
    await using gateway = await testGateway(configOf());
    for (const reference of REFERENCES) {
      for (const stream of [false, true]) {
        const answer = await gateway.post('/v1/responses', { model, tools: TOOLS, input: inputOf(reference), stream });
        assert.equal(answer.status, 400);
        const { error } = JSON.parse(await answer.text());
        assert.deepEqual([error.type, error.code, error.param], ['invalid_request_error', 'item_not_found', 'input[2].id']);
        assert.match(error.message, /"fc_gone"/);
      }
      const socket = await connect(gateway);
      const [event] = await socket.turn({ type: 'response.create', model, tools: TOOLS, input: inputOf(reference) });
      assert.deepEqual([event?.type, event?.['status']], ['error', 400]);
      const error = event?.['error'] as { code: string; param: string };
      assert.deepEqual([error.code, error.param], ['item_not_found', 'input[2].id']);
      socket.ws.close();
    }
    assert.equal(simulator.requests.length, 0);
  });
}

test('the path is that of the client’s own input, behind a history; a very long id is shown in part', async () => {
  await using gateway = await testGateway(configOf());
  const first = JSON.parse(await (await gateway.post('/v1/responses', { model: 'chat_completion', input: 'hi' })).text());
  const input = ['go on', { type: 'item_reference', id: 'x'.repeat(5000) }];
  const ask = { model: 'chat_completion', previous_response_id: first.id, input };
  const { error } = JSON.parse(await (await gateway.post('/v1/responses', ask)).text());
  assert.deepEqual([error.code, error.param], ['item_not_found', 'input[1].id']);
  assert.ok(error.message.length < 200);
});

test('a responses upstream gets the reference as it is, and so does a model that has one beside another Channel', async () => {
  await using gateway = await testGateway(configOf({ messages: ['mixed'], responses: ['mixed'] }));
  for (const model of ['responses', 'mixed']) {
    const reference = { type: 'item_reference', id: 'msg_gone' };
    await (await gateway.post('/v1/responses', { model, input: ['hi', reference] })).text();
    const sent = simulator.requests.at(-1);
    assert.match(sent?.path ?? '', /\/responses$/);
    assert.deepEqual(JSON.parse(sent?.text ?? '').input[1], reference);
  }
});

test('a reference that a responses upstream does not know is a mistake that it tells, and no failure that is worth another try', async () => {
  await using gateway = await testGateway(configOf());
  const ask = { model: 'responses', tools: TOOLS, input: inputOf({ type: 'item_reference', id: 'fc_gone' }) };
  for (const stream of [false, true]) {
    const answer = await gateway.post('/v1/responses', { ...ask, stream });
    const { error } = JSON.parse(await answer.text());
    assert.deepEqual([answer.status, error.type], [404, 'invalid_request_error']);
    assert.match(error.message, /fc_gone/);
  }
  const socket = await connect(gateway);
  assert.equal((await socket.turn({ type: 'response.create', ...ask }))[0]?.['status'], 404);
  socket.ws.close();
  assert.equal(
    (await gateway.post('/v1/responses', { model: 'responses', input: 'hi' })).status,
    200,
    'the Channel is not blamed',
  );
});

test('an item that is named twice is said once', async () => {
  await using gateway = await testGateway(configOf());
  simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'Blue.' }] } });
  const first = JSON.parse(await (await gateway.post('/v1/responses', { model: 'messages', input: 'colour?' })).text());
  const reference = { type: 'item_reference', id: first.output[0].id };
  const input = ['colour?', reference, 'sure?', reference, 'really?'];
  const answer = await gateway.post('/v1/responses', { model: 'messages', input });
  assert.equal(answer.status, 200);
  assert.equal(simulator.requests.at(-1)?.text.split('Blue.').length, 2);
});

test('the result of a call that is nowhere in what a request continues is a 400 over HTTP, too, and nothing is asked', async () => {
  await using gateway = await testGateway(configOf());
  for (const { name: model } of FORMS) {
    simulator.enqueue({ reply: { pieces: [{ type: 'tool', name: 'look', arguments: '{}' }] } });
    const called = JSON.parse(await (await gateway.post('/v1/responses', { model, tools: TOOLS, input: 'hi' })).text());
    const callId = called.output.find(({ type }: { type: string }) => type === 'function_call')?.call_id;
    const before = simulator.requests.length;
    const resultOf = (id: string) => ({ type: 'function_call_output', call_id: id, output: 'blue' });
    const ask = { model, tools: TOOLS, previous_response_id: called.id };
    const orphan = await gateway.post('/v1/responses', { ...ask, input: [resultOf(callId), resultOf('call_missing')] });
    const { error } = JSON.parse(await orphan.text());
    assert.deepEqual([orphan.status, error.code, error.param], [400, 'tool_call_not_found', 'input[1].call_id'], model);
    assert.equal(simulator.requests.length, before);
    assert.equal((await gateway.post('/v1/responses', { ...ask, input: [resultOf(callId)] })).status, 200, model);
  }
});

test('a conversation whose first turn had the result of no call goes on, and refuses only what a later turn brings', async () => {
  await using gateway = await testGateway(configOf());
  const orphan = { type: 'function_call_output', call_id: 'call_missing', output: 'grey' };
  for (const model of OTHERS) {
    const input = [orphan, { role: 'user', content: 'hi' }];
    const first = JSON.parse(await (await gateway.post('/v1/responses', { model, tools: TOOLS, input })).text());
    const ask = { model, tools: TOOLS, previous_response_id: first.id };
    const next = await gateway.post('/v1/responses', { ...ask, input: 'and now?' });
    assert.equal(next.status, 200, model);
    assert.ok(!simulator.requests.at(-1)?.text.includes('grey'));
    const again = JSON.parse(await (await gateway.post('/v1/responses', { ...ask, input: [orphan] })).text());
    assert.deepEqual([again.error.code, again.error.param], ['tool_call_not_found', 'input[0].call_id'], model);
  }
});

test('responses: the result of a function may answer a search that the client ran', async () => {
  await using gateway = await testGateway(configOf());
  const first = await gateway.post('/v1/responses', { model: 'responses', input: 'hi' });
  const { id } = JSON.parse(await first.text());
  const before = simulator.requests.length;
  const input = [
    { type: 'tool_search_call', call_id: 'c', execution: 'client', arguments: { queries: ['x'] }, status: 'completed' },
    { type: 'function_call_output', call_id: 'c', output: 'one tool' },
  ];
  const answered = await gateway.post('/v1/responses', { model: 'responses', previous_response_id: id, input });
  assert.equal(answered.status, 200, await answered.text());
  assert.equal(simulator.requests.length, before + 1);
});
