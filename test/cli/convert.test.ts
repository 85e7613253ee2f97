/** `mizu convert`: any recorded stream in any client's protocol, wherever its bytes are cut, as the vendors' SDKs read it. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import { command, type Finished } from '../support/command.ts';
import { recordings, skipWithoutFixtures } from '../support/fixtures.ts';
import { drawn } from '../support/sampled.ts';

const sse = (...events: readonly object[]): string =>
  events
    .map((event) => {
      const named = 'type' in event && typeof event.type === 'string' ? `event: ${event.type}\n` : '';
      return `${named}data: ${JSON.stringify(event)}\n\n`;
    })
    .join('');

const chunk = (delta: object, finish: string | null = null): object => ({
  id: 'up',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'up-model',
  choices: [{ index: 0, delta, finish_reason: finish }],
});
const call = (index: number, members: object): object => ({ tool_calls: [{ index, ...members }] });
const item = { id: 'msg_1', type: 'message', role: 'assistant', status: 'completed' };
const part = { type: 'output_text', text: 'Hello wörld', annotations: [] };
const wants = {
  id: 'fc_1',
  type: 'function_call',
  call_id: 'call_1',
  name: 'weather',
  arguments: '{"city":"Oslo"}',
  status: 'completed',
};
const block = (index: number, members: object): object[] => [{ type: 'content_block_start', index, content_block: members }];

/** One answer, as each upstream says it: a text of two pieces, then a call. */
const ANSWERS: Readonly<Record<string, string>> = {
  chat: `${sse(
    chunk({ role: 'assistant', content: 'Hello ' }),
    chunk({ content: 'wörld' }),
    chunk(call(0, { id: 'call_1', type: 'function', function: { name: 'weather', arguments: '{"city":' } })),
    chunk(call(0, { function: { arguments: '"Oslo"}' } })),
    chunk({}, 'tool_calls'),
    { ...chunk({}), choices: [], usage: { prompt_tokens: 3, completion_tokens: 5, total_tokens: 8 } },
  )}data: [DONE]\n\n`,
  messages: sse(
    {
      type: 'message_start',
      message: {
        id: 'm',
        type: 'message',
        role: 'assistant',
        model: 'up',
        content: [],
        usage: { input_tokens: 3, output_tokens: 1 },
      },
    },
    ...block(0, { type: 'text', text: '' }),
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hello ' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'wörld' } },
    { type: 'content_block_stop', index: 0 },
    ...block(1, { type: 'tool_use', id: 'call_1', name: 'weather', input: {} }),
    { type: 'content_block_delta', index: 1, delta: { type: 'input_json_delta', partial_json: '{"city":"Oslo"}' } },
    { type: 'content_block_stop', index: 1 },
    { type: 'message_delta', delta: { stop_reason: 'tool_use', stop_sequence: null }, usage: { output_tokens: 5 } },
    { type: 'message_stop' },
  ),
  responses: sse(
    { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', item_id: 'msg_1', output_index: 0, content_index: 0, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', item_id: 'msg_1', output_index: 0, content_index: 0, delta: 'Hello wörld' },
    { type: 'response.output_item.done', output_index: 0, item: { ...item, content: [part] } },
    { type: 'response.output_item.added', output_index: 1, item: { ...wants, arguments: '', status: 'in_progress' } },
    { type: 'response.output_item.done', output_index: 1, item: wants },
    {
      type: 'response.completed',
      response: {
        id: 'r',
        status: 'completed',
        output: [{ ...item, content: [part] }, wants],
        usage: { input_tokens: 3, output_tokens: 5, total_tokens: 8 },
      },
    },
  ),
  gemini: sse(
    { candidates: [{ content: { role: 'model', parts: [{ text: 'Hello ' }] } }] },
    {
      candidates: [
        {
          content: {
            role: 'model',
            parts: [{ text: 'wörld' }, { functionCall: { id: 'call_1', name: 'weather', args: { city: 'Oslo' } } }],
          },
          finishReason: 'STOP',
        },
      ],
      usageMetadata: { promptTokenCount: 3, candidatesTokenCount: 5, totalTokenCount: 8 },
    },
  ),
};
const CLIENTS = ['chat', 'responses', 'messages'];

function convert(from: string, to: string, text: string, ...more: readonly string[]): Promise<Finished> {
  return command(['convert', '--from', from, '--to', to, ...more], {}, [Buffer.from(text)]);
}

/** An answer as an SDK has gathered it. */
type Gathered = (stream: string) => Promise<{ readonly text: string; readonly input: unknown }>;

const served = (stream: string) => (): Promise<Response> =>
  Promise.resolve(new Response(stream, { headers: { 'content-type': 'text/event-stream' } }));

const GATHERED: Readonly<Record<string, Gathered>> = {
  async chat(stream) {
    const client = new OpenAI({ apiKey: 'k', fetch: served(stream) });
    const done = await client.chat.completions.stream({ model: 'm', messages: [] }).finalChatCompletion();
    const message = done.choices[0]?.message;
    const [wanted] = message?.tool_calls ?? [];
    return {
      text: message?.content ?? '',
      input: wanted?.type === 'function' ? JSON.parse(wanted.function.arguments) : undefined,
    };
  },
  async responses(stream) {
    const client = new OpenAI({ apiKey: 'k', fetch: served(stream) });
    const done = await client.responses.stream({ model: 'm', input: '' }).finalResponse();
    const wanted = done.output.find(({ type }) => type === 'function_call');
    return { text: done.output_text, input: wanted?.type === 'function_call' ? JSON.parse(wanted.arguments) : undefined };
  },
  async messages(stream) {
    const client = new Anthropic({ apiKey: 'k', fetch: served(stream) });
    const { content } = await client.messages.stream({ model: 'm', max_tokens: 1, messages: [] }).finalMessage();
    const wanted = content.find(({ type }) => type === 'tool_use');
    const texts = content.flatMap((one) => (one.type === 'text' ? [one.text] : []));
    return { text: texts.join(''), input: wanted?.type === 'tool_use' ? wanted.input : undefined };
  },
};

