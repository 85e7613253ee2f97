import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import { GatewayError, upstreamFault } from '../../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent } from '../../../../src/codecs/canonical/event.ts';
import { fold } from '../../../../src/codecs/canonical/fold.ts';
import type { JsonObject } from '../../../../src/codecs/canonical/json.ts';
import type { Usage } from '../../../../src/codecs/canonical/usage.ts';
import type { Frame } from '../../../../src/codecs/codec.ts';
import { messagesClient, messagesUpstream } from '../../../../src/codecs/messages/index.ts';
import { checkMessagesStream } from '../../../support/client-order/messages.ts';
import { decodeBody, decodeContext, decodeFrames, encodeSteps, open, payloads, responseContext, seal } from '../support.ts';

const gemini = { channelType: 'gemini', scope: 'g', model: 'm' } as const;
const start: CanonicalEvent = { type: 'response.start' };
const done: CanonicalEvent = { type: 'response.end', outcome: { status: 'completed', stop: 'end' } };
const call = (index: number, callId: string): CanonicalEvent => ({
  type: 'item.start',
  index,
  head: { kind: 'toolCall', toolType: 'function', callId, tool: { name: 'f' } },
});
const input = (index: number, text: string): CanonicalEvent => ({ type: 'item.delta', index, delta: { kind: 'input', text } });
const called = (index: number, callId: string, text: string, more: object = {}): CanonicalEvent => ({
  type: 'item.end',
  index,
  item: { kind: 'toolCall', toolType: 'function', callId, tool: { name: 'f' }, input: text, ...more },
  status: 'completed',
});
const textItem = (index: number, text: string): CanonicalEvent[] => [
  { type: 'item.start', index, head: { kind: 'text', role: 'assistant' } },
  { type: 'item.delta', index, delta: { kind: 'text', text } },
  { type: 'item.end', index, item: { kind: 'text', role: 'assistant', text, citations: [] }, status: 'completed' },
];

function encode(events: readonly CanonicalEvent[]): Frame[] {
  const frames = encodeSteps(events.map((event) => ({ events: [event] })));
  checkMessagesStream(frames);
  return frames;
}

/** One line an event: what a reader needs to see of the order. */
function outline(frames: readonly Frame[]): string[] {
  return frames.map(({ event, data }) => {
    const json = JSON.parse(data);
    if (event === 'content_block_start') return `${json.index} start ${json.content_block.type}`;
    if (event === 'content_block_delta') return `${json.index} ${Object.values(json.delta).join(' ')}`;
    if (event === 'content_block_stop') return `${json.index} stop`;
    if (event === 'message_delta') return `${json.delta.stop_reason}`;
    return String(event);
  });
}

/** The official SDK's reading of a stream. */
async function sdkMessage(frames: readonly Frame[]): Promise<Anthropic.Message> {
  const body = frames.map(({ event, data }) => `event: ${event}\ndata: ${data}\n\n`).join('');
  const answer = async () => new Response(body, { headers: { 'content-type': 'text/event-stream' } });
  const client = new Anthropic({ apiKey: 'key', baseURL: 'http://test.invalid', fetch: answer, maxRetries: 0 });
  return client.messages.stream({ model: 'm', max_tokens: 1, messages: [{ role: 'user', content: 'hi' }] }).finalMessage();
}

test('parallel calls: the first streams live, the next wait and follow in order', () => {
  const frames = encode([
    start,
    call(0, 'a'),
    call(1, 'b'),
    input(0, '{"x":'),
    input(1, '{"y"'),
    input(0, '1}'),
    input(1, ':2}'),
    called(0, 'a', '{"x":1}'),
    called(1, 'b', '{"y":2}'),
    done,
  ]);
  assert.deepEqual(outline(frames), [
    'message_start',
    '0 start tool_use',
    '0 input_json_delta {"x":',
    '0 input_json_delta 1}',
    '0 stop',
    '1 start tool_use',
    '1 input_json_delta {"y":2}',
    '1 stop',
    'tool_use',
    'message_stop',
  ]);
});

