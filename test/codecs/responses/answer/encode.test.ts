import assert from 'node:assert/strict';
import { inOrder, requestOf } from '../../../support/wire.ts';
import { test } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, Step } from '../../../../src/codecs/canonical/event.ts';
import type { OutputItem } from '../../../../src/codecs/canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../../src/codecs/canonical/json.ts';
import type { Outcome } from '../../../../src/codecs/canonical/outcome.ts';
import { asSent, type SentRequest } from '../../../../src/codecs/canonical/request.ts';
import type { ClientEncoder, Frame } from '../../../../src/codecs/codec.ts';
import { atOnce } from '../../../../src/codecs/steps.ts';
import { responsesClient } from '../../../../src/codecs/responses/index.ts';
import { checkResponsesStream } from '../../../support/client-order/responses.ts';
import { headOf } from '../../../../src/codecs/canonical/item-emitter.ts';
import {
  bodiesOf,
  decode,
  decodeAll,
  encodeAll,
  framesOf,
  objectFrom,
  open,
  responseContext,
  seal,
  terminalOf,
} from '../support.ts';

const START: CanonicalEvent = { type: 'response.start', id: 'x', model: 'm' };
const END: CanonicalEvent = { type: 'response.end', outcome: { status: 'completed', stop: 'end' } };
const GEMINI = { channelType: 'gemini', scope: 'https://g.example', model: 'g' } as const;

function whole(index: number, item: OutputItem): CanonicalEvent[] {
  return [
    { type: 'item.start', index, head: headOf(item) },
    { type: 'item.end', index, item, status: 'completed' },
  ];
}

function encode(...events: CanonicalEvent[]): Frame[] {
  const frames = encodeAll([{ events: [START, ...events, END] }]);
  checkResponsesStream(frames);
  return frames;
}

function outputOf(frames: readonly Frame[]): JsonObject[] {
  const { output } = terminalOf(frames);
  assert.ok(Array.isArray(output));
  return output.filter(isObject);
}

test('what is written ahead changes no event', () => {
  const text = whole(0, { kind: 'text', role: 'assistant', text: 'hi', citations: [] });
  const ends: readonly CanonicalEvent[] = [
    END,
    { type: 'response.end', outcome: { status: 'failed', error: new GatewayError('upstream_error', 'no') } },
    { type: 'response.end', outcome: { status: 'incomplete', reason: 'max_output' } },
  ];
  const tools = Array.from({ length: 3_000 }, (_, at) => ({ type: 'function', name: `t${at}`, parameters: {} }));
  const json = { model: 'm', instructions: `"é${'x'.repeat(2_000_000)}`, tools, service_tier: 'flex', metadata: { a: '1' } };
  const context = { ...responseContext(), request: requestOf('responses', { json }) };
  for (const end of ends) {
    const steps = [{ events: [START, ...text, end] }];
    const written = (encoder: ClientEncoder): Frame[] => {
      const frames: Frame[] = [];
      for (const step of steps) encoder.push(step, frames);
      encoder.end(frames);
      return frames;
    };
    const expected = written(responsesClient.encodeEvents(context));
    checkResponsesStream(expected);
    const ahead = responsesClient.encodeEventsInSteps?.(context);
    assert.ok(ahead !== undefined);
    assert.deepEqual(written(atOnce(ahead)), expected);
    const { response } = bodiesOf(expected)[0] as { response: JsonObject };
    assert.equal(response['instructions'], json.instructions);
    assert.deepEqual(
      response['tools'],
      tools.map((tool) => ({ ...tool, description: null, strict: null })),
    );
  }
});

