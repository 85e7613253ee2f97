/** What an answer of one dialect is in another where the two have no common word, streamed and whole. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import { fold } from '../../src/codecs/canonical/fold.ts';
import type { Dialect } from '../../src/codecs/canonical/dialect.ts';
import type { JsonObject } from '../../src/codecs/canonical/json.ts';
import type { ResponseContext } from '../../src/codecs/codec.ts';
import { openForTests } from '../support/wire.ts';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { bytesOf, decodeBytes, decodeContext, encodeSteps, ownerOf, requestOf, responseContext } from '../support/wire.ts';

const upstreamOf = (dialect: Dialect) => UPSTREAMS.find((codec) => codec.dialect === dialect) ?? assert.fail(dialect);
const clientOf = (dialect: Dialect) => CLIENTS.find((codec) => codec.dialect === dialect) ?? assert.fail(dialect);

const sse = (events: readonly object[]): string => events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');

interface Said {
  readonly frames: readonly JsonObject[];
  readonly body: string;
}

/** The frames and the body that a client gets for the bytes of a stream. */
function heard(from: Dialect, to: Dialect, text: string, changes: Partial<ResponseContext> = {}): Said {
  const upstream = upstreamOf(from);
  const client = clientOf(to);
  const { steps, events, failure } = decodeBytes(upstream, [bytesOf(text)]);
  const context = responseContext(client, ownerOf(upstream), changes);
  const frames = encodeSteps(client, steps, context, failure).flatMap(({ data }) =>
    data === '[DONE]' ? [] : [JSON.parse(data)],
  );
  let body: string;
  try {
    body = failure === undefined ? client.encodeResponse(fold(events), undefined, context) : client.encodeError(failure, 'req');
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    body = client.encodeError(error, 'req');
  }
  return { frames, body };
}

/** What a client gets for a whole body, whose text it may keep. */
function whole(from: Dialect, to: Dialect, json: object, changes: Partial<ResponseContext> = {}): JsonObject {
  const upstream = upstreamOf(from);
  const client = clientOf(to);
  const step = upstream.decodeResponse(JSON.stringify(json), decodeContext(ownerOf(upstream)));
  return JSON.parse(client.encodeResponse(fold(step.events), step.native, responseContext(client, ownerOf(upstream), changes)));
}

const item = (type: string): object => ({ type, id: `${type}_1`, call_id: 'call_1', status: 'completed' });
const ALONE: readonly (readonly [Dialect, string])[] = [
  ...['program', 'program_output', 'shell_call', 'mcp_approval_request'].map((type): readonly [Dialect, string] => [
    'responses',
    sse([
      { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
      { type: 'response.output_item.added', output_index: 0, item: item(type) },
      { type: 'response.output_item.done', output_index: 0, item: item(type) },
      { type: 'response.completed', response: { id: 'r', status: 'completed', output: [item(type)] } },
    ]),
  ]),
  [
    'messages',
    sse([
      { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', content: [], usage: {} } },
      { type: 'content_block_start', index: 0, content_block: { type: 'server_tool_use', id: 's', name: 'x', input: {} } },
      { type: 'content_block_stop', index: 0 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 1 } },
      { type: 'message_stop' },
    ]),
  ],
  ['gemini', sse([{ candidates: [{ content: { parts: [{ executableCode: { code: '1' } }] }, finishReason: 'STOP' }] }])],
];

test('what a usage report says beyond the counts is named as lost, streamed or whole, and the counts are not', () => {
  const known = {
    ...{
      prompt_tokens: 9,
      completion_tokens: 2,
      total_tokens: 11,
      reasoning_tokens: 1,
      cached_tokens: 4,
      service_tier: 'default',
    },
    ...{ prompt_cache_hit_tokens: 4, prompt_cache_miss_tokens: 5, server_tool_use: {}, server_tool_use_details: {} },
    ...{ prompt_tokens_details: { cached_tokens: 4 }, completion_tokens_details: { reasoning_tokens: 1 } },
  };
  const head = { id: 'c', created: 1, model: 'm' };
  for (const [usage, isLost] of [
    [known, false],
    [{ ...known, x_watts: 3 }, true],
    [{ ...known, x_watts: null }, false],
  ] as const) {
    const message = { role: 'assistant', content: 'hi' };
    const streamed = sse([
      { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta: message, finish_reason: 'stop' }] },
      { ...head, object: 'chat.completion.chunk', choices: [], usage },
    ]);
    const body = { ...head, object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }], usage };
    for (const hear of [
      (lost: (feature: string) => void) => heard('chat', 'messages', `${streamed}data: [DONE]\n\n`, { lost }),
      (lost: (feature: string) => void) => whole('chat', 'messages', body, { lost }),
    ]) {
      const lost = new Set<string>();
      hear((feature) => lost.add(feature));
      assert.equal(lost.has('usage: unknown members'), isLost, JSON.stringify(usage));
    }
  }
});

