/** The official OpenAI client accepts what the simulator writes, and reads in it what was scripted. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import OpenAI from 'openai';
import type { Reply } from '../../src/simulator/reply.ts';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import { ask, dataOf } from './ask.ts';

let sim: Simulator;
let client: OpenAI;

before(async () => {
  sim = await startSimulator();
  client = new OpenAI({ baseURL: `${sim.url}/v1`, apiKey: 'k', maxRetries: 0 });
});
after(() => sim.close());
beforeEach(() => sim.reset());

const USAGE = { input: 40, output: 12, cached: 8, reasoning: 5 };
const REPLY: Reply = {
  pieces: [
    { type: 'text', text: ['Grüße', ', ', 'Wörld 🎈'], citations: [{ url: 'https://a.example', title: 'A', start: 0, end: 5 }] },
    { type: 'tool', name: 'get_weather', arguments: '{"city":"Köln"}', id: 'call_a' },
    { type: 'tool', name: 'get_time', arguments: ['', '{"zone"', ':"CET"}'], id: 'call_b' },
  ],
  usage: USAGE,
};
const messages = [{ role: 'user' as const, content: 'hello' }];

test('chat, whole: text, parallel tools, citations, usage', async () => {
  sim.enqueue({ reply: REPLY });
  const answer = await client.chat.completions.create({ model: 'm', messages });
  const [choice] = answer.choices;
  assert.equal(choice?.message.content, 'Grüße, Wörld 🎈');
  assert.equal(choice?.finish_reason, 'tool_calls');
  assert.deepEqual(
    choice?.message.tool_calls?.map((call) =>
      call.type === 'function' ? [call.id, call.function.name, call.function.arguments] : [],
    ),
    [
      ['call_a', 'get_weather', '{"city":"Köln"}'],
      ['call_b', 'get_time', '{"zone":"CET"}'],
    ],
  );
  assert.equal(choice?.message.annotations?.[0]?.url_citation.end_index, 5);
  assert.deepEqual(
    [answer.usage?.prompt_tokens, answer.usage?.completion_tokens, answer.usage?.prompt_tokens_details?.cached_tokens],
    [40, 12, 8],
  );
});

for (const interleave of [false, true]) {
  test(`chat, stream: the same content, interleaved ${interleave}`, async () => {
    sim.enqueue({ reply: { ...REPLY, interleave } });
    const stream = client.chat.completions.stream({ model: 'm', messages, stream_options: { include_usage: true } });
    const answer = await stream.finalChatCompletion();
    const [choice] = answer.choices;
    assert.equal(choice?.message.content, 'Grüße, Wörld 🎈');
    assert.deepEqual(
      choice?.message.tool_calls?.map((call) => (call.type === 'function' ? [call.id, call.function.arguments] : [])),
      [
        ['call_a', '{"city":"Köln"}'],
        ['call_b', '{"zone":"CET"}'],
      ],
    );
    assert.equal(answer.usage?.total_tokens, 52);
  });
}

test('chat, stream: usage is absent unless asked for, and its chunk has no choices', async () => {
  sim.enqueue({ reply: REPLY, times: 2 });
  const ask1 = await ask(`${sim.url}/v1/chat/completions`, { model: 'm', messages, stream: true });
  assert.ok(!ask1.text.includes('"usage"'));
  assert.ok(ask1.text.endsWith('data: [DONE]\n\n'));
  const chunks = dataOf(
    (await ask(`${sim.url}/v1/chat/completions`, { model: 'm', messages, stream: true, stream_options: { include_usage: true } }))
      .text,
  );
  assert.deepEqual(chunks.at(-1)?.choices, []);
  assert.ok(chunks.slice(0, -1).every((chunk) => chunk.usage === null));
});

test('chat: refusal, raw reasoning and logprobs stream as DeepSeek and OpenAI stream them', async () => {
  sim.enqueue({
    reply: {
      pieces: [
        { type: 'reasoning', raw: 'think hard' },
        { type: 'text', text: 'ok' },
      ],
    },
  });
  const reasoned = dataOf((await ask(`${sim.url}/v1/chat/completions`, { model: 'm', messages, stream: true })).text);
  const deltas = reasoned.map((chunk) => (Array.isArray(chunk.choices) ? chunk.choices[0].delta : undefined));
  assert.equal(deltas.map((delta) => delta.reasoning_content ?? '').join(''), 'think hard');
  assert.equal(deltas.map((delta) => delta.content ?? '').join(''), 'ok');

  sim.enqueue({ reply: { pieces: [{ type: 'refusal', text: 'I will not.' }] } });
  const refused = await client.chat.completions.stream({ model: 'm', messages }).finalChatCompletion();
  assert.equal(refused.choices[0]?.message.refusal, 'I will not.');

  const logprobs = [{ token: 'ok', logprob: -0.5, top: [{ token: 'ok', logprob: -0.5 }] }];
  sim.enqueue({ reply: { pieces: [{ type: 'text', text: ['ok'], logprobs }] } });
  const told = await client.chat.completions.stream({ model: 'm', messages, logprobs: true }).finalChatCompletion();
  assert.deepEqual(told.choices[0]?.logprobs?.content?.[0]?.bytes, [111, 107]);
});

test('responses, whole and stream: the same items, in the official accumulator too', async () => {
  const reply: Reply = {
    pieces: [{ type: 'reasoning', summary: ['first part', 'second part'], opaque: 'gAAAAAscripted==' }, ...REPLY.pieces],
    usage: USAGE,
  };
  sim.enqueue({ reply, times: 3 });
  const whole = await client.responses.create({ model: 'm', input: 'hello' });
  const streamed = await client.responses.stream({ model: 'm', input: 'hello' }).finalResponse();
  for (const answer of [whole, streamed]) {
    assert.equal(answer.output_text, 'Grüße, Wörld 🎈');
    assert.deepEqual(
      answer.output.map(({ type }) => type),
      ['reasoning', 'message', 'function_call', 'function_call'],
    );
    const [reasoning, , call] = answer.output;
    assert.deepEqual(reasoning?.type === 'reasoning' && reasoning.summary.map(({ text }) => text), ['first part', 'second part']);
    assert.equal(call?.type === 'function_call' && call.arguments, '{"city":"Köln"}');
    assert.equal(answer.usage?.output_tokens_details.reasoning_tokens, 5);
    assert.equal(answer.status, 'completed');
  }
  const events = dataOf((await ask(`${sim.url}/v1/responses`, { model: 'm', input: 'x', stream: true })).text);
  assert.deepEqual(
    events.map(({ sequence_number }) => sequence_number),
    events.map((_, index) => index),
  );
  assert.equal(events.at(-1)?.type, 'response.completed');
});

test('responses: incomplete, failed, refusal, custom tool, namespace, interleaved items', async () => {
  const say = (reply: Reply) => {
    sim.enqueue({ reply });
    return client.responses.stream({ model: 'm', input: 'x' }).finalResponse();
  };
  const incomplete = await say({ pieces: [{ type: 'text', text: 'half' }], finish: 'length' });
  assert.deepEqual(
    [incomplete.status, incomplete.incomplete_details?.reason, incomplete.output_text],
    ['incomplete', 'max_output_tokens', 'half'],
  );
  const failed = await say({ pieces: [], finish: 'failed', error: { code: 'rate_limit_exceeded', message: 'slow' } });
  assert.deepEqual([failed.status, failed.error?.code], ['failed', 'rate_limit_exceeded']);
  const refused = await say({ pieces: [{ type: 'refusal', text: 'no' }] });
  assert.deepEqual(refused.output[0]?.type === 'message' && refused.output[0].content[0]?.type, 'refusal');
  const called = await say({
    pieces: [
      { type: 'tool', name: 'sh', arguments: 'ls -la', custom: true },
      { type: 'tool', name: 'f', arguments: '{}', namespace: 'space' },
    ],
    interleave: true,
  });
  const [custom, namespaced] = called.output;
  assert.equal(custom?.type === 'custom_tool_call' && custom.input, 'ls -la');
  assert.equal(namespaced?.type === 'function_call' && namespaced.namespace, 'space');
});

test('embeddings: base64 (the client’s default) and float are the same vector', async () => {
  const coded = await client.embeddings.create({ model: 'e', input: ['a river', 'a stone'] });
  const plain = await client.embeddings.create({ model: 'e', input: ['a river', 'a stone'], encoding_format: 'float' });
  assert.equal(coded.data[1]?.index, 1);
  assert.equal(coded.data[0]?.embedding.length, 1536);
  assert.deepEqual([...(coded.data[0]?.embedding ?? [])], plain.data[0]?.embedding);
  const length = Math.hypot(...(plain.data[0]?.embedding ?? []));
  assert.ok(Math.abs(length - 1) < 1e-5);
});

test('models are listed, errors have the vendor’s shape', async () => {
  const ids = (await client.models.list()).data.map(({ id }) => id);
  assert.ok(ids.includes('demo-chat'));
  sim.enqueue({
    faults: [{ type: 'status', status: 429, message: 'slow down', code: 'rate_limit_exceeded', headers: { 'retry-after': '7' } }],
  });
  await assert.rejects(client.chat.completions.create({ model: 'm', messages }), (error) => {
    assert.ok(error instanceof OpenAI.RateLimitError);
    assert.equal(error.code, 'rate_limit_exceeded');
    assert.equal(error.headers.get('retry-after'), '7');
    return true;
  });
});