test('encodeEvents: a text has its whole lifecycle, numbered from 0, without [DONE]', () => {
  const frames = encode(
    { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } },
    { type: 'item.delta', index: 0, delta: { kind: 'text', text: 'Hel' } },
    { type: 'item.end', index: 0, item: { kind: 'text', role: 'assistant', text: 'Hello', citations: [] }, status: 'completed' },
    { type: 'usage.report', usage: { input: 5, cacheRead: 2, output: 3 } },
  );
  assert.deepEqual(
    frames.map((frame) => frame.event),
    [
      'response.created',
      'response.in_progress',
      'response.output_item.added',
      'response.content_part.added',
      'response.output_text.delta',
      'response.output_text.delta',
      'response.output_text.done',
      'response.content_part.done',
      'response.output_item.done',
      'response.completed',
    ],
  );
  const bodies = bodiesOf(frames);
  assert.deepEqual(
    bodies.map((body) => body['sequence_number']),
    [...frames.keys()],
  );
  assert.deepEqual(
    bodies.flatMap((body) => (typeof body['delta'] === 'string' ? [body['delta']] : [])),
    ['Hel', 'lo'],
  );
  const response = terminalOf(frames);
  assert.deepEqual(response['usage'], {
    input_tokens: 7,
    input_tokens_details: { cached_tokens: 2, cache_write_tokens: 0 },
    output_tokens: 3,
    output_tokens_details: { reasoning_tokens: 0 },
    total_tokens: 10,
  });
  assert.equal(response['model'], 'logical-model');
  assert.match(String(response['id']), /^resp_mizu_[0-9a-f]{32}$/);
  const [message] = outputOf(frames);
  assert.deepEqual(message?.['content'], [{ type: 'output_text', annotations: [], logprobs: [], text: 'Hello' }]);
});

test("encodeEvents: the response echoes the client's own values and always has its members", () => {
  const request = decode({
    model: 'logical-model',
    input: 'x',
    temperature: 0.5,
    presence_penalty: 0.25,
    store: false,
    metadata: { a: 'b' },
    text: {},
    previous_response_id: 'resp_p',
  });
  const response = terminalOf(encodeAll([{ events: [START, END] }], request));
  assert.equal(response['temperature'], 0.5);
  // Clients that hold every member of the Open Responses standard to be there refuse an answer without these.
  assert.equal(response['presence_penalty'], 0.25);
  assert.equal(response['frequency_penalty'], 0);
  assert.equal(response['store'], false);
  assert.equal(response['previous_response_id'], 'resp_p');
  assert.deepEqual(response['metadata'], { a: 'b' });
  assert.deepEqual(response['text'], { format: { type: 'text' }, verbosity: 'medium' });
  for (const member of [
    'object',
    'created_at',
    'error',
    'incomplete_details',
    'instructions',
    'tools',
    'tool_choice',
    'truncation',
    'usage',
  ]) {
    assert.ok(Object.hasOwn(response, member), member);
  }
  // The vendor's schema has no null there.
  for (const member of ['user', 'system_fingerprint', 'prompt_cache_retention']) assert.notEqual(response[member], null, member);
});

test('encodeEvents: what is kept of a request while its answer is written is all that the answer repeats of it', () => {
  const asked = {
    ...{ frequency_penalty: 0.1, instructions: 'i', max_output_tokens: 20, max_tool_calls: 2, metadata: { a: 'b' } },
    ...{ parallel_tool_calls: false, presence_penalty: 0.2, prompt_cache_key: 'k', safety_identifier: 's', temperature: 0.5 },
    ...{ tool_choice: 'none', top_logprobs: 2, top_p: 0.5, truncation: 'auto', user: 'u' },
    ...{ reasoning: { effort: 'low', summary: 'auto' }, text: { format: { type: 'json_object' }, verbosity: 'low' } },
    tools: [{ type: 'function', name: 'f', description: 'd', parameters: { type: 'object' }, strict: false }],
  };
  const request = decode({ model: 'logical-model', input: 'x', ...asked });
  const answer = (of: SentRequest) => terminalOf(encodeAll([{ events: [START, END] }], { ...request, ...of }));
  const response = answer(asSent(request));
  assert.deepEqual(response, answer(request));
  for (const [name, value] of Object.entries(asked)) assert.deepEqual(response[name], value, name);
});

