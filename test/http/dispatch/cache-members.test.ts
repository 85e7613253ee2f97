/** Cache breakpoints on their way to servers that do not know them, and what the metrics say of those that do. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fakeUpstream, jsonAnswer, wholeMessage } from '../../support/fake-upstream.ts';
import { channel, eventually, MODELS, testGateway } from '../../support/test-gateway.ts';

const usage = { prompt_tokens: 100, completion_tokens: 2, total_tokens: 102, prompt_tokens_details: { cached_tokens: 60 } };
const ANSWER = {
  ...{ id: 'c', object: 'chat.completion', created: 1, model: 'up', usage },
  choices: [{ index: 0, message: { role: 'assistant', content: 'fine' }, finish_reason: 'stop' }],
};
const ASK = {
  model: 'm',
  max_tokens: 9,
  messages: [{ role: 'user', content: [{ type: 'text', text: 'q', cache_control: { type: 'ephemeral' } }] }],
};
const REFUSALS = [
  { error: { message: "Unknown parameter: 'messages[0].content[0].prompt_cache_breakpoint'.", type: 'invalid_request_error' } },
  { detail: [{ type: 'extra_forbidden', loc: ['body', 'prompt_cache_breakpoint'], msg: 'Extra inputs are not permitted' }] },
];

for (const refusal of REFUSALS) {
  test(`a server that refuses the members is asked without them, and later from the start: ${JSON.stringify(refusal).slice(0, 40)}`, async () => {
    const asked: boolean[] = [];
    await using strict = await fakeUpstream((request) => {
      const holds = request.body.includes('prompt_cache_breakpoint');
      asked.push(holds);
      (holds ? jsonAnswer(422, refusal) : jsonAnswer(200, ANSWER))(request);
    });
    await using gateway = await testGateway({ channels: [channel(strict.url, { type: 'chat_completion' })], models: MODELS });
    for (let turn = 0; turn < 3; turn += 1) assert.equal((await gateway.post('/v1/messages', ASK)).status, 200);
    assert.deepEqual(asked, [true, false, false, false]);
  });
}

/** A server that takes breakpoints, but not of reasoning. */
const THINKING = { type: 'thinking', thinking: 't', signature: 'abc', cache_control: { type: 'ephemeral' } };
const MISPLACED = [
  { role: 'user', content: 'q' },
  { role: 'assistant', content: [THINKING, { type: 'text', text: 'a' }] },
  { role: 'user', content: 'go on' },
];

test('a breakpoint that a client puts where no server takes it stays a breakpoint in the requests of others', async () => {
  const asked: string[] = [];
  await using upstream = await fakeUpstream((request) => {
    asked.push(request.body);
    const isWrong = /"thinking"[^}]*cache_control/.test(request.body);
    const message = 'messages.1.content.0.thinking.cache_control: Extra inputs are not permitted';
    const refusal = jsonAnswer(400, { type: 'error', error: { type: 'invalid_request_error', message } });
    (isWrong ? refusal : jsonAnswer(200, wholeMessage('fine')))(request);
  });
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  gateway.store.addKey('sk-other', { accountId: 'acct_2' }, { id: 'acct_2' });
  const other = { headers: { authorization: 'Bearer sk-other' } };
  assert.equal((await gateway.post('/v1/messages', { ...ASK, messages: MISPLACED })).status, 200);
  assert.equal(asked.length, 2);
  assert.equal((await gateway.post('/v1/messages', ASK, other)).status, 200);
  assert.match(asked.at(-1) ?? '', /cache_control/);
});

test('what is refused without the breakpoints, too, teaches nothing', async () => {
  const asked: string[] = [];
  await using upstream = await fakeUpstream((request) => {
    asked.push(request.body);
    const message = "Invalid schema for function 'cache_control': 'x' is not permitted.";
    const refusal = jsonAnswer(400, { type: 'error', error: { type: 'invalid_request_error', message } });
    (request.body.includes('"tools"') ? refusal : jsonAnswer(200, wholeMessage('fine')))(request);
  });
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const tools = [{ name: 'cache_control', input_schema: { type: 'object', x: 1 } }];
  assert.equal((await gateway.post('/v1/messages', { ...ASK, tools })).status, 400);
  assert.equal((await gateway.post('/v1/messages', ASK)).status, 200);
  assert.match(asked.at(-1) ?? '', /"cache_control":\{"type":"ephemeral"\}/);
});

test('hit rates: the input of each Channel and model by what the prompt cache did', async () => {
  await using well = await fakeUpstream(jsonAnswer(200, ANSWER));
  await using gateway = await testGateway({ channels: [channel(well.url, { type: 'chat_completion' })], models: MODELS });
  assert.equal((await gateway.post('/v1/messages', ASK)).status, 200);
  await eventually(() => gateway.store.settled.length === 1, 'the row');
  const text = await gateway.running.gateway.metrics.registry.metrics();
  assert.match(text, /^mizu_prompt_tokens_total\{channel="one",model="m",cache="read"\} 60$/m);
  assert.match(text, /^mizu_prompt_tokens_total\{channel="one",model="m",cache="none"\} 40$/m);
  assert.doesNotMatch(text, /cache="write"/);
});