test('texts that a responses upstream says piece by piece are a block each; those of others give way', () => {
  const head = { kind: 'text', role: 'assistant' } as const;
  const says = (index: number, text: string): CanonicalEvent => ({ type: 'item.delta', index, delta: { kind: 'text', text } });
  const ends = (index: number, text: string): CanonicalEvent => ({
    type: 'item.end',
    index,
    item: { ...head, text, citations: [] },
    status: 'completed',
  });
  const starts = [0, 1].map((index): CanonicalEvent => ({ type: 'item.start', index, head }));
  const events = [start, ...starts, says(0, 'a'), says(1, 'x'), says(0, 'b'), says(1, 'y'), ends(0, 'ab'), ends(1, 'xy'), done];
  const read = (channelType: 'responses' | 'chat_completion') => {
    const owner = { channelType, scope: 's', model: 'm' };
    const encoder = messagesClient.encodeEvents({ ...responseContext(), owner });
    const frames: Frame[] = [];
    encoder.push({ events }, frames);
    checkMessagesStream(frames);
    return outline(frames).filter((line) => line.includes('text_delta'));
  };
  assert.deepEqual(read('responses'), ['0 text_delta a', '0 text_delta b', '1 text_delta xy']);
  assert.deepEqual(
    read('chat_completion').map((line) => line.slice(0, 1)),
    ['0', '1', '2', '3'],
  );
});

test('arguments are on the wire before their call ends', () => {
  const frames = encodeSteps(
    [{ events: [start] }, { events: [call(0, 'a')] }, { events: [input(0, '{"x')] }],
    upstreamFault('truncated', 'x'),
  );
  assert.deepEqual(outline(frames).slice(0, 3), ['message_start', '0 start tool_use', '0 input_json_delta {"x']);
  checkMessagesStream(frames);
});

test('arguments that say nothing are the empty object, live and whole', () => {
  for (const said of ['', 'null']) {
    const events = [
      start,
      call(0, 'a'),
      input(0, said),
      called(0, 'a', said),
      { ...done, outcome: { status: 'completed', stop: 'toolUse' } },
    ];
    const frames = encode(events as CanonicalEvent[]);
    assert.deepEqual(outline(frames).slice(1, 4), ['0 start tool_use', '0 input_json_delta {}', '0 stop']);
    const body = messagesClient.encodeResponse(fold(events as CanonicalEvent[]), undefined, responseContext());
    assert.deepEqual(JSON.parse(body).content, [{ type: 'tool_use', id: 'a', name: 'f', input: {}, caller: { type: 'direct' } }]);
  }
});

test('empty deltas open no block, and text gives way to a call', () => {
  const frames = encode([
    start,
    { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } },
    { type: 'item.delta', index: 0, delta: { kind: 'text', text: '' } },
    call(1, 'a'),
    { type: 'item.end', index: 0, item: { kind: 'text', role: 'assistant', text: '', citations: [] }, status: 'completed' },
    called(1, 'a', ''),
    done,
  ]);
  assert.deepEqual(outline(frames), [
    'message_start',
    '0 start tool_use',
    '0 input_json_delta {}',
    '0 stop',
    'tool_use',
    'message_stop',
  ]);
});

test('a signature comes once, whole, at the end of its thinking; where nobody signed it, it is an envelope of the gateway with the text', async () => {
  const opaque = { owner: gemini, value: 'sig' };
  const reasoning = (index: number, more: object): CanonicalEvent[] => [
    { type: 'item.start', index, head: { kind: 'reasoning' } },
    { type: 'item.delta', index, delta: { kind: 'summary', part: 0, text: 'one' } },
    { type: 'item.delta', index, delta: { kind: 'summary', part: 1, text: 'two' } },
    { type: 'item.end', index, item: { kind: 'reasoning', summary: ['one', 'two'], ...more }, status: 'completed' },
  ];
  const unsigned = { owner: UNSIGNED_OWNER, value: '{"summary":["one","two"]}', form: 'unsigned' };
  const frames = encode([start, ...reasoning(0, { opaque }), ...reasoning(1, {}), ...textItem(2, 'hi'), done]);
  const message = await sdkMessage(frames);
  assert.deepEqual(
    message.content.map((block) => (block.type === 'thinking' ? [block.thinking, block.signature] : block.type)),
    [['one\n\ntwo', seal(opaque)], ['one\n\ntwo', seal(unsigned)], 'text'],
  );
});