test('encodeEvents: texts and refusals of one phase share a message; calls and other phases begin a new one', () => {
  const text = (index: number, value: string, phase?: string) =>
    whole(index, { kind: 'text', role: 'assistant', text: value, citations: [], ...(phase === undefined ? {} : { phase }) });
  const frames = encode(
    ...text(0, 'a'),
    ...whole(1, { kind: 'refusal', text: 'b' }),
    ...text(2, 'c', 'final_answer'),
    ...whole(3, { kind: 'toolCall', toolType: 'custom', callId: 'call_1', tool: { name: 'sql' }, input: 'SELECT' }),
    ...text(4, ''),
    ...text(5, 'd', 'final_answer'),
  );
  const shapes = outputOf(frames).map((item) => [
    item['type'],
    item['phase'],
    Array.isArray(item['content']) ? item['content'].length : item['input'],
  ]);
  assert.deepEqual(shapes, [
    ['message', undefined, 2],
    ['message', 'final_answer', 1],
    ['custom_tool_call', undefined, 'SELECT'],
    ['message', 'final_answer', 1],
  ]);
  assert.match(String(outputOf(frames)[2]?.['id']), /^ctc_/);
});

test('encodeEvents: opaque reasoning is sealed in the finished item only; empty reasoning takes no place', () => {
  const frames = encode(
    ...whole(0, { kind: 'reasoning' }),
    { type: 'item.start', index: 1, head: { kind: 'reasoning' } },
    { type: 'item.delta', index: 1, delta: { kind: 'summary', part: 0, text: 'one' } },
    { type: 'item.delta', index: 1, delta: { kind: 'summary', part: 1, text: 'tw' } },
    {
      type: 'item.end',
      index: 1,
      item: { kind: 'reasoning', summary: ['one', 'two'], opaque: { owner: GEMINI, value: 'SIG' } },
      status: 'completed',
    },
  );
  const [item, ...more] = outputOf(frames);
  assert.equal(more.length, 0);
  assert.deepEqual(item?.['summary'], [
    { type: 'summary_text', text: 'one' },
    { type: 'summary_text', text: 'two' },
  ]);
  assert.equal(item?.['encrypted_content'], seal({ owner: GEMINI, value: 'SIG' }));
  const added = bodiesOf(frames).find((body) => body['type'] === 'response.output_item.added');
  assert.ok(!JSON.stringify(added).includes('encrypted_content'));
  assert.ok(frames.every((frame) => !frame.data.includes('"SIG"')));
});

test('encodeEvents: signatures of calls, texts and images travel behind their item and come back to it', () => {
  const opaque = (value: string) => ({ owner: GEMINI, value, form: 'gemini' });
  const frames = encode(
    ...whole(0, { kind: 'text', role: 'assistant', text: 'look', citations: [], opaque: opaque('T') }),
    ...whole(1, {
      kind: 'toolCall',
      toolType: 'function',
      callId: 'call_9',
      tool: { name: 'f' },
      input: '{}',
      opaque: opaque('C'),
    }),
    ...whole(2, {
      kind: 'media',
      role: 'assistant',
      media: { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'iVBORw0KGgo=' } },
      opaque: opaque('I'),
    }),
  );
  const output = outputOf(frames);
  assert.deepEqual(
    output.map((item) => item['type']),
    ['message', 'reasoning', 'function_call', 'reasoning', 'image_generation_call', 'reasoning'],
  );
  const again = decode({
    model: 'm',
    input: [{ role: 'user', content: 'x' }, ...output, { type: 'function_call_output', call_id: 'call_9', output: 'ok' }],
  });
  assert.ok(!again.items.some((item) => item.kind === 'reasoning'));
  const found = again.items.flatMap((item) =>
    'opaque' in item && item.opaque !== undefined ? [[item.kind, item.opaque.value, item.opaque.form]] : [],
  );
  assert.deepEqual(found, [
    ['text', 'T', 'gemini'],
    ['toolCall', 'C', 'gemini'],
    ['media', 'I', 'gemini'],
  ]);
});

