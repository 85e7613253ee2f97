/**
 * What a history may hold that a vendor refuses: call ids of other vendors, and texts of nothing but white space in every place.
 */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject, JsonValue } from '../../../src/codecs/canonical/json.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { ownerOf, targetOf } from '../../support/wire.ts';

function sent(
  client: string,
  upstream: string,
  body: JsonObject,
): { readonly json: Record<string, JsonValue>; readonly text: string } {
  const codec = UPSTREAMS.find((each) => each.dialect === upstream) ?? assert.fail();
  const reader = CLIENTS.find((each) => each.dialect === client) ?? assert.fail();
  const request = reader.decodeRequest(JSON.stringify(body), body, { open: () => undefined });
  const text = codec.encodeRequest(request, targetOf(ownerOf(codec))).body;
  return { json: JSON.parse(text), text };
}

/** Two calls in two turns and their results, as each client writes them. */
const BODIES: Readonly<Record<string, (ids: readonly [string, string]) => JsonObject>> = {
  chat: ([a, b]) => ({
    model: 'm',
    messages: [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: null, tool_calls: [{ id: a, type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: a, content: 'first' },
      { role: 'assistant', content: null, tool_calls: [{ id: b, type: 'function', function: { name: 'f', arguments: '{}' } }] },
      { role: 'tool', tool_call_id: b, content: 'second' },
    ],
  }),
  responses: ([a, b]) => ({
    model: 'm',
    input: [
      { role: 'user', content: 'q' },
      { type: 'function_call', call_id: a, name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: a, output: 'first' },
      { type: 'function_call', call_id: b, name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: b, output: 'second' },
    ],
  }),
  messages: ([a, b]) => ({
    model: 'm',
    max_tokens: 9,
    messages: [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: [{ type: 'tool_use', id: a, name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: a, content: 'first' }] },
      { role: 'assistant', content: [{ type: 'tool_use', id: b, name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: b, content: 'second' }] },
    ],
  }),
};

const CALLS = /"(?:id|call_id)":"([^"]+)"(?=,"(?:type":"function|name)|[^{}]*"name":"f")/g;
const RESULTS = /"(?:tool_call_id|tool_use_id)":"([^"]+)"|"function_call_output","call_id":"([^"]+)"/g;
const found = (text: string, what: RegExp): string[] => [...text.matchAll(what)].map((match) => match[1] ?? match[2] ?? '');

describe('call ids', () => {
  const LIMITS: Readonly<Record<string, RegExp>> = {
    chat: /^.{1,40}$/,
    responses: /^.{1,64}$/,
    messages: /^[a-zA-Z0-9_-]{1,64}$/,
  };
  const IDS: readonly (readonly [string, string])[] = [
    [`call_${'x'.repeat(195)}`, `call_${'x'.repeat(194)}y`],
    ['call_1', 'call_2'],
  ];
  it('fit each vendor, stay distinct, and results keep matching their calls', () => {
    for (const [client, body] of Object.entries(BODIES)) {
      for (const [upstream, limit] of Object.entries(LIMITS)) {
        for (const ids of IDS) {
          const { text } = sent(client, upstream, body(ids));
          const calls = found(text.replaceAll(/"function_call_output","call_id":"[^"]+"/g, ''), CALLS);
          const where = `${client} to ${upstream}: ${text}`;
          assert.equal(new Set(calls).size, 2, where);
          assert.deepEqual(found(text, RESULTS), calls, where);
          for (const id of calls) assert.match(id, limit, where);
          if (ids[0] === 'call_1') assert.deepEqual(calls, ids, where);
        }
      }
    }
  });

  it('of chat that hold what a server wants back stay where the dialect stays', () => {
    const long = `call_1__thought__${'x'.repeat(400)}`;
    const body = BODIES['chat']?.([long, 'call_2']) ?? assert.fail();
    assert.deepEqual(sent('chat', 'chat', body).json, { ...body, model: 'up-model' });
  });
});

/** One answer with three calls of one id, and a later one that reuses it. */
const SHARED: Readonly<Record<string, JsonObject>> = {
  chat: {
    model: 'm',
    messages: [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: null, tool_calls: [1, 2, 3].map(chatCall) },
      ...[1, 2, 3].map((n) => ({ role: 'tool', tool_call_id: 'f', content: `r${n}` })),
      { role: 'assistant', content: null, tool_calls: [chatCall(4)] },
      { role: 'tool', tool_call_id: 'f', content: 'r4' },
    ],
  },
  responses: {
    model: 'm',
    input: [
      { role: 'user', content: 'q' },
      ...[1, 2, 3].map((n) => ({ type: 'function_call', call_id: 'f', name: 'f', arguments: `{"n":${n}}` })),
      ...[1, 2, 3].map((n) => ({ type: 'function_call_output', call_id: 'f', output: `r${n}` })),
      { type: 'function_call', call_id: 'f', name: 'f', arguments: '{"n":4}' },
      { type: 'function_call_output', call_id: 'f', output: 'r4' },
    ],
  },
  messages: {
    model: 'm',
    max_tokens: 9,
    messages: [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: [1, 2].map(messagesCall) },
      { role: 'assistant', content: [messagesCall(3)] },
      { role: 'user', content: [1, 2, 3].map((n) => ({ type: 'tool_result', tool_use_id: 'f', content: `r${n}` })) },
      { role: 'assistant', content: [messagesCall(4)] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'f', content: 'r4' }] },
    ],
  },
};

