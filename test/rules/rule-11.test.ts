/** Rules 11, 14 and 15: illegal streams and malformed events, custom tools of messages, responses objects without a status. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { need } from './requests.ts';
import {
  block,
  convert,
  created,
  delta,
  DONE,
  doneMessage,
  finish,
  type Json,
  messageEnd,
  messageItem,
  messageStart,
  say,
  sent,
  terminal,
  through,
  wholeThrough,
} from '../failures/through.ts';

const CLIENTS = ['chat', 'responses', 'messages'] as const;
const use = { type: 'tool_use', id: 'a', name: 'f', input: {} };
const cut = { type: 'input_json_delta', partial_json: '{"x":' };

/** Two messages that say the same: the one that a terminal lists is not both. */
const twice = [...messageItem(0, 'm1', 'hi'), ...messageItem(1, 'm2', 'hi')];

test('rule 11: an illegal lifecycle is an error for every client', () => {
  const streams = [
    ['messages', [...block(0, { type: 'text', text: '' }, say('x')), ...messageEnd('end_turn')]],
    ['messages', [messageStart(), { type: 'content_block_delta', index: 0, delta: say('x') }]],
    ['responses', [{ type: 'response.output_text.delta', item_id: 'x', output_index: 0, content_index: 0, delta: 'x' }]],
    ['chat', [delta({ content: 'x' }), finish('stop'), delta({ content: 'late' }), DONE]],
    ['messages', [messageStart(), { type: 'message_delta', delta: {}, usage: { output_tokens: 1 } }, { type: 'message_stop' }]],
    ['responses', [created(), { type: 'response.output_text.delta', item_id: 'nobody', content_index: 0, delta: 'x' }]],
    ['responses', [created(), ...twice, terminal('completed', [doneMessage('m1', 'hi')])]],
  ] as const;
  for (const [upstream, events] of streams) {
    for (const client of CLIENTS) {
      const { failure, text } = through(upstream, client, events);
      assert.equal(failure?.details.reason, 'illegal_lifecycle', `${upstream}: ${failure?.message}`);
      assert.doesNotMatch(text, /\[DONE\]|message_stop|response\.completed/);
    }
  }
});

const partial = { functionCall: { name: 'f', partialArgs: [{ jsonPath: '$', stringValue: 'x' }], willContinue: true } };
const misplaced = {
  groundingChunks: [{ web: { uri: 'https://a.example' } }],
  groundingSupports: [{ segment: { startIndex: 'x', endIndex: 2 }, groundingChunkIndices: [0] }],
};

test('rule 11: a malformed known event is an error, an unknown one is none', () => {
  const bad = [
    ['chat', { id: 'c', choices: 'x' }],
    ['chat', { id: 'c', choices: [{ index: 'x', delta: { content: 'lost' } }] }],
    ['messages', { type: 'content_block_start', index: 'x', content_block: {} }],
    ['responses', { type: 'response.output_item.added', output_index: 0, item: 5 }],
    ['chat', delta({ images: [{ type: 'image_url', image_url: {} }] })],
    ['chat', delta({ content: 'x', annotations: ['x'] })],
    ['chat', delta({ content: 'x', annotations: [{ type: 'url_citation', url_citation: {} }] })],
    ['chat', delta({ content: 5 })],
    ['chat', delta({ tool_calls: ['x'] })],
    ['gemini', { candidates: 5 }],
    ['gemini', { candidates: [{ index: 'x', content: { parts: [{ text: 'lost' }] } }] }],
    ['gemini', { candidates: [{ content: { parts: [partial] } }] }],
    ['gemini', { candidates: [{ content: { parts: [{ text: 'x' }] }, groundingMetadata: { groundingSupports: ['x'] } }] }],
    ['gemini', { candidates: [{ content: { parts: [{ text: 'x' }] }, groundingMetadata: misplaced }] }],
    ['gemini', { candidates: [{ content: { parts: [{ text: 'a thought or not', thought: 'yes' }] } }] }],
  ] as const;
  for (const [upstream, event] of bad) {
    const begin =
      upstream === 'messages'
        ? [messageStart()]
        : upstream === 'responses'
          ? [{ type: 'response.created', response: { id: 'r', status: 'in_progress', output: [] } }]
          : [];
    for (const client of CLIENTS)
      assert.equal(through(upstream, client, [...begin, event]).failure?.details.reason, 'malformed_event', upstream);
  }
  const unknown = [
    messageStart(),
    { type: 'brand_new', x: 1 },
    ...block(0, { type: 'text', text: '' }, say('x')),
    ...messageEnd('end_turn'),
  ];
  for (const client of CLIENTS) assert.equal(through('messages', client, unknown).failure, undefined);
});