test('encodeEvents: a failure closes what is open as incomplete and keeps partial output and usage', () => {
  const encoder = responsesClient.encodeEvents(responseContext());
  const frames: Frame[] = [];
  const steps = inOrder([
    {
      events: [
        START,
        { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } },
        { type: 'item.delta', index: 0, delta: { kind: 'text', text: 'par' } },
        { type: 'item.start', index: 1, head: { kind: 'toolCall', toolType: 'function', callId: 'c', tool: { name: 'f' } } },
        { type: 'item.delta', index: 1, delta: { kind: 'input', text: '{"a"' } },
        { type: 'usage.report', usage: { input: 1, output: 2 } },
      ],
    },
  ]);
  for (const step of steps) encoder.push(step, frames);
  encoder.fail(new GatewayError('upstream_error', 'The upstream failed.'), frames);
  encoder.fail(new GatewayError('internal_error', 'again'), frames);
  checkResponsesStream(frames);
  const response = terminalOf(frames);
  assert.equal(frames.at(-1)?.event, 'response.failed');
  assert.deepEqual(response['error'], { code: 'upstream_error', message: 'The upstream failed.' });
  assert.deepEqual(
    outputOf(frames).map((item) => [item['type'], item['status'], item['arguments']]),
    [
      ['message', 'incomplete', undefined],
      ['function_call', 'incomplete', '{"a"'],
    ],
  );
  assert.ok(isObject(response['usage']) && response['usage']['total_tokens'] === 3);
});

test('encodeEvents: a failure before anything was said makes its own response object', () => {
  const encoder = responsesClient.encodeEvents(responseContext());
  const frames: Frame[] = [];
  encoder.fail(new GatewayError('upstream_error', 'The upstream did not answer in time.'), frames);
  assert.deepEqual(
    frames.map((frame) => frame.event),
    ['response.created', 'response.in_progress', 'response.failed'],
  );
  checkResponsesStream(frames);
  assert.ok(encoder.ended);
});

for (const [reason, native, said, beside] of [
  ['max_output', undefined, 'max_output_tokens', undefined],
  ['context_window', undefined, 'max_output_tokens', 'context_window'],
  ['content_filter', undefined, 'content_filter', undefined],
  ['pause', undefined, 'max_output_tokens', 'pause_turn'],
  ['compaction', undefined, 'max_output_tokens', 'compaction'],
  ['other', 'insufficient_system_resource', 'max_output_tokens', 'insufficient_system_resource'],
  ['other', 'steered', 'steered', undefined],
  ['other', undefined, 'max_output_tokens', 'other'],
] as const) {
  test(`encodeEvents: incomplete by ${reason} (${native}) says ${said}`, () => {
    const outcome = { status: 'incomplete', reason, ...(native === undefined ? {} : { native }) } as const;
    const frames = encodeAll([{ events: [START, { type: 'response.end', outcome }] }]);
    assert.equal(frames.at(-1)?.event, 'response.incomplete');
    const details = beside === undefined ? { reason: said } : { reason: said, native_reason: beside };
    assert.deepEqual(terminalOf(frames)['incomplete_details'], details);
  });
}

test('encodeEvents: audio is refused before any word of its step, and the stream can still be failed', () => {
  const encoder = responsesClient.encodeEvents(responseContext());
  const frames: Frame[] = [];
  encoder.push({ events: [START, ...whole(0, { kind: 'text', role: 'assistant', text: 'a', citations: [] })] }, frames);
  const kept = frames.length;
  const audio: OutputItem = {
    kind: 'media',
    role: 'assistant',
    media: { type: 'audio', source: { from: 'inline', mime: 'audio/wav', data: 'UklGRg==' } },
  };
  const step: Step = { events: [...whole(1, { kind: 'text', role: 'assistant', text: 'b', citations: [] }), ...whole(2, audio)] };
  assert.throws(() => encoder.push(step, frames), { code: 'response_not_representable' });
  assert.equal(frames.length, kept);
  encoder.fail(new GatewayError('response_not_representable', 'x'), frames);
  checkResponsesStream(frames);
});

