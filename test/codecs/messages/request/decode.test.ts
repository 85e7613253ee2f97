import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { GatewayError } from '../../../../src/codecs/canonical/error.ts';
import type { Item } from '../../../../src/codecs/canonical/item.ts';
import { isObject } from '../../../../src/codecs/canonical/json.ts';
import type { ModelFacts } from '../../../../src/codecs/codec.ts';
import { chatUpstream } from '../../../../src/codecs/chat/index.ts';
import { messagesClient, messagesUpstream } from '../../../../src/codecs/messages/index.ts';
import { decodeBody, owner, seal, target } from '../support.ts';

const ask = { model: 'logical', max_tokens: 10 };
const user = { role: 'user', content: 'hi' };

test('T3: a tool that is declared twice is the one that was declared first', () => {
  const input_schema = { type: 'object' };
  const tools = [
    { name: 'f', description: 'first', input_schema },
    { name: 'g', input_schema },
    { name: 'f', input_schema },
  ];
  const read = decodeBody({ ...ask, messages: [user], tools }).tools;
  assert.deepEqual(
    read.map((tool) => tool.at),
    ['tools[0]', 'tools[1]'],
  );
});

test('blocks of every kind become items with their path and turn', () => {
  const {
    items,
    reasoning,
    user: userId,
  } = decodeBody({
    ...ask,
    system: [{ type: 'text', text: 'S', cache_control: { type: 'ephemeral' } }],
    metadata: { user_id: 'u' },
    thinking: { type: 'enabled', budget_tokens: 5000, display: 'summarized' },
    messages: [
      {
        role: 'user',
        content: [
          { type: 'text', text: 'look' },
          { type: 'text', text: '' },
          { type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } },
          { type: 'document', title: 'T', source: { type: 'text', media_type: 'text/plain', data: 'D' } },
          { type: 'container_upload', file_id: 'f' },
        ],
      },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: { '2': 1.0, '1': { b: 1 } } }] },
      { role: 'system', content: 'later' },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'c', is_error: true, content: [{ type: 'text', text: 'no' }] }],
      },
    ],
  });
  assert.deepEqual(
    items.map((item) => [item.kind, item.at, item.turn]),
    [
      ['text', 'system[0]', 0],
      ['text', 'messages[0].content[0]', 1],
      ['media', 'messages[0].content[2]', 1],
      ['media', 'messages[0].content[3]', 1],
      ['native', 'messages[0].content[4]', 1],
      ['toolCall', 'messages[1].content[0]', 2],
      ['text', 'messages[2].content', 3],
      ['toolResult', 'messages[3].content[0]', 4],
    ],
  );
  assert.deepEqual(reasoning, { budget: 5000, summary: 'auto' });
  assert.equal(userId, 'u');
});

test('a search result of the client is text for other dialects, alone and in a tool result', () => {
  const found = { type: 'search_result', source: 'https://e.x', title: 'T', content: [{ type: 'text', text: 'body' }] };
  const { items } = decodeBody({
    model: 'm',
    messages: [
      { role: 'user', content: [found] },
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ ...found, title: undefined }] }] },
    ],
  });
  assert.equal(items[0]?.kind === 'text' ? items[0].text : '', 'T\nhttps://e.x\n\nbody');
  const result = items[2];
  assert.deepEqual(result?.kind === 'toolResult' ? result.content : [], [{ kind: 'text', text: 'https://e.x\n\nbody' }]);
});

test('a tool that the search of the client found is its name for other dialects', () => {
  const { items } = decodeBody({
    model: 'm',
    messages: [
      { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'find', input: {} }] },
      {
        role: 'user',
        content: [{ type: 'tool_result', tool_use_id: 'a', content: [{ type: 'tool_reference', tool_name: 'f' }] }],
      },
    ],
  });
  const [, result] = items;
  assert.deepEqual(result?.kind === 'toolResult' ? result.content : [], [{ kind: 'text', text: 'Tool found: f' }]);
});

