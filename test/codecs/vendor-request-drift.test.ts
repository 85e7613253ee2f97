/**
 * The same as `vendor-drift.test.ts` for what clients ask with: members, items, parts and tools in the request types of the
 * vendors' SDKs.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Dialect } from '../../src/codecs/canonical/dialect.ts';
import { GatewayError } from '../../src/codecs/canonical/error.ts';
import { isObject, type JsonObject } from '../../src/codecs/canonical/json.ts';
import type { CanonicalRequest } from '../../src/codecs/canonical/request.ts';
import { CLIENTS } from '../../src/codecs/registry.ts';
import { compareNames, literals, members, type Reads } from '../support/vendor-drift.ts';
import { ANTHROPIC_REQUESTS, OPENAI_REQUESTS } from '../support/vendor-request-names.ts';
import { VendorTypes } from '../support/vendor-types.ts';

const types = new VendorTypes();
test.after(() => types[Symbol.dispose]());

function decode(dialect: Dialect, body: JsonObject): CanonicalRequest {
  const client = CLIENTS.find((one) => one.dialect === dialect) ?? assert.fail(dialect);
  const json = { model: 'm', ...body };
  return client.decodeRequest(JSON.stringify(json), json, { open: () => undefined });
}

const LEAST: Readonly<Record<string, JsonObject>> = {
  responses: { input: 'hi' },
  chat: { messages: [{ role: 'user', content: 'hi' }], response_format: { type: 'text' } },
  messages: { max_tokens: 5, messages: [{ role: 'user', content: 'hi' }] },
};

/** The members of a body that the decoder has a reading of. */
const readsMember =
  (dialect: Dialect): Reads =>
  (name) =>
    decode(dialect, LEAST[dialect] ?? {}).reads.own.has(name);

/**
 * True for an entry of a list that becomes an item or a tool of its own; a complaint about its members shows that they are read.
 */
function isRead(dialect: Dialect, body: JsonObject, list: 'items' | 'tools'): boolean {
  try {
    const kinds = decode(dialect, body)[list].map((entry) => entry.kind);
    return kinds.length > 0 && !kinds.includes('native');
  } catch (error) {
    assert.ok(error instanceof GatewayError, String(error));
    return error.code === 'invalid_request';
  }
}

const SOURCE = { type: 'base64', media_type: 'image/png', data: 'AAAA' };
/** What any item, part or block may need. */
const ENTRY = {
  id: 'x_1',
  call_id: 'c_1',
  tool_use_id: 'c_1',
  name: 'f',
  arguments: '{}',
  input: '{}',
  output: 'x',
  role: 'user',
  content: 'hi',
  summary: [],
  text: 'hi',
  thinking: 'hm',
  signature: 'AAAA',
  data: 'AAAA',
  title: 't',
  source: SOURCE,
  image_url: 'https://a.test/x.png',
  file_id: 'file_1',
  file: { file_id: 'file_1' },
  input_audio: { data: 'AAAA', format: 'wav' },
  result: 'AAAA',
};
const TOOL = { name: 'f', description: 'f', parameters: { type: 'object' }, input_schema: { type: 'object' }, tools: [] };
const chatPart = (type: string): JsonObject =>
  type === 'image_url' ? { type, image_url: { url: ENTRY.image_url } } : { ...ENTRY, type };
const messagesBlock = (type: string): JsonObject => ({ ...ENTRY, type, ...(type === 'tool_use' ? { input: {} } : {}) });
const ASSISTANT_BLOCKS = new Set(['tool_use', 'thinking', 'redacted_thinking', 'server_tool_use', 'mcp_tool_use']);

compareNames('openai requests', OPENAI_REQUESTS, {
  'responses: members': members(types, readsMember('responses'), ['responses', 'ResponseCreateParamsBase']),
  'responses: input items': literals(
    types,
    (type) =>
      isRead(
        'responses',
        { input: [type === 'function_call' || type === 'custom_tool_call' ? { ...ENTRY, type } : { ...ENTRY, type }] },
        'items',
      ),
    ['responses', 'ResponseInputItem', 'type'],
  ),
  'responses: input parts': literals(
    types,
    (type) => isRead('responses', { input: [{ role: 'user', content: [{ ...ENTRY, type }] }] }, 'items'),
    ['responses', 'ResponseInputContent', 'type'],
  ),
  'responses: tools': literals(
    types,
    (type) => type === 'namespace' || isRead('responses', { input: 'hi', tools: [{ ...TOOL, type }] }, 'tools'),
    ['responses', 'Tool', 'type'],
  ),
  'chat: members': members(types, readsMember('chat'), ['chat', 'ChatCompletionCreateParamsBase']),
  'chat: parts': literals(types, (type) => isRead('chat', { messages: [{ role: 'user', content: [chatPart(type)] }] }, 'items'), [
    'chat',
    'ChatCompletionContentPart',
    'type',
  ]),
  'chat: tools': literals(
    types,
    (type) => isRead('chat', { ...LEAST['chat'], tools: [{ type, function: TOOL, custom: { name: 'f' } }] }, 'tools'),
    ['chat', 'ChatCompletionTool', 'type'],
  ),
});

compareNames('anthropic requests', ANTHROPIC_REQUESTS, {
  members: members(
    types,
    readsMember('messages'),
    ['messages', 'MessageCreateParamsBase'],
    ['betaMessages', 'MessageCreateParamsBase'],
  ),
  blocks: literals(
    types,
    (type) => {
      const role = ASSISTANT_BLOCKS.has(type) ? 'assistant' : 'user';
      return isRead('messages', { max_tokens: 5, messages: [{ role, content: [messagesBlock(type)] }] }, 'items');
    },
    ['messages', 'ContentBlockParam', 'type'],
    ['betaMessages', 'BetaContentBlockParam', 'type'],
  ),
  tools: literals(
    types,
    (type) => isRead('messages', { ...LEAST['messages'], tools: [{ ...TOOL, type }] }, 'tools'),
    ['messages', 'ToolUnion', 'type'],
    ['betaMessages', 'BetaToolUnion', 'type'],
  ),
  thinking: literals(
    types,
    (type) => {
      const { reasoning } = decode('messages', {
        ...LEAST['messages'],
        max_tokens: 5000,
        thinking: { type, budget_tokens: 1024 },
      });
      return reasoning !== undefined && isObject(reasoning);
    },
    ['messages', 'ThinkingConfigParam', 'type'],
    ['betaMessages', 'BetaThinkingConfigParam', 'type'],
  ),
});
