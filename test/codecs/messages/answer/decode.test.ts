import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import { fold } from '../../../../src/codecs/canonical/fold.ts';
import type { JsonObject } from '../../../../src/codecs/canonical/json.ts';
import { messagesClient, messagesUpstream } from '../../../../src/codecs/messages/index.ts';
import { UPSTREAM, type UpstreamState, type UpstreamVerb } from '../../../../src/codecs/messages/lifecycle.ts';
import { checkMessagesStream } from '../../../support/client-order/messages.ts';
import { canonical, decodeContext, decodeFrames, encodeSteps, payloads, target } from '../support.ts';

const start = { type: 'message_start', message: { id: 'm', content: [] } };
const text = (index: number) => ({ type: 'content_block_start', index, content_block: { type: 'text', text: '' } });
const stop = (index: number) => ({ type: 'content_block_stop', index });
const delta = (index: number, body: JsonObject) => ({ type: 'content_block_delta', index, delta: body });
const end = { type: 'message_delta', delta: { stop_reason: 'end_turn' } };
const bye = { type: 'message_stop' };

function reasonOf(list: readonly JsonObject[]): string | undefined {
  return decodeFrames(payloads(list)).error?.details.reason;
}

const OPEN_BLOCKS: readonly (readonly [string, JsonObject, JsonObject, unknown])[] = [
  ['text', { type: 'text', text: '' }, { type: 'text_delta', text: 'a' }, { text: 'a' }],
  ['thinking', { type: 'thinking', thinking: '' }, { type: 'thinking_delta', thinking: 'a' }, { summary: ['a'] }],
  ['a signature', { type: 'thinking', thinking: 'a' }, { type: 'signature_delta', signature: 'half' }, { summary: ['a'] }],
  [
    'a call',
    { type: 'tool_use', id: 't', name: 'f', input: {} },
    { type: 'input_json_delta', partial_json: '{"a' },
    { input: '{"a' },
  ],
  [
    'a server tool',
    { type: 'server_tool_use', id: 't', name: 'web_search', input: {} },
    { type: 'input_json_delta', partial_json: '{"a' },
    {},
  ],
  ['redacted thinking', { type: 'redacted_thinking', data: 'R' }, { type: 'x_delta' }, {}],
  ['a picture', { type: 'image', source: { type: 'url', url: 'https://a.example/a.png' } }, { type: 'x_delta' }, {}],
  ['an unknown block', { type: 'x' }, { type: 'x_delta', x: 1 }, {}],
];

for (const [what, block, piece, said] of OPEN_BLOCKS) {
  test(`a limit cuts ${what} that is open, and its client sees the end of it; every other stop is an error`, () => {
    const begun = [start, { type: 'content_block_start', index: 0, content_block: block }, delta(0, piece)];
    const limit = { type: 'message_delta', delta: { stop_reason: 'max_tokens' } };
    const { steps, events } = decodeFrames(payloads([...begun, limit, bye]));
    const ended = events.find((event) => event.type === 'item.end');
    assert.ok(ended?.type === 'item.end' && ended.status === 'incomplete');
    assert.deepEqual(Object.fromEntries(Object.keys(said as object).map((key) => [key, Reflect.get(ended.item, key)])), said);
    if (ended.item.kind === 'reasoning' && what !== 'redacted thinking') assert.equal(ended.item.opaque, undefined);
    const frames = encodeSteps(steps);
    checkMessagesStream(frames);
    assert.equal(frames.at(-1)?.event, 'message_stop');
    assert.equal(reasonOf([...begun, end, bye]), 'illegal_lifecycle');
  });
}