test('an answer of which another dialect can say nothing is no empty success, streamed or whole', () => {
  for (const [from, text] of ALONE) {
    for (const { dialect: to } of CLIENTS) {
      const { frames, body } = heard(from, to, text);
      const isSame = from === to;
      assert.equal(/response_not_representable/.test(JSON.stringify(frames.at(-1))), !isSame, `${from} to ${to}, streamed`);
      if (!isSame) assert.match(body, /response_not_representable/, `${from} to ${to}, whole`);
    }
  }
  // What was cut is told as cut, and reasoning beside it is no answer.
  const cut = ALONE[0]?.[1].replaceAll(
    '"completed","output"',
    '"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output"',
  );
  assert.match(JSON.stringify(heard('responses', 'chat', cut ?? '').frames), /"finish_reason":"length"/);
});

const chat = (delta: object, finish: string | null = null, more: object = {}): object => ({
  id: 'c',
  object: 'chat.completion.chunk',
  created: 1,
  model: 'up-model',
  choices: [{ index: 0, delta, finish_reason: finish }],
  ...more,
});

test('message_start has the estimate of the input, and message_delta what the upstream counted', () => {
  const usage = { prompt_tokens: 1234, completion_tokens: 5, total_tokens: 1239, prompt_tokens_details: { cached_tokens: 34 } };
  const counted = (from: Dialect, text: string, inputEstimate?: number): unknown[] => {
    const { frames, body } = heard(from, 'messages', text, inputEstimate === undefined ? {} : { inputEstimate });
    const start = frames[0] as { message: { usage: { input_tokens: number } } };
    const delta = frames.find(({ type }) => type === 'message_delta') as { usage: { input_tokens: number } } | undefined;
    return [start.message.usage.input_tokens, delta?.usage.input_tokens, JSON.parse(body).usage.input_tokens];
  };
  const late = `${sse([chat({ content: 'Hi' }), chat({}, 'stop'), { ...chat({}), choices: [], usage }])}data: [DONE]\n\n`;
  assert.deepEqual(counted('chat', late, 999), [999, 1200, 1200]);
  assert.deepEqual(counted('chat', late), [0, 1200, 1200]);
  // Nobody counted: the estimate is better than nothing.
  const never = `${sse([chat({ content: 'Hi' }), chat({}, 'stop')])}data: [DONE]\n\n`;
  assert.deepEqual(counted('chat', never, 999), [999, 999, 999]);
  // Counted with the first words: known before them.
  const early = sse([
    {
      candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 77, candidatesTokenCount: 1, totalTokenCount: 78 },
    },
  ]);
  assert.deepEqual(counted('gemini', early, 999), [77, 77, 77]);
  // All of it came from a cache.
  const cached = late.replace('"cached_tokens":34', '"cached_tokens":1234');
  assert.deepEqual(counted('chat', cached, 999), [999, 0, 0]);
});