test('the input of a call keeps its exact text', () => {
  const text =
    '{"model":"m","messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input": {"2":1.0, "1":1e2,"__proto__":[]} }]}]}';
  const [item] = decodeBody(text).items;
  assert.equal(item?.kind === 'toolCall' && item.input, '{"2":1.0, "1":1e2,"__proto__":[]}');
});

test('wrong fields are refused with their path', () => {
  const wrong: [object, string][] = [
    [{ ...ask, model: 1, messages: [user] }, 'model'],
    [{ ...ask, max_tokens: -1, messages: [user] }, 'max_tokens'],
    [{ ...ask, max_tokens: 1.5, messages: [user] }, 'max_tokens'],
    [{ ...ask, stream: 'yes', messages: [user] }, 'stream'],
    [{ ...ask }, 'messages'],
    [{ ...ask, messages: [] }, 'messages'],
    [{ ...ask, messages: [{ role: 'tool', content: 'x' }] }, 'messages[0].role'],
    [{ ...ask, messages: [{ role: 'user' }] }, 'messages[0].content'],
    [{ ...ask, messages: [{ role: 'user', content: [{ type: 'text' }] }] }, 'messages[0].content[0].text'],
    [
      { ...ask, messages: [{ role: 'assistant', content: [{ type: 'tool_use', id: 'c', name: 'f', input: '{"x' }] }] },
      'messages[0].content[0].input',
    ],
    [
      { ...ask, messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', data: '' } }] }] },
      'messages[0].content[0].source.media_type',
    ],
    [{ ...ask, messages: [user], tools: [{ name: 'f' }] }, 'tools[0].input_schema'],
    [{ ...ask, messages: [user], tools: [{ name: 'f', input_schema: { type: 'string' } }] }, 'tools[0].input_schema.type'],
    [{ ...ask, messages: [user], stop_sequences: ['a', 1] }, 'stop_sequences[1]'],
  ];
  for (const [body, path] of wrong) {
    assert.throws(
      () => decodeBody(body),
      (error: unknown) => error instanceof GatewayError && error.status === 400 && error.param === path,
      path,
    );
  }
});

test('a thread may be created, and is not continued: what comes with it is no conversation', () => {
  const thread = (said: object, messages: unknown[]) => decodeBody({ ...ask, messages, thread: said });
  assert.equal(thread({ type: 'create' }, [user]).items.length, 1);
  for (const messages of [[user], []]) {
    assert.throws(
      () => thread({ type: 'continue', previous_message_id: 'msg_1' }, messages),
      (error: unknown) => {
        assert.ok(error instanceof GatewayError);
        assert.deepEqual([error.code, error.status, error.param], ['thread_not_found', 404, 'thread.previous_message_id']);
        assert.deepEqual(JSON.parse(messagesClient.encodeError(error, 'req_1')).error.details, {
          error_code: 'thread_not_found',
        });
        return true;
      },
    );
  }
});

test('an output cap of zero fills the prompt cache of a messages upstream, and no other can do that', () => {
  const request = decodeBody({ ...ask, max_tokens: 0, messages: [user] });
  assert.deepEqual(request.boundTo, { dialect: 'messages', at: 'max_tokens' });
  assert.equal(JSON.parse(messagesUpstream.encodeRequest(request, target()).body).max_tokens, 0);
  assert.throws(
    () => chatUpstream.encodeRequest(request, target()),
    (error: unknown) => error instanceof GatewayError && error.code === 'unsupported_conversion' && error.param === 'max_tokens',
  );
});

test('tools: custom type is ordinary, typed tools are native, parallel flag is inside tool_choice', () => {
  const { tools, toolChoice, parallelToolCalls } = decodeBody({
    ...ask,
    messages: [user],
    tools: [
      { type: 'custom', name: 'f', input_schema: { type: 'object' } },
      { type: 'web_search_20250305', name: 'web_search' },
    ],
    tool_choice: { type: 'any', disable_parallel_tool_use: true },
  });
  assert.deepEqual(
    tools.map(({ kind }) => kind),
    ['function', 'native'],
  );
  assert.deepEqual(toolChoice, { mode: 'required' });
  assert.equal(parallelToolCalls, false);
});

test('same dialect: only the gateway’s members change', () => {
  const text =
    '{ "model":"logical" , "messages":[{"role":"user","content":"hi"}],"temperature":1.0,"thinking":{"type":"new","x":1e1},"fallbacks":[1],"stream":true}';
  const { body, headers } = messagesUpstream.encodeRequest(decodeBody(text), target());
  assert.equal(
    body,
    '{ "model":"up-model" , "messages":[{"role":"user","content":"hi"}],"temperature":1.0,"thinking":{"type":"new","x":1e1},"stream":true,"max_tokens":128000}',
  );
  assert.equal(headers['anthropic-version'], '2023-06-01');
});

test('same dialect: what a history calls is declared where nothing is, and nothing is where the client declares or a server does', () => {
  const call = { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'look', input: {} }] };
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_1', content: 'blue' }] };
  const body = { model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'q' }, call, result] };
  const look = { name: 'look', input_schema: { type: 'object', properties: { at: { type: 'string' } } } };
  const gone = { role: 'system', content: [{ type: 'tool_removal', tool: { type: 'tool_reference', name: 'look' } }] };
  const sent = (more: object) => {
    const { body: text, losses } = messagesUpstream.encodeRequest(decodeBody({ ...body, ...more }), target());
    const { tools, tool_choice } = JSON.parse(text);
    return [tools, tool_choice, losses.includes('call of an undeclared tool')];
  };
  const open = { name: 'look', input_schema: { type: 'object', properties: {}, additionalProperties: true } };
  for (const more of [{}, { tools: [] }, { tools: null, tool_choice: { type: 'auto' } }])
    assert.deepEqual(sent(more), [[open], { type: 'none' }, true]);
  assert.deepEqual(sent({ tools: [look] }), [[look], undefined, false]);
  assert.deepEqual(sent({ tools: [look], messages: [...body.messages, gone] }), [[look], undefined, false]);
  assert.deepEqual(sent({ mcp_servers: [{ type: 'url', url: 'https://a.test', name: 'a' }] }), [undefined, undefined, false]);
});