test('rule 11: a whole responses answer with a part that is malformed is an error, not an answer without it', () => {
  const message = { id: 'm', type: 'message', role: 'assistant', status: 'completed' };
  const items = [
    { ...message, content: [{ text: 'of no type' }] },
    { ...message, content: [{ type: 5, text: 'of no type' }] },
    { id: 'r', type: 'reasoning', summary: [{ type: 'summary_text', text: 5 }] },
  ];
  for (const item of items) {
    for (const client of CLIENTS) {
      const body = { id: 'r', object: 'response', status: 'completed', output: [item] };
      assert.throws(() => wholeThrough('responses', client, body), need({ reason: 'malformed_event' }), JSON.stringify(item));
    }
  }
});

test('rule 11: truncated tool JSON is refused in whole messages answers and requests', () => {
  const events = [messageStart(), ...block(0, use, cut), ...messageEnd('max_tokens')];
  const native = through('messages', 'messages', events);
  assert.equal(native.names.at(-1), 'message_stop', 'a native stream that ran into its cap keeps its bytes');
  assert.match(native.text, /\{\\"x\\":/);
  assert.equal(native.body, undefined, 'a whole answer does not');
  assert.equal(
    through('messages', 'messages', [messageStart(), ...block(0, use, cut), ...messageEnd('tool_use')]).names.at(-1),
    'error',
  );
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: [{ ...use, input: '{"x":' }] },
  ];
  for (const upstream of ['messages', 'chat'] as const) {
    assert.throws(
      () => sent('messages', upstream, { max_tokens: 9, messages }),
      need({ status: 400, param: /messages\[1\]\.content\[0\]\.input/ }),
    );
  }
});

const CUSTOM = {
  type: 'custom',
  name: 'f',
  description: 'd',
  input_schema: { type: 'object', properties: { q: { type: 'string' } } },
};
const history = (input: object): object[] => [
  { role: 'user', content: 'x' },
  { role: 'assistant', content: [{ ...use, input }] },
  { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r' }] },
];

test('rule 14: a custom tool with an object schema, its calls and their results convert together, ids kept', () => {
  for (const upstream of ['chat', 'responses', 'gemini'] as const) {
    const text = JSON.stringify(convert('messages', upstream, { max_tokens: 9, tools: [CUSTOM], messages: history({ q: 'y' }) }));
    for (const part of ['"name":"f"', '"q"', 'y', '"a"']) assert.ok(text.includes(part), `${upstream}: ${part}`);
  }
  const chat = convert('messages', 'chat', { max_tokens: 9, tools: [CUSTOM], messages: history({ q: 'y' }) });
  assert.equal(chat.messages[1].tool_calls[0].id, 'a');
  assert.equal(chat.messages[2].tool_call_id, 'a');
});

test('rule 14: a custom tool of a chat client that owns an object schema reaches a messages upstream', () => {
  const { input_schema, ...custom } = { name: 'f', description: 'd', input_schema: CUSTOM.input_schema };
  const call = { id: 'a', type: 'custom', custom: { name: 'f', input: '{"q":"y"}' } };
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: null, tool_calls: [call] },
    { role: 'tool', tool_call_id: 'a', content: 'r' },
  ];
  const convertible = (tool: object): Json => convert('chat', 'messages', { tools: [{ type: 'custom', ...tool }], messages });
  for (const tool of [{ custom, input_schema }, { custom: { ...custom, input_schema } }]) {
    const body = convertible(tool);
    assert.deepEqual(body.tools, [{ name: 'f', description: 'd', input_schema }]);
    assert.deepEqual(body.messages[1].content, [{ ...use, input: { q: 'y' } }]);
    assert.equal(body.messages[2].content[0].tool_use_id, 'a');
  }
  const strange = { ...custom, input_schema: { type: 'string' } };
  assert.throws(() => convertible({ custom: strange }), need({ status: 400, param: /^tools\[0\]\.custom\.input_schema$/ }));
});