for (const from of Object.keys(ANSWERS)) {
  for (const to of CLIENTS) {
    test(`mizu convert: ${from} to ${to}: the same bytes at every cut, and what the vendor's SDK makes of them`, async () => {
      const text = ANSWERS[from] ?? '';
      const plain = await convert(from, to, text);
      assert.deepEqual({ code: plain.code, err: plain.err }, { code: 0, err: '' });
      for (const size of [1, 2, 7, 64]) assert.deepEqual(await convert(from, to, text, '--chunk', String(size)), plain);
      assert.deepEqual(await GATHERED[to]?.(plain.out), { text: 'Hello wörld', input: { city: 'Oslo' } });
      const whole = await convert(from, to, text, '--whole');
      assert.equal(whole.code, 0);
      assert.match(JSON.stringify(JSON.parse(whole.out)), /Hello wörld.*Oslo/);
    });
  }
}

test('mizu convert: a failure is the ending of the client on standard output, one line on standard error, and exit code 1', async () => {
  const cut = (ANSWERS['chat'] ?? '').slice(0, 400);
  const streamed = await convert('chat', 'messages', cut);
  assert.equal(streamed.code, 1);
  assert.match(streamed.out, /event: error\ndata: \{"type":"error",.*\}\n\n$/);
  assert.match(streamed.err, /^mizu: upstream_error: [^\n]+\n$/);
  const whole = await convert('chat', 'messages', cut, '--whole');
  assert.equal(whole.code, 1);
  assert.equal(JSON.parse(whole.out).type, 'error');
  const calling = await convert('chat', 'completions', ANSWERS['chat'] ?? '');
  assert.equal(calling.code, 1);
  assert.match(calling.err, /^mizu: response_not_representable: /);
  assert.match(calling.out, /"text":"Hello "/);
});

test('mizu convert: what the upstream itself reports as failed is exit code 1, too', async () => {
  const failed = { id: 'r', status: 'failed', output: [], error: { code: 'server_error', message: 'down' } };
  const text = sse(
    { type: 'response.created', response: { id: 'r', output: [] } },
    { type: 'response.failed', response: failed },
  );
  for (const to of [...CLIENTS, 'completions']) {
    for (const more of [[], ['--whole']]) {
      const { code, out, err } = await convert('responses', to, text, ...more);
      assert.equal(code, 1, to);
      assert.match(out, /down|server_error/);
      assert.match(err, /^mizu: [^\n]+\n$/);
    }
  }
});

test('mizu convert: tools and options come from the request of --request', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-convert-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const file = join(folder, 'request.json');
  const text = ANSWERS['chat'] ?? '';
  const messages = [{ role: 'user', content: 'hi' }];
  writeFileSync(file, JSON.stringify({ model: 'mine', messages, stream_options: { include_usage: true }, stream: true }));
  const counted = await convert('chat', 'chat', text, '--request', file);
  assert.equal(counted.code, 0);
  assert.match(counted.out, /"model":"mine".*"total_tokens":8/s);
  assert.doesNotMatch((await convert('chat', 'chat', text)).out, /total_tokens/);
  for (const wrong of ['{', '[]', '{"model":"m"}']) {
    writeFileSync(file, wrong);
    const { code, out, err } = await convert('chat', 'chat', text, '--request', file);
    assert.deepEqual({ code, out }, { code: 2, out: '' });
    assert.match(err, /cannot be used/);
  }
  assert.equal((await convert('chat', 'chat', text, '--request', join(folder, 'none.json'))).code, 2);
});

test('mizu convert: mistakes of usage are exit code 2, and standard output stays empty', async () => {
  const wrong = [
    ['--to', 'chat'],
    ['--from', 'chat'],
    ['--from', 'completions', '--to', 'chat'],
    ['--from', 'chat', '--to', 'gemini'],
    ['--from', 'chat', '--to', 'chat', '--chunk', '0'],
    ['--from', 'chat', '--to', 'chat', '--chunk', 'x'],
    ['--from', 'chat', '--to', 'chat', '--json'],
    ['--from', 'chat', '--to', 'chat', '--config', 'x'],
    ['--from', 'chat', '--to', 'chat', '--limit', '1'],
    ['--from', 'chat', '--to', 'chat', 'more'],
  ];
  for (const args of wrong) {
    const { code, out, err } = await command(['convert', ...args]);
    assert.deepEqual({ code, out }, { code: 2, out: '' }, args.join(' '));
    assert.match(err, /^mizu: /);
  }
});

test('mizu convert: a recorded stream, cut or not, gives the same output', { skip: skipWithoutFixtures }, async () => {
  const targets = [...CLIENTS, 'completions'];
  const streams = recordings().filter(({ kind, text }) => kind === 'stream' && text.length <= 500_000);
  for (const [at, { name, dialect, text }] of drawn(streams, 60, 'convert').entries()) {
    const to = targets[at % targets.length] ?? 'chat';
    const plain = await convert(dialect, to, text);
    assert.ok(plain.code === 0 ? plain.err === '' : plain.code === 1 && plain.err.split('\n').length === 2, name);
    assert.deepEqual(await convert(dialect, to, text, '--chunk', '97'), plain, name);
  }
});