test('same dialect: envelopes of this owner are opened in place, every other thinking block goes', () => {
  const mine = seal({ owner, value: 'raw-sig' });
  const foreign = seal({ owner: { ...owner, scope: 'elsewhere' }, value: 'x' });
  const thinking = (signature?: string) => ({ type: 'thinking', thinking: 't', signature });
  const text = { type: 'text', text: 'x' };
  const body = {
    ...ask,
    messages: [
      user,
      {
        role: 'assistant',
        content: [thinking(mine), thinking(foreign), thinking('mz2.broken'), thinking(), thinking('vendor'), text],
      },
      user,
      { role: 'assistant', content: [thinking(foreign)] },
      { role: 'assistant', content: [{ type: 'redacted_thinking', data: seal({ owner, value: 'D', form: 'redacted' }) }, text] },
    ],
  };
  const sent = (...refused: 'opaque'[]) =>
    JSON.parse(messagesUpstream.encodeRequest(decodeBody(body), target({ without: new Set(refused) })).body).messages;
  assert.deepEqual(sent(), [
    user,
    { role: 'assistant', content: [thinking('raw-sig'), thinking('vendor'), text] },
    user,
    { role: 'assistant', content: [{ type: 'redacted_thinking', data: 'D' }, text] },
  ]);
  assert.deepEqual(sent('opaque'), [user, { role: 'assistant', content: [text] }, user, { role: 'assistant', content: [text] }]);
});

