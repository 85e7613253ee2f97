import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Item } from '../../../../src/codecs/canonical/item.ts';
import type { JsonObject, JsonValue } from '../../../../src/codecs/canonical/json.ts';
import { decode, OWNER, refusalOf, seal } from '../support.ts';

function itemsOf(...input: JsonValue[]): readonly Item[] {
  return decode({ model: 'm', input }).items;
}

function refused(body: JsonObject): [string, string | null] {
  const error = refusalOf(() => decode({ model: 'm', input: 'x', ...body }));
  return [error.code, error.param];
}

test('decodeRequest: input as a string, as strings, as easy and typed messages', () => {
  assert.deepEqual(decode({ model: 'm', input: 'hi' }).items, [
    { kind: 'text', role: 'user', text: 'hi', citations: [], at: 'input', turn: 1 },
  ]);
  const items = itemsOf(
    'a',
    { role: 'developer', content: 'b' },
    {
      type: 'message',
      role: 'assistant',
      id: 'msg_x',
      phase: 'final_answer',
      content: [
        { type: 'output_text', text: 'c' },
        { type: 'refusal', refusal: 'd' },
      ],
    },
  );
  assert.deepEqual(
    items.map((item) => [item.kind, 'role' in item ? item.role : undefined, 'text' in item ? item.text : '', item.turn, item.at]),
    [
      ['text', 'user', 'a', 1, 'input[0]'],
      ['text', 'developer', 'b', 2, 'input[1]'],
      ['text', 'assistant', 'c', 3, 'input[2].content[0]'],
      ['refusal', undefined, 'd', 3, 'input[2].content[1]'],
    ],
  );
});

test('decodeRequest: instructions stand before the input, marked by their path', () => {
  const text = decode({ model: 'm', instructions: 'be', input: 'hi' }).items[0];
  assert.deepEqual(text, { kind: 'text', role: 'developer', text: 'be', citations: [], at: 'instructions', turn: 0 });
  const list = decode({ model: 'm', instructions: ['a', { content: 'b' }, { role: 'system', content: 'c' }], input: 'hi' }).items;
  assert.deepEqual(
    list.map((item) => [item.kind === 'text' ? item.role : '', item.at, item.turn]),
    [
      ['developer', 'instructions[0]', 0],
      ['developer', 'instructions[1]', 1],
      ['system', 'instructions[2]', 2],
      ['user', 'input', 3],
    ],
  );
});

test('decodeRequest: what the last configuration updates set counts for other protocols', () => {
  const update = (settings: JsonObject) => ({ type: 'configuration_update', ...settings });
  const read = (...updates: JsonObject[]) => {
    const input = [{ role: 'user', content: 'hi' }, ...updates];
    const { reasoning, format } = decode({ model: 'm', input, reasoning: { effort: 'low', summary: 'auto' } });
    return [reasoning?.effort, reasoning?.summary, format?.type];
  };
  assert.deepEqual(read(), ['low', 'auto', undefined]);
  const format = { text: { format: { type: 'json_object' } } };
  const efforts = ['high', 'minimum'].map((effort) => update({ reasoning: { effort } }));
  assert.deepEqual(read(...efforts, update(format)), ['minimal', 'auto', 'json_object']);
  const wrong = { input: [update({ reasoning: { effort: 5 } })] };
  assert.deepEqual(refused(wrong), ['invalid_request', 'input[0].reasoning.effort']);
});

test('decodeRequest: parts without their message are what the user said, or an instruction', () => {
  const part = { type: 'input_text', text: 'a' };
  const picture = { type: 'input_image', image_url: 'https://e.x/a.png' };
  const { items } = decode({ model: 'm', instructions: [part], input: [part, picture] });
  assert.deepEqual(
    items.map((item) => [item.kind, 'role' in item ? item.role : undefined, item.at]),
    [
      ['text', 'developer', 'instructions[0]'],
      ['text', 'user', 'input[0]'],
      ['media', 'user', 'input[1]'],
    ],
  );
});