const STOP_REASONS = [
  ...['end_turn', 'max_tokens', 'stop_sequence', 'tool_use', 'pause_turn', 'compaction', 'refusal'],
  'model_context_window_exceeded',
];
const WORDS = {
  chat: ['stop', 'length', 'tool_calls', 'content_filter', 'function_call'],
  responses: ['max_output_tokens', 'max_messages', 'content_filter', 'steered'],
  messages: STOP_REASONS,
} as const;
const responsesEnd = (reason: string): string =>
  sse([
    { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
    {
      type: 'response.incomplete',
      response: {
        id: 'r',
        status: 'incomplete',
        incomplete_details: { reason },
        output: [
          { type: 'message', id: 'm', role: 'assistant', status: 'incomplete', content: [{ type: 'output_text', text: 'x' }] },
        ],
      },
    },
  ]);
const messagesEnd = (reason: string): string =>
  sse([
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', content: [], usage: {} } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: 'x' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: reason }, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ]);
const geminiEnd = (reason: string): string =>
  sse([{ candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: reason }] }]);
const ENDS: readonly (readonly [Dialect, string, string])[] = [
  ['responses', 'steered', responsesEnd('steered')],
  ['responses', 'max_messages', responsesEnd('max_messages')],
  ['responses', 'a_new_reason', responsesEnd('a_new_reason')],
  ['messages', 'pause_turn', messagesEnd('pause_turn')],
  ['messages', 'compaction', messagesEnd('compaction')],
  ['messages', 'model_context_window_exceeded', messagesEnd('model_context_window_exceeded')],
  ['messages', 'a_new_reason', messagesEnd('a_new_reason')],
  ['gemini', 'CONTINUATION', geminiEnd('CONTINUATION')],
  [
    'chat',
    'insufficient_system_resource',
    `${sse([chat({ content: 'x' }), chat({}, 'insufficient_system_resource')])}data: [DONE]\n\n`,
  ],
];

test('a reason that the client’s dialect has no word for becomes one that it has, and the upstream’s word stands beside it', () => {
  for (const [from, reason, text] of ENDS) {
    for (const to of ['chat', 'responses', 'messages'] as const) {
      if (from === to) continue;
      const { frames, body } = heard(from, to, text);
      const said = [...JSON.stringify(frames).matchAll(/"(?:finish_reason|stop_reason|reason)":"(\w+)"/g)].at(-1)?.[1];
      const name = `${reason} of ${from} to ${to}`;
      assert.ok((WORDS[to] as readonly string[]).includes(said ?? ''), `${name}: ${said}`);
      const beside = /"native_(?:finish_|stop_)?reason":"(\w+)"/.exec(JSON.stringify(frames))?.[1];
      assert.equal(beside ?? said, reason, name);
      for (const word of [`"${said}"`, `"${reason}"`]) assert.ok(body.includes(word), `${name}, whole: ${body}`);
      // Never a word of success, but for what pauses or was compacted between items.
      if (from === 'responses' || from === 'gemini') assert.doesNotMatch(said ?? '', /^(stop|end_turn|tool_use|tool_calls)$/);
      const again = decodeBytes(upstreamOf(to), [bytesOf(to === 'chat' ? `${sse(frames)}data: [DONE]\n\n` : sse(frames))]);
      assert.equal(again.failure, undefined, name);
      const { outcome } = again.fold.whole({ status: 'completed', stop: 'end' });
      assert.equal(outcome.status, 'incomplete', name);
      // A chat reader goes by the finish reason, unless the word beside it is one that it knows.
      if (to !== 'chat') assert.equal(outcome.native, reason, name);
    }
  }
});

test('what Open Responses calls response.reasoning is raw reasoning, for every client', () => {
  const place = { item_id: 'rs_1', output_index: 0, content_index: 0 };
  const text = sse([
    { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { type: 'reasoning', id: 'rs_1', summary: [] } },
    { type: 'response.reasoning.delta', ...place, delta: 'Let me ' },
    { type: 'response.reasoning.delta', ...place, delta: 'think.' },
    { type: 'response.reasoning.done', ...place, text: 'Let me think.' },
    { type: 'response.output_item.done', output_index: 0, item: { type: 'reasoning', id: 'rs_1', summary: [] } },
    { type: 'response.completed', response: { id: 'r', status: 'completed', output: [] } },
  ]);
  const { events, failure, fold: folded } = decodeBytes(upstreamOf('responses'), [bytesOf(text)]);
  assert.equal(failure, undefined);
  const [only] = folded.whole({ status: 'completed', stop: 'end' }).items;
  assert.ok(only?.item.kind === 'reasoning' && only.item.raw === 'Let me think.');
  assert.equal(events.filter((event) => event.type === 'item.delta').length, 2);
  assert.match(JSON.stringify(heard('responses', 'chat', text).frames), /"reasoning_content":"Let me "/);
  assert.match(JSON.stringify(heard('responses', 'messages', text).frames), /"thinking":"Let me "/);
  assert.match(JSON.stringify(heard('responses', 'responses', text).frames.at(-1)), /"response.completed"/);
});

test('a whole chat answer without a finish reason is one where it says something, and ends as its calls say', () => {
  const call = { id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } };
  for (const to of ['chat', 'responses', 'messages'] as const) {
    const text = JSON.stringify(whole('chat', to, { choices: [{ message: { role: 'assistant', content: 'Hi' } }] }));
    assert.match(text, /"finish_reason":"stop"|"status":"completed"|"stop_reason":"end_turn"/, to);
    const called = JSON.stringify(
      whole('chat', to, { choices: [{ message: { role: 'assistant', content: null, tool_calls: [call] } }] }),
    );
    assert.match(called, /"finish_reason":"tool_calls"|"status":"completed"|"stop_reason":"tool_use"/, to);
  }
});