test('same dialect: a model that thinks by budget is not asked to where results answer a call whose thinking went', () => {
  const thinking = { type: 'thinking', thinking: 't', signature: seal({ owner: { ...owner, scope: 'elsewhere' }, value: 'x' }) };
  const call = { type: 'tool_use', id: 'c', name: 'f', input: {} };
  const called = { role: 'assistant', content: [thinking, call] };
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'r' }] };
  const enabled = { type: 'enabled', budget_tokens: 1024 };
  const sent = (messages: unknown[], facts: ModelFacts = { thinking: 'budget' }) =>
    JSON.parse(messagesUpstream.encodeRequest(decodeBody({ ...ask, thinking: enabled, messages }), target({ facts })).body)
      .thinking;
  assert.deepEqual(sent([user, called, result]), { type: 'disabled' });
  assert.deepEqual(sent([user, called, result, { role: 'system', content: 'be brief' }]), { type: 'disabled' });
  assert.deepEqual(sent([user, called, result, { role: 'assistant', content: 'done' }, user]), enabled);
  assert.deepEqual(sent([user, called, result], { thinking: 'adaptive' }), enabled);
});

test('thinking under an envelope that holds no words of its own is what its block says; without words it is nothing', () => {
  const signature = seal({ owner, value: '{}', form: 'unsigned' });
  const read = (thinking: string) =>
    decodeBody({
      ...ask,
      messages: [user, { role: 'assistant', content: [{ type: 'thinking', thinking, signature }] }, user],
    }).items.flatMap((item) => (item.kind === 'reasoning' ? [item.summary] : []));
  assert.deepEqual([read('t'), read('')], [[['t']], []]);
});

test('a request of nothing but white space is refused at its first text, as no vendor takes it', () => {
  for (const [content, param] of [
    [' \n', 'messages[0].content'],
    [[{ type: 'text', text: ' ' }], 'messages[0].content[0]'],
  ] as const) {
    const encode = () => messagesUpstream.encodeRequest(decodeBody({ ...ask, messages: [{ role: 'user', content }] }), target());
    assert.throws(
      encode,
      (error) => error instanceof GatewayError && error.param === param && /white space\.$/.test(error.message),
    );
  }
});

test('unsigned thinking goes back where the Channel replays it, from clients of every dialect', () => {
  const unsigned = ['', null, undefined].map((signature) => ({ type: 'thinking', thinking: 't', signature }));
  const foreign = { type: 'thinking', thinking: 't', signature: seal({ owner: { ...owner, scope: 'elsewhere' }, value: 'x' }) };
  const text = { type: 'text', text: 'x' };
  const messages = [user, { role: 'assistant', content: [...unsigned, foreign, text] }, user];
  const sent = (options: object) =>
    JSON.parse(messagesUpstream.encodeRequest(decodeBody({ ...ask, messages }), { ...target(), options }).body).messages[1]
      .content;
  assert.deepEqual(sent({ replayReasoningContent: true }), JSON.parse(JSON.stringify([...unsigned, text])));
  assert.deepEqual(sent({}), [text]);

  const items: Item[] = [
    { kind: 'text', role: 'user', text: 'hi', citations: [], at: '' },
    { kind: 'reasoning', raw: 'r', summary: ['s'], at: '' },
    { kind: 'reasoning', summary: ['a', 'b'], at: '' },
    { kind: 'reasoning', summary: ['f'], opaque: { owner: { ...owner, scope: 'elsewhere' }, value: 'x' }, at: '' },
    { kind: 'text', role: 'assistant', text: 'x', citations: [], at: '' },
  ];
  const request = { ...decodeBody({ ...ask, messages: [user] }), dialect: 'chat' as const, items };
  const { body } = messagesUpstream.encodeRequest(request, { ...target(), options: { replayReasoningContent: true } });
  assert.deepEqual(JSON.parse(body).messages[1].content, [
    { type: 'thinking', thinking: 'r', signature: '' },
    { type: 'thinking', thinking: 'a\n\nb', signature: '' },
    text,
  ]);
});

