import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Step } from '../../../src/codecs/canonical/event.ts';
import { responsesUpstream } from '../../../src/codecs/responses/index.ts';
import { casesOf, decodeAll, decodeContext, framesOf, refusalOf } from './support.ts';

const CREATED =
  '{"type":"response.created","response":{"id":"r","object":"response","model":"m","status":"in_progress","output":[]}}';

for (const { title, block } of casesOf(readFileSync(new URL('./decode-events.cases.md', import.meta.url), 'utf8'))) {
  const upstream = block('upstream').map((line) => (line === '…' ? CREATED : line));
  const canonical = block('canonical');
  const [refused] = block('refused');
  test(`decodeEvents: ${title}`, () => {
    if (refused !== undefined) {
      const error = refusalOf(() => decodeAll(framesOf(...upstream)));
      assert.equal(error.code, 'upstream_error');
      assert.equal(error.details.reason, refused);
      return;
    }
    const { steps } = decodeAll(framesOf(...upstream));
    const events = steps.flatMap((step) => step.events);
    assert.deepEqual(
      events.map((event) => JSON.parse(JSON.stringify(event))),
      canonical.map((line) => JSON.parse(line)),
    );
    const texts = steps.map((step) => step.native?.text);
    assert.deepEqual(texts, upstream);
  });
}

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

test('decodeEvents: calls of server tools and pictures are counted where the terminal repeats no items', () => {
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
    flavour: 'custom',
    callId: 'c',
    tool: { name: 'sql' },
    input: 'SELECT 1',
    id: 'ct_1',
  });
});