function chatCall(n: number): JsonObject {
  return { id: 'f', type: 'function', function: { name: 'f', arguments: `{"n":${n}}` } };
}

function messagesCall(n: number): JsonObject {
  return { type: 'tool_use', id: 'f', name: 'f', input: { n } };
}

/** The ids of the calls by their `n`, and those of the results by their text, in any upstream's body. */
function idsIn(body: unknown): Record<string, string> {
  const ids: Record<string, string> = {};
  JSON.stringify(body, (_, value) => {
    const id = value?.tool_call_id ?? value?.tool_use_id ?? value?.call_id ?? value?.id;
    if (typeof id !== 'string') return value;
    const text = JSON.stringify(value).replaceAll('\\', '');
    const [, call] = /"n":(\d)/.exec(text) ?? [];
    const [, result] = /"r(\d)"/.exec(text) ?? [];
    if (call !== undefined) ids[`call ${call}`] = id;
    else if (result !== undefined) ids[`result ${result}`] = id;
    return value;
  });
  return ids;
}

describe('call ids that several calls of one answer share, as servers make them that use the name of the tool', () => {
  it('are distinct at each upstream, and results stay with their calls in order', () => {
    for (const [client, body] of Object.entries(SHARED)) {
      for (const upstream of ['chat', 'responses', 'messages', 'gemini']) {
        // OpenAI's own dialects leave their own conversations as they are.
        if (client === upstream && client !== 'messages') continue;
        const { json } = sent(client, upstream, body);
        const ids = idsIn(json);
        const where = `${client} to ${upstream}: ${JSON.stringify(json)}`;
        assert.equal(new Set([ids['call 1'], ids['call 2'], ids['call 3']]).size, 3, where);
        for (const n of [1, 2, 3, 4]) assert.equal(ids[`result ${n}`], ids[`call ${n}`] ?? assert.fail(where), where);
      }
    }
  });

  it('go to the latest answer that made a call with this id, also where an earlier one was never answered', () => {
    const unanswered = {
      model: 'm',
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'q' },
        { role: 'assistant', content: [messagesCall(1)] },
        { role: 'user', content: 'go on' },
        { role: 'assistant', content: [messagesCall(2)] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'f', content: 'r2' }] },
      ],
    };
    const ids = idsIn(sent('messages', 'messages', unanswered).json);
    assert.notEqual(ids['call 1'], ids['call 2']);
    assert.equal(ids['result 2'], ids['call 2']);
  });
});

