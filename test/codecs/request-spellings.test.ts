/**
 * What clients may spell in several ways means the same to every upstream of another protocol; what means nothing is refused by
 * its path.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import type { JsonObject, JsonValue } from '../../src/codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../src/codecs/canonical/request.ts';
import type { ClientCodec, UpstreamCodec } from '../../src/codecs/codec.ts';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { openForTests, ownerOf, targetOf } from '../support/wire.ts';

type Spoken = 'chat' | 'messages' | 'responses';

function decoded(dialect: Spoken, body: JsonObject): CanonicalRequest {
  const client = CLIENTS.find((codec) => codec.dialect === dialect) as ClientCodec;
  const whole = { model: 'm', ...(dialect === 'messages' ? { max_tokens: 9000 } : {}), ...body };
  return client.decodeRequest(JSON.stringify(whole), whole, { open: openForTests });
}

/** The body for an upstream, or the path of what it cannot take. */
function sentTo(upstream: UpstreamCodec, request: CanonicalRequest): unknown {
  try {
    return JSON.parse(upstream.encodeRequest(request, targetOf(ownerOf(upstream))).body);
  } catch (error) {
    if (error instanceof GatewayError) return { refused: error.param };
    throw error;
  }
}

const PDF = Buffer.from('%PDF-1.4 a').toString('base64');
const PNG = Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').toString('base64');

const user = (content: JsonValue): JsonObject => ({ role: 'user', content });
const asked = user('x');
const said = (more: JsonObject): JsonObject => ({ messages: [asked, { role: 'assistant', ...more }, asked] });
const f = { name: 'f', parameters: { type: 'object', properties: { a: { type: 'string' } } } };
const schema = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] };
const functions = { messages: [asked], functions: [f] };
const tools = { messages: [asked], tools: [{ type: 'function', function: f }] };
const used = { role: 'assistant', content: [{ type: 'tool_use', id: 't', name: 'f', input: {} }] };
const result = (more: JsonObject): JsonObject => ({
  messages: [asked, used, user([{ type: 'tool_result', tool_use_id: 't', ...more }])],
});
const called = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
const document = (source: JsonObject): JsonObject => ({ messages: [user([{ type: 'document', source }])] });
const clientTool = { name: 'f', input_schema: f.parameters };