test('an end of the bytes inside an event is good behind the finish, and a truncation before it', () => {
  const cut = (from: Dialect, text: string): string =>
    CLIENTS.map(({ dialect }) => JSON.stringify(heard(from, dialect, text).frames.at(-1)))
      .map((last) => (/error/.test(last.replace('"error":null', '')) ? 'failed' : 'ended'))
      .join(' ');
  const good = 'ended ended ended ended';
  const bad = 'failed failed failed failed';
  const said = sse([chat({ content: 'Hi' }), chat({}, 'stop')]);
  for (const rest of ['data: [DONE]', 'data: {"id":"c","choices":[],"us', 'da', 'data: [DONE]\n'])
    assert.equal(cut('chat', said + rest), good, rest);
  assert.equal(cut('chat', `${sse([chat({ content: 'Hi' })])}data: {"id"`), bad);
  assert.equal(cut('chat', `${said}data: {"error":{"mess`), bad);
  const stopped = messagesEnd('end_turn').replace(/data: \{"type":"message_stop"\}\n\n$/, '');
  for (const rest of ['event: message_st', 'event: message_stop\ndata: {"type":"message_stop"}', 'data: {"ty'])
    assert.equal(cut('messages', stopped + rest), good, rest);
  assert.equal(cut('messages', stopped), bad);
  assert.equal(cut('messages', `${stopped.slice(0, stopped.indexOf('data: {"type":"message_delta"'))}data: {"type":"mess`), bad);
  assert.equal(cut('gemini', `${geminiEnd('STOP')}data: {"usageMeta`), good);
  assert.equal(cut('gemini', `${sse([{ candidates: [{ content: { parts: [{ text: 'x' }] } }] }])}data: {"cand`), bad);
});

test('an end inside an event behind the finish is good, too, where calls may have to be unwrapped', () => {
  const request = requestOf('messages', { tools: [{ kind: 'function', tool: { name: 'run' }, parameters: {}, at: 'tools[0]' }] });
  const said = sse([chat({ content: 'Hi' }), chat({}, 'stop')]);
  const { failure, fold: folded } = decodeBytes(upstreamOf('chat'), [bytesOf(`${said}data: [DON`)], { request });
  assert.equal(failure, undefined);
  assert.equal(folded.outcome?.status, 'completed');
});

test('reasoning above the output is added where the total shows that it stands outside', () => {
  const output = (usage: object): unknown => {
    const text = `${sse([chat({ content: 'x' }), chat({}, 'stop', { usage })])}data: [DONE]\n\n`;
    const delta = heard('chat', 'messages', text).frames.find(({ type }) => type === 'message_delta');
    return JSON.parse(JSON.stringify(delta)).usage.output_tokens;
  };
  const details = { completion_tokens_details: { reasoning_tokens: 30 } };
  assert.equal(output({ prompt_tokens: 10, completion_tokens: 20, total_tokens: 60, ...details }), 50);
  assert.equal(output({ prompt_tokens: 10, completion_tokens: 40, total_tokens: 80, ...details }), 70);
  assert.equal(output({ prompt_tokens: 10, completion_tokens: 40, total_tokens: 50, ...details }), 40);
  assert.equal(output({ prompt_tokens: 10, completion_tokens: 20, ...details }), 50);
});

test('content that is a list is a text for chat clients, with the reasoning and the calls beside it', () => {
  const blocks = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'Hm.' }] },
    { type: 'text', text: 'Hello ' },
    { type: 'reference', reference_ids: [1] },
    { type: 'output_text', text: 'you' },
    { type: 'tool_use', id: 'a', name: 'f', input: { x: 1 } },
  ];
  const body = whole('chat', 'chat', {
    id: 'c',
    choices: [{ index: 0, message: { role: 'assistant', content: blocks }, finish_reason: 'tool_calls' }],
  });
  const calls = [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{"x":1}' } }];
  assert.deepEqual((body['choices'] as JsonObject[])[0]?.['message'], {
    role: 'assistant',
    content: 'Hello you',
    reasoning_content: 'Hm.',
    tool_calls: calls,
  });
  const pieces = blocks.map((block) => chat({ content: [block] }));
  const { frames } = heard('chat', 'chat', `${sse([...pieces, chat({}, 'tool_calls')])}data: [DONE]\n\n`);
  const deltas = frames.flatMap(({ choices }) => (choices as { delta: JsonObject }[]).map(({ delta }) => delta));
  assert.equal(deltas.map(({ content }) => content ?? '').join(''), 'Hello you');
  assert.equal(deltas.map(({ reasoning_content: thought }) => thought ?? '').join(''), 'Hm.');
  assert.match(JSON.stringify(deltas), /"tool_calls":\[\{"index":0,"id":"a".*"arguments":"\{\\"x\\":1\}"/);
  // A call without arguments has an object in the end.
  const bare = chat({ content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] });
  assert.match(
    JSON.stringify(heard('chat', 'chat', `${sse([bare, chat({}, 'tool_calls')])}data: [DONE]\n\n`).frames),
    /"arguments":"\{\}"/,
  );
});