test('rule 14: an invalid schema or invalid arguments are an error', () => {
  for (const input_schema of ['x', 5, { type: 'string' }]) {
    assert.throws(
      () =>
        sent('messages', 'chat', {
          max_tokens: 9,
          tools: [{ ...CUSTOM, input_schema }],
          messages: [{ role: 'user', content: 'x' }],
        }),
      need({ status: 400, param: /^tools\[0\]/ }),
      JSON.stringify(input_schema),
    );
  }
  for (const upstream of ['chat', 'messages', 'gemini'] as const) {
    const tools = [{ type: 'custom', name: 'f', input_schema: { type: 'string' } }];
    assert.throws(
      () => sent('responses', upstream, { input: 'x', tools }),
      need({ status: 400, param: /^tools\[0\]/ }),
      upstream,
    );
  }
  for (const upstream of ['chat', 'messages'] as const) {
    const tools = [{ type: 'custom', name: 'f', input_schema: { properties: { q: {} } } }];
    const text = JSON.stringify(convert('responses', upstream, { input: 'x', tools }));
    assert.match(text, /\{"type":"object","properties":\{"q":\{\}\}\}/, `${upstream}: a schema without a type is an object's`);
  }
  const args = (value: string): object => ({ type: 'custom_tool_call', call_id: 'a', name: 'f', input: value });
  const tool = { type: 'custom', name: 'f', input_schema: CUSTOM.input_schema };
  const ask = (value: string): unknown =>
    sent('responses', 'messages', {
      tools: [tool],
      input: [{ role: 'user', content: 'x' }, args(value), { type: 'custom_tool_call_output', call_id: 'a', output: 'r' }],
    });
  assert.throws(() => ask('not json'), need({ status: 400 }));
  assert.ok(ask('{"q":"y"}') !== undefined);
});

test('rule 15: an error without a valid status and an empty object are refused; output without status is accepted', () => {
  const output = [
    { id: 'msg_1', type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'x', annotations: [] }] },
  ];
  const refused: Json[] = [
    {},
    { error: { code: 'x', message: 'y' }, output: [] },
    { error: { code: 'x', message: 'y' }, status: 'odd', output },
  ];
  for (const client of CLIENTS) {
    for (const body of refused)
      assert.throws(
        () => wholeThrough('responses', client, body),
        (error: unknown) => error instanceof Error,
        JSON.stringify(body),
      );
    assert.match(JSON.stringify(wholeThrough('responses', client, { id: 'r', object: 'response', output })), /"x"/);
  }
});

test('rule 11: a malformed part inside a known event or a whole answer is an error', () => {
  const text = messageItem(0, 'm', 'x').slice(0, 3);
  const place = { item_id: 'm', output_index: 0, content_index: 0, annotation_index: 0 };
  const annotation = { type: 'response.output_text.annotation.added', ...place, annotation: 'x' };
  const cited = block(0, { type: 'text', text: '' }, { type: 'citations_delta', citation: 'x' });
  const logprobsResult = { chosenCandidates: [{ token: 5 }] };
  const scored = { candidates: [{ content: { parts: [{ text: 'a' }] }, logprobsResult, finishReason: 'STOP' }] };
  for (const [upstream, events] of [
    ['responses', [created(), ...text, annotation]],
    ['messages', [messageStart(), ...cited]],
    ['gemini', [scored]],
  ] as const) {
    const { failure } = through(upstream, 'chat', events, { request: { logprobs: { top: 0 } } });
    assert.equal(failure?.details.reason, 'malformed_event', upstream);
  }
  for (const body of [{}, { id: 'c', choices: null }])
    assert.throws(() => wholeThrough('chat', 'chat', body), need({ reason: 'undecodable' }), JSON.stringify(body));
  const message = (content: unknown) => [{ type: 'message', id: 'm', role: 'assistant', content: [content] }];
  for (const [body, reason] of [
    [{ status: 'completed', output: message({ type: 'output_text', text: 'x', annotations: ['y'] }) }, 'malformed_event'],
    [{ status: 'completed', output: message('x') }, 'malformed_event'],
    [{ status: 'completed', output: ['x'] }, 'undecodable'],
    [{ status: 'incomplete', output: {} }, 'undecodable'],
  ] as const) {
    assert.throws(() => wholeThrough('responses', 'chat', { id: 'r', ...body }), need({ reason }), JSON.stringify(body));
  }
});