const NATIVE = [
  '{"type": "response.created", "sequence_number": 0, "response": {"id": "resp_up", "object": "response", "created_at": 1.0e3, "status": "in_progress", "model": "up", "output": [], "x_extra": 1.50}}',
  '{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"RAW1"}}',
  '{"type":"response.output_item.done","sequence_number":2,"output_index":0,"item":{"id":"rs_1","type":"reasoning","summary":[],"encrypted_content":"RAW2"}}',
  '{"type":"response.output_item.added","sequence_number":3,"output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","status":"in_progress","content":[]}}',
  '{"type":"response.content_part.added","sequence_number":4,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}',
  '{"type":"response.output_text.delta","sequence_number":5,"item_id":"msg_1","output_index":1,"content_index":0,"delta":"Hi","obfuscation":"zz"}',
  '{"type":"response.output_text.done","sequence_number":6,"item_id":"msg_1","output_index":1,"content_index":0,"text":"Hi","x":1.0}',
  '{"type":"response.content_part.done","sequence_number":7,"item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"Hi","annotations":[]}}',
  '{"type":"response.output_item.done","sequence_number":8,"output_index":1,"item":{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Hi","annotations":[]}]}}',
  '{"type":"response.done","sequence_number":9,"response":{"id":"resp_up","model":"up","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2,"cost":0.5,"cost_details":{"a":1},"kept":true}}}',
];

