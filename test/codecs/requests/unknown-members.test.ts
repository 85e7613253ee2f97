/** A member of a client's body that has no canonical reading is named as left out by every upstream of another protocol. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import { CLIENTS, UPSTREAMS } from '../../../src/codecs/registry.ts';
import { openForTests, ownerOf, targetOf } from '../../support/wire.ts';

const openAi = {
  ...{ model: 'm', stream: true, temperature: 0.5, top_p: 0.5, user: 'u', metadata: { a: 'b' } },
  ...{ store: true, service_tier: 'auto', prompt_cache_key: 'k', safety_identifier: 's', parallel_tool_calls: true },
};
const completions = {
  ...{ model: 'm', stream: true, stream_options: { include_usage: true }, n: 1, user: 'u', max_tokens: 9, temperature: 0.5 },
  ...{ top_p: 0.5, seed: 1, presence_penalty: 0.1, frequency_penalty: 0.1, logit_bias: { 1: 1 }, stop: 'x' },
};
const tool = { name: 'f', parameters: { type: 'object', properties: {} } };

/** Bodies of everything that is read, and members that are not. */
const BODIES: Readonly<Record<string, { readonly read: JsonObject; readonly more: JsonObject }>> = {
  chat: {
    read: {
      ...openAi,
      ...completions,
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ type: 'function', function: tool }],
      tool_choice: 'auto',
      ...{ functions: [tool], function_call: 'auto', max_completion_tokens: 9, top_k: 5, logprobs: true, top_logprobs: 2 },
      ...{ response_format: { type: 'json_object' }, modalities: ['text'], verbosity: 'low', reasoning_effort: 'low' },
      ...{ reasoning: { effort: 'low' }, thinking: { type: 'enabled', budget_tokens: 2000 }, session_id: 's' },
      ...{ prompt_cache_options: { mode: 'implicit' }, cache_control: { type: 'ephemeral' } },
    },
    more: { web_search_options: {}, prediction: { type: 'content', content: 'x' }, search_parameters: { mode: 'auto' } },
  },
  completions: { read: { ...completions, prompt: 'hi' }, more: { min_p: 0.1 } },
  responses: {
    read: {
      ...openAi,
      input: 'hi',
      instructions: 'be kind',
      tools: [{ type: 'function', ...tool }],
      tool_choice: 'auto',
      ...{ stream_options: { include_obfuscation: false }, background: false, include: ['reasoning.encrypted_content'] },
      ...{ max_output_tokens: 9, top_logprobs: 2, text: { verbosity: 'low' }, reasoning: { effort: 'low' } },
    },
    more: { max_tool_calls: 2, truncation: 'auto', context_management: [], prompt_cache_retention: '24h' },
  },
  messages: {
    read: {
      ...{ model: 'm', system: 'be kind', stream: true, max_tokens: 9, temperature: 0.5, top_p: 0.5, top_k: 5 },
      messages: [{ role: 'user', content: 'hi' }],
      tools: [{ name: 'f', input_schema: tool.parameters }],
      tool_choice: { type: 'auto' },
      ...{ stop_sequences: ['x'], thinking: { type: 'disabled' }, metadata: { user_id: 'u' }, service_tier: 'auto' },
      cache_control: { type: 'ephemeral' },
      output_config: { effort: 'low' },
      output_format: { type: 'json_schema', schema: { type: 'object' } },
    },
    more: { mcp_servers: [], container: 'c', context_management: { edits: [] } },
  },
};

/** Members within an object or a list of the body, laid over what is read there. */
const WITHIN: Readonly<Record<string, readonly JsonObject[]>> = {
  chat: [
    { messages: [{ role: 'user', content: 'hi', name: 'Ann' }] },
    { tools: [{ type: 'function', function: tool, strategy: 'x' }] },
    { response_format: { type: 'grammar', grammar: 'root ::= "x"' } },
    { reasoning: { effort: 'low', exclude: true } },
    { thinking: { type: 'enabled', clear_thinking: true } },
  ],
  completions: [],
  responses: [
    { reasoning: { effort: 'low', mode: 'pro' } },
    {
      input: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: [{ type: 'output_text', text: 'a', annotations: [{ type: 'file_citation', file_id: 'f', index: 0 }] }],
        },
      ],
    },
  ],
  messages: [
    { tools: [{ name: 'f', input_schema: tool.parameters, input_examples: [{ a: 1 }] }] },
    {
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: [{ type: 'text', text: 'a', citations: [{ type: 'char_location', cited_text: 'x' }] }] },
      ],
    },
  ],
};