/** Each entry: what it is about, and its spellings. */
const ALIKE: Readonly<Record<Spoken, readonly (readonly [string, ...JsonObject[]])[]>> = {
  chat: [
    ['a text', { messages: [user('a')] }, { messages: [user(['a'])] }, { messages: [user([{ type: 'text', text: 'a' }])] }],
    [
      'a schema of the answer, beside the type where other vendors read it',
      { messages: [asked], response_format: { type: 'json_schema', json_schema: { schema } } },
      { messages: [asked], response_format: { type: 'json_schema', schema } },
      { messages: [asked], response_format: { type: 'json_object', schema } },
    ],
    [
      'a picture',
      { messages: [user([{ type: 'image_url', image_url: { url: 'https://a.example/a.png' } }])] },
      { messages: [user([{ type: 'image_url', image_url: 'https://a.example/a.png' }])] },
    ],
    [
      'a file',
      { messages: [user([{ type: 'file', file: { file_data: `data:application/pdf;base64,${PDF}` } }])] },
      { messages: [user([{ type: 'file', file: { file_data: PDF } }])] },
    ],
    [
      'sound',
      { messages: [user([{ type: 'input_audio', input_audio: { data: 'AAAA', format: 'wav' } }])] },
      { messages: [user([{ type: 'input_audio', input_audio: { data: 'data:audio/wav;base64,AAAA', format: 'wav' } }])] },
    ],
    [
      'the developer',
      { messages: [{ role: 'developer', content: 'd' }, asked] },
      { messages: [{ role: 'developer', content: [{ type: 'text', text: 'd' }] }, asked] },
      { messages: [{ role: 'developer', content: 'd' }, { role: 'developer', content: '' }, asked] },
    ],
    [
      'nothing but the system',
      { messages: [{ role: 'system', content: 's' }] },
      { messages: [{ role: 'system', content: [{ type: 'text', text: 's' }] }] },
    ],
    ['a refusal', said({ content: null, refusal: 'no' }), said({ content: [{ type: 'refusal', refusal: 'no' }] })],
    [
      'no reasoning',
      { messages: [asked], reasoning_effort: 'none' },
      { messages: [asked], reasoning: { enabled: false } },
      { messages: [asked], thinking: { type: 'disabled' } },
      { messages: [asked], thinking: { type: 'disabled', budget_tokens: 9000 } },
      { messages: [asked], reasoning: { enabled: false }, thinking: { type: 'enabled', budget_tokens: 9000 } },
    ],
    [
      'an effort, whatever the members of other vendors say beside it',
      { messages: [asked], reasoning_effort: 'low' },
      { messages: [asked], reasoning_effort: 'low', thinking: { type: 'disabled', budget_tokens: 9000 } },
    ],
    ['nothing of reasoning', { messages: [asked] }, { messages: [asked], thinking: { budget_tokens: 9000 } }],
    [
      'reasoning with a budget',
      { messages: [asked], reasoning: { enabled: true, max_tokens: 9000 } },
      { messages: [asked], thinking: { type: 'enabled', budget_tokens: 9000 } },
    ],
    ['a function', tools, functions],
    ['the choice of a tool', { ...tools, tool_choice: 'auto' }, { ...functions, function_call: 'auto' }],
    [
      'the choice of one function',
      { ...tools, tool_choice: { type: 'function', function: { name: 'f' } } },
      { ...functions, function_call: { name: 'f' } },
    ],
    [
      'a call',
      {
        messages: [
          asked,
          {
            role: 'assistant',
            tool_calls: [{ id: 'legacy_function:f', type: 'function', function: { name: 'f', arguments: '{"a":"b"}' } }],
          },
          { role: 'tool', tool_call_id: 'legacy_function:f', content: 'r' },
        ],
      },
      {
        messages: [
          asked,
          { role: 'assistant', function_call: { name: 'f', arguments: '{"a":"b"}' } },
          { role: 'function', name: 'f', content: 'r' },
        ],
      },
      {
        messages: [
          asked,
          { role: 'assistant', function_call: { name: 'f', arguments: { a: 'b' } } },
          { role: 'function', name: 'f', content: [{ type: 'text', text: 'r' }] },
        ],
      },
    ],
    ['scores', { messages: [asked], logprobs: true, top_logprobs: 0 }, { messages: [asked], logprobs: true }],
  ],
  messages: [
    ['a text', { messages: [user('a')] }, { messages: [user([{ type: 'text', text: 'a' }])] }],
    ['the system', { system: 's', messages: [asked] }, { system: [{ type: 'text', text: 's' }], messages: [asked] }],
    ['an empty result', result({}), result({ content: null }), result({ content: '' }), result({ content: [] })],
    ['a result', result({ content: 'r' }), result({ content: [{ type: 'text', text: 'r' }] })],
    [
      'a document of words',
      document({ type: 'text', media_type: 'text/plain', data: 'a\nb' }),
      document({ type: 'content', content: 'a\nb' }),
      document({
        type: 'content',
        content: [
          { type: 'text', text: 'a' },
          { type: 'text', text: 'b' },
        ],
      }),
    ],
    [
      'no thinking',
      { messages: [asked], thinking: { type: 'disabled' } },
      { messages: [asked], thinking: { type: 'enabled', budget_tokens: 0 } },
    ],
    ['a tool', { messages: [asked], tools: [clientTool] }, { messages: [asked], tools: [{ type: 'custom', ...clientTool }] }],
    [
      'a tool without arguments',
      { messages: [asked], tools: [{ name: 'f', input_schema: { type: 'object' } }] },
      { messages: [asked], tools: [{ name: 'f', input_schema: { type: 'object', properties: null, required: null } }] },
    ],
  ],
  responses: [
    [
      'a text',
      { input: 'a' },
      { input: ['a'] },
      { input: [user('a')] },
      { input: [{ type: 'message', ...user('a') }] },
      { input: [user([{ type: 'input_text', text: 'a' }])] },
      { input: [user(['a'])] },
    ],
    [
      'what was answered',
      { input: ['a', { role: 'assistant', content: 'b' }, 'c'] },
      { input: ['a', { role: 'assistant', content: [{ type: 'output_text', text: 'b', annotations: [] }] }, 'c'] },
    ],
    [
      'a result',
      { input: ['a', called, { type: 'function_call_output', call_id: 'c', output: 'r' }] },
      { input: ['a', called, { type: 'function_call_output', call_id: 'c', output: [{ type: 'input_text', text: 'r' }] }] },
    ],
    [
      'a file',
      { input: [user([{ type: 'input_file', file_data: `data:application/pdf;base64,${PDF}` }])] },
      { input: [user([{ type: 'input_file', file_data: PDF }])] },
    ],
    [
      'a picture that was drawn',
      { input: ['a', { type: 'image_generation_call', id: 'ig', result: PNG }, 'b'] },
      { input: ['a', { type: 'image_generation_call', id: 'ig', result: `data:image/png;base64,${PNG}` }, 'b'] },
    ],
    ['the conversation of an upstream', { input: 'a', conversation: 'conv_1' }, { input: 'a', conversation: { id: 'conv_1' } }],
  ],
};