test('decodeRequest: media as URL, data URL, file id, bare base64, audio', () => {
  const [message] = [
    {
      role: 'user',
      content: [
        { type: 'input_image', image_url: 'https://e.x/a.png', detail: 'low' },
        { type: 'input_image', image_url: 'data:image/webp;base64,UklGRg==' },
        { type: 'input_image', file_id: 'file-1' },
        { type: 'input_file', file_data: 'data:application/pdf;base64,JVBERi0=', filename: 'a.pdf' },
        { type: 'input_file', file_data: 'JVBERi0xLjQ=' },
        { type: 'input_file', file_url: 'https://e.x/b.pdf' },
        { type: 'input_audio', input_audio: { data: 'UklGRg==', format: 'wav' } },
        { type: 'input_hologram', x: 1 },
      ],
    },
  ];
  const sources = itemsOf(message ?? null).map((item) =>
    item.kind === 'media' ? [item.media.type, item.media.source, item.media.at] : item.kind,
  );
  assert.deepEqual(sources, [
    ['image', { from: 'url', url: 'https://e.x/a.png' }, 'input[0].content[0]'],
    ['image', { from: 'inline', mime: 'image/webp', data: 'UklGRg==' }, 'input[0].content[1]'],
    ['image', { from: 'reference', id: 'file-1' }, 'input[0].content[2]'],
    ['file', { from: 'inline', mime: 'application/pdf', data: 'JVBERi0=' }, 'input[0].content[3]'],
    ['file', { from: 'inline', mime: 'application/pdf', data: 'JVBERi0xLjQ=' }, 'input[0].content[4]'],
    ['file', { from: 'url', url: 'https://e.x/b.pdf' }, 'input[0].content[5]'],
    ['audio', { from: 'inline', mime: 'audio/wav', data: 'UklGRg==' }, 'input[0].content[6]'],
    'native',
  ]);
});

test('decodeRequest: a file id counts before what stands beside it, since the upstream gets it too; an empty one is none', () => {
  const sourceOf = (part: JsonObject) => {
    const [item] = itemsOf({ role: 'user', content: [part] });
    return item?.kind === 'media' ? item.media.source : undefined;
  };
  const reference = { from: 'reference', id: 'file-1' };
  assert.deepEqual(sourceOf({ type: 'input_image', image_url: 'https://e.x/a.png', file_id: 'file-1' }), reference);
  assert.deepEqual(sourceOf({ type: 'input_file', file_data: 'JVBERi0=', file_id: 'file-1' }), reference);
  const link = { from: 'url', url: 'https://e.x/a.png' };
  assert.deepEqual(sourceOf({ type: 'input_image', image_url: link.url, file_id: '' }), link);
  assert.throws(() => sourceOf({ type: 'input_image', file_id: '' }), { code: 'invalid_request', param: 'input[0].content[0]' });
});

test('decodeRequest: tool outputs of every JSON kind keep the text that the client wrote (R11)', () => {
  const text =
    '{"model":"m","input":[' +
    [
      '"{not json"',
      '{"b": 1.50, "a": 2}',
      '[1, 2]',
      'null',
      '12.0',
      '[{"type":"input_text","text":"t"},"s",{"type":"input_image","image_url":"https://e.x/i"}]',
    ]
      .map((output, index) => `{"type":"function_call_output","call_id":"c${index}","output":${output}}`)
      .join(',') +
    ']}';
  const contents = decode(text).items.map((item) =>
    item.kind === 'toolResult' ? item.content.map((part) => (part.kind === 'text' ? part.text : part.kind)) : [],
  );
  assert.deepEqual(contents, [['{not json'], ['{"b": 1.50, "a": 2}'], ['[1, 2]'], ['null'], ['12.0'], ['t', 's', 'media']]);
});

test('decodeRequest: reasoning keeps raw, summary and opaque apart; envelopes open or vanish', () => {
  const opaque = { owner: OWNER, value: 'RAW', itemId: 'rs_1' };
  const items = itemsOf(
    {
      type: 'reasoning',
      id: 'rs_1',
      summary: [{ type: 'summary_text', text: 's' }],
      content: [{ type: 'reasoning_text', text: 'r' }],
      encrypted_content: seal(opaque),
    },
    { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: 'gAAAA' },
    { type: 'reasoning', summary: [], encrypted_content: 'mz2.%%%' },
  );
  assert.deepEqual(items[0], { kind: 'reasoning', raw: 'r', summary: ['s'], opaque, id: 'rs_1', at: 'input[0]', turn: 1 });
  assert.deepEqual(items[1]?.kind === 'reasoning' && items[1].opaque, {
    owner: { client: 'responses' },
    value: 'gAAAA',
    itemId: 'rs_2',
  });
  assert.equal(items.length, 2, 'an envelope that does not open takes its item along');
});