test('reasoning that other items interrupt is signed in each block that it leaves, as it is in a whole answer', () => {
  const details = (id: string, text: string): object => ({
    reasoning_details: [{ type: 'reasoning.text', id, text, format: 'anthropic-claude-v1', index: id === 'a' ? 0 : 1 }],
  });
  const text = `${sse([
    chat(details('a', 'One ')),
    chat(details('b', 'Two ')),
    chat(details('a', 'more')),
    chat({ content: 'Hi' }),
    chat({}, 'stop'),
  ])}data: [DONE]\n\n`;
  const { frames, body } = heard('chat', 'messages', text);
  const blocks: { type: string; thinking: string; signature: string }[] = [];
  for (const frame of frames) {
    if (frame['type'] === 'content_block_start') blocks.push({ ...(frame['content_block'] as (typeof blocks)[number]) });
    const delta = frame['delta'] as JsonObject | undefined;
    const block = blocks.at(-1);
    if (block === undefined || delta === undefined) continue;
    if (delta['type'] === 'thinking_delta') block.thinking += String(delta['thinking']);
    if (delta['type'] === 'signature_delta') block.signature = String(delta['signature']);
  }
  const signed = (all: typeof blocks) =>
    all.filter(({ type }) => type === 'thinking').map(({ thinking, signature }) => [thinking, openForTests(signature)?.value]);
  const envelope = (raw: string): string => JSON.stringify({ raw });
  assert.deepEqual(signed(blocks), [
    ['One ', envelope('One ')],
    ['Two ', envelope('Two ')],
    ['more', envelope('more')],
  ]);
  assert.deepEqual(signed(JSON.parse(body).content), [
    ['One more', envelope('One more')],
    ['Two ', envelope('Two ')],
  ]);
  assert.equal(blocks.at(-1)?.type, 'text');
});

test('arguments of white space are none: an object follows them, for every client, streamed and whole', () => {
  const call = (input: string): object => ({
    tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: input } }],
  });
  const chatText = `${sse([chat(call('')), chat({ tool_calls: [{ index: 0, function: { arguments: ' ' } }] }), chat({}, 'tool_calls')])}data: [DONE]\n\n`;
  const messagesText = messagesEnd('tool_use').replace(
    '{"type":"text","text":"x"}}\n\n',
    '{"type":"tool_use","id":"a","name":"f","input":{}}}\n\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":" "}}\n\n',
  );
  const whole = { type: 'function_call', id: 'fc_1', call_id: 'a', name: 'f', arguments: ' ', status: 'completed' };
  const responsesText = sse([
    { type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } },
    { type: 'response.output_item.added', output_index: 0, item: { ...whole, arguments: '', status: 'in_progress' } },
    { type: 'response.function_call_arguments.delta', item_id: 'fc_1', output_index: 0, delta: ' ' },
    { type: 'response.function_call_arguments.done', item_id: 'fc_1', output_index: 0, arguments: ' ' },
    { type: 'response.output_item.done', output_index: 0, item: whole },
    { type: 'response.completed', response: { id: 'r', status: 'completed', output: [whole] } },
  ]);
  for (const [from, text] of [
    ['chat', chatText],
    ['messages', messagesText],
    ['responses', responsesText],
  ] as const) {
    for (const to of ['chat', 'responses', 'messages'] as const) {
      if (from === to && from !== 'chat') continue;
      const { frames, body } = heard(from, to, text);
      const again = decodeBytes(upstreamOf(to), [bytesOf(to === 'chat' ? `${sse(frames)}data: [DONE]\n\n` : sse(frames))]);
      const said = again.fold.whole({ status: 'completed', stop: 'end' }).items.map((one) => one.item);
      const inputs = said.flatMap((one) => (one.kind === 'toolCall' ? [JSON.parse(one.input)] : []));
      assert.deepEqual(inputs, [{}], `${from} to ${to}: ${again.failure?.message}`);
      assert.match(body, /"(arguments|input)":("\s*\{\}"|\s*\{\})/, `${from} to ${to}, whole`);
    }
  }
  // The client of a chat stream has the object, too: it parses what it got.
  const pieces = [...JSON.stringify(heard('chat', 'chat', chatText).frames).matchAll(/"arguments":"([^"]*)"/g)].map(
    ([, text]) => text,
  );
  assert.deepEqual(JSON.parse(pieces.join('')), {});
});

