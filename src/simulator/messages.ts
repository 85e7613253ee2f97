/** The messages upstream: what Anthropic refuses, and how a request is read. */
import { contentText } from './chat.ts';
import type { Dialect, Prompt, Turn } from './dialect.ts';
import { isArray, isObject, type JsonObject, type JsonValue, listOf, numberOf, objectOf, stringOf } from './json.ts';
import { messagesStream, messagesWhole } from './messages-wire.ts';
import { checkBreakpoints, checkMedia, checkSampling } from './messages-limits.ts';
import { checkSubset, refuse } from './messages-schemas.ts';

export const messages: Dialect = {
  check,
  prompt,
  stream: messagesStream,
  whole: messagesWhole,
  failure: (error, turn) =>
    JSON.stringify({
      type: 'error',
      error: { type: error.detail.type ?? ERROR_TYPES.get(error.status) ?? 'api_error', message: error.message },
      request_id: turn?.mint('req_') ?? 'req_0',
    }),
  failureFrame: (_before, error = { type: 'overloaded_error', message: 'Overloaded' }) => ({
    part: 'content',
    text: `event: error\ndata: ${JSON.stringify({ type: 'error', error })}\n\n`,
  }),
  headers: (requestId) => ({ 'request-id': requestId, 'anthropic-organization-id': '00000000-0000-4000-8000-000000000000' }),
  streamType: 'text/event-stream; charset=utf-8',
};

const ERROR_TYPES = new Map([
  [400, 'invalid_request_error'],
  [401, 'authentication_error'],
  [403, 'permission_error'],
  [404, 'not_found_error'],
  [413, 'request_too_large'],
  [429, 'rate_limit_error'],
  [504, 'timeout_error'],
  [529, 'overloaded_error'],
]);

function check(turn: Turn): void {
  const { body, model } = turn;
  if (model === '') refuse('model: Field required');
  const cap = body.max_tokens;
  if (cap === undefined) refuse('max_tokens: Field required');
  if (typeof cap !== 'number' || !Number.isInteger(cap)) refuse('max_tokens: Input should be a valid integer');
  if (cap < 1) refuse('max_tokens: Input should be greater than or equal to 1');
  if (body.messages === undefined) refuse('messages: Field required');
  if (!isArray(body.messages)) refuse('messages: Input should be a valid list');
  if (body.messages.length === 0) refuse('messages: at least one message is required');
  checkSystem(body.system);
  checkConversation(body.messages.map(objectOf), turn);
  checkTools(body);
  checkSampling(body);
  checkBreakpoints(body);
  checkFormat(body);
  checkThinking(body, cap);
}

function checkSystem(system: JsonValue | undefined): void {
  if (typeof system === 'string' && system !== '' && system.trim() === '')
    refuse('system: text content blocks must contain non-whitespace text');
  listOf(system).forEach((block, index) => {
    if (stringOf(objectOf(block).text).trim() === '')
      refuse(`system.${index}.text: text content blocks must contain non-whitespace text`);
  });
}

interface Said {
  readonly role: string;
  readonly index: number;
  readonly blocks: readonly JsonObject[];
}

