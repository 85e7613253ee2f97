import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import type { Step } from '../../../../src/codecs/canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../../src/codecs/canonical/json.ts';
import { responsesUpstream } from '../../../../src/codecs/responses/index.ts';
import { decodeAll, decodeContext, framesOf, refusalOf } from '../support.ts';

const CREATED =
  '{"type":"response.created","response":{"id":"r","object":"response","model":"m","status":"in_progress","output":[]}}';

test('decodeEvents: events that only keep the connection are no part of the answer', () => {
  const beat = '{"type":"keepalive","sequence_number":1}';
  const { steps } = decodeAll(
    framesOf(beat, CREATED, beat, '{"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}'),
  );
  assert.deepEqual(
    steps.map(({ native }) => native?.name),
    ['response.created', 'response.completed'],
  );
});

test('decodeEvents: a failed response keeps what was said, its usage and its error; later input is ignored', () => {
  const decoder = responsesUpstream.decodeEvents(decodeContext());
  const steps: Step[] = [];
  for (const frame of framesOf(
    CREATED,
    '{"type":"response.output_item.added","output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","content":[]}}',
    '{"type":"response.content_part.added","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}}',
    '{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"par"}',
    '{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"see https://internal.example/x"},"output":[],"usage":{"input_tokens":2,"output_tokens":1}}}',
    '{"type":"response.completed","response":{"status":"completed","output":[]}}',
  )) {
    decoder.push(frame, steps);
  }
  const events = steps.flatMap((step) => step.events);
  assert.equal(events.filter((event) => event.type === 'response.end').length, 1);
  const end = events.at(-1);
  assert.ok(end?.type === 'response.end' && end.outcome.status === 'failed');
  assert.equal(end.outcome.error.shownCode, 'server_error');
  assert.ok(!end.outcome.error.message.includes('internal.example'));
  assert.ok(events.some((event) => event.type === 'usage.report' && event.usage.output === 1));
  assert.ok(decoder.ended);
});

test('decodeEvents: calls of server tools and pictures are counted where the terminal repeats no items; its own report knows better', () => {
  const done = (index: number, item: string) => `{"type":"response.output_item.done","output_index":${index},"item":{${item}}}`;
  const search = '"type":"web_search_call","id":"ws_1","status":"completed"';
  const drawn = '"type":"image_generation_call","id":"ig_1","status":"completed","result":"iVBORw0KGgo="';
  for (const output of ['', ',"output":[]', `,"output":[{${search}},{${drawn}}]`]) {
    const usage = '"usage":{"input_tokens":2,"output_tokens":1}';
    const terminal = `{"type":"response.completed","response":{"status":"completed",${usage}${output}}}`;
    const { steps } = decodeAll(framesOf(CREATED, done(0, search), done(1, drawn), terminal));
    const report = steps.flatMap(({ events }) => events).find((event) => event.type === 'usage.report');
    assert.deepEqual([...(report?.usage.meters ?? [])], [['web_search', 1]], output);
    assert.equal(report?.usage.images, 1, output);
  }
  const pages = ['open_page', 'find_in_page', 'find'].map((type) => `{${search},"action":{"type":"${type}"}}`);
  const searched = `{${search},"action":{"type":"search","query":"q"}}`;
  for (const [items, count] of [
    [[searched, ...pages, searched], 2],
    [pages, undefined],
  ] as const) {
    const ended = `"response":{"status":"completed","usage":{"input_tokens":2,"output_tokens":1},"output":[${items.join()}]}`;
    const told = decodeAll(framesOf(CREATED, `{"type":"response.completed",${ended}}`)).steps.flatMap(({ events }) => events);
    const usage = told.find((event) => event.type === 'usage.report')?.usage;
    assert.equal(usage?.meters?.get('web_search'), count, 'a page that is read is no search');
  }
  const own = '"usage":{"input_tokens":2},"tool_usage":{"web_search":{"num_requests":2}}';
  const { steps } = decodeAll(framesOf(CREATED, `{"type":"response.completed","response":{"status":"completed",${own}}}`));
  const report = steps.flatMap(({ events }) => events).find((event) => event.type === 'usage.report');
  assert.deepEqual([...(report?.usage.meters ?? [])], [['web_search', 2]]);
});