test('encodeEvents: native events keep every byte but those of the gateway', () => {
  const { steps } = decodeAll(framesOf(...NATIVE));
  const frames = encodeAll(steps);
  const id = `resp_mizu_${'0'.repeat(32)}`;
  assert.equal(frames[0]?.data, NATIVE[0]?.replace('"resp_up"', `"${id}"`).replace('"model": "up"', '"model": "logical-model"'));
  assert.equal(frames[1]?.data, NATIVE[1]?.replace(',"encrypted_content":"RAW1"', ''));
  const done = bodiesOf(frames)[2]?.['item'];
  const sealed = isObject(done) ? String(done['encrypted_content']) : '';
  assert.equal(open(sealed)?.value, 'RAW2');
  assert.equal(open(sealed)?.itemId, 'rs_1');
  assert.deepEqual(
    frames.slice(3, 9).map((frame) => frame.data),
    NATIVE.slice(3, 9),
  );
  assert.equal(frames[9]?.event, 'response.completed');
  const response = terminalOf(frames);
  assert.deepEqual(response['usage'], {
    input_tokens: 1,
    output_tokens: 1,
    total_tokens: 2,
    kept: true,
    input_tokens_details: { cached_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  });
  assert.equal(outputOf(frames).length, 2);
  checkResponsesStream(frames);
  assert.ok(frames.every((frame) => !frame.data.includes('RAW')));
});

test('encodeEvents: only a completed response of the gateway says when it was complete', () => {
  const end = (outcome: Outcome): JsonValue | undefined => {
    const encoder = responsesClient.encodeEvents({ ...responseContext(), now: () => 1_760_000_003 });
    const frames: Frame[] = [];
    encoder.push({ events: [{ type: 'response.start' }, { type: 'response.end', outcome }] }, frames);
    assert.match(frames[0]?.data ?? '', /"completed_at":null/);
    return terminalOf(frames)['completed_at'];
  };
  assert.equal(end({ status: 'completed', stop: 'end' }), 1_760_000_003);
  assert.equal(end({ status: 'incomplete', reason: 'max_output' }), null);
  assert.equal(end({ status: 'failed', error: new GatewayError('upstream_error', 'x') }), null);
});

test("encodeEvents: a native stream that breaks off ends in the gateway's words, with the items so far", () => {
  const { steps } = decodeAll(framesOf(...NATIVE));
  for (let length = 0; length < steps.length; length += 1) {
    const encoder = responsesClient.encodeEvents(responseContext());
    const frames: Frame[] = [];
    for (const step of steps.slice(0, length)) encoder.push(step, frames);
    encoder.fail(new GatewayError('upstream_error', 'The upstream failed.'), frames);
    checkResponsesStream(frames);
    assert.equal(frames.at(-1)?.event, 'response.failed');
    if (length === 6) assert.match(JSON.stringify(outputOf(frames)[1]), /"incomplete".*"Hi"/);
    if (length > 0) assert.equal(terminalOf(frames)['x_extra'], 1.5);
  }
});

test('encodeEvents: a native failure is sanitised, a bare error event becomes response.failed', () => {
  const created = NATIVE[0] ?? '';
  const failed =
    '{"type":"response.failed","sequence_number":1,"response":{"id":"resp_up","status":"failed","model":"up","output":[],"error":{"code":"insufficient_quota","message":"see https://secret.example"},"usage":null}}';
  const frames = encodeAll(decodeAll(framesOf(created, failed)).steps);
  assert.ok(!frames.some((frame) => frame.data.includes('secret.example')));
  assert.equal((terminalOf(frames)['error'] as JsonObject)['code'], 'upstream_error');
  const bare = encodeAll(
    decodeAll(framesOf(created, '{"type":"error","sequence_number":1,"code":"server_error","message":"boom"}')).steps,
  );
  assert.deepEqual(
    bare.map((frame) => frame.event),
    ['response.created', 'response.failed'],
  );
  checkResponsesStream(bare);
  const cancelled = encodeAll(
    decodeAll(framesOf(created, '{"type":"response.cancelled","response":{"status":"cancelled","output":[]}}')).steps,
  );
  assert.equal(cancelled.at(-1)?.event, 'response.failed');
  assert.equal(terminalOf(cancelled)['status'], 'failed');
  assert.equal((terminalOf(cancelled)['error'] as JsonObject)['code'], 'cancelled');
  assert.equal(bodiesOf(cancelled).at(-1)?.['sequence_number'], 1);
});

test('encodeEvents: of a native error only what names the fault stays beside code and message', () => {
  const created = NATIVE[0] ?? '';
  const errorIn = (status: string, error: JsonObject) =>
    terminalOf(
      encodeAll(
        decodeAll(
          framesOf(created, JSON.stringify({ type: `response.${status}`, response: { status, output: [], error, usage: null } })),
        ).steps,
      ),
    )['error'];
  const details = { provider: 'Vendor', metadata: { raw: 'key sk-secret1234' }, retryable: true, param: 'input[0].content' };
  assert.deepEqual(errorIn('failed', { code: 'invalid_prompt', message: 'No.', type: 'invalid_request_error', ...details }), {
    code: 'invalid_prompt',
    message: 'No.',
    type: 'invalid_request_error',
    retryable: true,
    param: 'input[0].content',
  });
  // A code that is not for the client takes what else names the fault with it.
  const hidden = errorIn('failed', { code: 'insufficient_quota', message: 'x', type: 'insufficient_quota', param: null });
  assert.deepEqual(Object.keys(hidden as JsonObject), ['code', 'message', 'param']);
  const beside = errorIn('completed', { code: 'server_error', message: 'see https://secret.example', ...details });
  assert.ok(!JSON.stringify(beside).includes('secret'), JSON.stringify(beside));
});

test('encodeEvents: what is said in pieces is done after every item before it, however their ends come', () => {
  const call = (index: number): CanonicalEvent[] =>
    whole(index, { kind: 'toolCall', toolType: 'function', callId: `call_${index}`, tool: { name: 'f' }, input: '{}' });
  const begun: CanonicalEvent[] = [
    { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } },
    { type: 'item.delta', index: 0, delta: { kind: 'text', text: 'Hi' } },
    ...call(1),
    ...whole(2, { kind: 'reasoning', summary: ['hm'] }),
    ...whole(3, { kind: 'text', role: 'assistant', text: 'there', citations: [] }),
    ...call(4),
  ];
  const said = encode(...begun, {
    type: 'item.end',
    index: 0,
    item: { kind: 'text', role: 'assistant', text: 'Hi', citations: [] },
    status: 'completed',
  });
  const failed: CanonicalEvent = {
    type: 'response.end',
    outcome: { status: 'failed', error: new GatewayError('upstream_error', 'x') },
  };
  const broken = encodeAll([{ events: [START, ...begun, failed] }]);
  checkResponsesStream(broken);
  for (const frames of [said, broken]) {
    const done = bodiesOf(frames).filter(({ type }) => type === 'response.output_item.done');
    assert.deepEqual(
      done.map(({ output_index: index }) => index),
      [0, 1, 2, 3, 4],
    );
    assert.deepEqual(
      done.map(({ item }) => item),
      outputOf(frames),
    );
  }
});