test('paragraphs of unsigned thinking that something interrupts are signed as they stand, each break once', async () => {
  const thought = (part: number, text: string): CanonicalEvent => ({
    ...{ type: 'item.delta', index: 0, delta: { kind: 'summary', part, text } },
  });
  const summary = ['one, two', 'three', 'four', 'five'];
  const frames = encode([
    start,
    { type: 'item.start', index: 0, head: { kind: 'reasoning' } },
    ...[thought(0, 'one, '), thought(0, 'two'), thought(1, 'three'), thought(2, 'four')],
    ...[call(1, 'a'), input(1, '{}'), called(1, 'a', '{}')],
    thought(3, 'five'),
    { type: 'item.end', index: 0, item: { kind: 'reasoning', summary }, status: 'completed' },
    done,
  ]);
  const message = await sdkMessage(frames);
  const thinking = message.content.flatMap((block) => (block.type === 'thinking' ? [block] : []));
  for (const { thinking: shown, signature } of thinking) {
    const held = open(signature);
    assert.equal(held?.form, 'unsigned');
    assert.deepEqual(JSON.parse(held?.value ?? '').summary.join('\n\n'), shown);
  }
  assert.deepEqual(
    thinking.map((block) => block.thinking),
    ['one, two\n\nthree\n\nfour', '\n\nfive'],
  );
});

const UNSIGNED_OWNER = { channelType: 'messages', scope: 'https://upstream.test', model: 'up-model' } as const;

test('signatures of calls and texts come back to them', () => {
  const events: CanonicalEvent[] = [
    start,
    { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } },
    {
      type: 'item.end',
      index: 0,
      item: { kind: 'text', role: 'assistant', text: 'hi', citations: [], opaque: { owner: gemini, value: 'T' } },
      status: 'completed',
    },
    call(1, 'a'),
    call(2, 'b'),
    called(1, 'a', '{}', { opaque: { owner: gemini, value: 'A' } }),
    called(2, 'b', '{}', { opaque: { owner: gemini, value: 'B' } }),
    done,
  ];
  const whole = JSON.parse(messagesClient.encodeResponse(fold(events), undefined, responseContext()));
  const { items } = decodeBody({ model: 'm', messages: [{ role: 'assistant', content: whole.content }] });
  assert.deepEqual(
    items.map((item) => [item.kind, 'opaque' in item ? item.opaque : undefined]),
    [
      ['text', { owner: gemini, value: 'T' }],
      ['toolCall', { owner: gemini, value: 'A' }],
      ['toolCall', { owner: gemini, value: 'B' }],
    ],
  );
  const types = outline(encode(events)).filter((line) => line.includes('start'));
  assert.deepEqual(types.slice(1), [
    '0 start text',
    '1 start thinking',
    '2 start tool_use',
    '3 start thinking',
    '4 start tool_use',
    '5 start thinking',
  ]);
});

test('stop reasons', () => {
  const reason = (...events: CanonicalEvent[]) => outline(encode([start, ...events])).at(-2);
  const incomplete = (why: 'max_output' | 'content_filter' | 'context_window' | 'pause' | 'compaction'): CanonicalEvent => ({
    type: 'response.end',
    outcome: { status: 'incomplete', reason: why },
  });
  assert.equal(reason(...textItem(0, 'x'), done), 'end_turn');
  assert.equal(reason(call(0, 'a'), called(0, 'a', '{}'), done), 'tool_use');
  assert.equal(reason(call(0, 'a'), called(0, 'a', '{}'), incomplete('max_output')), 'max_tokens');
  const cut = { ...called(0, 'a', '{"cut'), status: 'incomplete' } as CanonicalEvent;
  assert.equal(reason(call(0, 'a'), input(0, '{"cut'), cut, incomplete('max_output')), 'max_tokens');
  assert.equal(reason(incomplete('content_filter')), 'refusal');
  assert.equal(reason(incomplete('context_window')), 'model_context_window_exceeded');
  assert.equal(reason(incomplete('pause')), 'pause_turn');
  assert.equal(reason(incomplete('compaction')), 'compaction');
  assert.equal(reason({ type: 'response.end', outcome: { status: 'completed', stop: 'toolUse' } }), 'end_turn');
  const refusal: CanonicalEvent[] = [
    { type: 'item.start', index: 0, head: { kind: 'refusal' } },
    { type: 'item.end', index: 0, item: { kind: 'refusal', text: 'no' }, status: 'completed' },
  ];
  assert.equal(reason(...refusal, done), 'refusal');
  const other: CanonicalEvent = { type: 'response.end', outcome: { status: 'incomplete', reason: 'other', native: 'end_turn' } };
  assert.equal(reason(other), 'max_tokens');
});