function checkConversation(list: readonly JsonObject[], turn: Turn): void {
  const said: Said[] = [];
  list.forEach((message, index) => {
    const role = stringOf(message.role);
    if (role !== 'user' && role !== 'assistant' && role !== 'system') {
      refuse(`messages.${index}.role: Input should be 'user' or 'assistant'`);
    }
    if (role === 'system') return;
    const blocks = blocksOf(message.content, index);
    const before = said.at(-1);
    if (before === undefined && role !== 'user') refuse('messages: first message must use the "user" role');
    if (before?.role === role)
      refuse(`messages: roles must alternate between "user" and "assistant", but found multiple "${role}" roles in a row`);
    blocks.forEach((block, place) => {
      checkBlock(block, { at: `messages.${index}.content.${place}`, role, seals: turn.seals });
    });
    const isBlank = blocks.length > 0 && blocks.every(({ type, text }) => type === 'text' && stringOf(text).trim() === '');
    if (isBlank) refuse('messages: text content blocks must contain non-whitespace text');
    if (blocks.length === 0 && !(role === 'assistant' && index === list.length - 1)) {
      refuse(`messages.${index}: all messages must have non-empty content except for the optional final assistant message`);
    }
    said.push({ role, index, blocks });
  });
  if (said.length === 0) refuse('messages: at least one message is required');
  checkToolPairs(said);
  const isCalling = said.some(({ blocks }) => blocks.some(({ type }) => type === 'tool_use' || type === 'tool_result'));
  if (isCalling && listOf(turn.body.tools).length === 0)
    refuse('messages: Requests which include `tool_use` or `tool_result` blocks must define tools.');
  const last = said.at(-1)?.blocks.at(-1);
  if (said.at(-1)?.role === 'assistant' && last?.type === 'text' && /\s$/.test(stringOf(last.text))) {
    refuse('messages: final assistant content cannot end with trailing whitespace');
  }
}

function blocksOf(content: JsonValue | undefined, index: number): readonly JsonObject[] {
  if (content === undefined) refuse(`messages.${index}.content: Field required`);
  if (typeof content === 'string') return content === '' ? [] : [{ type: 'text', text: content }];
  if (!isArray(content)) refuse(`messages.${index}.content: Input should be a valid string or list`);
  return content.map(objectOf);
}

interface Place {
  readonly at: string;
  readonly role: string;
  readonly seals: Turn['seals'];
}

function checkBlock(block: JsonObject, place: Place): void {
  const { type } = block;
  if (typeof type !== 'string') refuse(`${place.at}.type: Field required`);
  const check = BLOCKS.get(type);
  if (check !== undefined) check(block, place);
  else if (!SERVER_BLOCK.test(type))
    refuse(`${place.at}: Input tag '${type}' found using 'type' does not match any of the expected tags`);
}

/** Blocks that the vendor's own tools made: they come back as they were. */
const SERVER_BLOCK =
  /_tool_result$|_tool_use$|^(server_tool_use|mcp_tool_use|search_result|compaction|container_upload|fallback|tool_addition|tool_removal|mcp_tool_listing)$/;

const BLOCKS: ReadonlyMap<string, (block: JsonObject, place: Place) => void> = new Map([
  ['text', checkText],
  ['thinking', checkThought],
  ['redacted_thinking', checkRedacted],
  ['tool_use', checkToolUse],
  ['tool_result', checkToolResult],
  ['image', (block, { at }) => checkMedia(block, at)],
  ['document', (block, { at }) => checkMedia(block, at)],
]);

function checkText({ text }: JsonObject, { at, role }: Place): void {
  if (typeof text !== 'string') refuse(`${at}.text.text: Field required`);
  if (text === '') refuse('messages: text content blocks must be non-empty');
  // Between the blocks of an answer the vendor takes it as spacing.
  if (role === 'user' && text.trim() === '') refuse('messages: text content blocks must contain non-whitespace text');
}

function checkThought({ thinking, signature }: JsonObject, { at, role, seals }: Place): void {
  if (role !== 'assistant') refuse(`${at}: \`thinking\` blocks may only be in \`assistant\` messages`);
  if (typeof signature !== 'string') refuse(`${at}.thinking.signature: Field required`);
  if (!seals.accepts('thinking', stringOf(thinking), signature)) refuse(`${at}: Invalid \`signature\` in \`thinking\` block`);
}

function checkRedacted({ data }: JsonObject, { at, seals }: Place): void {
  if (!seals.accepts('redacted', '', stringOf(data))) refuse(`${at}: Invalid \`data\` in \`redacted_thinking\` block`);
}