test('encodeEvents: a call begins when the call before it is done, and what begins behind it follows it', () => {
  const call = (index: number, callId: string): CanonicalEvent => ({
    type: 'item.start',
    index,
    head: { kind: 'toolCall', toolType: 'function', callId, tool: { name: 'f' } },
  });
  const piece = (index: number, text: string): CanonicalEvent => ({ type: 'item.delta', index, delta: { kind: 'input', text } });
  const end = (index: number, callId: string, input: string): CanonicalEvent => ({
    type: 'item.end',
    index,
    item: { kind: 'toolCall', toolType: 'function', callId, tool: { name: 'f' }, input },
    status: 'completed',
  });
  const shown = (frames: readonly Frame[]) =>
    bodiesOf(frames).flatMap(({ type, output_index: index, delta }) =>
      typeof index === 'number'
        ? [[String(type).replace(/^response\.(output_item\.)?/, ''), index, ...(delta === undefined ? [] : [delta])]]
        : [],
    );
  const events = [
    call(0, 'c0'),
    call(1, 'c1'),
    piece(1, '{"b"'),
    piece(0, '{"a"'),
    piece(1, ':2'),
    ...whole(2, { kind: 'text', role: 'assistant', text: 'So.', citations: [] }),
    piece(0, ':1}'),
    piece(1, '}'),
  ];
  assert.deepEqual(shown(encode(...events, end(0, 'c0', '{"a":1}'), end(1, 'c1', '{"b":2}'))), [
    ['added', 0],
    ['function_call_arguments.delta', 0, '{"a"'],
    ['function_call_arguments.delta', 0, ':1}'],
    ['function_call_arguments.done', 0],
    ['done', 0],
    ['added', 1],
    ['function_call_arguments.delta', 1, '{"b":2}'],
    ['function_call_arguments.done', 1],
    ['done', 1],
    ['added', 2],
    ['content_part.added', 2],
    ['output_text.delta', 2, 'So.'],
    ['output_text.done', 2],
    ['content_part.done', 2],
    ['done', 2],
  ]);
  // What never ended follows, too, as far as it came.
  const encoder = responsesClient.encodeEvents(responseContext());
  const cut: Frame[] = [];
  for (const step of inOrder([{ events: [START, ...events] }])) encoder.push(step, cut);
  encoder.fail(new GatewayError('upstream_error', 'It broke.'), cut);
  checkResponsesStream(cut);
  assert.deepEqual(
    outputOf(cut).map(({ type, status, arguments: input }) => [type, status, input]),
    [
      ['function_call', 'incomplete', '{"a":1}'],
      ['function_call', 'incomplete', '{"b":2}'],
      ['message', 'completed', undefined],
    ],
  );
});