test('arguments that something else than a limit cut are an error of the stream, too', () => {
  const cut = [start, call(0, 'a'), input(0, '{"cut'), { ...called(0, 'a', '{"cut'), status: 'incomplete' } as CanonicalEvent];
  for (const why of ['content_filter', 'pause', 'compaction', 'other'] as const) {
    const end: CanonicalEvent = { type: 'response.end', outcome: { status: 'incomplete', reason: why } };
    assert.equal(outline(encode([...cut, end])).at(-1), 'error', why);
  }
});

test('a whole answer has no call that was cut, in its arguments or before them; a stream says it as far as it came', () => {
  for (const cut of ['', '{"x']) {
    const end = { ...called(0, 'a', cut), status: 'incomplete' } as CanonicalEvent;
    const events: CanonicalEvent[] = [start, call(0, 'a'), ...(cut === '' ? [] : [input(0, cut)]), end];
    events.push({ type: 'response.end', outcome: { status: 'incomplete', reason: 'max_output' } });
    assert.deepEqual(outline(encode(events)).slice(-2), ['max_tokens', 'message_stop']);
    assert.throws(
      () => messagesClient.encodeResponse(fold(events), undefined, responseContext()),
      (error: unknown) => error instanceof GatewayError && error.code === 'response_not_representable',
      cut,
    );
  }
});

test('whatever cannot be said ends in the error event, never in message_stop', () => {
  const media: CanonicalEvent = { type: 'item.start', index: 0, head: { kind: 'media' } };
  const error = new GatewayError('upstream_error', 'failed');
  const endings: CanonicalEvent[][] = [
    [start, media],
    [start, call(0, 'a'), called(0, 'a', '{"x')],
    [start, call(0, 'a'), called(0, 'a', '[]')],
    [start, { type: 'response.end', outcome: { status: 'failed', error } }],
    [{ type: 'response.end', outcome: { status: 'cancelled', error } }],
    [start],
  ];
  for (const events of endings) {
    const frames = encode(events);
    assert.equal(frames.at(-1)?.event, 'error', JSON.stringify(events));
    assert.equal(frames.filter(({ event }) => event === 'message_stop' || event === 'error').length, 1);
  }
});

test('usage: exclusive input, cache and reasoning in message_delta; zeros at the start when unknown', () => {
  const usage = { input: 5, cacheRead: 3, cacheWrite5m: 2, output: 7, reasoning: 4 };
  const frames = encode([start, ...textItem(0, 'x'), { type: 'usage.report', usage }, done]);
  assert.equal(JSON.parse(frames[0]?.data ?? '').message.usage.input_tokens, 0);
  assert.deepEqual(JSON.parse(frames.at(-2)?.data ?? '').usage, {
    input_tokens: 5,
    cache_creation_input_tokens: 2,
    cache_read_input_tokens: 3,
    cache_creation: { ephemeral_5m_input_tokens: 2, ephemeral_1h_input_tokens: 0 },
    output_tokens: 7,
    output_tokens_details: { thinking_tokens: 4 },
    // Typed clients require what nobody reported, too.
    server_tool_use: null,
    service_tier: null,
    inference_geo: null,
    speed: null,
  });
});

