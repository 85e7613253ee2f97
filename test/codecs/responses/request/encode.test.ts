import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Item, Part } from '../../../../src/codecs/canonical/item.ts';
import { isObject, type JsonObject } from '../../../../src/codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../../../src/codecs/canonical/request.ts';
import type { Target } from '../../../../src/codecs/codec.ts';
import { responsesUpstream } from '../../../../src/codecs/responses/index.ts';
import { decode, objectFrom, OWNER, refusalOf, seal, target } from '../support.ts';

const chat: CanonicalRequest = {
  dialect: 'chat',
  text: '{}',
  json: {},
  reads: { own: new Set() },
  model: 'logical',
  stream: false,
  items: [],
  tools: [],
  includeUsage: false,
};

function encode(request: Partial<CanonicalRequest>, more: Partial<Target> = {}): JsonObject {
  return objectFrom(responsesUpstream.encodeRequest({ ...chat, ...request }, target(more)).body);
}

function forward(text: string, more: Partial<Target> = {}): string {
  return responsesUpstream.encodeRequest(decode(text), target(more)).body;
}

function inputOf(body: JsonObject): JsonObject[] {
  return Array.isArray(body['input']) ? body['input'].filter(isObject) : [];
}

test('encodeRequest: the same dialect keeps every byte but the named ones', () => {
  const text =
    '{ "model" : "logical", "temperature": 1.0, "input" : [ {"role":"user","content":"hi","x":1e2} ], "previous_response_id": "resp_1",\n "include":["reasoning.encrypted_content"], "conversation": null, "client_metadata": {"a":"b"}, "models":["x"], "tools": [{"type":"web_search"}], "big": 12345678901234567890 }';
  assert.equal(
    forward(text),
    '{ "model" : "upstream-model", "temperature": 1.0, "input" : [ {"role":"user","content":"hi","x":1e2} ], "include":["reasoning.encrypted_content"], "conversation": null, "tools": [{"type":"web_search"}], "big": 12345678901234567890 }',
  );
});

test('encodeRequest: envelopes are opened for their owner, under the id that the value belongs to', () => {
  const sealed = seal({ owner: OWNER, value: 'RAW', itemId: 'rs_up' });
  const text = `{"model":"m","input":[{"type":"reasoning","id":"rs_mine","summary":[],"encrypted_content":"${sealed}"},{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}]}`;
  assert.equal(
    forward(text),
    '{"model":"upstream-model","input":[{"type":"reasoning","id":"rs_up","summary":[],"encrypted_content":"RAW"},{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}]}',
  );
});

test('encodeRequest: an envelope beside the value of an item is not sent as it is', () => {
  const sealed = (value: string) => seal({ owner: OWNER, value });
  const text = `{"model":"m","input":[{"type":"reasoning","summary":[],"signature":"${sealed('S')}","encrypted_content":"${sealed('E')}"},{"role":"assistant","content":"x"}]}`;
  assert.equal(
    forward(text),
    '{"model":"upstream-model","input":[{"type":"reasoning","summary":[],"encrypted_content":"E"},{"role":"assistant","content":"x"}]}',
  );
});