function checkToolUse({ id, input }: JsonObject, { at, role }: Place): void {
  if (role !== 'assistant') refuse(`${at}: \`tool_use\` blocks can only be in \`assistant\` messages`);
  if (!/^[a-zA-Z0-9_-]+$/.test(stringOf(id))) refuse(`${at}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`);
  if (!isObject(input)) refuse(`${at}.tool_use.input: Input should be a valid dictionary`);
}

function checkToolResult({ content }: JsonObject, { at, role }: Place): void {
  if (role !== 'user') refuse(`${at}: \`tool_result\` blocks can only be in \`user\` messages`);
  listOf(content)
    .map(objectOf)
    .forEach((part, index) => {
      const { type, text } = part;
      if (type === 'image' || type === 'document') checkMedia(part, `${at}.tool_result.content.${index}`);
      if (type === 'text' && stringOf(text).trim() === '')
        refuse(`${at}.tool_result.content.${index}.text: text content blocks must contain non-whitespace text`);
    });
}

/** All results of an assistant turn stand first in the next user message, and no result without its call. */
function checkToolPairs(said: readonly Said[]): void {
  said.forEach((message, place) => {
    if (message.role === 'assistant') checkAnswered(message, said[place + 1]);
    else checkResults(message, said[place - 1]);
  });
}

function callIdsOf(message: Said | undefined): string[] {
  return (message?.blocks ?? []).filter(({ type }) => type === 'tool_use').map(({ id }) => stringOf(id));
}

function checkAnswered(message: Said, next: Said | undefined): void {
  const calls = callIdsOf(message);
  if (new Set(calls).size !== calls.length) refuse('messages: `tool_use` ids must be unique');
  const results = (next?.blocks ?? []).filter(({ type }) => type === 'tool_result');
  const answered = new Set(results.map(({ tool_use_id }) => stringOf(tool_use_id)));
  const missing = calls.filter((id) => !answered.has(id));
  if (missing.length === 0) return;
  refuse(
    `messages.${message.index}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${missing.join(', ')}. ` +
      'Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
  );
}

function checkResults({ index, blocks }: Said, before: Said | undefined): void {
  const calls = new Set(callIdsOf(before));
  let other = false;
  blocks.forEach((block, at) => {
    if (block.type !== 'tool_result') {
      other = true;
      return;
    }
    const id = stringOf(block.tool_use_id);
    if (!calls.delete(id)) {
      refuse(
        `messages.${index}.content.${at}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${id}. ` +
          'Each `tool_result` block must have a corresponding `tool_use` block in the previous message.',
      );
    }
    if (other) refuse(`messages.${index}.content.${at}: \`tool_result\` blocks must come before other content in the message`);
  });
}

function checkTools(body: JsonObject): void {
  const names = new Set<string>();
  listOf(body.tools).forEach((tool, index) => {
    const { type, name, input_schema } = objectOf(tool);
    if (type !== undefined && type !== null && type !== 'custom') return;
    if (typeof name !== 'string' || !/^[a-zA-Z0-9_-]{1,128}$/.test(name)) {
      refuse(`tools.${index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'`);
    }
    if (names.has(name)) refuse('tools: Tool names must be unique.');
    names.add(name);
    if (!isObject(input_schema)) refuse(`tools.${index}.custom.input_schema: Field required`);
    if (objectOf(tool).strict === true) checkSubset(input_schema, `tools.${index}.custom.input_schema`);
    if (input_schema.type === undefined) refuse(`tools.${index}.custom.input_schema.type: Field required`);
    if (input_schema.type !== 'object') refuse(`tools.${index}.custom.input_schema.type: Input should be 'object'`);
    for (const word of ['oneOf', 'allOf', 'anyOf']) {
      if (input_schema[word] !== undefined)
        refuse(`tools.${index}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level`);
    }
  });
  const choice = objectOf(body.tool_choice);
  if (choice.type !== undefined && !['auto', 'any', 'tool', 'none'].includes(stringOf(choice.type))) {
    refuse(
      `tool_choice: Input tag '${stringOf(choice.type)}' found using 'type' does not match any of the expected tags: 'any', 'auto', 'none', 'tool'`,
    );
  }
  if ((choice.type === 'any' || choice.type === 'tool') && listOf(body.tools).length === 0)
    refuse('tool_choice.any: Tool choice requires tools to be specified.');
  if (
    choice.type === 'tool' &&
    !names.has(stringOf(choice.name)) &&
    !listOf(body.tools).some((tool) => objectOf(tool).name === choice.name)
  ) {
    refuse(`Tool '${stringOf(choice.name)}' not found in provided tools`);
  }
}