test('native: sparse indices become contiguous, fragments of a signature one value, pings go', () => {
  const { steps, error } = decodeFrames(
    payloads([
      { type: 'message_start', message: { id: 'm', model: 'u', content: [], usage: { input_tokens: 1, output_tokens: 1 } } },
      { type: 'ping' },
      { type: 'content_block_start', index: 3, content_block: { type: 'thinking', thinking: '', signature: 'a' } },
      { type: 'content_block_delta', index: 3, delta: { type: 'signature_delta', signature: 'b' } },
      { type: 'content_block_delta', index: 3, delta: { type: 'signature_delta', signature: 'c', extra: 1 } },
      { type: 'content_block_stop', index: 3 },
      { type: 'content_block_start', index: 7, content_block: { type: 'redacted_thinking', data: 'R' } },
      { type: 'content_block_stop', index: 7 },
      { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage: { output_tokens: 2 } },
      { type: 'message_stop' },
    ]),
  );
  assert.equal(error, undefined);
  const frames = encodeSteps(steps);
  checkMessagesStream(frames);
  const deltas = frames.filter(({ event }) => event === 'content_block_delta').map(({ data }) => JSON.parse(data));
  assert.equal(deltas.length, 1);
  assert.deepEqual(
    { ...deltas[0], delta: { ...deltas[0].delta, signature: open(deltas[0].delta.signature)?.value } },
    {
      type: 'content_block_delta',
      index: 0,
      delta: { type: 'signature_delta', signature: 'abc', extra: 1 },
    },
  );
  const redacted = JSON.parse(frames.find(({ data }) => data.includes('redacted'))?.data ?? '');
  assert.deepEqual(open(redacted.content_block.data)?.form, 'redacted');
});

test('native: an upstream error keeps its type, loses its text and request id', () => {
  const said = {
    type: 'error',
    error: { type: 'overloaded_error', message: 'see https://up.test/acct_12345678' },
    request_id: 'req_1',
  };
  const frames = encodeSteps(decodeFrames(payloads([said])).steps);
  assert.deepEqual(JSON.parse(frames[0]?.data ?? ''), {
    type: 'error',
    error: { type: 'overloaded_error', message: 'The upstream is overloaded.' },
  });
  const clientReads = (error: JsonObject) =>
    JSON.parse(encodeSteps(decodeFrames(payloads([{ type: 'error', error }])).steps)[0]?.data ?? '').error;
  assert.equal(clientReads({ type: 'authentication_error', message: 'invalid x-api-key' }).type, 'api_error');
  const long = { type: 'invalid_request_error', message: 'too long', code: 'context_length_exceeded' };
  assert.deepEqual(clientReads({ ...long, host: 'up.test' }), long);
  const thread = { type: 'invalid_request_error', message: 'no', details: { error_code: 'thread_unsupported_request' } };
  assert.deepEqual(clientReads({ ...thread, host: 'up.test' }), thread);
});