test('encodeRequest: reasoning of another owner, tampered, stored elsewhere or forbidden goes; what it led to stays without ids', () => {
  const foreign = seal({ owner: { ...OWNER, scope: 'https://other.example' }, value: 'RAW' });
  const ours = seal({ owner: OWNER, value: 'RAW' });
  const after =
    '{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"},{"type":"message","id":"msg_1","role":"assistant","content":"x"},{"role":"user","id":"u","content":"y"}';
  const left =
    '{"model":"upstream-model","input":[{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"message","role":"assistant","content":"x"},{"role":"user","id":"u","content":"y"}]}';
  const body = (reasoning: string) => `{"model":"m","input":[${reasoning},${after}]}`;
  assert.equal(forward(body(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"${foreign}"}`)), left);
  assert.equal(forward(body('{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"mz2.tampered"}')), left);
  assert.equal(forward(body('{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"s"}]}')), left);
  assert.equal(
    forward(body(`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"${ours}"}`), {
      without: new Set(['opaque'] as const),
    }),
    left,
  );
});

test('encodeRequest: reasoning that goes for want of a value is named in the losses', () => {
  const lossesOf = (summary: string) =>
    responsesUpstream.encodeRequest(
      decode(`{"model":"m","input":[{"type":"reasoning","id":"rs_1","summary":${summary}},{"role":"user","content":"y"}]}`),
      target(),
    ).losses;
  assert.deepEqual(lossesOf('[{"type":"summary_text","text":"s"}]'), ['reasoning: summary in history']);
  assert.deepEqual(lossesOf('[]'), ['reasoning: opaque of another owner']);
});

test('encodeRequest: what the vendor ran behind dropped reasoning goes with it, results end the group', () => {
  const text =
    '{"model":"m","input":[{"type":"reasoning","id":"rs_1","summary":[]},{"type":"web_search_call","id":"ws_1","status":"completed"},{"type":"message","id":"msg_1","role":"assistant","content":"x"},{"role":"user","content":"y"},{"type":"web_search_call","id":"ws_2"},{"type":"message","id":"msg_2","role":"assistant","content":"z"}]}';
  assert.equal(
    forward(text),
    '{"model":"upstream-model","input":[{"type":"message","role":"assistant","content":"x"},{"role":"user","content":"y"},{"type":"web_search_call","id":"ws_2"},{"type":"message","id":"msg_2","role":"assistant","content":"z"}]}',
  );
});

test('encodeRequest: raw reasoning, raw vendor values and items that this Channel stored stay as they are', () => {
  for (const reasoning of [
    '{"type":"reasoning","id":"a","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"encrypted_content":null}',
    '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAAA"}',
  ]) {
    assert.equal(
      forward(`{"model":"m","input":[${reasoning},{"role":"assistant","content":"x"}]}`),
      `{"model":"upstream-model","input":[${reasoning},{"role":"assistant","content":"x"}]}`,
    );
  }
  const stored = '{"type":"reasoning","id":"rs_1","summary":[]}';
  assert.equal(
    forward(`{"model":"m","input":[${stored}]}`, { stored: (id) => id === 'rs_1' }),
    `{"model":"upstream-model","input":[${stored}]}`,
  );
});

test('encodeRequest: what an item said stands for its name, but for the Channel that stored it; reasoning goes where it may', () => {
  const said: Record<string, JsonObject> = {
    rs_1: { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: seal({ owner: OWNER, value: 'RAW', itemId: 'rs_1' }) },
    rs_2: { type: 'reasoning', id: 'rs_2', summary: [{ type: 'summary_text', text: 'Hm' }] },
    fc_1: { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '{}' },
    ig_1: { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'iVBORw0KGgo=' },
  };
  const names = [
    '{"type":"item_reference","id":"rs_1"}',
    '{"type":"item_reference","id":"rs_2"}',
    '{"id":"fc_1"}',
    '{"type":"image_generation_call","id":"ig_1"}',
    '{"type":"image_generation_call","id":"ig_unknown"}',
  ];
  const request = decode(`{"model":"m","input":[${names.join(',')}]}`, (id) => said[id]);
  const kinds = request.items.map(({ kind }) => kind);
  assert.deepEqual(kinds, ['reasoning', 'reasoning', 'toolCall', 'media', 'native']);
  const sent = (more: Partial<Target>) => inputOf(objectFrom(responsesUpstream.encodeRequest(request, target(more)).body));
  assert.deepEqual(sent({}), [
    { ...said['rs_1'], encrypted_content: 'RAW' },
    // Its reasoning did not come along.
    { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' },
    said['ig_1'],
    { type: 'image_generation_call', id: 'ig_unknown' },
  ]);
  assert.deepEqual(
    sent({ stored: () => true }),
    names.map((name) => objectFrom(name)),
  );
});

test('encodeRequest: call ids of other vendors that are too long are shortened in the same dialect, too, where the call itself is there', () => {
  const long = 'l'.repeat(65);
  const call = { type: 'function_call', call_id: long, name: 'f', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: long, output: 'o' };
  const sent = inputOf(objectFrom(forward(JSON.stringify({ model: 'm', input: [call, output] }))));
  const [short] = sent.map((item) => item['call_id']);
  assert.ok(typeof short === 'string' && short.length === 64, JSON.stringify(sent));
  assert.deepEqual(sent, [
    { ...call, call_id: short },
    { ...output, call_id: short },
  ]);
  // A call that the upstream holds keeps its id.
  const input = [{ type: 'item_reference', id: 'fc_1' }, output];
  assert.deepEqual(inputOf(objectFrom(forward(JSON.stringify({ model: 'm', input })))), input);
});

test('encodeRequest: without ids, where an upstream refused them; a reference is nothing but its id', () => {
  const references = '{"type":"item_reference","id":"fc_1"},{"id":"fc_2"}';
  const call = (id: string) => `{"type":"function_call",${id}"call_id":"c","name":"f","arguments":"{}"}`;
  assert.equal(
    forward(`{"model":"m","input":[${references},${call('"id":"fc_3",')}]}`, { without: new Set(['ids'] as const) }),
    `{"model":"upstream-model","input":[${references},${call('')}]}`,
  );
});

test('encodeRequest: without raw reasoning, where an upstream refused it', () => {
  const raw = '"content":[{"type":"reasoning_text","text":"hm"}]';
  const said = '{"role":"assistant","content":"x"}';
  const input = `{"type":"reasoning","summary":[],${raw}},${said},{"type":"reasoning","summary":[],${raw},"encrypted_content":"gAAAA"},${said}`;
  assert.equal(
    forward(`{"model":"m","input":[${input}]}`, { without: new Set(['raw'] as const) }),
    `{"model":"upstream-model","input":[${said},{"type":"reasoning","summary":[],"encrypted_content":"gAAAA"},${said}]}`,
  );
  const history: Item[] = [
    { kind: 'reasoning', raw: 'hm' },
    { kind: 'text', role: 'assistant', text: 'x', citations: [] },
  ];
  const asked = { ...decode('{"model":"m","input":"x"}'), dialect: 'chat' as const, items: history };
  const { input: sent } = JSON.parse(responsesUpstream.encodeRequest(asked, target({ without: new Set(['raw'] as const) })).body);
  assert.deepEqual(
    sent.map(({ type }: JsonObject) => type),
    ['message'],
  );
});

test('encodeRequest: R23: reasoning of a continued history that led to nothing goes; what a client says itself stays', () => {
  const thought = (value: string) => `{"type":"reasoning","id":"rs_${value}","summary":[],"encrypted_content":"${value}"}`;
  const asked = '{"role":"user","content":"hi"}';
  const said = '{"role":"assistant","content":"x"}';
  const text = `{"model":"m","input":[${thought('a')},${thought('b')},${said},${thought('c')},${thought('d')},${asked}]}`;
  assert.equal(forward(text), text.replace('"m"', '"upstream-model"'));
  const continued = { ...decode(text), previousResponseId: 'resp_mizu_1' };
  assert.equal(
    responsesUpstream.encodeRequest(continued, target()).body,
    `{"model":"upstream-model","input":[${thought('a')},${thought('b')},${said},${asked}]}`,
  );
});

test('encodeRequest: a WebSocket turn becomes a POST body', () => {
  const request = { ...decode('{"type":"response.create","generate":true,"model":"m","input":"x"}'), stream: true };
  assert.equal(responsesUpstream.encodeRequest(request, target()).body, '{"model":"upstream-model","input":"x","stream":true}');
});

test('encodeRequest: a conversation of another dialect becomes items; assistant text is output_text', () => {
  const items: Item[] = [
    { kind: 'text', role: 'system', text: 'be', citations: [], turn: 0 },
    { kind: 'text', role: 'user', text: 'a', citations: [], turn: 1 },
    {
      kind: 'media',
      role: 'user',
      media: { type: 'image', source: { from: 'inline', mime: 'image/png', data: 'AA==' }, detail: 'low' },
      turn: 1,
    },
    { kind: 'text', role: 'assistant', text: '', citations: [], turn: 2 },
    { kind: 'toolCall', toolType: 'function', callId: 'c1', tool: { name: 'f.x' }, input: ' \n', turn: 2 },
    { kind: 'toolCall', toolType: 'function', callId: 'c2', tool: { name: 'f.x' }, input: '{"a": 1}', turn: 2 },
    { kind: 'toolResult', toolType: 'function', callId: 'c1', content: [{ kind: 'text', text: 'r' }], isError: true, turn: 3 },
    {
      kind: 'toolResult',
      toolType: 'function',
      callId: 'c2',
      content: [
        { kind: 'text', text: 't' },
        { kind: 'media', media: { type: 'image', source: { from: 'url', url: 'https://e.x' } } },
      ],
      isError: false,
      turn: 3,
    },
    { kind: 'text', role: 'assistant', text: 'b', citations: [], turn: 4 },
    { kind: 'refusal', text: 'no', turn: 4 },
    {
      kind: 'media',
      role: 'user',
      media: { type: 'file', source: { from: 'inline', mime: 'application/pdf', data: 'JVBERi0=' }, filename: 'a.pdf' },
      turn: 5,
    },
  ];
  const body = encode({
    items,
    tools: [{ kind: 'function', tool: { name: 'f.x' }, at: 'tools[0]' }],
    toolChoice: { mode: 'tool', toolType: 'function', tool: { name: 'f.x' } },
  });
  assert.deepEqual(body, {
    model: 'upstream-model',
    input: [
      { type: 'message', role: 'system', content: [{ type: 'input_text', text: 'be' }] },
      {
        type: 'message',
        role: 'user',
        content: [
          { type: 'input_text', text: 'a' },
          { type: 'input_image', image_url: 'data:image/png;base64,AA==', detail: 'low' },
        ],
      },
      { type: 'function_call', call_id: 'c1', name: 'f_x', arguments: '{}' },
      { type: 'function_call', call_id: 'c2', name: 'f_x', arguments: '{"a": 1}' },
      { type: 'function_call_output', call_id: 'c1', output: 'Error: r' },
      {
        type: 'function_call_output',
        call_id: 'c2',
        output: [
          { type: 'input_text', text: 't' },
          { type: 'input_image', image_url: 'https://e.x' },
        ],
      },
      {
        type: 'message',
        role: 'assistant',
        content: [
          { type: 'output_text', text: 'b', annotations: [] },
          { type: 'refusal', refusal: 'no' },
        ],
      },
      {
        type: 'message',
        role: 'user',
        content: [{ type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,JVBERi0=' }],
      },
    ],
    tools: [{ type: 'function', name: 'f_x', parameters: { type: 'object', properties: {} } }],
    tool_choice: { type: 'function', name: 'f_x' },
  });
});

test('encodeRequest: reasoning goes with the opaque value of this owner only; raw never becomes a summary', () => {
  const own = { owner: OWNER, value: 'RAW', itemId: 'rs_up' };
  const items: Item[] = [
    { kind: 'reasoning', summary: ['s'], opaque: own },
    { kind: 'text', role: 'assistant', text: 'a', citations: [], turn: 1 },
    { kind: 'reasoning', summary: ['s'], opaque: { owner: { ...OWNER, channelType: 'messages' }, value: 'X' } },
    { kind: 'reasoning', raw: 'elsewhere', opaque: { owner: { ...OWNER, channelType: 'chat_completion' }, value: 'X' } },
    { kind: 'reasoning', raw: 'think' },
    { kind: 'reasoning', raw: '' },
    { kind: 'text', role: 'assistant', text: 'b', citations: [], turn: 2 },
    { kind: 'reasoning', summary: ['end'], opaque: own },
    { kind: 'text', role: 'user', text: 'c', citations: [], turn: 3 },
  ];
  const input = inputOf(encode({ items }));
  assert.deepEqual(
    input.filter((item) => item['type'] === 'reasoning'),
    [
      { type: 'reasoning', id: 'rs_up', summary: [{ type: 'summary_text', text: 's' }], encrypted_content: 'RAW' },
      { type: 'reasoning', summary: [], content: [{ type: 'reasoning_text', text: 'think' }] },
    ],
  );
  assert.ok(!JSON.stringify(inputOf(encode({ items }, { without: new Set(['opaque'] as const) }))).includes('RAW'));
});

test('encodeRequest: a request of which nothing can be said is an empty message of the user, not an empty list', () => {
  for (const text of [undefined, '']) {
    const items: Item[] = text === undefined ? [] : [{ kind: 'text', role: 'user', text, citations: [] }];
    const { body } = responsesUpstream.encodeRequest({ ...chat, items }, target());
    assert.deepEqual(objectFrom(body)['input'], [{ type: 'message', role: 'user', content: '' }]);
  }
});

test('encodeRequest: a result of which nothing can be said is empty text, not an empty list', () => {
  const body = { type: 'tool_reference', tool_name: 'f' };
  const result = (isError: boolean): Item[] => [
    { kind: 'toolCall', toolType: 'function', callId: 'c', tool: { name: 'search' }, input: '{}' },
    { kind: 'toolResult', toolType: 'function', callId: 'c', content: [{ kind: 'native', dialect: 'messages', body }], isError },
  ];
  const outputOf = (isError: boolean) => inputOf(encode({ items: result(isError) })).at(-1)?.['output'];
  assert.deepEqual([outputOf(false), outputOf(true)], ['', 'Error:']);
});

test('encodeRequest: call ids that are longer than the vendor takes are shortened, pair by pair', () => {
  const long = (end: string) => `call_${'x'.repeat(80)}${end}`;
  const pair = (callId: string): Item[] => [
    { kind: 'toolCall', toolType: 'function', callId, tool: { name: 'f' }, input: '{}' },
    { kind: 'toolResult', toolType: 'function', callId, content: [{ kind: 'text', text: callId }], isError: false },
  ];
  const legal = 'c'.repeat(64);
  const input = inputOf(encode({ items: [...pair(long('a')), ...pair(long('b')), ...pair(legal)] }));
  const ids = input.map(({ call_id }) => String(call_id));
  assert.deepEqual([ids[0], ids[2], ids[4]], [ids[1], ids[3], legal]);
  assert.equal(new Set(ids).size, 3);
  assert.ok(ids.every((id) => id.length <= 64));
});

test('encodeRequest: the first words of a failed result say that it failed', () => {
  const image: Part = { kind: 'media', media: { type: 'image', source: { from: 'url', url: 'https://e.x' } } };
  const outputOf = (...content: Part[]) => {
    const call: Item = { kind: 'toolCall', toolType: 'function', callId: 'c', tool: { name: 'f' }, input: '{}' };
    const result: Item = { kind: 'toolResult', toolType: 'function', callId: 'c', content, isError: true };
    return inputOf(encode({ items: [call, result] })).at(-1)?.['output'];
  };
  const picture = { type: 'input_image', image_url: 'https://e.x' };
  const said = (text: string) => ({ type: 'input_text', text });
  assert.deepEqual(outputOf({ kind: 'text', text: 'a' }, { kind: 'text', text: 'b' }), [said('Error: a'), said('b')]);
  assert.deepEqual(outputOf(image, { kind: 'text', text: 'a' }), [said('Error:'), picture, said('a')]);
  assert.deepEqual(outputOf({ kind: 'text', text: '' }, image, { kind: 'text', text: '' }), [said('Error:'), picture]);
});

test('encodeRequest: controls have their places, losses have names', () => {
  const request: CanonicalRequest = {
    ...chat,
    stream: true,
    format: { type: 'json_schema', schema: { type: 'object' } },
    verbosity: 'low',
    reasoning: { effort: 'none' },
    logprobs: { top: 3 },
    seed: 1,
    stop: ['x'],
    store: true,
    maxOutputTokens: 19,
    parallelToolCalls: false,
    tools: [
      { kind: 'custom', tool: { name: 'apply' }, format: { type: 'grammar', syntax: 'lark', definition: 'x' }, at: 'tools[0]' },
      { kind: 'custom', tool: { name: 'schema' }, inputSchema: { properties: {} }, at: 'tools[1]' },
      { kind: 'native', dialect: 'messages', type: 'web_search_20250305', body: {}, at: 'tools[2]' },
    ],
    toolChoice: { mode: 'allowed', require: false, tools: [{ name: 'apply' }, { name: 'schema' }] },
  };
  const { body, losses } = responsesUpstream.encodeRequest(request, target());
  assert.deepEqual(objectFrom(body), {
    model: 'upstream-model',
    input: [{ type: 'message', role: 'user', content: '' }],
    stream: true,
    tools: [
      { type: 'custom', name: 'apply', format: { type: 'grammar', syntax: 'lark', definition: 'x' } },
      { type: 'function', name: 'schema', parameters: { type: 'object', properties: {} } },
    ],
    tool_choice: {
      type: 'allowed_tools',
      mode: 'auto',
      tools: [
        { type: 'custom', name: 'apply' },
        { type: 'function', name: 'schema' },
      ],
    },
    parallel_tool_calls: false,
    max_output_tokens: 19,
    reasoning: { effort: 'none' },
    text: { format: { type: 'json_schema', name: 'response', schema: { type: 'object' } }, verbosity: 'low' },
    top_logprobs: 3,
    include: ['message.output_text.logprobs'],
  });
  assert.deepEqual([...losses].sort(), [
    'custom tool with object schema',
    'logprobs',
    'native tool',
    'seed',
    'stop sequences',
    'store',
  ]);
  assert.equal(body, responsesUpstream.encodeRequest(request, target()).body);
  const noneLeft = { ...request, toolChoice: { mode: 'allowed', require: false, tools: [] } } as const;
  assert.equal(objectFrom(responsesUpstream.encodeRequest(noneLeft, target()).body)['tool_choice'], 'none');
});

test('encodeRequest: what the protocol cannot say is refused at its path', () => {
  const audio: Item = {
    kind: 'media',
    role: 'user',
    media: { type: 'audio', source: { from: 'inline', mime: 'audio/wav', data: 'AA==' }, at: 'messages[0].content[1]' },
  };
  const error = refusalOf(() => encode({ items: [audio] }));
  assert.deepEqual([error.code, error.param], ['unsupported_conversion', 'messages[0].content[1]']);
  const native = refusalOf(() =>
    encode({
      tools: [{ kind: 'native', dialect: 'messages', type: 'x', body: {}, at: 'tools[0]' }],
      toolChoice: { mode: 'required' },
    }),
  );
  assert.deepEqual([native.code, native.param], ['unsupported_conversion', 'tool_choice']);
});

test('encodeRequest: the leading system blocks of messages are instructions', () => {
  const items: Item[] = [
    { kind: 'text', role: 'system', text: 'a', citations: [] },
    { kind: 'text', role: 'system', text: 'b', citations: [] },
    { kind: 'text', role: 'user', text: 'c', citations: [] },
  ];
  const body = encode({ dialect: 'messages', items, reasoning: { budget: 2000 } });
  assert.equal(body['instructions'], 'a\n\nb');
  assert.equal(inputOf(body).length, 1);
  assert.deepEqual(body['reasoning'], { effort: 'medium' });
});

test("decodeError: nested, xAI and plain bodies; our credential is never the client's fault", () => {
  const decodeError = (status: number, text: string, headers = {}) => responsesUpstream.decodeError({ status, headers, text });
  const bad = decodeError(
    400,
    '{"error":{"message":"Unsupported parameter","type":"invalid_request_error","param":"temperature","code":"unsupported_parameter"}}',
  );
  assert.deepEqual(
    [bad.message, bad.shownCode, bad.details.upstream?.param],
    ['Unsupported parameter', 'unsupported_parameter', 'temperature'],
  );
  const xai = decodeError(
    400,
    '{"code":"invalid-argument","error":"Incorrect API key provided. You can obtain one from https://console.x.ai."}',
  );
  assert.deepEqual([xai.message, xai.details.upstream?.status], ['The upstream refused the gateway.', 401]);
  const limited = decodeError(429, '<html>busy</html>', {
    'retry-after': 'Thu, 01 Jan 2026 00:00:10 GMT',
    date: 'Thu, 01 Jan 2026 00:00:00 GMT',
  });
  assert.deepEqual([limited.message, limited.details.retryAfterMs], ['The upstream is limiting requests.', 10_000]);
});