/** What stands within and says nothing, or nothing that another loss does not name. */
const SILENT: Readonly<Record<string, readonly JsonObject[]>> = {
  chat: [
    { messages: [{ role: 'user', content: 'hi', name: null, annotations: [] }] },
    { reasoning: { effort: 'low', exclude: false } },
    ...['reasoning', 'reasoning_content', 'reasoning_opaque', 'refusal', 'id'].map((member) => ({
      messages: [
        { role: 'user', content: 'hi' },
        { role: 'assistant', content: 'a', [member]: 'x' },
      ],
    })),
    {
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c', name: 'f', content: 'r' },
      ],
    },
  ],
  completions: [],
  responses: [
    {
      tools: [
        { type: 'function', ...tool, defer_loading: false },
        { type: 'web_search', search_context_size: 'low' },
      ],
    },
  ],
  messages: [
    {
      tools: [
        { name: 'f', input_schema: tool.parameters, input_examples: [] },
        { type: 'bash_20250124', name: 'bash' },
      ],
    },
  ],
};

function lossesOf(client: (typeof CLIENTS)[number], json: JsonObject): Map<string, boolean> {
  const request = client.decodeRequest(JSON.stringify(json), json, { open: openForTests });
  return new Map(
    UPSTREAMS.map((upstream) => {
      const { losses } = upstream.encodeRequest(request, targetOf(ownerOf(upstream)));
      return [upstream.dialect, losses.includes('unknown members')];
    }),
  );
}

/** The same below the top: what a decoder reads there, what its own loss names, and a member that nobody reads. */
const INSIDE: Readonly<Record<string, (more: JsonObject) => readonly JsonObject[]>> = {
  chat: (more) => [
    { messages: [{ role: 'user', content: 'hi', ...more }] },
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', ...more }] }] },
    { messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://a.test/x.png', ...more } }] }] },
    { tools: [{ type: 'function', function: { ...tool, ...more } }] },
    { tools: [{ type: 'function', function: tool, ...more }] },
  ],
  completions: () => [],
  responses: (more) => [
    { input: [{ role: 'user', content: 'hi', ...more }] },
    { input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'hi', ...more }] }] },
    { tools: [{ type: 'function', ...tool, ...more }] },
    ...[
      { type: 'input_image', image_url: 'https://a.test/x.png' },
      { type: 'input_file', filename: 'x.pdf', file_data: 'data:application/pdf;base64,AAAA' },
      { type: 'input_text', text: 'hi' },
    ].map((part) => ({ input: [{ role: 'user', content: [{ ...part, ...more }] }] })),
    ...(['function', 'custom'] as const).flatMap((type) => {
      const kind = type === 'function' ? 'function_call' : 'custom_tool_call';
      const call = { type: kind, call_id: 'c', name: 'f', ...(type === 'function' ? { arguments: '{}' } : { input: '{}' }) };
      const output = { type: `${kind}_output`, call_id: 'c', output: 'r' };
      const hi = { role: 'user', content: 'hi' };
      return [{ input: [hi, { ...call, ...more }, output] }, { input: [hi, call, { ...output, ...more }] }];
    }),
  ],
  messages: (more) => [
    { system: [{ type: 'text', text: 'be kind', ...more }] },
    { messages: [{ role: 'user', content: [{ type: 'text', text: 'hi', ...more }] }] },
    { tools: [{ name: 'f', input_schema: tool.parameters, ...more }] },
    { metadata: { user_id: 'u', ...more } },
  ],
};

for (const client of CLIENTS) {
  const { read, more } = BODIES[client.dialect] ?? assert.fail(`no bodies for ${client.dialect}`);

  test(`${client.dialect}: everything that is read, and a null, is no unknown member`, () => {
    for (const [dialect, isNamed] of lossesOf(client, { ...read, x_unknown: null })) assert.equal(isNamed, false, dialect);
  });

  for (const members of WITHIN[client.dialect] ?? []) {
    test(`${client.dialect}: a part of ${JSON.stringify(members)} is named as left out wherever another protocol is spoken`, () => {
      for (const [dialect, isNamed] of lossesOf(client, { ...read, ...members })) {
        assert.equal(isNamed, dialect !== client.dialect, dialect);
      }
    });
  }

  test(`${client.dialect}: what says nothing within a message or a tool is no unknown member`, () => {
    for (const members of SILENT[client.dialect] ?? []) {
      for (const [dialect, isNamed] of lossesOf(client, { ...read, ...members })) {
        assert.equal(isNamed, false, `${dialect}: ${JSON.stringify(members)}`);
      }
    }
  });

  for (const [key, value] of Object.entries(more)) {
    test(`${client.dialect}: ${key} is named as left out wherever another protocol is spoken`, () => {
      for (const [dialect, isNamed] of lossesOf(client, { ...read, [key]: value })) {
        assert.equal(isNamed, dialect !== client.dialect, dialect);
      }
    });
  }

  test(`${client.dialect}: a member inside a message, a part or a tool is named, too; an empty one says nothing`, () => {
    const inside = INSIDE[client.dialect] ?? assert.fail(`nothing inside ${client.dialect}`);
    for (const [more, says] of [
      [{ x_unknown: 1 }, true],
      [{ x_unknown: null, x_list: [], x_text: '' }, false],
    ] as const) {
      for (const changes of inside(more)) {
        for (const [dialect, isNamed] of lossesOf(client, { ...read, ...changes }))
          assert.equal(isNamed, says && dialect !== client.dialect, `${dialect}: ${JSON.stringify(changes)}`);
      }
    }
  });
}
