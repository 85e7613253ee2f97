/** Cache breakpoints of every client at every upstream: the same prefixes, in the words and within the count of each vendor. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../../../src/codecs/canonical/json.ts';
import type { CodecOptions, Target } from '../../../src/codecs/codec.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { ownerOf, targetOf } from '../../support/wire.ts';

const clientOf = (dialect: string) => CLIENTS.find((each) => each.dialect === dialect) ?? assert.fail(dialect);
const upstreamOf = (dialect: string) => UPSTREAMS.find((each) => each.dialect === dialect) ?? assert.fail(dialect);
const decode = (client: string, body: JsonObject) =>
  clientOf(client).decodeRequest(JSON.stringify(body), body, { open: () => undefined });

function sent(client: string, upstream: string, body: JsonObject, options: CodecOptions = {}, more: Partial<Target> = {}) {
  const codec = upstreamOf(upstream);
  const { body: text, losses } = codec.encodeRequest(decode(client, body), targetOf(ownerOf(codec), { options, ...more }));
  const json: JsonObject = JSON.parse(text);
  return { json, losses, marks: marksIn(json) };
}

/** `text: mark` of every object that holds one, in the order of the body. */
function marksIn(value: JsonValue | undefined): string[] {
  if (Array.isArray(value)) return value.flatMap(marksIn);
  if (!isObject(value)) return [];
  const mark = value['prompt_cache_breakpoint'] ?? value['cache_control'];
  const name = value['text'] ?? value['name'] ?? value['tool_use_id'] ?? value['type'] ?? '';
  const own = mark === undefined ? [] : [`${String(name)}: ${JSON.stringify(mark)}`];
  const within = Object.entries(value).filter(([key]) => !['cache_control', 'prompt_cache_options'].includes(key));
  return [...within.flatMap(([, member]) => marksIn(member)), ...own];
}

const EXPLICIT = '{"mode":"explicit"}';
const EPHEMERAL = '{"type":"ephemeral"}';
const ephemeral = { type: 'ephemeral' };
const explicit = { mode: 'explicit' };

/** The shape of a coding agent's request. */
const AGENT: JsonObject = {
  model: 'm',
  max_tokens: 9,
  system: [
    { type: 'text', text: 'sys' },
    { type: 'text', text: 'rules', cache_control: { type: 'ephemeral', ttl: '1h' } },
  ],
  tools: [{ name: 'read', input_schema: { type: 'object' }, cache_control: ephemeral }],
  messages: [
    { role: 'user', content: 'q' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'read', input: {} }] },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'r', cache_control: ephemeral }] },
    { role: 'assistant', content: [{ type: 'text', text: 'a' }] },
    { role: 'user', content: [{ type: 'text', text: 'next', cache_control: ephemeral }] },
  ],
};