test('native: a message_delta goes out with message_stop alone, and never before an error', () => {
  const usage = { input_tokens: 1, output_tokens: 1 };
  const said = [
    { type: 'message_start', message: { id: 'm', type: 'message', role: 'assistant', model: 'u', content: [], usage } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' }, usage },
    { type: 'vendor_note', note: 1 },
    { type: 'message_delta', delta: {}, usage },
  ];
  const eventsOf = (ending: JsonObject) => encodeSteps(decodeFrames(payloads([...said, ending])).steps).map(({ event }) => event);
  assert.deepEqual(eventsOf({ type: 'message_stop' }), said.map(({ type }) => type).concat('message_stop'));
  assert.deepEqual(eventsOf({ type: 'error', error: { type: 'overloaded_error', message: 'x' } }), ['message_start', 'error']);
  const endless = [...said, ...Array.from({ length: 300 }, () => said[3] ?? {})];
  const bounded = messagesClient.encodeEvents(responseContext());
  const { steps } = decodeFrames(payloads(endless));
  assert.throws(() => steps.forEach((step) => void bounded.push(step, [])), /more than 256 events/);
  const encoder = messagesClient.encodeEvents(responseContext());
  const frames: Frame[] = [];
  for (const step of decodeFrames(payloads(said)).steps) encoder.push(step, frames);
  encoder.fail(new GatewayError('upstream_error', 'cut'), frames);
  assert.deepEqual(
    frames.map(({ event }) => event),
    ['message_start', 'error'],
  );
});

test('native: a report of usage behind the ending repeats it, since the official SDK goes by the last message_delta', async () => {
  const usage = { input_tokens: 1, output_tokens: 0 };
  const begun = {
    type: 'message_start',
    message: { id: 'm', type: 'message', role: 'assistant', model: 'u', content: [], usage },
  };
  const details = { type: 'refusal', category: 'cyber', explanation: null };
  const delta = (more: JsonObject): JsonObject => ({ type: 'message_delta', delta: more, usage: { output_tokens: 7 } });
  const read = async (...deltas: JsonObject[]) => {
    const frames = encodeSteps(decodeFrames(payloads([begun, ...deltas, { type: 'message_stop' }])).steps);
    checkMessagesStream(frames);
    const { stop_reason, stop_sequence, stop_details, usage: counted } = await sdkMessage(frames);
    return [stop_reason, stop_sequence, stop_details, counted.output_tokens];
  };
  const cut = { stop_reason: 'stop_sequence', stop_sequence: 'END' };
  assert.deepEqual(await read(delta(cut), delta({})), ['stop_sequence', 'END', undefined, 7]);
  assert.deepEqual(await read(delta(cut), delta({ stop_reason: null, stop_sequence: null })), [
    'stop_sequence',
    'END',
    undefined,
    7,
  ]);
  assert.deepEqual(await read(delta({ stop_reason: 'refusal', stop_sequence: null, stop_details: details }), delta({})), [
    ...['refusal', null, details, 7],
  ]);
  assert.deepEqual(await read(delta(cut), delta({ stop_reason: 'end_turn', stop_sequence: null })), [
    'end_turn',
    null,
    undefined,
    7,
  ]);
});

test('native: an upstream error in other words becomes one of this dialect', () => {
  const spoken = (frame: Frame) => {
    const [only] = encodeSteps(decodeFrames([frame]).steps);
    return [only?.event, JSON.parse(only?.data ?? '')];
  };
  const limited = { type: 'rate_limit_error', message: 'The upstream is limiting requests.', code: 'upstream_error' };
  const expected = ['error', { type: 'error', error: limited }];
  const said = '{"error":{"message":"slow down, acct_12345678","code":"429"}}';
  assert.deepEqual(spoken({ event: undefined, data: said }), expected);
  assert.deepEqual(spoken({ event: 'error', data: said }), expected);
  const [event, body] = spoken({ event: 'error', data: '{"error":"boom at https://up.test"}' });
  assert.equal(event, 'error');
  assert.equal(body.error.type, 'api_error');
  assert.ok(!JSON.stringify(body).includes('up.test'));
});

test('native: members that official clients cannot do without are added where a server leaves them out', async () => {
  const block = { type: 'text', text: '' };
  const said = [
    { type: 'message_start', message: { id: 'm', model: 'u', usage: { input_tokens: 9 } } },
    { type: 'content_block_start', index: 0, content_block: block },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'hi' } },
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: {}, usage: { output_tokens: 4 } },
    { type: 'message_delta', delta: { stop_reason: 'end_turn' } },
    { type: 'message_stop' },
  ];
  const { steps, error } = decodeFrames(payloads(said));
  assert.equal(error, undefined);
  const message = await sdkMessage(encodeSteps(steps));
  assert.equal(message.type, 'message');
  assert.equal(message.role, 'assistant');
  assert.deepEqual(message.content, [{ ...block, text: 'hi' }]);
  assert.deepEqual(message.usage, { input_tokens: 9, output_tokens: 4 });

  const body = JSON.stringify({ id: 'm', model: 'u', content: [], stop_reason: 'end_turn', usage: null });
  const step = messagesUpstream.decodeResponse(body, decodeContext());
  const whole = JSON.parse(messagesClient.encodeResponse(fold(step.events), step.native, responseContext()));
  assert.deepEqual(whole, {
    id: responseContext().responseId,
    model: 'logical',
    content: [],
    stop_reason: 'end_turn',
    usage: { input_tokens: 0, output_tokens: 0 },
    type: 'message',
    role: 'assistant',
  });
});