for (const dialect of Object.keys(ALIKE) as Spoken[]) {
  for (const [what, plain, ...others] of ALIKE[dialect]) {
    test(`${dialect} clients: ${what}, however it is spelled`, () => {
      for (const upstream of UPSTREAMS.filter((codec) => codec.dialect !== dialect)) {
        const expected = sentTo(upstream, decoded(dialect, plain as JsonObject));
        for (const other of others)
          assert.deepEqual(sentTo(upstream, decoded(dialect, other)), expected, `${upstream.dialect}: ${JSON.stringify(other)}`);
      }
    });
  }
}

/** Each entry: the path that is refused, and the body. */
const MEANINGLESS: Readonly<Record<Spoken, readonly (readonly [string, JsonObject])[]>> = {
  chat: [
    ['messages[0].content', { messages: [user({ text: 'a' })] }],
    ['messages[0].content[0].image_url', { messages: [user([{ type: 'image_url', image_url: '' }])] }],
    ['messages[1].tool_calls[0].type', said({ tool_calls: [{ id: 'a', type: 'x', function: { name: 'f', arguments: '{}' } }] })],
    ['messages[2].content', { messages: [asked, asked, { role: 'tool', tool_call_id: 'a', content: { a: 1 } }] }],
  ],
  messages: [
    ['system[0].type', { messages: [asked], system: [{ type: 'image', source: {} }] }],
    ['messages[0].content[0].type', { messages: [user([{ type: 'tool_use', id: 't', name: 'f', input: {} }])] }],
    ['messages[1].content[0].type', said({ content: [{ type: 'tool_result', tool_use_id: 't' }] })],
    ['messages[2].content[0].content', result({ content: 5 })],
    ['messages[0].content[0].source.type', document({ type: 'x' })],
    ['output_config.format.type', { messages: [asked], output_config: { format: { type: 'json' } } }],
  ],
  responses: [
    ['conversation', { input: 'a', conversation: 5 }],
    ['instructions', { input: 'a', instructions: 5 }],
    ['input[0].content[0]', { input: [user([{ type: 'input_image' }])] }],
    ['input[0].content[0]', { input: [user([{ type: 'input_file', filename: 'a.pdf' }])] }],
  ],
};