describe('messages clients', () => {
  it('chat and responses upstreams get the members of OpenAI', () => {
    for (const upstream of ['chat', 'responses']) {
      const { json, marks, losses } = sent('messages', upstream, AGENT);
      const long = 'rules: {"mode":"explicit","ttl":"12h"}';
      assert.deepEqual(marks, [long, `r: ${EXPLICIT}`, `next: ${EXPLICIT}`], upstream);
      assert.ok(losses.includes('cache breakpoint'));
      assert.ok(!JSON.stringify(json).includes('cache_control'));
      assert.equal(json['instructions'], undefined);
    }
  });

  it('routers of chat get cache_control, on tools too', () => {
    const { marks } = sent('messages', 'chat', AGENT, { routerCacheControl: true });
    const long = 'rules: {"type":"ephemeral","ttl":"1h"}';
    assert.deepEqual(marks, [long, `r: ${EPHEMERAL}`, `next: ${EPHEMERAL}`, `function: ${EPHEMERAL}`]);
  });

  it('a gemini upstream gets none, and the log names it', () => {
    const { marks, losses } = sent('messages', 'gemini', AGENT);
    assert.deepEqual(marks, []);
    assert.ok(losses.includes('cache breakpoint'));
  });

  it('a breakpoint on a tool alone stands behind the system text', () => {
    const body = { ...AGENT, system: 'sys', messages: [{ role: 'user', content: 'q' }] };
    assert.deepEqual(sent('messages', 'responses', body).marks, [`sys: ${EXPLICIT}`]);
  });

  it('a breakpoint on what has no place stands behind what comes before it', () => {
    const messages = [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: [{ type: 'text', text: 'a', cache_control: ephemeral }] },
      { role: 'user', content: 'next' },
    ];
    for (const upstream of ['chat', 'responses'])
      assert.deepEqual(sent('messages', upstream, { model: 'm', messages }).marks, [`q: ${EXPLICIT}`], upstream);
  });

  it('a breakpoint whose place the vendor chooses is the mode implicit, with its lifetime', () => {
    const body = { model: 'm', cache_control: { type: 'ephemeral', ttl: '1h' }, messages: [{ role: 'user', content: 'q' }] };
    for (const upstream of ['chat', 'responses']) {
      const { json } = sent('messages', upstream, body);
      assert.deepEqual(json['prompt_cache_options'], { mode: 'implicit', ttl: '12h' }, upstream);
    }
    const plain = { ...body, cache_control: ephemeral };
    assert.equal(sent('messages', 'responses', plain).json['prompt_cache_options'], undefined, 'what the vendor does anyway');
    assert.deepEqual(sent('messages', 'chat', plain, { routerCacheControl: true }).json['cache_control'], ephemeral);
  });

  it('a request without breakpoints is written as it always was', () => {
    const body = { model: 'm', system: 'sys', messages: [{ role: 'user', content: 'q' }] };
    const { json, marks, losses } = sent('messages', 'responses', body);
    assert.deepEqual(marks, []);
    assert.equal(json['instructions'], 'sys');
    assert.ok(!losses.includes('cache breakpoint'));
  });
});

const part = (text: string, ttl?: string): JsonObject => ({
  type: 'text',
  text,
  prompt_cache_breakpoint: ttl === undefined ? explicit : { ...explicit, ttl },
});

describe('chat clients', () => {
  it("OpenAI's breakpoints reach messages and responses upstreams with the lifetime of the request", () => {
    const body = {
      model: 'm',
      prompt_cache_options: { mode: 'explicit', ttl: '12h' },
      messages: [
        { role: 'system', content: [part('sys')] },
        { role: 'user', content: [part('q', '30m')] },
      ],
    };
    const { json, marks } = sent('chat', 'messages', body);
    assert.deepEqual(marks, ['q: {"type":"ephemeral","ttl":"1h"}', 'sys: {"type":"ephemeral","ttl":"1h"}'].sort().reverse());
    assert.equal(json['cache_control'], undefined);
    const to = sent('chat', 'responses', body);
    assert.deepEqual(to.marks, ['sys: {"mode":"explicit","ttl":"12h"}', 'q: {"mode":"explicit","ttl":"30m"}']);
    assert.deepEqual(to.json['prompt_cache_options'], { mode: 'explicit', ttl: '12h' });
  });

  it('those of routers reach responses upstreams', () => {
    const messages = [{ role: 'user', content: [{ type: 'text', text: 'q', cache_control: ephemeral }] }];
    assert.deepEqual(sent('chat', 'responses', { model: 'm', messages }).marks, [`q: ${EXPLICIT}`]);
  });

  it('the mode implicit is an automatic breakpoint at a messages upstream', () => {
    const body = { model: 'm', prompt_cache_options: { ttl: '12h' }, messages: [{ role: 'user', content: 'q' }] };
    assert.deepEqual(sent('chat', 'messages', body).json['cache_control'], { type: 'ephemeral', ttl: '1h' });
  });
});