test('illegal orders', () => {
  const hi = { type: 'text_delta', text: 'x' };
  const orders: JsonObject[][] = [
    [text(0)],
    [bye],
    [end],
    [start, delta(0, hi)],
    [start, stop(0)],
    [start, text(0), delta(1, hi)],
    [start, text(0), stop(1)],
    [start, text(0), text(0)],
    [start, text(0), text(1)],
    [start, text(0), stop(0), text(0)],
    [start, text(0), stop(0), delta(0, hi)],
    [start, text(0), stop(0), stop(0)],
    [start, text(0), end],
    [start, text(0), bye],
    [start, bye],
    [start, end, text(0)],
    [start, text(0), delta(0, { type: 'thinking_delta', thinking: 'x' })],
    [start, text(0), delta(0, { type: 'input_json_delta', partial_json: '' })],
    [start, text(0), delta(0, { type: 'signature_delta', signature: 's' })],
  ];
  for (const order of orders) assert.equal(reasonOf(order), 'illegal_lifecycle', JSON.stringify(order));
});

test('malformed known events', () => {
  const broken: JsonObject[][] = [
    [{ type: 'message_start' }],
    [{ type: 'message_start', message: { id: 5 } }],
    [start, { type: 'content_block_start', index: 'a', content_block: { type: 'text', text: '' } }],
    [start, { type: 'content_block_start', index: 0 }],
    [start, { type: 'content_block_start', index: 0, content_block: { type: 'text' } }],
    [start, { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', name: 'f', input: {} } }],
    [start, text(0), delta(0, { type: 'text_delta' })],
    [start, text(0), delta(0, { type: 'text_delta', text: 5 })],
    [start, text(0), { type: 'content_block_delta', index: 0 }],
    [start, { type: 'message_delta' }],
    [start, { ...end, usage: 5 }],
    [{ type: 'message_start', message: { content: 5 } }],
    [{ type: 'message_start', message: { content: [5], stop_reason: 'end_turn' } }],
    [start, { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: '', name: 'f', input: {} } }],
  ];
  for (const order of broken) assert.equal(reasonOf(order), 'malformed_event', JSON.stringify(order));
  for (const type of ['content_block_start', 'content_block_delta', 'message_delta']) {
    const order = type === 'content_block_delta' ? [start, text(0), { type, index: 0 }] : [start, { type, index: 0 }];
    const { error } = decodeFrames(order.map((event) => ({ event: undefined, data: JSON.stringify(event) })));
    assert.match(error?.message ?? '', new RegExp(`malformed event \\(${type}`), 'it says which');
  }
  for (const data of ['{', '[]'])
    assert.equal(decodeFrames([{ event: 'message_start', data }]).error?.details.reason, 'malformed_event');
  assert.equal(decodeFrames([{ event: undefined, data: '[DONE]' }]).error?.details.reason, 'truncated');
});

test('after message_stop nothing is read', () => {
  const { error, events } = decodeFrames([
    ...payloads([start, end, bye]),
    { event: undefined, data: '[DONE]' },
    ...payloads([start]),
  ]);
  assert.equal(error, undefined);
  assert.equal(events.length, 2);
});

test('the table: a stream that ends well passed through a stop reason', () => {
  const verbs = Object.keys(UPSTREAM.idle) as UpstreamVerb[];
  for (const state of Object.keys(UPSTREAM) as UpstreamState[]) {
    for (const verb of verbs) {
      if (verb === 'end' && UPSTREAM[state][verb] !== null) assert.ok(state === 'stopped' || state === 'whole');
    }
  }
});

test('whole = fold(stream)', () => {
  const content = [
    { type: 'thinking', thinking: 't', signature: 's' },
    { type: 'text', text: 'x', citations: null },
    { type: 'tool_use', id: 'c', name: 'f', input: { a: 1 } },
  ];
  const usage = { input_tokens: 3, output_tokens: 4 };
  const body = {
    id: 'm',
    type: 'message',
    role: 'assistant',
    model: 'u',
    content,
    stop_reason: 'tool_use',
    stop_sequence: null,
    usage,
  };
  const whole = fold(messagesUpstream.decodeResponse(JSON.stringify(body), decodeContext()).events);
  const streamed = decodeFrames(
    payloads([
      { type: 'message_start', message: { ...body, content: [], stop_reason: null } },
      { type: 'content_block_start', index: 0, content_block: { type: 'thinking', thinking: '', signature: '' } },
      delta(0, { type: 'thinking_delta', thinking: 't' }),
      delta(0, { type: 'signature_delta', signature: 's' }),
      stop(0),
      text(1),
      delta(1, { type: 'text_delta', text: 'x' }),
      stop(1),
      { type: 'content_block_start', index: 2, content_block: { type: 'tool_use', id: 'c', name: 'f', input: {} } },
      delta(2, { type: 'input_json_delta', partial_json: '{"a":1}' }),
      stop(2),
      { type: 'message_delta', delta: { stop_reason: 'tool_use' }, usage },
      bye,
    ]),
  );
  assert.deepEqual(fold(streamed.events), whole);
});

test('bodies that are no answers are refused', () => {
  const refused = (body: unknown) => {
    assert.throws(
      () => messagesUpstream.decodeResponse(typeof body === 'string' ? body : JSON.stringify(body), decodeContext()),
      GatewayError,
    );
  };
  for (const body of ['', '<html>', '[]', {}, { input_tokens: 5 }, { content: 'x', stop_reason: 'end_turn' }, { content: [] }])
    refused(body);
  refused({ content: [{ type: 'tool_use', id: 'c', name: 'f', input: '{"x' }], stop_reason: 'tool_use' });
});

test('a freeform custom tool that was lowered comes back as its text', () => {
  const request = canonical({
    items: [{ kind: 'text', role: 'user', text: 'x', citations: [] }],
    tools: [{ kind: 'custom', tool: { name: 'patch', namespace: 'n' }, at: 'tools[0]' }],
  });
  const { toolNames } = messagesUpstream.encodeRequest(request, target({ options: { lowerCustomTools: true } }));
  const context = decodeContext({ request, toolNames });
  const stream = (pieces: string[], reason: string) =>
    decodeFrames(
      payloads([
        start,
        { type: 'content_block_start', index: 0, content_block: { type: 'tool_use', id: 'c', name: 'patch', input: {} } },
        ...pieces.map((partial_json) => delta(0, { type: 'input_json_delta', partial_json })),
        stop(0),
        { type: 'message_delta', delta: { stop_reason: reason } },
        bye,
      ]),
      context,
    );
  const [whole] = fold(stream(['{"input":"a', '\\nb"}'], 'tool_use').events).items;
  assert.deepEqual(whole, {
    item: { kind: 'toolCall', toolType: 'custom', callId: 'c', tool: { name: 'patch', namespace: 'n' }, input: 'a\nb' },
    status: 'completed',
  });
  const [cut] = fold(stream(['{"input":"a\\n', 'b\\'], 'max_tokens').events).items;
  assert.equal(cut?.item.kind === 'toolCall' && cut.item.input, 'a\nb');
  assert.equal(cut?.status, 'incomplete');
  const megabytes = 'x'.repeat(20_000_000);
  const [long] = fold(stream([`{"input":"${megabytes}`], 'max_tokens').events).items;
  assert.ok(long?.item.kind === 'toolCall' && long.item.input === megabytes);
});

test('an error answer: what clients may read, and the rest for the log', () => {
  const text =
    '{"type":"error","error":{"type":"invalid_request_error","message":"bad https://x.test/y"},"request_id":"req_0123456789"}';
  const error = messagesUpstream.decodeError({ status: 400, headers: { 'retry-after': '2' }, text });
  assert.equal(error.message, 'bad [url]');
  assert.equal(error.details.upstream?.text, text);
  assert.equal(error.details.upstream?.status, 400);
  const details = '{"error_code":"thread_unsupported_request","unsupported":["thinking"]}';
  const said = text.replace(/"message":"[^"]*"/, `$&,"details":${details}`);
  const threaded = messagesUpstream.decodeError({ status: 400, headers: {}, text: said });
  assert.deepEqual(JSON.parse(messagesClient.encodeError(threaded, 'req_1')).error.details, {
    error_code: 'thread_unsupported_request',
  });
  const dated = { date: 'Wed, 21 Oct 2026 07:28:00 GMT', 'retry-after': 'Wed, 21 Oct 2026 07:28:05 GMT' };
  assert.equal(messagesUpstream.decodeError({ status: 529, headers: dated, text: '<html>' }).details.retryAfterMs, 5000);
});
