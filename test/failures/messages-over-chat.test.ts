/** Ledger section 1: a messages client over a chat upstream, and back. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { gatewayError } from './gateway-error.ts';
import {
  block,
  callDelta,
  convert,
  delta,
  DONE,
  finish,
  type Json,
  messageEnd,
  messageStart,
  say,
  sent,
  through,
  usageChunk,
  wholeThrough,
} from './through.ts';

const calls = (...args: Parameters<typeof callDelta>[]): object[] => args.map((one) => callDelta(...one));
const toMessages = (...events: readonly (object | string)[]) => through('chat', 'messages', [...events, DONE]);

/** Blocks of a messages stream, each with what its deltas said. */
function blocksOf(events: readonly Json[]): Json[] {
  const blocks: Json[] = [];
  for (const event of events) {
    if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block, said: '' };
    const { delta: piece } = event;
    if (event.type === 'content_block_delta')
      blocks[event.index].said += piece.text ?? piece.thinking ?? piece.partial_json ?? '';
  }
  return blocks;
}
const stopOf = (events: readonly Json[]): string => events.find(({ type }) => type === 'message_delta')?.delta.stop_reason;
const TOOLS = [{ type: 'function', function: { name: 'f', parameters: { type: 'object', properties: {} } } }];
const chatCalls = (...ids: string[]): object => ({
  role: 'assistant',
  content: null,
  tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } })),
});
const result = (id: string, content = 'r'): object => ({ role: 'tool', tool_call_id: id, content });
const hi = { role: 'user', content: 'hi' };

