/**
 * What an answer had said when it broke off, and what its upstream says in an unusual place: no client loses it, and none gets it
 * twice.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CanonicalRequest } from '../../src/codecs/canonical/request.ts';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { bytesOf, decodeBytes, encodeSteps, ownerOf, requestOf, responseContext } from '../support/wire.ts';

/** The data of the frames that a streaming client gets for these events of an upstream. */
function converted(from: string, to: string, events: readonly object[], changes: Partial<CanonicalRequest> = {}): string[] {
  const upstream = UPSTREAMS.find(({ dialect }) => dialect === from);
  const client = CLIENTS.find(({ dialect }) => dialect === to);
  assert.ok(upstream !== undefined && client !== undefined);
  const request = requestOf(client.dialect, changes);
  const sse = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const done = from === 'chat' && !sse.includes('"error"') ? 'data: [DONE]\n\n' : '';
  const { steps, failure } = decodeBytes(upstream, [bytesOf(sse + done)], { request });
  return encodeSteps(client, steps, responseContext(client, ownerOf(upstream), { request }), failure).map(({ data }) => data);
}

const chunk = (delta: object, finish: string | null = null, more: object = {}): object => ({
  id: 'up',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'up-model',
  choices: [{ index: 0, delta, finish_reason: finish, ...more }],
});
const call = (index: number, id: string, input: string): object => ({
  tool_calls: [{ index, id, type: 'function', function: { name: 'f', arguments: input } }],
});
const more = (index: number, input: string): object => ({ tool_calls: [{ index, function: { arguments: input } }] });
const BROKEN = { error: { message: 'It broke.', code: 'server_error' } };

/** The text that a chat client has read. */
const contentOf = (frames: readonly string[]): string =>
  frames
    .flatMap((data) => (data === '[DONE]' ? [] : (JSON.parse(data).choices ?? [])))
    .map(({ delta }) => delta?.content ?? '')
    .join('');

test('a text that waited for a call when the stream failed is written before the failure, for a messages client', () => {
  const frames = converted('chat', 'messages', [chunk(call(0, 'a', '{"x":')), chunk({ content: 'Hello' }), BROKEN]);
  assert.match(frames.at(-2) ?? '', /Hello|content_block_stop/);
  assert.match(frames.join('\n'), /"text":"Hello"/);
  assert.match(frames.at(-1) ?? '', /"type":"error"/);
});

test('a text that waited for another when the stream failed is written before the failure, for a chat client', () => {
  const item = (index: number): object => ({
    type: 'response.output_item.added',
    output_index: index,
    item: { id: `msg_${index}`, type: 'message', role: 'assistant', status: 'in_progress', content: [] },
  });
  const part = (index: number): object => ({
    type: 'response.content_part.added',
    item_id: `msg_${index}`,
    output_index: index,
    content_index: 0,
    part: { type: 'output_text', text: '', annotations: [] },
  });
  const text = (index: number, delta: string): object => ({
    type: 'response.output_text.delta',
    item_id: `msg_${index}`,
    output_index: index,
    content_index: 0,
    delta,
  });
  const events = [
    { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
    ...[item(0), part(0), item(1), part(1), text(0, 'One'), text(1, 'Two')],
    {
      type: 'response.failed',
      response: { id: 'r', status: 'failed', output: [], error: { code: 'server_error', message: 'no' } },
    },
  ];
  assert.equal(contentOf(converted('responses', 'chat', events)).replaceAll('\n', ''), 'OneTwo');
});

test('what only the final message of a chunk holds reaches a chat client as a piece, before the finish', () => {
  const message = { role: 'assistant', content: 'Hello world' };
  const frames = converted('chat', 'chat', [chunk({ role: 'assistant', content: 'Hello' }), chunk({}, 'stop', { message })]);
  assert.equal(contentOf(frames), 'Hello world');
  assert.match(frames.at(-2) ?? '', /"finish_reason":"stop"/);
});

test('members beside `choices: []` and usage reach a chat client that has not asked for usage, and one that has', () => {
  const last = { ...chunk({}), choices: [], usage: { prompt_tokens: 1, completion_tokens: 1 }, citations: ['https://a.test'] };
  for (const includeUsage of [false, true]) {
    const frames = converted('chat', 'chat', [chunk({ content: 'Hi' }), chunk({}, 'stop'), last], { includeUsage });
    assert.equal(frames.filter((data) => data.includes('https://a.test')).length, 1);
    assert.equal(frames.join('').includes('prompt_tokens'), includeUsage);
  }
});

test('audio that the final message repeats is said once', () => {
  const audio = (data: string, transcript: string): object => ({ audio: { id: 'audio_1', data, transcript } });
  const events = [
    chunk(audio('AAAA', 'Hel')),
    chunk(audio('BBBB', 'lo')),
    chunk({}, 'stop', { message: { role: 'assistant', content: null, ...audio('AAAABBBB', 'Hello') } }),
  ];
  const upstream = UPSTREAMS.find(({ dialect }) => dialect === 'chat');
  assert.ok(upstream !== undefined);
  const sse = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const { fold } = decodeBytes(upstream, [bytesOf(`${sse}data: [DONE]\n\n`)]);
  const [said] = fold.whole({ status: 'completed', stop: 'end' }).items;
  assert.ok(said?.item.kind === 'media' && said.item.media.source.from === 'inline');
  assert.equal(said.item.media.source.data, 'AAAABBBB');
  assert.equal(said.item.media.reported?.['transcript'], 'Hello');
});

test('a text that a limit cut is incomplete, also where a native block follows it', () => {
  const upstream = UPSTREAMS.find(({ dialect }) => dialect === 'chat');
  assert.ok(upstream !== undefined);
  const blocks = [
    { type: 'text', text: 'Cut' },
    { type: 'reference', reference_ids: [1] },
  ];
  const sse = [chunk({ content: blocks }), chunk({}, 'length')].map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
  const { fold } = decodeBytes(upstream, [bytesOf(`${sse}data: [DONE]\n\n`)]);
  const { items } = fold.whole({ status: 'completed', stop: 'end' });
  assert.deepEqual(
    items.map(({ item, status }) => [item.kind, status]),
    [
      ['text', 'incomplete'],
      ['native', 'completed'],
    ],
  );
});

test('arguments `{}` that stand before the real ones are a placeholder, and no client gets both as if they were whole', () => {
  const events = [chunk(call(0, 'a', '{}')), chunk(more(0, '{"a":1}')), chunk({}, 'tool_calls')];
  for (const to of ['responses', 'messages']) {
    const text = converted('chat', to, events).join('\n');
    assert.doesNotMatch(text, /\{\}\{|"delta":"\{\}"/, to);
    assert.match(text, /\{\\"a\\":1\}/, to);
    assert.match(text, /response\.completed|message_stop/, to);
  }
  const native = converted('chat', 'chat', events);
  assert.match(native.at(-1) ?? '', /"error"/);
  const alone = [chunk(call(0, 'a', '{}')), chunk({}, 'tool_calls')];
  for (const to of ['chat', 'responses', 'messages']) {
    const text = converted('chat', to, alone).join('\n');
    assert.equal(text.match(/"(arguments|delta|partial_json)":"\{\}"/g)?.length, to === 'responses' ? 2 + 2 : 1, to);
  }
});
