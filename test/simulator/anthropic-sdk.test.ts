/** The official Anthropic client accepts what the simulator writes, and reads in it what was scripted. */
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import type { Reply } from '../../src/simulator/reply.ts';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import { ask } from './ask.ts';

let sim: Simulator;
let client: Anthropic;

before(async () => {
  sim = await startSimulator({ pace: { ms: 0 } });
  client = new Anthropic({ baseURL: sim.url, apiKey: 'k', maxRetries: 0 });
});
after(() => sim.close());
beforeEach(() => sim.reset());

const REPLY: Reply = {
  pieces: [
    { type: 'reasoning', summary: ['let me see'], opaque: 'c2ln' },
    { type: 'text', text: 'Grüße 🎈', citations: [{ url: 'https://a.example', title: 'A', start: 0, end: 5 }] },
    { type: 'tool', name: 'get_weather', arguments: '{"city":"Köln"}', id: 'toolu_a' },
    { type: 'tool', name: 'now', arguments: '', id: 'toolu_b' },
  ],
  usage: { input: 100, output: 30, cached: 60, cacheWrite: 10, reasoning: 4 },
};
const request = { model: 'm', max_tokens: 100, messages: [{ role: 'user' as const, content: 'hello' }] };

test('messages, whole and stream: the same blocks and usage', async () => {
  sim.enqueue({ reply: REPLY, times: 2 });
  const whole = await client.messages.create(request);
  const streamed = await client.messages.stream(request).finalMessage();
  for (const answer of [whole, streamed]) {
    assert.deepEqual(
      answer.content.map(({ type }) => type),
      ['thinking', 'text', 'tool_use', 'tool_use'],
    );
    const [thinking, text, call, empty] = answer.content;
    assert.deepEqual(thinking, { type: 'thinking', thinking: 'let me see', signature: 'c2ln' });
    assert.equal(text?.type === 'text' && text.text, 'Grüße 🎈');
    assert.equal(text?.type === 'text' && text.citations?.[0]?.cited_text, 'Grüße');
    assert.deepEqual(call?.type === 'tool_use' && [call.id, call.input], ['toolu_a', { city: 'Köln' }]);
    assert.deepEqual(empty?.type === 'tool_use' && empty.input, {});
    assert.equal(answer.stop_reason, 'tool_use');
    const { input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens } = answer.usage;
    assert.deepEqual([input_tokens, cache_read_input_tokens, cache_creation_input_tokens, output_tokens], [30, 60, 10, 30]);
  }
});

test('messages: bytes have event lines, one ping, padding, and no [DONE]', async () => {
  sim.enqueue({ reply: REPLY });
  const { text } = await ask(`${sim.url}/v1/messages`, { ...request, stream: true });
  assert.match(text, /^event: message_start\ndata: \{"type":"message_start"/);
  assert.match(text, /event: message_stop\ndata: \{"type":"message_stop" *\}\n\n$/);
  assert.equal(text.split('event: ping').length, 2);
  assert.match(text, / {3,}\}\n\n/);
  assert.ok(!text.includes('[DONE]'));
});

test('messages: an error event in the stream and an HTTP error reach the client as errors', async () => {
  sim.enqueue({ reply: REPLY, faults: [{ type: 'error-event', at: 5 }] });
  await assert.rejects(client.messages.stream(request).finalMessage(), /Overloaded/);
  sim.enqueue({ faults: [{ type: 'status', status: 529, message: 'Overloaded' }] });
  await assert.rejects(client.messages.create(request), (error) => error instanceof Anthropic.APIError && error.status === 529);
});

test('the demonstration holds a conversation with thinking and a tool, and refuses a changed signature', async () => {
  const tools = [
    {
      name: 'get_weather',
      input_schema: { type: 'object' as const, properties: { city: { type: 'string' } }, required: ['city'] },
    },
  ];
  const thinking = { type: 'enabled' as const, budget_tokens: 1024 };
  const first: Anthropic.MessageParam = { role: 'user', content: 'please use get_weather' };
  const base = { model: 'm', max_tokens: 3000, thinking, tools };
  // No tool can be demanded beside thinking.
  sim.enqueue({
    reply: {
      pieces: [
        { type: 'reasoning', raw: 'I should look.', opaque: true },
        { type: 'tool', name: 'get_weather', arguments: '{"city":"Oslo"}' },
      ],
    },
  });
  const turn = await client.messages.stream({ ...base, messages: [first] }).finalMessage();
  const call = turn.content.find((block) => block.type === 'tool_use');
  assert.ok(call !== undefined && turn.content[0]?.type === 'thinking');
  const result: Anthropic.MessageParam = {
    role: 'user',
    content: [{ type: 'tool_result', tool_use_id: call.id, content: 'sunny, 21 degrees' }],
  };
  const answer = await client.messages.create({
    ...base,
    messages: [first, { role: 'assistant', content: turn.content }, result],
  });
  const text = answer.content.find((block) => block.type === 'text');
  assert.match(text?.text ?? '', /sunny, 21 degrees/);

  const forged = turn.content.map((block) => (block.type === 'thinking' ? { ...block, thinking: `${block.thinking}!` } : block));
  await assert.rejects(
    client.messages.create({ ...base, messages: [first, { role: 'assistant', content: forged }, result] }),
    /Invalid `signature` in `thinking` block/,
  );
});