test('M29: same dialect: empty texts, which the vendor refuses, are left out of a history that says something beside them', () => {
  const empty = { type: 'text', text: '' };
  const call = { type: 'tool_use', id: 'c', name: 'f', input: {} };
  const result = (content: unknown) => ({ type: 'tool_result', tool_use_id: 'c', content });
  const text = { type: 'text', text: 'x' };
  const sent = (...messages: unknown[]) =>
    JSON.parse(messagesUpstream.encodeRequest(decodeBody({ ...ask, messages }), target()).body).messages;
  assert.deepEqual(
    sent(user, { role: 'assistant', content: [empty, call, empty] }, { role: 'user', content: [result([empty, text]), empty] }),
    [user, { role: 'assistant', content: [call] }, { role: 'user', content: [result([text])] }],
  );
  assert.deepEqual(sent(user, { role: 'assistant', content: [empty] }, user), [user, user]);
  assert.deepEqual(sent(user, { role: 'assistant', content: [call] }, { role: 'user', content: [result([empty])] }).at(-1), {
    role: 'user',
    content: [result([])],
  });
  // Nothing is left to ask.
  assert.throws(() => sent({ role: 'user', content: [empty] }), {
    code: 'unsupported_conversion',
    param: 'messages[0].content[0]',
  });

  const systemOf = (system: unknown) =>
    JSON.parse(messagesUpstream.encodeRequest(decodeBody({ ...ask, system, messages: [user] }), target()).body).system;
  const kept = { ...text, cache_control: { type: 'ephemeral' } };
  assert.deepEqual(systemOf([empty, kept, empty]), [kept]);
  assert.equal(systemOf([empty]), undefined);
  assert.deepEqual(systemOf([]), []);
});

test('M7: same dialect: calls that hold no arguments, as some servers stream them, go back as the empty object', () => {
  const call = (input: unknown) => ({ type: 'tool_use', id: 'c', name: 'f', input });
  const result = { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'c', content: 'r' }] };
  const sent = (input: unknown) => {
    const messages = [user, { role: 'assistant', content: [call(input)] }, result];
    return JSON.parse(messagesUpstream.encodeRequest(decodeBody({ ...ask, messages }), target()).body).messages[1].content;
  };
  for (const nothing of ['', null, undefined, {}]) assert.deepEqual(sent(nothing), [call({})]);
  assert.deepEqual(sent({ a: 1 }), [call({ a: 1 })]);
});

test('private files ask for the beta, words do not', () => {
  const headersOf = (content: unknown) =>
    messagesUpstream.encodeRequest(decodeBody({ ...ask, messages: [{ role: 'user', content }] }), target()).headers;
  const file = { type: 'document', source: { type: 'file', file_id: 'f' } };
  assert.equal(headersOf([file])['anthropic-beta'], 'files-api-2025-04-14');
  assert.equal(headersOf([{ type: 'tool_result', tool_use_id: 'c', content: [file] }])['anthropic-beta'], 'files-api-2025-04-14');
  assert.equal(headersOf('{"source":{"type":"file"}}')['anthropic-beta'], undefined);
});

const fixtures = process.env['MIZU_FIXTURES'];
test('requests that real clients sent are decoded and pass unchanged but for the model', {
  skip: fixtures === undefined && 'MIZU_FIXTURES is not set',
}, () => {
  const folder = join(fixtures ?? '', 'client-requests');
  let seen = 0;
  for (const file of readdirSync(folder).filter((name) => name.endsWith('.jsonl'))) {
    for (const line of readFileSync(join(folder, file), 'utf8').split('\n')) {
      if (line === '') continue;
      const { url, body } = JSON.parse(line);
      if (typeof url !== 'string' || !url.startsWith('/v1/messages') || !isObject(body)) continue;
      const { body: sent } = messagesUpstream.encodeRequest(decodeBody(JSON.stringify(body)), target());
      assert.deepEqual(JSON.parse(sent), { max_tokens: 128000, ...body, model: 'up-model' }, file);
      seen += 1;
    }
  }
  assert.ok(seen > 5);
});

test('recorded requests decode', { skip: fixtures === undefined && 'MIZU_FIXTURES is not set' }, () => {
  const path = join(fixtures ?? '', 'recordings', 'anthropic-messages', 'requests.jsonl');
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line === '') continue;
    const { request, status, response_file: name } = JSON.parse(line);
    if (status !== 200 || !isObject(request) || !Array.isArray(request['messages'])) continue;
    assert.doesNotThrow(() => decodeBody(JSON.stringify(request)), name);
  }
});