test('a fallback that answered is in the totals already: nothing of it is counted twice', () => {
  const usage = {
    input_tokens: 10,
    output_tokens: 5,
    iterations: [
      { type: 'message', input_tokens: 9, output_tokens: 0 },
      { type: 'fallback_message', model: 'claude-b', input_tokens: 10, output_tokens: 5 },
    ],
  };
  const text = messagesEnd('end_turn').replace('"usage":{"output_tokens":1}', `"usage":${JSON.stringify(usage)}`);
  const { fold: folded } = decodeBytes(upstreamOf('messages'), [bytesOf(text)]);
  const { input, output, extra } = folded.usage ?? {};
  assert.deepEqual([input, output, extra], [10, 5, undefined]);
  assert.match(JSON.stringify(heard('messages', 'messages', text).frames), /"fallback_message"/);
});

test('audio has the format that a chat client asked for, or is an error: samples become a WAVE file by a header', () => {
  const samples = Buffer.from([1, 2, 3, 4]).toString('base64');
  const spoken = { inlineData: { mimeType: 'audio/L16;codec=pcm;rate=16000', data: samples } };
  const stream = sse([{ candidates: [{ content: { role: 'model', parts: [spoken] }, finishReason: 'STOP' }] }]);
  const asked = (format: string | undefined) => {
    const json = format === undefined ? {} : { audio: { voice: 'alloy', format } };
    const request = { ...requestOf('chat'), json };
    const { frames, body } = heard('gemini', 'chat', stream, { request });
    const streamed = /"audio":\{"id":"[^"]*","data":"([^"]*)"/.exec(JSON.stringify(frames))?.[1];
    const { choices, error } = JSON.parse(body);
    assert.equal(streamed, choices?.[0].message.audio.data, 'streamed and whole alike');
    return error?.code ?? streamed;
  };
  assert.equal(asked(undefined), samples, 'it asked for none');
  const file = Buffer.from(asked('wav'), 'base64');
  assert.equal(file.toString('latin1', 0, 4) + file.toString('latin1', 8, 16), 'RIFFWAVEfmt ');
  assert.deepEqual(
    [file.readUInt32LE(4), file.readUInt16LE(22), file.readUInt32LE(24), file.readUInt32LE(28), file.readUInt32LE(40)],
    [40, 1, 16_000, 32_000, 4],
  );
  assert.deepEqual([...file.subarray(44)], [1, 2, 3, 4]);
  assert.equal(asked('mp3'), 'response_not_representable');
  assert.equal(asked('pcm16'), 'response_not_representable', 'which has 24,000 samples a second');
});

test('a responses client is told the tier that was used: what it asked for, where the upstream was sent that, else the default', () => {
  const json = { model: 'logical-model', service_tier: 'flex' };
  const request = { ...requestOf('responses'), json };
  const finished = { role: 'assistant', content: 'hi' };
  const stream = (more: object): string => `${sse([{ ...chat(finished, 'stop'), ...more }])}data: [DONE]\n\n`;
  for (const [more, tier] of [
    [{}, 'default'],
    [{ service_tier: 'priority', usage: { prompt_tokens: 1, completion_tokens: 1 } }, 'priority'],
  ] as const) {
    const { frames, body } = heard('chat', 'responses', stream(more), { request });
    const last = frames.at(-1)?.['response'] as JsonObject;
    assert.deepEqual([last['service_tier'], JSON.parse(body).service_tier], [tier, tier]);
  }
  const output = [
    { type: 'message', id: 'm', role: 'assistant', content: [{ type: 'output_text', text: 'hi', annotations: [] }] },
  ];
  const completed = sse([{ type: 'response.completed', response: { id: 'r', status: 'completed', output } }]);
  assert.equal(JSON.parse(heard('responses', 'responses', completed, { request }).body).service_tier, 'flex');
});