test('usage: tiers by their word here, and both counters of server tools, as typed clients need them', () => {
  const said = (usage: Usage): Record<string, unknown> => {
    const frames = encode([start, ...textItem(0, 'x'), { type: 'usage.report', usage }, done]);
    return JSON.parse(frames.at(-2)?.data ?? '').usage;
  };
  const tiers = ['standard', 'priority', 'default', 'flex'].map((serviceTier) => said({ serviceTier })['service_tier']);
  assert.deepEqual(tiers, ['standard', 'priority', 'standard', null]);
  const searched = said({ meters: new Map([['web_search', 2]]) });
  assert.deepEqual(searched['server_tool_use'], { web_search_requests: 2, web_fetch_requests: 0 });
});

test('native: members of blocks that official clients cannot do without are added, too', async () => {
  const bare = [
    { type: 'thinking' },
    { type: 'thinking', thinking: 'hm', signature: null },
    { type: 'tool_use', id: 'a', name: 'f' },
    { type: 'tool_use', id: 'b', name: 'f', input: null },
  ];
  const whole = [
    { type: 'thinking', thinking: '', signature: '' },
    { type: 'thinking', thinking: 'hm', signature: '' },
    { type: 'tool_use', id: 'a', name: 'f', input: {} },
    { type: 'tool_use', id: 'b', name: 'f', input: {} },
  ];
  const blocks = bare.flatMap((content_block, index) => [
    { type: 'content_block_start', index, content_block },
    ...(index === 0 ? [{ type: 'content_block_delta', index, delta: { type: 'thinking_delta', thinking: 'so' } }] : []),
    { type: 'content_block_stop', index },
  ]);
  const said = [
    { type: 'message_start', message: { id: 'm', model: 'u' } },
    ...blocks,
    { type: 'message_delta', delta: { stop_reason: 'tool_use' } },
    { type: 'message_stop' },
  ];
  const message = await sdkMessage(encodeSteps(decodeFrames(payloads(said)).steps));
  assert.deepEqual(message.content, [{ ...whole[0], thinking: 'so' }, ...whole.slice(1)]);

  const body = JSON.stringify({ id: 'm', model: 'u', content: bare, stop_reason: 'tool_use' });
  const step = messagesUpstream.decodeResponse(body, decodeContext());
  const encoded = messagesClient.encodeResponse(fold(step.events), step.native, responseContext());
  assert.deepEqual(JSON.parse(encoded).content, whole);
});

test('native: counters that a server writes as words are numbers', () => {
  const usage = '{"input_tokens":"22","output_tokens":"7","service_tier":"standard"}';
  const lines = [
    `{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"u","usage":${usage}}}`,
    `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":${usage}}`,
    '{"type":"message_stop"}',
  ];
  const { steps } = decodeFrames(lines.map((data) => ({ event: undefined, data })));
  const [begun, ended] = encodeSteps(steps).map(({ data }) => JSON.parse(data));
  const numbers = { input_tokens: 22, output_tokens: 7, service_tier: 'standard' };
  assert.deepEqual([begun.message.usage, ended.usage], [numbers, numbers]);
});

test('native: what is no counter at all is one that is missing', () => {
  for (const word of ['""', '[]', '{}', '"many"', 'true']) {
    const lines = [
      '{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"u","usage":{"input_tokens":3,"output_tokens":2}}}',
      `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":${word}}}`,
      '{"type":"message_stop"}',
    ];
    const { steps } = decodeFrames(lines.map((data) => ({ event: undefined, data })));
    assert.equal(JSON.parse(encodeSteps(steps)[1]?.data ?? '').usage.output_tokens, 2, word);
  }
});

test('native: prices of routers in usage are left out', () => {
  const usage =
    '{"input_tokens":22,"output_tokens":7,"cost":0.10,"is_byok":false,"cost_details":{"upstream_inference_cost":0.1}}';
  const delta = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":${usage}}`;
  const begin =
    '{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"model":"u","usage":USAGE}}';
  const lines = [begin.replace('USAGE', usage), delta, '{"type":"message_stop"}'];
  const { steps, error } = decodeFrames(lines.map((data) => ({ event: undefined, data })));
  assert.equal(error, undefined);
  const said = encodeSteps(steps).map(({ data }) => data);
  assert.ok(!said.some((data) => data.includes('cost')));
  assert.equal(
    said[1],
    '{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":22,"output_tokens":7,"is_byok":false}}',
  );
});