test('decodeRequest: signatures go back to the call of their own turn, though another turn has one of the same id', () => {
  const call = { type: 'function_call', call_id: 'call_0', name: 'f', arguments: '{}' };
  const output = { type: 'function_call_output', call_id: 'call_0', output: '' };
  const carrier = (value: string, itemId: string) => ({
    type: 'reasoning',
    summary: [],
    encrypted_content: seal({ owner: OWNER, value, itemId }),
  });
  const first = { ...call, call_id: 'call_1' };
  const items = itemsOf(
    call,
    carrier('A', 'call_0'),
    output,
    call,
    carrier('B', 'call_0'),
    output,
    carrier('C', 'call_1'),
    first,
  );
  assert.deepEqual(
    items.flatMap((item) => (item.kind === 'toolResult' ? [] : [[item.kind, 'opaque' in item ? item.opaque?.value : undefined]])),
    [
      ['toolCall', 'A'],
      ['toolCall', 'B'],
      ['toolCall', 'C'],
    ],
  );
});

test('decodeRequest: the name of a namespace, which is said for each of its tools, has an end', () => {
  const tools = (length: number) => [{ type: 'namespace', name: 'n'.repeat(length), tools: [{ type: 'function', name: 'b' }] }];
  assert.equal(decode({ model: 'm', tools: tools(256), input: 'x' }).tools.length, 1);
  assert.deepEqual(refused({ tools: tools(257) }), ['invalid_request', 'tools[0].name']);
});

test('decodeRequest: tools, namespaces, tools that items bring; names complete themselves', () => {
  const request = decode({
    model: 'm',
    tools: [
      { type: 'function', name: 'a', parameters: { type: 'object' }, strict: true },
      {
        type: 'namespace',
        name: 'ns',
        tools: [
          { type: 'function', name: 'b' },
          { type: 'custom', name: 'c', format: { type: 'text' } },
        ],
      },
      { type: 'web_search' },
    ],
    tool_choice: { type: 'function', name: 'b' },
    input: [
      {
        type: 'additional_tools',
        role: 'developer',
        tools: [
          { type: 'function', name: 'a', description: 'later' },
          { type: 'function', name: 'd' },
        ],
      },
      { type: 'function_call', call_id: '1', name: 'b', arguments: '{}' },
      { type: 'custom_tool_call', call_id: '2', name: 'c', input: 'x', namespace: 'ns' },
    ],
  });
  assert.deepEqual(
    request.tools.map((tool) => (tool.kind === 'native' ? tool.type : [tool.kind, tool.tool.namespace, tool.tool.name])),
    [['function', undefined, 'a'], ['function', 'ns', 'b'], ['custom', 'ns', 'c'], 'web_search', ['function', undefined, 'd']],
  );
  assert.deepEqual(request.toolChoice, { mode: 'tool', toolType: 'function', tool: { name: 'b', namespace: 'ns' } });
  assert.deepEqual(
    request.items.map((item) => (item.kind === 'toolCall' ? [item.tool, item.toolType] : item.kind)),
    [
      [{ name: 'b', namespace: 'ns' }, 'function'],
      [{ name: 'c', namespace: 'ns' }, 'custom'],
    ],
  );
});

test('decodeRequest: a namespace that is the name of a plain tool is that tool (tool search)', () => {
  const plain = { type: 'function', name: 'a', defer_loading: true };
  const call = { type: 'function_call', call_id: '1', name: 'a', arguments: '{}', namespace: 'a' };
  const called = (tools: JsonValue) =>
    decode({ model: 'm', tools, input: [call] }).items.map((item) => item.kind === 'toolCall' && item.tool);
  assert.deepEqual(called([{ type: 'tool_search' }, plain]), [{ name: 'a' }]);
  assert.deepEqual(called([plain, { type: 'namespace', name: 'a', tools: [plain] }]), [{ name: 'a', namespace: 'a' }]);
  assert.deepEqual(called([]), [{ name: 'a', namespace: 'a' }]);
});

test('decodeRequest: tool choices', () => {
  const choice = (value: JsonValue) => decode({ model: 'm', input: 'x', tool_choice: value }).toolChoice;
  assert.deepEqual(choice('required'), { mode: 'required' });
  assert.deepEqual(choice({ type: 'custom', name: 'c' }), { mode: 'tool', toolType: 'custom', tool: { name: 'c' } });
  assert.deepEqual(
    choice({
      type: 'allowed_tools',
      mode: 'required',
      tools: [
        { type: 'function', name: 'a' },
        { type: 'mcp', server_label: 's' },
      ],
    }),
    {
      mode: 'allowed',
      require: true,
      tools: [{ name: 'a' }],
    },
  );
  assert.equal(choice({ type: 'image_generation' })?.mode, 'native');
  assert.equal(choice(null), undefined);
});