test('encodeEvents: a picture or a sealed value behind an open text is done at once, and holds up nothing behind it', () => {
  const image = { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'AAAA' } } as const;
  const frames = encode(
    { type: 'item.start', index: 0, head: { kind: 'text', role: 'assistant' } },
    { type: 'item.delta', index: 0, delta: { kind: 'text', text: 'Hi' } },
    ...whole(1, { kind: 'media', role: 'assistant', media: image }),
    ...whole(2, { kind: 'reasoning', opaque: { owner: GEMINI, value: 'SIG' } }),
    ...whole(3, { kind: 'reasoning', summary: ['then'] }),
    { type: 'item.end', index: 0, item: { kind: 'text', role: 'assistant', text: 'Hi', citations: [] }, status: 'completed' },
  );
  const done = bodiesOf(frames).filter(({ type }) => type === 'response.output_item.done');
  assert.deepEqual(
    done.map(({ output_index: index }) => index),
    [1, 2, 0, 3],
  );
});

test('encodeEvents: an upstream that says the type of an event in its frame alone: the client reads it in the event', () => {
  const events: Frame[] = NATIVE.map((text) => {
    const { type, ...rest } = objectFrom(text);
    return { event: String(type), data: JSON.stringify(rest) };
  });
  const frames = encodeAll(decodeAll(events).steps);
  checkResponsesStream(frames);
  assert.deepEqual(bodiesOf(frames), bodiesOf(encodeAll(decodeAll(framesOf(...NATIVE)).steps)));
});

test('encodeEvents: items that a native upstream gives no id have one, the same wherever they are named', () => {
  const message = '"type":"message","role":"assistant"';
  const part = '{"type":"output_text","text":"Hi","annotations":[]}';
  const said = `{${message},"status":"completed","content":[${part}]}`;
  const call = '{"type":"function_call","call_id":"call_1","name":"look","arguments":"{}","status":"completed"}';
  const late = call.replace('call_1', 'call_2');
  const vendors = '{"type":"web_search_call","status":"completed"}';
  const compaction = '{"type":"compaction","encrypted_content":"C"}';
  const output = `[${said},${call},${vendors},${late},${compaction}]`;
  const { steps } = decodeAll(
    framesOf(
      NATIVE[0] ?? '',
      `{"type":"response.output_item.added","output_index":0,"item":{${message},"status":"in_progress","content":[]}}`,
      `{"type":"response.content_part.added","output_index":0,"content_index":0,"part":${part.replace('Hi', '')}}`,
      '{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"Hi"}',
      `{"type":"response.output_item.done","output_index":0,"item":${said}}`,
      `{"type":"response.output_item.done","output_index":1,"item":${call}}`,
      `{"type":"response.output_item.added","output_index":2,"item":${vendors.replace('completed', 'in_progress')}}`,
      '{"type":"response.web_search_call.searching","output_index":2}',
      `{"type":"response.output_item.done","output_index":2,"item":${vendors}}`,
      `{"type":"response.completed","response":{"id":"r","model":"m","status":"completed","output":${output}}}`,
    ),
  );
  const frames = encodeAll(steps);
  checkResponsesStream(frames);
  const ids = outputOf(frames).map(({ id }) => id);
  assert.deepEqual(
    ids.map((id) => (typeof id === 'string' ? id.replace(/[0-9a-f]{32}$/, '') : id)),
    ['msg_', 'fc_', 'ws_', 'fc_', undefined],
    'a compaction passes unchanged',
  );
  for (const body of bodiesOf(frames)) {
    const index = body['output_index'];
    if (typeof index === 'number' && body['item'] === undefined) assert.equal(body['item_id'], ids[index], JSON.stringify(body));
  }
  const whole = decodeAll(framesOf(`{"type":"response.completed","response":{"status":"completed","output":${output}}}`));
  assert.ok(outputOf(encodeAll(whole.steps)).every((item) => item['type'] === 'compaction' || typeof item['id'] === 'string'));
});