describe('blank texts never reach a messages upstream', () => {
  const BLANK = ' \n\t';
  const refused = (client: string, body: JsonObject): unknown => {
    try {
      return sent(client, 'messages', body).text;
    } catch (error) {
      assert.ok(error instanceof GatewayError);
      return [error.code, error.details.param];
    }
  };
  const messages = (...list: JsonValue[]): JsonObject => ({ model: 'm', max_tokens: 9, messages: list });
  const text = (value: string): JsonObject => ({ type: 'text', text: value });
  const wire = (client: string, body: JsonObject): JsonValue | undefined => sent(client, 'messages', body).json['messages'];
  const q = { role: 'user', content: 'q' };
  const a = { role: 'assistant', content: 'a' };

  it('as strings and as blocks, of every role, at every place', () => {
    for (const blank of ['', BLANK]) {
      for (const content of [blank, [text(blank)], [text(blank), text(blank)]]) {
        assert.deepEqual(wire('messages', messages(q, { role: 'assistant', content }, q)), [q, q]);
        assert.deepEqual(wire('messages', messages(q, a, { role: 'user', content }, q)), [q, a, q]);
        assert.deepEqual(wire('messages', messages({ role: 'user', content }, q)), [q]);
        assert.deepEqual(wire('messages', messages(q, { role: 'system', content }, a, q)), [q, a, q]);
      }
      assert.deepEqual(wire('messages', messages({ role: 'user', content: [text(blank), text('q')] })), [
        { role: 'user', content: [text('q')] },
      ]);
    }
  });

  it('a last turn of the user that is blank is said to have no content: the model does not go on with its own answer', () => {
    const none = (content: JsonValue) => ({ role: 'user', content });
    for (const content of ['', BLANK, [text(BLANK)]])
      assert.deepEqual(wire('messages', messages(q, a, none(content))), [q, a, none('(no content)')]);
    const chat = { model: 'm', messages: [q, a, none(BLANK)] };
    const responses = { model: 'm', input: [q, a, none(BLANK)] };
    const last = { role: 'user', content: [text('(no content)')] };
    assert.deepEqual((wire('chat', chat) as JsonValue[]).at(-1), last);
    assert.deepEqual((wire('responses', responses) as JsonValue[]).at(-1), last);
  });

  it('in the system prompt, in results, documents and search results', () => {
    const body = messages(
      { role: 'user', content: [{ type: 'document', source: { type: 'content', content: [text(BLANK), text('d')] } }] },
      {
        role: 'assistant',
        content: [
          { type: 'tool_use', id: 'toolu_1', name: 'f', input: {} },
          { type: 'tool_use', id: 'toolu_2', name: 'f', input: {} },
        ],
      },
      {
        role: 'user',
        content: [
          { type: 'tool_result', tool_use_id: 'toolu_1', content: BLANK },
          {
            type: 'tool_result',
            tool_use_id: 'toolu_2',
            content: [text(BLANK), { type: 'search_result', source: 's', title: 't', content: [text('r')] }],
          },
          { type: 'search_result', source: 's', title: 't', content: [text(''), text('r')] },
        ],
      },
    );
    for (const system of [BLANK, '', [text(BLANK)], [text(''), text(BLANK)]]) {
      const { json, text: whole } = sent('messages', 'messages', { ...body, system });
      assert.equal(json['system'], undefined);
      assert.doesNotMatch(whole, /"(text|content)":"\s*(\\n)?(\\t)?"/);
    }
  });

  it('a request of nothing else is refused at its path', () => {
    assert.deepEqual(refused('messages', messages({ role: 'user', content: BLANK })), [
      'unsupported_conversion',
      'messages[0].content',
    ]);
    assert.deepEqual(refused('messages', messages({ role: 'user', content: [text(BLANK)] })), [
      'unsupported_conversion',
      'messages[0].content[0]',
    ]);
    assert.deepEqual(refused('chat', { model: 'm', messages: [{ role: 'user', content: BLANK }] }), [
      'unsupported_conversion',
      'messages[0].content',
    ]);
    assert.deepEqual(refused('responses', { model: 'm', input: BLANK }), ['unsupported_conversion', 'input']);
  });
});