test('decodeRequest: controls', () => {
  const request = decode({
    model: 'm',
    input: 'x',
    stream: true,
    text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
    reasoning: { effort: 'none', summary: 'auto' },
    include: ['message.output_text.logprobs'],
    max_output_tokens: 16,
    store: false,
    prompt: { id: 'pmpt_1' },
    unknown: [1],
  });
  assert.deepEqual(request.format, { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true });
  assert.deepEqual(
    [request.verbosity, request.reasoning, request.logprobs, request.store],
    ['low', { effort: 'none', summary: 'auto' }, { top: 0 }, false],
  );
  assert.deepEqual(request.boundTo, { dialect: 'responses', at: 'prompt' });
  assert.equal(decode({ model: 'm', input: 'x', text: {}, reasoning: null, tools: null }).format, undefined);
});

test('decodeRequest: what the upstream or the gateway remembers needs no input', () => {
  for (const state of [{ prompt: { id: 'pmpt_1' } }, { previous_response_id: 'resp_1' }, { conversation: 'conv_1' }])
    assert.deepEqual(decode({ model: 'm', ...state }).items, []);
});

test('decodeRequest: the parts of a result are texts in each of their spellings', () => {
  const output = ['input_text', 'output_text', 'text'].map((type) => ({ type, text: type }));
  const [item] = itemsOf({ type: 'function_call_output', call_id: 'c', output: [...output, 'bare'] });
  assert.deepEqual(
    item?.kind === 'toolResult' && item.content,
    [...output.map(({ type }) => type), 'bare'].map((text) => ({ kind: 'text', text })),
  );
});

test('decodeRequest: refusals name the path', () => {
  assert.deepEqual(refused({ background: true }), ['background_not_supported', 'background']);
  assert.deepEqual(refused({ conversation: 'c', previous_response_id: 'r' }), ['invalid_request', 'previous_response_id']);
  const cases: [JsonObject, string][] = [
    [{ model: '' }, 'model'],
    [{ input: 5 }, 'input'],
    [{ input: null }, 'input'],
    [{ input: [{ role: 'tool', content: 'x' }] }, 'input[0].role'],
    [{ input: [{ content: 'x' }] }, 'input[0].role'],
    [{ input: [{ role: 'user' }] }, 'input[0].content'],
    [{ input: [{ role: 'user', content: [{ type: 'input_text' }] }] }, 'input[0].content[0].text'],
    [{ input: [{ role: 'user', content: [{ type: 'input_image', image_url: { url: 'x' } }] }] }, 'input[0].content[0].image_url'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', image_url: 'data:image/png;base64' }] }] },
      'input[0].content[0].image_url',
    ],
    [{ input: [{ type: 'function_call', name: 'f', arguments: '{}' }] }, 'input[0].call_id'],
    [{ input: [{ type: 'function_call', call_id: 'c', name: 'f', arguments: {} }] }, 'input[0].arguments'],
    [{ input: [{ type: 'function_call_output', call_id: 'c' }] }, 'input[0].output'],
    [{ tools: [{ type: 'function' }] }, 'tools[0].name'],
    [{ tools: [{ type: 'namespace', name: 'n', tools: [{ type: 'function' }] }] }, 'tools[0].tools[0].name'],
    [{ tool_choice: 'any' }, 'tool_choice'],
    [{ tool_choice: { type: 'allowed_tools', mode: 'maybe', tools: [] } }, 'tool_choice.mode'],
    [{ top_logprobs: 21 }, 'top_logprobs'],
    [{ max_output_tokens: 0 }, 'max_output_tokens'],
    [{ stream: 'yes' }, 'stream'],
    [{ reasoning: { effort: 3 } }, 'reasoning.effort'],
    [{ text: { format: { type: 'xml' } } }, 'text.format.type'],
    [{ include: [1] }, 'include[0]'],
  ];
  for (const [body, param] of cases) assert.deepEqual(refused(body), ['invalid_request', param], JSON.stringify(body));
});

test('decodeRequest: __proto__ keys stay data', () => {
  const request = decode(
    '{"model":"m","input":[{"role":"user","content":"x","__proto__":{"a":1}}],"metadata":{"__proto__":"x"}}',
  );
  assert.equal(request.items.length, 1);
  assert.equal(({} as Record<string, unknown>)['a'], undefined);
});