function checkFormat(body: JsonObject): void {
  const format = objectOf(objectOf(body.output_config).format ?? body.output_format);
  if (format.type === undefined) return;
  if (format.type !== 'json_schema' || !isObject(format.schema)) refuse('output_config.format: Field required');
  checkSubset(format.schema, 'output_config.format.schema');
}

function checkThinking(body: JsonObject, cap: number): void {
  const thinking = objectOf(body.thinking);
  const { type } = thinking;
  if (type === undefined || type === 'disabled' || type === 'between_tools') return;
  if (type !== 'enabled' && type !== 'adaptive') {
    refuse(
      `thinking: Input tag '${stringOf(type)}' found using 'type' does not match any of the expected tags: 'adaptive', 'disabled', 'enabled'`,
    );
  }
  if (type === 'enabled') {
    const budget = numberOf(thinking.budget_tokens);
    if (budget === undefined) refuse('thinking.enabled.budget_tokens: Field required');
    if (budget < 1024) refuse('thinking.enabled.budget_tokens: Input should be greater than or equal to 1024');
    if (budget >= cap) refuse('`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation.');
  }
  const choice = objectOf(body.tool_choice).type;
  if (type === 'enabled' && (choice === 'any' || choice === 'tool'))
    refuse('Thinking may not be enabled when tool_choice forces tool use.');
  const temperature = numberOf(body.temperature);
  if (temperature !== undefined && temperature !== 1)
    refuse('`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.');
}

function prompt({ body }: Turn): Prompt {
  const list = listOf(body.messages).map(objectOf);
  const names = new Map<string, string>();
  for (const block of list.flatMap(({ content }) => listOf(content).map(objectOf))) {
    if (block.type === 'tool_use') names.set(stringOf(block.id), stringOf(block.name));
  }
  const lastUser = list.findLast(({ role }) => role === 'user');
  const results = listOf(lastUser?.content)
    .map(objectOf)
    .filter(({ type }) => type === 'tool_result');
  const choice = objectOf(body.tool_choice);
  const thinking = objectOf(body.thinking).type;
  const format = objectOf(objectOf(body.output_config).format ?? body.output_format);
  return {
    text: `${JSON.stringify(body.system ?? '')}${JSON.stringify(body.messages)}`,
    lastUserText: contentText(lastUser?.content),
    tools: listOf(body.tools)
      .map(objectOf)
      .filter(({ type, name }) => (type === undefined || type === null || type === 'custom') && typeof name === 'string')
      .map((tool) => ({ name: stringOf(tool.name), custom: false, schema: objectOf(tool.input_schema) })),
    toolChoice:
      choice.type === 'none'
        ? 'none'
        : choice.type === 'any'
          ? 'required'
          : choice.type === 'tool'
            ? { name: stringOf(choice.name) }
            : 'auto',
    parallel: choice.disable_parallel_tool_use !== true,
    toolResults: results.map((block) => ({
      name: names.get(stringOf(block.tool_use_id)) ?? '',
      text: contentText(block.content),
    })),
    maxTokens: numberOf(body.max_tokens),
    stop: listOf(body.stop_sequences).map(stringOf),
    temperature: numberOf(body.temperature),
    reasoning: thinking === 'enabled' || thinking === 'adaptive' ? { raw: false, summary: true, opaque: true } : undefined,
    answerSchema: format.type === 'json_schema' ? objectOf(format.schema) : undefined,
    drawImage: false,
  };
}