describe('responses clients', () => {
  const input = (count: number) => [
    { role: 'developer', content: [{ type: 'input_text', text: 'sys', prompt_cache_breakpoint: explicit }] },
    ...Array.from({ length: count }, (_, at) => ({
      role: 'user',
      content: [{ type: 'input_text', text: `q${at}`, prompt_cache_breakpoint: explicit }],
    })),
  ];

  it('messages and chat upstreams get the latest four', () => {
    for (const [upstream, word] of [
      ['messages', EPHEMERAL],
      ['chat', EXPLICIT],
    ] as const) {
      const { marks } = sent('responses', upstream, { model: 'm', input: input(5) });
      assert.deepEqual(
        marks,
        [1, 2, 3, 4].map((at) => `q${at}: ${word}`),
        upstream,
      );
    }
  });

  it('the result of a call keeps its own', () => {
    const output = [{ type: 'input_text', text: 'r', prompt_cache_breakpoint: explicit }];
    const body = {
      model: 'm',
      input: [
        { role: 'user', content: 'q' },
        { type: 'function_call', call_id: 'call_1', name: 'read', arguments: '{}' },
        { type: 'function_call_output', call_id: 'call_1', output },
      ],
    };
    assert.deepEqual(sent('responses', 'messages', body).marks, [`call_1: ${EPHEMERAL}`]);
    assert.deepEqual(sent('responses', 'chat', body).marks, [`r: ${EXPLICIT}`]);
  });

  it('none lives shorter than one behind it at a messages upstream, which refuses that', () => {
    const text = (name: string, ttl?: string) => ({ ...part(name, ttl), type: 'input_text' });
    const body = { model: 'm', input: [{ role: 'user', content: [text('a'), text('b', '12h'), text('c')] }] };
    const { marks } = sent('responses', 'messages', body);
    const long = '{"type":"ephemeral","ttl":"1h"}';
    assert.deepEqual(marks, [`a: ${long}`, `b: ${long}`, `c: ${EPHEMERAL}`]);
  });
});

describe('cache_breakpoints: "auto"', () => {
  const AUTO: CodecOptions = { cacheBreakpoints: 'auto' };
  const chat: JsonObject = {
    model: 'm',
    messages: [
      { role: 'system', content: 'sys' },
      { role: 'user', content: 'q' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_1', content: 'r' },
      { role: 'assistant', content: 'a' },
      {
        role: 'user',
        content: [
          { type: 'text', text: 'more' },
          { type: 'text', text: 'next' },
        ],
      },
    ],
  };
  const messages: JsonObject = {
    model: 'm',
    max_tokens: 9,
    system: 'sys',
    messages: [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'call_1', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'call_1', content: 'r' }] },
      { role: 'assistant', content: 'a' },
      { role: 'user', content: [{ type: 'text', text: 'next' }] },
    ],
  };
  const responses: JsonObject = {
    model: 'm',
    input: [
      { role: 'developer', content: 'sys' },
      { role: 'user', content: 'q' },
      { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'r' },
      { role: 'assistant', content: 'a' },
      { role: 'user', content: [{ type: 'input_text', text: 'next' }] },
    ],
  };
  const clients = { chat, messages, responses };

  it('sets them behind the instructions and the last two turns of the user, also where the dialect stays', () => {
    for (const [client, body] of Object.entries(clients)) {
      for (const upstream of ['chat', 'messages', 'responses']) {
        const { marks, json } = sent(client, upstream, body, AUTO);
        const result = upstream === 'messages' ? 'call_1' : 'r';
        const word = upstream === 'messages' ? EPHEMERAL : EXPLICIT;
        const wanted = ['sys', result, 'next'].map((name) => `${name}: ${word}`);
        assert.deepEqual(marks.sort(), wanted.sort(), `${client} to ${upstream}`);
        assert.equal(JSON.stringify(json).match(/"sys"/g)?.length, 1, 'the text stands once');
      }
    }
  });

  it('sets none where the client set one, or left them to the vendor', () => {
    const own = { ...messages, system: [{ type: 'text', text: 'sys', cache_control: ephemeral }] };
    assert.deepEqual(sent('messages', 'messages', own, AUTO).marks, [`sys: ${EPHEMERAL}`]);
    const left = { ...chat, prompt_cache_options: { mode: 'implicit' } };
    assert.deepEqual(sent('chat', 'chat', left, AUTO).marks, []);
  });

  it('changes nothing else of a body that stays in its dialect', () => {
    const text = '{"model":"m","x":1.0,"messages":[{"role":"user","content":"q \\u00e9"}]}';
    const codec = upstreamOf('chat');
    const request = clientOf('chat').decodeRequest(text, JSON.parse(text), { open: () => undefined });
    const { body } = codec.encodeRequest(request, targetOf(ownerOf(codec), { options: AUTO }));
    const marked = '[{"type":"text","text":"q é","prompt_cache_breakpoint":{"mode":"explicit"}}]';
    assert.equal(body, `{"model":"up-model","x":1.0,"messages":[{"role":"user","content":${marked}}]}`);
  });
});

