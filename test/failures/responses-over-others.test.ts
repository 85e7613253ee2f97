/** Ledger section 2: a responses client over chat and messages upstreams. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  block,
  callDelta,
  callItem,
  convert,
  created,
  delta,
  doneCall,
  doneMessage,
  DONE,
  finish,
  type Json,
  messageEnd,
  messageItem,
  messageStart,
  say,
  terminal,
  through,
  usageChunk,
  wholeThrough,
} from './through.ts';
import { openForTests } from '../support/wire.ts';

const toResponses = (...events: readonly (object | string)[]) => through('chat', 'responses', events);
const last = (events: readonly Json[]): Json => events.at(-1);
const hi = { role: 'user', content: 'hi' };
const named = (events: readonly Json[], type: string): Json[] => events.filter((event) => event.type === type);

describe('responses client over other upstreams', () => {
  test('R1: each call is an item with its own output index, in one index space with the rest', () => {
    const { events } = toResponses(
      delta({ content: 'x' }),
      callDelta(0, 'a', 'f', '{}'),
      callDelta(1, 'b', 'g', '{}'),
      finish('tool_calls'),
      DONE,
    );
    assert.deepEqual(
      named(events, 'response.output_item.added').map(({ output_index, item }) => [output_index, item.type]),
      [
        [0, 'message'],
        [1, 'function_call'],
        [2, 'function_call'],
      ],
    );
  });

  test('a tool header ends the text before it, its reasoning too; text after a call is another message', () => {
    const { events, body } = toResponses(
      delta({ reasoning_content: 'why' }),
      delta({ content: 'Let me' }),
      delta({ content: ' look.' }),
      callDelta(0, 'call_a', 'f', ''),
      callDelta(0, undefined, undefined, '{}'),
      delta({ content: 'Done.' }),
      finish('tool_calls'),
      DONE,
    );
    const told = events
      .filter(({ type }) => /output_item|output_text|function_call_arguments/.test(type))
      .map(({ type, output_index: index }) => `${index} ${type.slice('response.'.length)}`);
    assert.deepEqual(told, [
      '0 output_item.added',
      '0 output_item.done',
      '1 output_item.added',
      '1 output_text.delta',
      '1 output_text.delta',
      '1 output_text.done',
      '1 output_item.done',
      '2 output_item.added',
      '2 function_call_arguments.delta',
      '3 output_item.added',
      '3 output_text.delta',
      '3 output_text.done',
      '2 function_call_arguments.done',
      '2 output_item.done',
      '3 output_item.done',
    ]);
    assert.equal(named(events, 'response.output_item.done')[1].item.content[0].text, 'Let me look.');
    assert.deepEqual(
      last(events).response.output.map(({ type }: Json) => type),
      body.output.map(({ type }: Json) => type),
    );
  });

  test('R2: the terminal waits for usage that comes behind the finish', () => {
    const { events } = toResponses(delta({ content: 'x' }), finish('stop'), usageChunk(7, 2), DONE);
    assert.equal(last(events).type, 'response.completed');
    assert.equal(last(events).response.usage.input_tokens, 7);
  });

  test('R3: an end without a finish reason is a failure, and no call in it is completed', () => {
    for (const end of ['', DONE]) {
      const { events, failure } = toResponses(callDelta(0, 'a', 'f', '{"x":'), end);
      assert.equal(failure?.details.reason, 'truncated');
      assert.equal(last(events).type, 'response.failed');
      assert.equal(last(events).response.output[0].status, 'incomplete');
    }
    const accepted = through('chat', 'responses', [delta({ content: 'x' }), DONE], {
      options: { acceptDoneWithoutFinish: true },
    });
    assert.equal(last(accepted.events).type, 'response.completed');
  });

  test('R4: what comes behind [DONE] is ignored', () => {
    const { events } = toResponses(delta({ content: 'x' }), finish('stop'), DONE, { choices: [], cost: '0' });
    assert.equal(last(events).type, 'response.completed');
  });

  test('R5: a call without an id gets one, with the whole chain of events', () => {
    const { events } = toResponses(callDelta(0, undefined, 'f', '{}'), finish('tool_calls'), DONE);
    assert.match(named(events, 'response.output_item.done')[0].item.call_id, /^call_/);
    for (const type of ['response.output_item.added', 'response.function_call_arguments.done'])
      assert.equal(named(events, type).length, 1);
  });

  test('R6: the snapshot holds every item in order, calls without arguments included', () => {
    const { events } = toResponses(
      delta({ content: 'x' }),
      callDelta(0, 'a', 'f', ''),
      callDelta(1, 'b', 'g', '{}'),
      finish('stop'),
      DONE,
    );
    assert.deepEqual(
      last(events).response.output.map(({ type, arguments: args }: Json) => [type, args]),
      [
        ['message', undefined],
        ['function_call', '{}'],
        ['function_call', '{}'],
      ],
    );
    assert.equal(named(events, 'response.function_call_arguments.done').length, 2);
  });

  test('R7: truncation and filtering are incomplete, each with its reason', () => {
    for (const [reason, details] of [
      ['length', 'max_output_tokens'],
      ['content_filter', 'content_filter'],
    ] as const) {
      const { events, body } = toResponses(delta({ content: 'x' }), finish(reason), DONE);
      assert.equal(last(events).type, 'response.incomplete');
      for (const response of [last(events).response, body]) {
        assert.deepEqual([response.status, response.incomplete_details.reason], ['incomplete', details]);
        assert.equal(response.output[0].status, 'incomplete');
      }
    }
  });

  test('R8: an answer of reasoning alone that ran into its cap is a 200 with length', () => {
    const output = [{ id: 'rs_1', type: 'reasoning', summary: [], status: 'incomplete' }];
    const whole = {
      ...(terminal('incomplete', output, { incomplete_details: { reason: 'max_output_tokens' } }) as Json).response,
    };
    const body = wholeThrough('responses', 'chat', whole);
    assert.equal(body.choices[0].finish_reason, 'length');
    assert.equal(body.usage.completion_tokens, 5);
  });

  test('R9: a failure is never turned into text', () => {
    const failed = terminal('failed', [], { error: { code: 'server_error', message: 'boom' } });
    for (const client of ['chat', 'messages'] as const) {
      const { text, events } = through('responses', client, [created(), ...messageItem(0, 'msg_1', 'partial'), failed]);
      assert.doesNotMatch(text, /finish_reason":"(stop|content_filter)|end_turn|boom"?,"role/);
      assert.ok(last(events).error !== undefined);
    }
  });

  test('R10: a turn of calls alone makes no empty message', () => {
    const calls = {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
    };
    const { input } = convert('chat', 'responses', { messages: [hi, calls, { role: 'tool', tool_call_id: 'a', content: 'r' }] });
    assert.deepEqual(
      input.map(({ type, role }: Json) => type ?? role),
      ['message', 'function_call', 'function_call_output'].map((type, index) => (index === 0 ? (input[0].type ?? 'user') : type)),
    );
  });

  test('R11: output text that only begins like JSON stays text', () => {
    const input = [hi, doneCall('fc_1', 'a', '{}'), { type: 'function_call_output', call_id: 'a', output: '{"cut":' }];
    for (const upstream of ['chat', 'messages', 'gemini'] as const) {
      assert.match(JSON.stringify(convert('responses', upstream, { input })), /\{\\+"cut\\+":/);
    }
  });

  test('R12: a failed result has no invented member, its text says so', () => {
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'no such file', is_error: true }] },
    ];
    const { input } = convert('messages', 'responses', { max_tokens: 10, messages });
    assert.deepEqual(Object.keys(input[2]).sort(), ['call_id', 'output', 'type']);
    assert.match(JSON.stringify(input[2].output), /Error: no such file/);
  });

  test('R13: formats map both ways, and json_object carries no schema', () => {
    const schema = { type: 'object', properties: {} };
    const flat = { type: 'json_schema', name: 'a', schema, strict: true };
    const chat = convert('responses', 'chat', { input: 'x', text: { format: flat } });
    assert.deepEqual(chat.response_format, { type: 'json_schema', json_schema: { name: 'a', schema, strict: true } });
    assert.deepEqual(convert('chat', 'responses', { messages: [hi], response_format: chat.response_format }).text.format, flat);
    const plain = convert('chat', 'responses', { messages: [hi], response_format: { type: 'json_object' } });
    assert.deepEqual(plain.text.format, { type: 'json_object' });
  });

  test('R14: a chosen tool is flat on responses and nested on chat', () => {
    const parameters = { type: 'object', properties: {} };
    const tools = [{ type: 'function', function: { name: 'f', parameters } }];
    const choice = { type: 'function', function: { name: 'f' } };
    assert.deepEqual(convert('chat', 'responses', { messages: [hi], tools, tool_choice: choice }).tool_choice, {
      type: 'function',
      name: 'f',
    });
    const flat = {
      input: 'x',
      tools: [{ type: 'function', name: 'f', parameters }],
      tool_choice: { type: 'function', name: 'f' },
    };
    assert.deepEqual(convert('responses', 'chat', flat).tool_choice, choice);
  });

  test('R15: required members are there with zeros and empty lists', () => {
    const { body, events } = toResponses(delta({ content: 'x' }), finish('stop'), usageChunk(7, 2), DONE);
    for (const response of [body, last(events).response]) {
      assert.equal(response.usage.input_tokens_details.cached_tokens, 0);
      assert.equal(response.usage.output_tokens_details.reasoning_tokens, 0);
      assert.equal(response.usage.total_tokens, 9);
      assert.deepEqual(response.output[0].content[0].annotations, []);
      assert.deepEqual(response.output[0].content[0].logprobs, []);
      for (const member of ['object', 'created_at', 'error', 'incomplete_details']) assert.ok(member in response, member);
    }
  });

  test('R16: every event names the logical model', () => {
    for (const client of ['chat', 'responses', 'messages'] as const) {
      const { text } = through('chat', client, [delta({ content: 'x' }), finish('stop'), DONE]);
      assert.doesNotMatch(text, /"model":"(?!logical-model)/);
    }
    const native = through('responses', 'responses', [
      created(),
      ...messageItem(0, 'msg_1', 'x'),
      terminal('completed', [doneMessage('msg_1', 'x')]),
    ]);
    assert.doesNotMatch(native.text, /"model":"(?!logical-model)/);
  });

  test('R17: a terminal without its items gets those that were streamed, ids kept', () => {
    const { events, body } = through('responses', 'responses', [
      created(),
      ...messageItem(0, 'msg_1', 'x'),
      terminal('completed', []),
    ]);
    assert.deepEqual(
      last(events).response.output.map(({ id }: Json) => id),
      ['msg_1'],
    );
    assert.equal(body.output[0].content[0].text, 'x');
  });

  test('R18 P9: arguments that the end repeats are said once', () => {
    for (const client of ['chat', 'messages', 'responses'] as const) {
      const { text } = through('responses', client, [
        created(),
        ...callItem(0, 'fc_1', 'a', '{"q":"x"}'),
        terminal('completed', [doneCall('fc_1', 'a', '{"q":"x"}')]),
      ]);
      assert.doesNotMatch(text, /"x\\?"\}\{/);
    }
    const chat = through('responses', 'chat', [created(), ...callItem(0, 'fc_1', 'a', '{"q":"x"}'), terminal('completed', [])]);
    assert.equal(chat.body.choices[0].message.tool_calls[0].function.arguments, '{"q":"x"}');
  });

  test('R19: items are found by output index where ids rotate', () => {
    const events = messageItem(0, 'msg_1', 'hello').map((event, index) => {
      const { item_id, ...rest } = event as Json;
      return item_id === undefined ? event : { ...rest, item_id: `opaque_${index}` };
    });
    const { body } = through('responses', 'chat', [created(), ...events, terminal('completed', [])]);
    assert.equal(body.choices[0].message.content, 'hello');
  });

  const declared = ['f', 'g'].map((name, at) => ({ kind: 'function' as const, tool: { name }, at: `tools[${at}]` }));
  const uses = (...names: string[]): string =>
    `{"tool_uses":[${names.map((name) => `{"recipient_name":"functions.${name}","parameters":{"of": "${name}", "n":1.0}}`).join()}]}`;
  const wrapped = (args: string, name = 'multi_tool_use.parallel'): object[] =>
    callItem(0, 'fc_1', 'a', args).map(
      (event) => JSON.parse(JSON.stringify(event).replaceAll('"name":"f"', `"name":"${name}"`)) as object,
    );
  const callsOf = ({ body }: { readonly body: Json }): unknown =>
    body.choices[0].message.tool_calls.map((call: Json) => [call.function.name, call.function.arguments]);

  test('R20: a wrapper call that the model made up becomes the declared calls inside it, whole and streamed', () => {
    const events = [created(), ...wrapped(uses('f', 'g')), ...callItem(1, 'fc_2', 'b', '{}'), terminal('completed', [])];
    const heard = through('responses', 'chat', events, { request: { tools: declared } });
    const expected = [
      ['f', '{"of": "f", "n":1.0}'],
      ['g', '{"of": "g", "n":1.0}'],
      ['f', '{}'],
    ];
    assert.deepEqual(callsOf(heard), expected);
    const heads = heard.events.flatMap(({ choices }) => choices?.[0]?.delta?.tool_calls ?? []).filter(({ id }: Json) => id);
    assert.deepEqual(
      heads.map(({ index, function: { name } }: Json) => [index, name]),
      [
        [0, 'f'],
        [1, 'g'],
        [2, 'f'],
      ],
    );
    assert.equal(new Set(heads.map(({ id }: Json) => id)).size, 3);

    const chunks = [callDelta(0, 'a', 'parallel', uses('g')), finish('tool_calls'), DONE];
    const { output } = through('chat', 'responses', chunks, { request: { tools: declared } }).body;
    assert.deepEqual(
      output.map(({ type, name }: Json) => [type, name]),
      [['function_call', 'g']],
    );
  });

  test('R20: the signature of a wrapper signs the first call inside it', () => {
    const signedCall = { google: { thought_signature: 'c2ln' } };
    const called = { name: 'parallel', arguments: uses('f', 'g') };
    const call = { index: 0, id: 'a', type: 'function', function: called, extra_content: signedCall };
    const chunks = [delta({ tool_calls: [call] }), finish('tool_calls'), DONE];
    const { output } = through('chat', 'responses', chunks, { request: { tools: declared } }).body;
    const [first, second] = output.filter(({ type }: Json) => type === 'function_call');
    const signed = output.flatMap(({ encrypted_content: sealed }: Json) => (sealed ? [openForTests(sealed)] : []));
    assert.deepEqual([first.name, second.name], ['f', 'g']);
    assert.deepEqual(
      signed.map(({ value, itemId }: Json) => [value, itemId]),
      [['c2ln', first.call_id]],
    );
  });

  test('R20: a wrapper stays one call where a tool has its name, a recipient is unknown, or it is cut', () => {
    const tools = [...declared, { kind: 'function' as const, tool: { name: 'parallel' }, at: 'tools[2]' }];
    const once = (args: string, request: object): unknown =>
      callsOf(through('responses', 'chat', [created(), ...wrapped(args, 'parallel'), terminal('completed', [])], { request }));
    assert.deepEqual(once(uses('f'), { tools }), [['parallel', uses('f')]]);
    assert.deepEqual(once(uses('f', 'gone'), { tools: declared }), [['parallel', uses('f', 'gone')]]);
    assert.deepEqual(once('{"tool_uses":3}', { tools: declared }), [['parallel', '{"tool_uses":3}']]);
    const cut = [callDelta(0, 'a', 'parallel', uses('f').slice(0, 30)), finish('length'), DONE];
    const { output } = through('chat', 'responses', cut, { request: { tools: declared } }).body;
    assert.deepEqual([output[0].name, output[0].status], ['parallel', 'incomplete']);
  });

  test('R21: an upstream that breaks off ends in response.failed with our id and the next sequence number, once', () => {
    const { events } = toResponses(delta({ content: 'x' }), { error: { message: 'boom', code: 500 } });
    const failed = named(events, 'response.failed');
    assert.equal(failed.length, 1);
    assert.match(failed[0].response.id, /^resp_mizu_[0-9a-f]{32}$/);
    assert.equal(failed[0].sequence_number, events.length - 1);
    const early = toResponses('');
    assert.equal(last(early.events).type, 'response.failed');
  });

  test('R22: item ids begin with the prefix of their type', () => {
    const custom = { index: 1, id: 'b', type: 'custom', custom: { name: 'g', input: 'x' } };
    const { body } = toResponses(
      delta({ reasoning_content: 'hm' }),
      delta({ content: 'x' }),
      callDelta(0, 'a', 'f', '{}'),
      delta({ tool_calls: [custom] }),
      finish('stop'),
      DONE,
    );
    const PREFIX: Record<string, string> = { message: 'msg_', reasoning: 'rs_', function_call: 'fc_', custom_tool_call: 'ctc_' };
    for (const { type, id } of body.output) assert.ok(id.startsWith(PREFIX[type] ?? '?'), `${type}: ${id}`);
    assert.equal(body.output.length, 4);
  });

  test('R23 P10: reasoning that cannot be sent leaves nothing behind that asks for it', () => {
    const input = [
      hi,
      { id: 'rs_1', type: 'reasoning', summary: [] },
      doneCall('fc_1', 'a', '{}'),
      { type: 'function_call_output', call_id: 'a', output: 'r' },
    ];
    const sent = convert('responses', 'responses', { input, store: false });
    assert.deepEqual(
      sent.input.map(({ type, id }: Json) => [type, id]),
      [
        [undefined, undefined],
        ['function_call', undefined],
        ['function_call_output', undefined],
      ],
    );
  });

  test('a messages answer keeps its blocks in order for a responses client', () => {
    const { body } = through('messages', 'responses', [
      messageStart(),
      ...block(
        0,
        { type: 'thinking', thinking: '', signature: '' },
        { type: 'thinking_delta', thinking: 'hm' },
        { type: 'signature_delta', signature: 'SIG' },
      ),
      ...block(1, { type: 'text', text: '' }, say('x')),
      ...block(2, { type: 'tool_use', id: 'a', name: 'f', input: {} }, { type: 'input_json_delta', partial_json: '{}' }),
      ...messageEnd('tool_use'),
    ]);
    assert.deepEqual(
      body.output.map(({ type }: Json) => type),
      ['reasoning', 'message', 'function_call'],
    );
  });
});