describe('messages client over a chat upstream', () => {
  test('M1: a tool call that finishes with stop is tool_use, stream and body alike; length stays max_tokens', () => {
    const heard = toMessages(callDelta(0, 'a', 'f', '{}'), finish('stop'));
    assert.equal(stopOf(heard.events), 'tool_use');
    assert.equal(heard.body.stop_reason, 'tool_use');
    const text = toMessages(delta({ content: 'x' }), finish('length'));
    assert.equal(stopOf(text.events), 'max_tokens');
  });

  test('M2: empty content opens no block, and does not close a tool block', () => {
    const heard = toMessages(
      delta({ role: 'assistant', content: '' }),
      callDelta(0, 'a', 'f', '{"q":'),
      delta({ content: '' }),
      callDelta(0, undefined, undefined, '1}'),
      finish('tool_calls'),
    );
    assert.deepEqual(
      blocksOf(heard.events).map(({ type, said }) => [type, said]),
      [['tool_use', '{"q":1}']],
    );
  });

  test('M2: a reference that only chat can read stands in the middle of a text and closes no block (Mistral)', () => {
    const reference = { type: 'reference', reference_ids: [1] };
    const text = (piece: string) => ({ type: 'text', text: piece });
    const content = [text('{"a'), reference, text('":1}')];
    const heard = toMessages(delta({ content: content.slice(0, 2) }), delta({ content: content.slice(2) }), finish('stop'));
    assert.deepEqual(blocksOf(heard.events), [{ type: 'text', citations: null, text: '', said: '{"a":1}' }]);
    const choice = { index: 0, message: { role: 'assistant', content }, finish_reason: 'stop' };
    const { content: blocks } = wholeThrough('chat', 'messages', { id: 'c', created: 1, model: 'm', choices: [choice] });
    assert.deepEqual(blocks, [{ ...text('{"a":1}'), citations: null }]);
  });

  test('M3: block indices are contiguous, each started and stopped once', () => {
    const heard = toMessages(
      delta({ reasoning_content: 'hm' }),
      delta({ content: 'x' }),
      callDelta(0, 'a', 'f', '{}'),
      finish('tool_calls'),
    );
    const of = (type: string) => heard.events.filter((event) => event.type === type).map(({ index }) => index);
    assert.deepEqual(of('content_block_start'), [0, 1, 2]);
    assert.deepEqual(of('content_block_stop'), [0, 1, 2]);
  });

  test('M4 T5: deltas of parallel calls that interleave stay with their call', () => {
    const heard = toMessages(
      ...calls([0, 'a', 'f', ''], [1, 'b', 'g', ''], [0, undefined, undefined, '{"x":1}'], [1, undefined, undefined, '{"y":2}']),
      finish('tool_calls'),
    );
    assert.deepEqual(
      blocksOf(heard.events).map(({ id, said }) => [id, said]),
      [
        ['a', '{"x":1}'],
        ['b', '{"y":2}'],
      ],
    );
  });

  test('M5: a new id and name begin a new call without an index or with the same one', () => {
    for (const index of [undefined, 0]) {
      const heard = toMessages(...calls([index, 'a', 'f', '{"x":1}'], [index, 'b', 'f', '{"y":2}']), finish('tool_calls'));
      assert.deepEqual(
        blocksOf(heard.events).map(({ said }) => said),
        ['{"x":1}', '{"y":2}'],
      );
    }
  });

  test('M6: a name that comes later starts the block then; one that never comes is an error', () => {
    const late = toMessages(callDelta(0, 'a', '', ''), callDelta(0, undefined, 'f', '{}'), finish('tool_calls'));
    assert.deepEqual(
      blocksOf(late.events).map(({ name }) => name),
      ['f'],
    );
    const never = toMessages(callDelta(0, 'a', '', '{}'), finish('tool_calls'));
    assert.equal(never.names.at(-1), 'error');
    assert.equal(never.failure?.details.reason, 'malformed_event');
  });

  test('M7: a call without arguments says {} once', () => {
    const heard = toMessages(callDelta(0, 'a', 'f', ''), finish('tool_calls'));
    assert.equal(blocksOf(heard.events)[0].said, '{}');
    const back = through('messages', 'chat', [
      messageStart(),
      ...block(0, { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }, { type: 'input_json_delta', partial_json: '' }),
      ...messageEnd('tool_use'),
    ]);
    assert.equal(back.body.choices[0].message.tool_calls[0].function.arguments, '{}');
    const asked = convert('chat', 'messages', {
      messages: [
        hi,
        { ...chatCalls('a'), tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '' } }] },
        result('a'),
      ],
    });
    assert.deepEqual(asked.messages[1].content[0].input, {});
  });

  test('M8 T8: a call in history whose arguments are no JSON object is refused by its path, never dropped alone', () => {
    for (const args of ['{"a":', '[1]', '"x"']) {
      const broken = { ...chatCalls('a'), tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: args } }] };
      assert.throws(
        () => sent('chat', 'messages', { messages: [hi, broken, result('a')] }),
        gatewayError({ status: 400, param: /messages\[1\]\.tool_calls\[0\]/ }),
      );
    }
  });

  test('M9: results of parallel calls stand in one user message, results first', () => {
    const { messages } = convert('chat', 'messages', { messages: [hi, chatCalls('a', 'b'), result('a'), result('b'), hi] });
    assert.deepEqual(
      messages.map(({ role }: Json) => role),
      ['user', 'assistant', 'user'],
    );
    assert.deepEqual(
      messages[2].content.map(({ type }: Json) => type),
      ['tool_result', 'tool_result', 'text'],
    );
  });

  test('M10: a repeated result counts once, the last payload in the first place', () => {
    const { messages } = convert('chat', 'messages', {
      messages: [hi, chatCalls('a', 'b'), result('a', 'old'), result('b'), result('a', 'new')],
    });
    const results = messages[2].content.map((one: Json) => [one.tool_use_id, JSON.stringify(one.content)]);
    assert.deepEqual(
      results.map(([id]: Json) => id),
      ['a', 'b'],
    );
    assert.match(results[0][1], /new/);
  });

  test('M11: chat tool indices are dense from 0, whatever came before the call', () => {
    const heard = through('messages', 'chat', [
      messageStart(),
      ...block(0, { type: 'text', text: '' }, say('x')),
      ...block(1, { type: 'tool_use', id: 'a', name: 'f', input: {} }, { type: 'input_json_delta', partial_json: '{}' }),
      ...block(2, { type: 'tool_use', id: 'b', name: 'f', input: {} }, { type: 'input_json_delta', partial_json: '{}' }),
      ...messageEnd('tool_use'),
    ]);
    const starts = heard.events
      .flatMap(({ choices }) => choices[0]?.delta.tool_calls ?? [])
      .filter(({ id }: Json) => id !== undefined);
    assert.deepEqual(
      starts.map(({ index, id }: Json) => [index, id]),
      [
        [0, 'a'],
        [1, 'b'],
      ],
    );
  });

  test('M12: the first chunk carries the role', () => {
    const heard = through('messages', 'chat', [
      messageStart(),
      ...block(0, { type: 'text', text: '' }, say('x')),
      ...messageEnd('end_turn'),
    ]);
    assert.equal(heard.events[0].choices[0].delta.role, 'assistant');
  });

  test('M13: several text blocks all survive, in order', () => {
    const body = {
      id: 'm',
      type: 'message',
      role: 'assistant',
      model: 'm',
      stop_reason: 'end_turn',
      usage: { input_tokens: 1, output_tokens: 1 },
    };
    const content = ['a', 'b', 'c'].map((text) => ({ type: 'text', text }));
    assert.match(wholeThrough('messages', 'chat', { ...body, content }).choices[0].message.content, /^a\s*b\s*c$/);
  });

  test('M14: reasoning under either field name is thinking, never text', () => {
    for (const name of ['reasoning_content', 'reasoning']) {
      const heard = toMessages(delta({ [name]: 'why' }), finish('stop'));
      assert.deepEqual(
        blocksOf(heard.events).map(({ type, said }) => [type, said]),
        [['thinking', 'why']],
      );
    }
  });

  test('M15: reasoning beside content in one chunk comes first', () => {
    const heard = toMessages(delta({ content: 'A', reasoning_content: 'why' }), finish('stop'));
    assert.deepEqual(
      blocksOf(heard.events).map(({ type }) => type),
      ['thinking', 'text'],
    );
  });

  test('M16: a second message_start of another id is an error, of the same id nothing', () => {
    const other = through('messages', 'chat', [messageStart(), messageStart('msg_2'), ...messageEnd('end_turn')]);
    assert.equal(other.failure?.details.reason, 'illegal_lifecycle');
    const same = through('messages', 'chat', [
      messageStart(),
      messageStart(),
      ...block(0, { type: 'text', text: '' }, say('x')),
      ...messageEnd('end_turn'),
    ]);
    assert.equal(same.failure, undefined);
  });

  test('M17: usage behind the finish makes one message_delta', () => {
    const { events } = toMessages(delta({ content: 'x' }), finish('stop'), usageChunk(7, 2));
    const deltas = events.filter(({ type }) => type === 'message_delta');
    assert.equal(deltas.length, 1);
    assert.equal(deltas[0].usage.output_tokens, 2);
  });

  test('M18 E5: nothing follows a terminal event', () => {
    const heard = through('chat', 'messages', [
      delta({ content: 'x' }),
      finish('stop'),
      DONE,
      { error: { message: 'late', code: 500 } },
    ]);
    assert.equal(heard.names.at(-1), 'message_stop');
    const failed = through('messages', 'messages', [
      messageStart(),
      { type: 'error', error: { type: 'api_error', message: 'x' } },
      ...messageEnd('end_turn'),
    ]);
    assert.equal(failed.names.at(-1), 'error');
    assert.equal(failed.names.filter((name) => name === 'error').length, 1);
  });

  test('M19: gemini arguments reach a messages client as deltas, and ids hold no signature', () => {
    const part = { functionCall: { name: 'f', args: { a: 1 } }, thoughtSignature: 'SIG'.repeat(200) };
    const heard = through('gemini', 'messages', [
      { candidates: [{ content: { role: 'model', parts: [part] }, finishReason: 'STOP' }] },
    ]);
    const [call] = blocksOf(heard.events);
    assert.equal(call.said, '{"a":1}');
    assert.match(call.id, /^[a-zA-Z0-9_-]{1,64}$/);
  });

  test('M20: refusal and content_filter mean each other', () => {
    assert.equal(stopOf(toMessages(delta({ content: 'x' }), finish('content_filter')).events), 'refusal');
    const heard = through('messages', 'chat', [
      messageStart(),
      ...block(0, { type: 'text', text: '' }, say('no')),
      ...messageEnd('refusal'),
    ]);
    assert.equal(heard.body.choices[0].finish_reason, 'content_filter');
    const message = { role: 'assistant', content: null, refusal: 'no' };
    const refused = { id: 'c', created: 1, model: 'm', choices: [{ index: 0, message, finish_reason: 'stop' }] };
    assert.equal(wholeThrough('chat', 'messages', refused).stop_reason, 'refusal');
  });

  test('M21: text behind a call of one turn stays in one assistant message', () => {
    const content = [
      { type: 'tool_use', id: 'a', name: 'f', input: {} },
      { type: 'text', text: 'after' },
    ];
    const { messages } = convert('messages', 'chat', {
      max_tokens: 10,
      messages: [
        hi,
        { role: 'assistant', content },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'r' }] },
      ],
    });
    assert.deepEqual(
      messages.map(({ role }: Json) => role),
      ['user', 'assistant', 'tool'],
    );
    assert.equal(messages[1].content, 'after');
    assert.equal(messages[1].tool_calls[0].id, 'a');
  });

  test('M22: one stop sequence stays a list', () => {
    assert.deepEqual(convert('messages', 'chat', { max_tokens: 10, messages: [hi], stop_sequences: ['END'] }).stop, ['END']);
    assert.deepEqual(convert('chat', 'messages', { messages: [hi], stop: 'END' }).stop_sequences, ['END']);
  });

  test('M23: both spellings of the cap are read; 128000 only where neither is there', () => {
    assert.equal(convert('chat', 'messages', { messages: [hi], max_completion_tokens: 50 }).max_tokens, 50);
    assert.equal(convert('chat', 'messages', { messages: [hi], max_tokens: 60 }).max_tokens, 60);
    assert.equal(convert('chat', 'messages', { messages: [hi] }).max_tokens, 128_000);
    const options = { legacyOutputCap: true };
    const legacy = convert('chat', 'chat', { messages: [hi], max_completion_tokens: 70 }, { options });
    assert.deepEqual([legacy.max_tokens, legacy.max_completion_tokens], [70, undefined]);
  });

  test('M24: disable_parallel_tool_use is read inside tool_choice, and left out with none or without tools', () => {
    const tools = [{ name: 'f', input_schema: { type: 'object' } }];
    const ask = (tool_choice: object) => convert('messages', 'chat', { max_tokens: 10, messages: [hi], tools, tool_choice });
    assert.equal(ask({ type: 'auto', disable_parallel_tool_use: true }).parallel_tool_calls, false);
    assert.equal(ask({ type: 'none', disable_parallel_tool_use: true }).parallel_tool_calls, undefined);
    const none = convert('chat', 'messages', { messages: [hi], tools: TOOLS, tool_choice: 'none', parallel_tool_calls: false });
    assert.deepEqual(none.tool_choice, { type: 'none' });
    assert.equal(convert('chat', 'messages', { messages: [hi], parallel_tool_calls: false }).tool_choice, undefined);
  });

  test('M25: an output format of messages reaches chat and responses', () => {
    const format = { type: 'json_schema', schema: { type: 'object', properties: {} } };
    const body = { max_tokens: 10, messages: [hi], output_config: { format } };
    assert.deepEqual(convert('messages', 'chat', body).response_format.json_schema.schema, format.schema);
    assert.deepEqual(convert('messages', 'responses', body).text.format.schema, format.schema);
    assert.deepEqual(
      convert('messages', 'chat', { max_tokens: 10, messages: [hi], output_format: format }).response_format.type,
      'json_schema',
    );
  });

  test('M26: a data URI becomes a base64 source with its own MIME type', () => {
    const content = [{ type: 'image_url', image_url: { url: 'data:image/webp;base64,UklGRg==' } }];
    const { messages } = convert('chat', 'messages', { messages: [{ role: 'user', content }] });
    assert.deepEqual(messages[0].content[0].source, { type: 'base64', media_type: 'image/webp', data: 'UklGRg==' });
  });

  test('M27: system text in the middle keeps its place', () => {
    const messages = [hi, { role: 'assistant', content: 'x' }, { role: 'system', content: 'be kind' }, hi];
    assert.equal(convert('messages', 'chat', { max_tokens: 10, messages }).messages[2].role, 'system');
    const out = JSON.stringify(convert('chat', 'messages', { messages }).messages);
    assert.ok(out.indexOf('be kind') > out.indexOf('"x"'), out);
  });

  test('M28: a server tool among the tools is no crash: left out and named, refused where it is required', () => {
    const tools = [
      { type: 'web_search_20250305', name: 'web_search' },
      { name: 'f', input_schema: { type: 'object' } },
    ];
    const out = sent('messages', 'chat', { max_tokens: 10, messages: [hi], tools });
    assert.equal(JSON.parse(out.body).tools.length, 1);
    assert.ok(out.losses.includes('native tool'));
    assert.throws(
      () =>
        sent('messages', 'chat', { max_tokens: 10, messages: [hi], tools, tool_choice: { type: 'tool', name: 'web_search' } }),
      gatewayError({ status: 400, code: 'unsupported_conversion' }),
    );
    const only = { max_tokens: 10, messages: [hi], tools: tools.slice(0, 1) };
    const allowed = { type: 'allowed_tools', allowed_tools: { mode: 'required', tools: [] } };
    for (const upstream of ['chat', 'responses', 'gemini'] as const) {
      const refused = gatewayError({ status: 400, code: 'unsupported_conversion', param: /^tool_choice/ });
      assert.throws(() => sent('messages', upstream, { ...only, tool_choice: { type: 'any' } }), refused, upstream);
    }
    assert.throws(
      () => sent('chat', 'responses', { messages: [hi], tools: TOOLS, tool_choice: allowed }),
      gatewayError({ status: 400, code: 'unsupported_conversion', param: /^tool_choice/ }),
    );
  });

  test('M29: empty text in history is left out and never made', () => {
    const content = [
      { type: 'text', text: '' },
      { type: 'text', text: 'x' },
    ];
    const { messages } = convert('chat', 'messages', { messages: [{ role: 'user', content }, chatCalls('a'), result('a')] });
    assert.doesNotMatch(JSON.stringify(messages), /"text":""/);
    const heard = toMessages(callDelta(0, 'a', 'f', '{}'), finish('tool_calls'));
    assert.deepEqual(
      heard.body.content.map(({ type }: Json) => type),
      ['tool_use'],
    );
  });
});