for (const [form, event] of [
  [
    'nested',
    '{"type":"error","sequence_number":2,"error":{"type":"insufficient_quota","code":"insufficient_quota","message":"quota of org-12345678","param":null}}',
  ],
  ['flat', '{"type":"error","sequence_number":2,"code":"rate_limit_exceeded","message":"Slow down","param":null}'],
] as const) {
  test(`decodeEvents: a ${form} error event ends the answer as failed, once`, () => {
    const { steps } = decodeAll(framesOf(CREATED, event, '{"type":"response.failed","response":{"status":"failed"}}'));
    const ends = steps.flatMap((step) => step.events).filter((entry) => entry.type === 'response.end');
    assert.equal(ends.length, 1);
    const [end] = ends;
    assert.ok(end?.type === 'response.end' && end.outcome.status === 'failed');
    assert.equal(end.outcome.error.details.upstream?.status, 429);
    assert.equal(end.outcome.error.details.upstream?.type, form === 'nested' ? 'insufficient_quota' : undefined);
    assert.ok(!end.outcome.error.message.includes('org-'));
  });
}

test('decodeEvents: data that is no JSON fails the events of the protocol, and none that nobody knows', () => {
  const end = { event: undefined, data: '{"type":"response.completed","response":{"status":"completed","output":[]}}' };
  for (const [event, reason] of [
    ['vendor.trace', undefined],
    ['response.output_text.delta', 'malformed_event'],
    ['error', 'malformed_event'],
    [undefined, 'malformed_event'],
  ] as const) {
    const frames = [...framesOf(CREATED), { event, data: '{"half' }, end];
    if (reason === undefined) assert.equal(decodeAll(frames).steps.length, 2);
    else assert.equal(refusalOf(() => decodeAll(frames)).details.reason, reason);
  }
});

test('decodeEvents: cancelled is no success and no failure of its own making', () => {
  const { steps } = decodeAll(framesOf(CREATED, '{"type":"response.cancelled","response":{"status":"cancelled","output":[]}}'));
  const end = steps.at(-1)?.events.at(-1);
  assert.ok(end?.type === 'response.end' && end.outcome.status === 'cancelled');
  assert.equal(end.outcome.error.code, 'cancelled');
});

test('decodeEvents: every prefix without the terminal event is a truncation', () => {
  const frames = framesOf(
    CREATED,
    '{"type":"response.output_item.added","output_index":0,"item":{"id":"ct_1","type":"custom_tool_call","call_id":"c","name":"sql","input":""}}',
    '{"type":"response.custom_tool_call_input.delta","item_id":"ct_1","output_index":0,"delta":"SELECT"}',
    '{"type":"response.output_item.done","output_index":0,"item":{"id":"ct_1","type":"custom_tool_call","call_id":"c","name":"sql","input":"SELECT 1"}}',
    '{"type":"response.completed","response":{"status":"completed","output":[]}}',
  );
  for (let length = 0; length < frames.length; length += 1) {
    assert.equal(refusalOf(() => decodeAll(frames.slice(0, length))).details.reason, 'truncated');
  }
  const whole = decodeAll(frames).order.fold.whole({ status: 'completed', stop: 'end' });
  assert.deepEqual(whole.outcome, { status: 'completed', stop: 'toolUse' });
  assert.deepEqual(whole.items[0]?.item, {
    kind: 'toolCall',
    toolType: 'custom',
    callId: 'c',
    tool: { name: 'sql' },
    input: 'SELECT 1',
    id: 'ct_1',
  });
});