for (const dialect of Object.keys(MEANINGLESS) as Spoken[]) {
  for (const [path, body] of MEANINGLESS[dialect]) {
    test(`${dialect} clients: ${path} is refused by its path: ${JSON.stringify(body)}`, () => {
      const isRefusal = (error: unknown): boolean =>
        error instanceof GatewayError && error.status === 400 && error.param === path;
      assert.throws(() => decoded(dialect, body), isRefusal);
    });
  }
}

/** What one upstream cannot take, by the client's own name for it. */
const UNSAYABLE: readonly (readonly [UpstreamCodec['dialect'], string, Spoken, JsonObject])[] = [
  ['gemini', 'modalities', 'chat', { messages: [asked], modalities: ['text', 'video'] }],
  ['gemini', 'reasoning_effort', 'chat', { messages: [asked], reasoning_effort: 'ultra' }],
  ['gemini', 'output_config.effort', 'messages', { messages: [asked], output_config: { effort: 'ultra' } }],
  ['gemini', 'reasoning.effort', 'responses', { input: 'a', reasoning: { effort: 'ultra' } }],
  ['chat', 'tool_choice', 'messages', { messages: [asked], tools: [clientTool], tool_choice: { type: 'x' } }],
  ['messages', 'tool_choice', 'chat', { ...tools, tool_choice: { type: 'web_search' } }],
  ['messages', 'tool_choice', 'chat', { ...tools, tool_choice: { type: 'function', function: { name: 'g' } } }],
  ['responses', 'messages[0].content[0]', 'messages', { messages: [user([{ type: 'container_upload', file_id: 'f' }])] }],
  [
    'messages',
    'messages[0].content[0]',
    'chat',
    { messages: [user([{ type: 'image_url', image_url: 'ftp://a.example/a.png' }])] },
  ],
];

for (const [dialect, path, client, body] of UNSAYABLE) {
  test(`${dialect} upstreams: ${path} of a ${client} client is refused by its path: ${JSON.stringify(body)}`, () => {
    const upstream = UPSTREAMS.find((codec) => codec.dialect === dialect) as UpstreamCodec;
    assert.deepEqual(sentTo(upstream, decoded(client, body)), { refused: path });
  });
}

test('chat clients: a schema beside the type keeps its own text, in which keys that look like numbers stay where they are', () => {
  const schema = '{"type":"object","properties":{"b":{"type":"string"},"1":{"type":"string"}}}';
  const text = `{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":{"type":"json_object","schema":${schema}}}`;
  const client = CLIENTS.find((codec) => codec.dialect === 'chat') as ClientCodec;
  const request = client.decodeRequest(text, JSON.parse(text) as JsonObject, { open: openForTests });
  for (const dialect of ['responses', 'messages']) {
    const upstream = UPSTREAMS.find((codec) => codec.dialect === dialect) as UpstreamCodec;
    assert.ok(upstream.encodeRequest(request, targetOf(ownerOf(upstream))).body.includes('"b":{"type":"string"},"1":'), dialect);
  }
});

test('more pictures in a result than a call takes arguments reach every upstream', () => {
  const picture = { type: 'input_image', image_url: 'https://a.example/a.png' };
  const output = Array.from({ length: 200_000 }, () => picture);
  const json: JsonObject = { model: 'm', input: [user('x'), called, { type: 'function_call_output', call_id: 'c', output }] };
  const client = CLIENTS.find((codec) => codec.dialect === 'responses') as ClientCodec;
  const request = client.decodeRequest(JSON.stringify(json), json, { open: openForTests });
  for (const upstream of UPSTREAMS) {
    const { body } = upstream.encodeRequest(request, targetOf(ownerOf(upstream)));
    assert.ok(body.split('https://a.example/a.png').length > output.length, upstream.dialect);
  }
});