describe('an upstream that has just refused the members', () => {
  const without: Partial<Target> = { without: new Set(['breakpoints']) };
  it('gets none of them, in every pair', () => {
    const responses = {
      model: 'm',
      prompt_cache_options: { ttl: '12h' },
      input: [{ role: 'user', content: [{ ...part('q'), type: 'input_text' }] }],
    };
    const chat = { model: 'm', prompt_cache_options: { ttl: '12h' }, messages: [{ role: 'user', content: [part('q')] }] };
    for (const [client, body] of Object.entries({ messages: { ...AGENT, cache_control: ephemeral }, responses, chat })) {
      for (const upstream of ['chat', 'messages', 'responses', 'gemini']) {
        const { json, losses } = sent(client, upstream, body, { cacheBreakpoints: 'auto' }, without);
        assert.doesNotMatch(JSON.stringify(json), /cache_control|prompt_cache_/, `${client} to ${upstream}`);
        assert.ok(losses.includes('cache breakpoint'), `${client} to ${upstream}`);
      }
    }
  });
});

describe('half-made breakpoints are refused at their path', () => {
  const refused = (client: string, body: JsonObject): string => {
    try {
      decode(client, { model: 'm', ...body });
    } catch (error) {
      assert.ok(error instanceof GatewayError);
      assert.equal(error.code, 'invalid_request');
      assert.match(error.message, /\S\.$/);
      return String(error.details.param ?? error.message);
    }
    return 'taken';
  };
  const user = (content: JsonValue) => [{ role: 'user', content }];

  it('in each place of each client', () => {
    const text = { type: 'text', text: 'q' };
    const chatPart = (breakpoint: JsonValue) => ({ messages: user([{ ...text, prompt_cache_breakpoint: breakpoint }]) });
    const block = (control: JsonValue) => ({ messages: user([{ ...text, cache_control: control }]) });
    const input = (breakpoint: JsonValue) => ({
      input: user([{ type: 'input_text', text: 'q', prompt_cache_breakpoint: breakpoint }]),
    });
    const at = 'messages[0].content[0]';
    assert.equal(refused('messages', block({})), `${at}.cache_control.type`);
    assert.equal(refused('messages', block('ephemeral')), `${at}.cache_control`);
    assert.equal(refused('messages', block({ type: 'persistent' })), `${at}.cache_control.type`);
    assert.equal(refused('messages', block({ type: 'ephemeral', ttl: 5 })), `${at}.cache_control.ttl`);
    assert.equal(refused('messages', { messages: user('q'), cache_control: { ttl: '1h' } }), 'cache_control.type');
    assert.equal(refused('messages', block(null)), 'taken');
    assert.equal(refused('chat', chatPart({})), `${at}.prompt_cache_breakpoint.mode`);
    assert.equal(refused('chat', chatPart({ mode: 'implicit' })), `${at}.prompt_cache_breakpoint.mode`);
    assert.equal(refused('chat', block([])), `${at}.cache_control`);
    assert.equal(refused('responses', input({})), 'input[0].content[0].prompt_cache_breakpoint.mode');
    assert.equal(refused('responses', input(null)), 'taken');
    assert.equal(refused('responses', { input: 'q', prompt_cache_options: { mode: 'x' } }), 'prompt_cache_options.mode');
    assert.equal(refused('responses', { input: 'q', prompt_cache_options: 'x' }), 'prompt_cache_options');
    assert.equal(refused('chat', { messages: user('q'), prompt_cache_options: { ttl: 1 } }), 'prompt_cache_options.ttl');
  });

  it('a lifetime that nobody knows is as long as the vendor likes', () => {
    const body = { model: 'm', messages: user([{ type: 'text', text: 'q', cache_control: { type: 'ephemeral', ttl: 'long' } }]) };
    assert.deepEqual(sent('chat', 'messages', body).marks, [`q: ${EPHEMERAL}`]);
  });
});