/** A stream that says an item of each kind in pieces, and each in all its final forms. */
const SPOKEN: readonly JsonObject[] = (() => {
  const text = { type: 'output_text', text: 'Hello', annotations: [] };
  const refusal = { type: 'refusal', refusal: 'Never' };
  const raw = { type: 'reasoning_text', text: 'Hmm, so' };
  const message = { id: 'm', type: 'message', role: 'assistant', status: 'completed' };
  const reasoning = { id: 'r', type: 'reasoning', summary: [] };
  const call = { id: 'f', type: 'function_call', call_id: 'c', name: 'look', status: 'completed' };
  const custom = { id: 'u', type: 'custom_tool_call', call_id: 'd', name: 'write', status: 'completed' };
  const output = [
    { ...reasoning, content: [raw] },
    { ...message, content: [text, refusal] },
    { ...call, arguments: '{"a":1}' },
    { ...custom, input: 'as it is' },
  ];
  const of = (type: string, output_index: number, more: JsonObject): JsonObject => ({
    type: `response.${type}`,
    output_index,
    ...more,
  });
  const done = (index: number): JsonObject => of('output_item.done', index, { item: output[index] ?? null });
  return [
    JSON.parse(CREATED) as JsonObject,
    of('output_item.added', 0, { item: { ...reasoning, content: [] } }),
    of('content_part.added', 0, { content_index: 0, part: { ...raw, text: '' } }),
    of('reasoning_text.delta', 0, { content_index: 0, delta: 'Hmm' }),
    of('reasoning_text.done', 0, { content_index: 0, text: raw.text }),
    of('content_part.done', 0, { content_index: 0, part: raw }),
    done(0),
    of('output_item.added', 1, { item: { ...message, content: [] } }),
    of('content_part.added', 1, { content_index: 0, part: { ...text, text: '' } }),
    of('output_text.delta', 1, { content_index: 0, delta: 'Hel' }),
    of('output_text.done', 1, { content_index: 0, text: text.text }),
    of('content_part.done', 1, { content_index: 0, part: text }),
    of('content_part.added', 1, { content_index: 1, part: { ...refusal, refusal: '' } }),
    of('refusal.delta', 1, { content_index: 1, delta: 'Nev' }),
    of('refusal.done', 1, { content_index: 1, refusal: refusal.refusal }),
    of('content_part.done', 1, { content_index: 1, part: refusal }),
    done(1),
    of('output_item.added', 2, { item: { ...call, arguments: '' } }),
    of('function_call_arguments.delta', 2, { delta: '{"a"' }),
    of('function_call_arguments.done', 2, { arguments: '{"a":1}' }),
    done(2),
    of('output_item.added', 3, { item: { ...custom, input: '' } }),
    of('custom_tool_call_input.delta', 3, { delta: 'as it' }),
    of('custom_tool_call_input.done', 3, { input: 'as it is' }),
    done(3),
    { type: 'response.completed', response: { id: 'r', status: 'completed', output } },
  ];
})();

type Change = (key: string, value: JsonValue) => JsonValue | undefined;

/** Every copy of the stream in which one member of one event, at any depth, is another; and which that is. */
function* variants(change: Change): Generator<[string, JsonObject[]]> {
  for (const [at, event] of SPOKEN.entries())
    for (const [path, changed] of changes(event, change))
      yield [`${event['type']} ${path}`, SPOKEN.with(at, changed as JsonObject)];
}

function* changes(value: JsonValue, change: Change): Generator<[string, JsonValue]> {
  if (Array.isArray(value)) {
    for (const [at, entry] of value.entries())
      for (const [path, inner] of changes(entry, change)) yield [`[${at}]${path}`, value.with(at, inner)];
  } else if (isObject(value)) {
    for (const [key, member] of Object.entries(value)) {
      const other = change(key, member ?? null);
      if (other !== undefined) yield [`.${key}`, { ...value, [key]: other }];
      for (const [path, inner] of changes(member ?? null, change)) yield [`.${key}${path}`, { ...value, [key]: inner }];
    }
  }
}

test('decodeEvents: a final form that contradicts what was streamed is refused, wherever it stands', () => {
  decodeAll(framesOf(...SPOKEN));
  const said = new Set(['text', 'refusal', 'arguments', 'input']);
  const accepted: string[] = [];
  for (const [what, events] of variants((key, value) => (said.has(key) && value !== '' ? `not ${value}` : undefined))) {
    try {
      decodeAll(framesOf(...events));
      accepted.push(what);
    } catch (error) {
      assert.ok(error instanceof GatewayError && error.details.reason === 'illegal_lifecycle', `${what}: ${error}`);
    }
  }
  // What a terminal says of a thought again decides nothing: routers leave it out, or say it otherwise.
  assert.deepEqual(accepted, ['response.completed .response.output[0].content[0].text']);
});

test('decodeEvents: a known event whose own member is of a wrong type is malformed', () => {
  const needed = ['item', 'part', 'response', 'text', 'delta', 'refusal', 'arguments', 'input'];
  for (const [what, events] of variants((key) => (needed.includes(key) ? 5 : undefined)))
    if (/^[^ ]+ \.[a-z]+$/.test(what))
      assert.equal(refusalOf(() => decodeAll(framesOf(...events))).details.reason, 'malformed_event', what);
  for (const content of [5, ['a part'], [{ type: 'output_text', text: 5 }]]) {
    const item = { type: 'message', role: 'assistant', content };
    const done = { type: 'response.output_item.done', output_index: 0, item };
    assert.equal(refusalOf(() => decodeAll(framesOf(CREATED, done))).details.reason, 'malformed_event');
  }
});
