/**
 * The numbers, lengths, names, breakpoints and schemas that the simulated vendors refuse: one row each, beside a request that
 * they take.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Dialect } from '../../src/codecs/canonical/dialect.ts';
import { refusalOf } from '../support/upstream-checks.ts';

const call = (id: string) => ({ id, type: 'function', function: { name: 'f', arguments: '{}' } });
const closed = { type: 'object', properties: { a: { type: 'string' } }, required: ['a'], additionalProperties: false };
const strict = (parameters: object) => [{ type: 'function', function: { name: 'f', strict: true, parameters } }];
const flat = (parameters: object) => [{ type: 'function', name: 'f', strict: true, parameters }];
const user = { role: 'user', content: 'x' };
const tool = { name: 'f', input_schema: { type: 'object' } };
const cached = (ttl?: string) => ({ type: 'text', text: 'x', cache_control: { type: 'ephemeral', ...(ttl && { ttl }) } });
const declared = (parametersJsonSchema: object) => [{ functionDeclarations: [{ name: 'f', parametersJsonSchema }] }];
const turn = (call: string, result: string) => [
  { role: 'user', parts: [{ text: 'x' }] },
  { role: 'model', parts: [{ functionCall: { name: call, args: {} }, thoughtSignature: 'c2ln' }] },
  { role: 'user', parts: [{ functionResponse: { name: result, response: {} } }] },
];

interface Vendor {
  readonly base: object;
  readonly taken: readonly object[];
  readonly refused: readonly (readonly [object, RegExp])[];
}

const VENDORS: Partial<Record<Dialect, Vendor>> = {
  chat: {
    base: { model: 'm', messages: [user] },
    taken: [
      { temperature: 2, top_p: 1, n: 128, logprobs: true, top_logprobs: 20, user: 'u'.repeat(64) },
      { tools: strict(closed), tool_choice: { type: 'function', function: { name: 'f' } }, parallel_tool_calls: false },
      {
        messages: [
          user,
          { role: 'assistant', tool_calls: [call('c'.repeat(40))] },
          { role: 'tool', tool_call_id: 'c'.repeat(40), content: 'r' },
        ],
      },
      { response_format: { type: 'json_object' }, messages: [{ role: 'user', content: 'JSON, please' }] },
    ],
    refused: [
      [{ temperature: 2.1 }, /'temperature': decimal above maximum/],
      [{ top_p: -0.1 }, /'top_p': decimal below minimum/],
      [{ n: 129 }, /'n': integer above maximum/],
      [{ max_completion_tokens: 0 }, /'max_completion_tokens': integer below minimum/],
      [{ logprobs: true, top_logprobs: 21 }, /'top_logprobs'/],
      [{ presence_penalty: 3 }, /'presence_penalty'/],
      [{ user: 'u'.repeat(65) }, /'user': string too long/],
      [{ metadata: { a: 'v'.repeat(513) } }, /'metadata\.a': string too long/],
      [{ parallel_tool_calls: true }, /only allowed when 'tools'/],
      [{ tools: strict(closed), tool_choice: { type: 'function', function: { name: 'g' } } }, /not found in 'tools'/],
      [{ tools: [{ type: 'function', function: { name: 'f'.repeat(65) } }] }, /maximum length 64/],
      [{ tools: strict({ ...closed, additionalProperties: undefined }) }, /'additionalProperties' is required/],
      [{ tools: strict({ ...closed, required: [] }) }, /Missing 'a'/],
      [{ tools: strict({ ...closed, properties: { a: { oneOf: [] } } }) }, /'oneOf' is not permitted/],
      [{ tools: strict({ ...closed, properties: { a: {} } }) }, /must have a 'type' key/],
      [{ tools: [{ type: 'function', function: { name: 'f', parameters: { type: 'string' } } }] }, /'type: "object"'/],
      [{ response_format: { type: 'json_object' } }, /must contain the word 'json'/],
      [{ response_format: { type: 'json_schema', json_schema: { name: 'a b', schema: {} } } }, /does not match pattern/],
      [
        { response_format: { type: 'json_schema', json_schema: { name: 'a', strict: true, schema: { type: 'object' } } } },
        /additionalProp/,
      ],
      [{ messages: [user, { role: 'assistant', tool_calls: [call('c'.repeat(41))] }] }, /maximum length 40/],
      [{ messages: [user, { role: 'assistant', tool_calls: [call('c'), call('c')] }] }, /Duplicate/],
      [
        { messages: [{ role: 'system', content: [{ type: 'image_url', image_url: { url: 'x' } }] }] },
        /Supported values are: 'text'/,
      ],
      [{ messages: [{ role: 'user', content: [] }] }, /empty array/],
    ],
  },
  responses: {
    base: { model: 'm', input: 'x' },
    taken: [
      { tools: flat(closed), tool_choice: { type: 'function', name: 'f' } },
      { tools: [{ type: 'namespace', name: 'n', tools: flat(closed) }], tool_choice: { type: 'function', name: 'f' } },
      { max_output_tokens: 16 },
    ],
    refused: [
      [{ max_output_tokens: 15 }, /'max_output_tokens': integer below minimum/],
      [{ tools: flat(closed), tool_choice: { type: 'function', name: 'g' } }, /not found in 'tools'/],
      [{ tool_choice: 'required' }, /must be specified with 'tools'/],
      [{ tools: flat({ ...closed, required: [] }) }, /Missing 'a'/],
      [{ text: { format: { type: 'json_object' } } }, /must contain the word 'json'/],
      // The instructions are not what the vendor reads for it.
      [{ instructions: 'JSON', text: { format: { type: 'json_object' } } }, /must contain the word 'json'/],
      [{ input: [{ type: 'function_call', call_id: 'c'.repeat(65), name: 'f', arguments: '{}' }] }, /maximum length 64/],
      [{ input: [{ type: 'function_call', id: 'msg_1', call_id: 'c', name: 'f', arguments: '{}' }] }, /begins with 'fc'/],
    ],
  },
  messages: {
    base: { model: 'm', max_tokens: 50, messages: [user] },
    taken: [
      { system: [cached('1h'), cached('1h')], messages: [{ role: 'user', content: [cached(), cached('5m')] }] },
      { cache_control: { type: 'ephemeral' }, system: [cached(), cached(), cached()] },
      { metadata: { user_id: 'u'.repeat(256) }, top_p: 1 },
    ],
    refused: [
      [{ system: [cached(), cached(), cached(), cached(), cached()] }, /maximum of 4 blocks .* Found 5/],
      [{ cache_control: { type: 'ephemeral' }, system: [cached(), cached(), cached(), cached()] }, /Found 5/],
      [
        { system: [cached()], messages: [{ role: 'user', content: [cached('1h')] }] },
        /^messages\.0\.content\.0\.cache_control\.ttl/,
      ],
      [{ tools: [{ ...tool, cache_control: { type: 'ephemeral', ttl: '5m' } }], system: [cached('1h')] }, /^system\.0\.cache/],
      [{ system: [cached('2h')] }, /Input should be '5m' or '1h'/],
      [{ system: ' \n' }, /non-whitespace/],
      [{ top_p: 1.5 }, /top_p: range/],
      [{ top_k: -1 }, /top_k/],
      [{ metadata: { user_id: 'u'.repeat(257) } }, /at most 256/],
      [{ thinking: { type: 'enabled', budget_tokens: 1023 }, max_tokens: 9_000 }, /greater than or equal to 1024/],
      [
        {
          messages: [
            { role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/bmp', data: 'AA==' } }] },
          ],
        },
        /media_type: Input should be/,
      ],
    ],
  },
  gemini: {
    base: { contents: [{ role: 'user', parts: [{ text: 'x' }] }] },
    taken: [
      { tools: declared({ type: 'object', $defs: { a: { type: 'string' } }, properties: { a: { $ref: '#/$defs/a' } } }) },
      { contents: turn('f', 'f') },
    ],
    refused: [
      [{ contents: turn('f', 'g') }, /those of the functions/],
      [{ generationConfig: { temperature: 2.5 } }, /temperature must be in the range/],
      [{ generationConfig: { maxOutputTokens: 0 } }, /maxOutputTokens/],
      [{ generationConfig: { responseJsonSchema: {} } }, /response_mime_type/],
      [{ tools: declared({ type: 'object', properties: { a: { const: 1 } } }) }, /Unsupported JSON Schema keyword "const"/],
      [{ tools: declared({ type: 'object', properties: {}, required: ['a'] }) }, /property is not defined: a/],
      [{ tools: declared({ type: 'object', properties: { a: { $ref: '#/$defs/b' } } }) }, /cannot be resolved/],
      [{ tools: declared({ type: 'object', properties: { a: { $ref: '#', description: 'd' } } }) }, /beside \$ref/],
      [{ tools: declared({ properties: {} }) }, /should be OBJECT/],
      [{ tools: [...declared(closed), ...declared(closed)] }, /Duplicate function declaration/],
      [{ toolConfig: { functionCallingConfig: { mode: 'ANY' } } }, /without function_declarations/],
      [
        { tools: declared(closed), toolConfig: { functionCallingConfig: { mode: 'AUTO', allowedFunctionNames: ['f'] } } },
        /when function calling mode is ANY/,
      ],
      [
        { contents: [{ role: 'user', parts: [{ inlineData: { mimeType: 'image/png', data: 'a b' } }] }] },
        /Base64 decoding failed/,
      ],
    ],
  },
};

for (const [type, vendor] of Object.entries(VENDORS) as [Dialect, Vendor][]) {
  test(`${type}: what the vendor's limits allow and refuse`, () => {
    const why = (more: object) => refusalOf(type, JSON.stringify({ ...vendor.base, ...more }), 'm') ?? 'taken';
    for (const more of [{}, ...vendor.taken]) assert.equal(why(more), 'taken', JSON.stringify(more));
    for (const [more, pattern] of vendor.refused) assert.match(why(more), pattern, JSON.stringify(more));
  });
}
