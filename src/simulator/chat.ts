/** The chat-completions upstream: what OpenAI (and DeepSeek, for its own models) refuses, and how a request is read. */
import { chatStream, chatWhole } from './chat-wire.ts';
import type { Dialect, Prompt, PromptTool, Turn } from './dialect.ts';
import { isArray, isObject, type JsonObject, type JsonValue, listOf, numberOf, objectOf, stringOf } from './json.ts';
import {
  CHAT_RANGES,
  checkFormat,
  checkLength,
  checkName,
  checkParameters,
  checkRanges,
  checkShared,
  refuse,
} from './openai-limits.ts';
import { openAiError } from './vendor-error.ts';

export const chat: Dialect = {
  check,
  prompt,
  stream: chatStream,
  whole: chatWhole,
  failure: openAiError,
  failureFrame: (
    _before,
    error = {
      error: { message: 'The server had an error while processing your request.', type: 'server_error', param: null, code: null },
    },
  ) => ({
    part: 'content',
    text: `data: ${JSON.stringify(error)}\n\n`,
  }),
  headers: (requestId) => ({ 'x-request-id': requestId, 'openai-version': '2020-10-01', 'openai-processing-ms': '12' }),
  streamType: 'text/event-stream; charset=utf-8',
};

const ROLES = new Set(['system', 'developer', 'user', 'assistant', 'tool', 'function']);

function check({ body, model, seals }: Turn): void {
  if (model === '') refuse('you must provide a model parameter', null);
  if (body.messages === undefined) refuse("Missing required parameter: 'messages'.", 'messages', 'missing_required_parameter');
  if (!isArray(body.messages)) {
    refuse(
      `Invalid type for 'messages': expected an array of objects, but got ${kindOf(body.messages)} instead.`,
      'messages',
      'invalid_type',
    );
  }
  if (body.messages.length === 0) {
    refuse(
      "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
      'messages',
      'empty_array',
    );
  }
  checkMessages(body.messages, body, model, seals);
  checkTools(body, model);
  checkRanges(body, CHAT_RANGES);
  checkShared(body);
  const format = objectOf(body.response_format);
  const read = JSON.stringify(body.messages);
  checkFormat({ type: format.type, said: objectOf(format.json_schema), at: 'response_format', read });
  const top = body.top_logprobs;
  if (top !== undefined && top !== null && body.logprobs !== true) {
    refuse("The 'top_logprobs' parameter is only allowed when 'logprobs' is enabled.", 'top_logprobs');
  }
  if (body.stream_options !== undefined && body.stream_options !== null && body.stream !== true) {
    refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.", 'stream_options');
  }
  if (isArray(body.stop) && body.stop.length > 4) {
    refuse("Invalid 'stop': array too long. Expected an array with maximum length 4.", 'stop', 'array_above_max_length');
  }
}

/** A router's model has a vendor of its own behind it, with other limits of ids and another idea of strict schemas. */
function isOfRouter(model: string): boolean {
  return model.includes('/');
}

function checkMessages(messages: readonly JsonValue[], body: JsonObject, model: string, seals: Turn['seals']): void {
  const isRouted = isOfRouter(model);
  /** Calls of the last assistant message that have no result yet. */
  let open = new Set<string>();
  messages.forEach((message, index) => {
    const at = `messages.[${index}]`;
    if (!isObject(message)) {
      refuse(
        `Invalid type for 'messages[${index}]': expected an object, but got ${kindOf(message)} instead.`,
        `messages[${index}]`,
        'invalid_type',
      );
    }
    const role = stringOf(message.role);
    if (!ROLES.has(role)) {
      refuse(
        `Invalid value: '${role}'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.`,
        `messages[${index}].role`,
        'invalid_value',
      );
    }
    if (role === 'tool') {
      if (!isRouted) checkLength(message.tool_call_id, 40, `messages[${index}].tool_call_id`);
      if (!open.delete(stringOf(message.tool_call_id))) {
        refuse(
          "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.",
          `${at}.role`,
        );
      }
    } else {
      refuseUnanswered(open, at);
      const calls = listOf(message.tool_calls).map(objectOf);
      calls.forEach((call, place) => {
        checkCall(call, `messages[${index}].tool_calls[${place}]`, isRouted);
      });
      open = new Set(calls.map(({ id }) => stringOf(id)));
      if (open.size < calls.length) refuse(`Duplicate tool_call ids in ${at}.`, `${at}.tool_calls`);
      if (open.has(''))
        refuse(
          `Missing required parameter: 'messages[${index}].tool_calls[0].id'.`,
          `messages[${index}].tool_calls[0].id`,
          'missing_required_parameter',
        );
    }
    checkContent(message, role, index);
    checkReasoningDetails(message, index, seals);
  });
  refuseUnanswered(open, `messages.[${messages.length - 1}]`);
  if (model.startsWith('deepseek') && wantsReasoning(body)) checkReasoningReplay(messages);
}

function checkCall(call: JsonObject, at: string, isRouted: boolean): void {
  if (!isRouted) checkLength(call.id, 40, `${at}.id`);
  const isCustom = call.type === 'custom';
  const inner = objectOf(isCustom ? call.custom : call.function);
  const [key, member] = isCustom ? ['custom', 'input'] : ['function', 'arguments'];
  checkName(inner.name, `${at}.${key}.name`);
  if (typeof inner[member] !== 'string')
    refuse(`Invalid type for '${at}.${key}.${member}': expected a string.`, `${at}.${key}.${member}`, 'invalid_type');
}

function refuseUnanswered(open: ReadonlySet<string>, at: string): void {
  if (open.size === 0) return;
  refuse(
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. " +
      `The following tool_call_ids did not have response messages: ${[...open].join(', ')}`,
    `${at}.role`,
  );
}

function checkContent(message: JsonObject, role: string, index: number): void {
  const { content } = message;
  const at = `messages[${index}].content`;
  const absent = content === undefined || content === null;
  if (absent) {
    const optional =
      role === 'assistant' &&
      (isArray(message.tool_calls) ||
        message.function_call !== undefined ||
        typeof message.refusal === 'string' ||
        message.audio !== undefined);
    const update = (role === 'system' || role === 'developer') && message.configuration_update !== undefined;
    if (!optional && !update) refuse(`Invalid value for 'content': expected a string, got null.`, `messages.[${index}].content`);
    return;
  }
  if (typeof content === 'string') return;
  if (!isArray(content))
    refuse(
      `Invalid type for '${at}': expected one of a string or array of objects, but got ${kindOf(content)} instead.`,
      at,
      'invalid_type',
    );
  if (content.length === 0)
    refuse(
      `Invalid '${at}': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
      at,
      'empty_array',
    );
  content.forEach((part, place) => {
    const type = stringOf(objectOf(part).type);
    const allowed = PARTS_OF.get(role) ?? PARTS;
    if (!allowed.has(type))
      refuse(
        `Invalid value: '${type}'. Supported values are: ${[...allowed].map((name) => `'${name}'`).join(', ')}.`,
        `${at}[${place}].type`,
        'invalid_value',
      );
    if (type === 'image_url' && !isObject(objectOf(part).image_url)) {
      refuse(
        `Invalid type for '${at}[${place}].image_url': expected an object, but got ${kindOf(objectOf(part).image_url)} instead.`,
        `${at}[${place}].image_url`,
        'invalid_type',
      );
    }
  });
}

const PARTS = new Set(['text', 'image_url', 'input_audio', 'file', 'video_url']);
const TEXT_ONLY: ReadonlySet<string> = new Set(['text']);
const PARTS_OF: ReadonlyMap<string, ReadonlySet<string>> = new Map([
  ['system', TEXT_ONLY],
  ['developer', TEXT_ONLY],
  ['tool', TEXT_ONLY],
  ['assistant', new Set(['text', 'refusal'])],
]);

/** A router hands these on to the vendor behind it, who accepts only its own. */
function checkReasoningDetails(message: JsonObject, index: number, seals: Turn['seals']): void {
  listOf(message.reasoning_details).forEach((detail, place) => {
    const { type, data, text, signature } = objectOf(detail);
    const at = `messages[${index}].reasoning_details[${place}]`;
    const forged =
      (type === 'reasoning.encrypted' && !seals.accepts('reasoning', '', stringOf(data))) ||
      (type === 'reasoning.text' && typeof signature === 'string' && !seals.accepts('thinking', stringOf(text), signature));
    if (forged) refuse(`The reasoning in ${at} could not be verified.`, at, 'invalid_encrypted_content');
  });
}

/** DeepSeek: a turn with tool calls must come back with the reasoning that led to them. */
function checkReasoningReplay(messages: readonly JsonValue[]): void {
  const start = messages.findLastIndex((message) => objectOf(message).role === 'user');
  for (const message of messages.slice(start + 1)) {
    const { role, tool_calls, reasoning_content } = objectOf(message);
    if (role === 'assistant' && isArray(tool_calls) && typeof reasoning_content !== 'string') {
      refuse(
        'Missing `reasoning_content` field in the assistant message that has tool calls.',
        'messages',
        'invalid_request_error',
      );
    }
  }
}

function checkTools(body: JsonObject, model: string): void {
  // A router's model has a vendor of its own behind it, with another idea of strict schemas.
  const isRouted = model.includes('/');
  listOf(body.tools).forEach((tool, index) => {
    const entry = objectOf(tool);
    const inner = entry.type === 'custom' ? entry.custom : entry.function;
    if (entry.type === 'function' || entry.type === 'custom') {
      checkName(objectOf(inner).name, `tools[${index}].${entry.type}.name`);
      if (entry.type === 'function' && !isRouted) checkParameters(objectOf(inner), `tools[${index}].function.parameters`);
    } else if (entry.type === undefined)
      refuse(`Missing required parameter: 'tools[${index}].type'.`, `tools[${index}].type`, 'missing_required_parameter');
  });
  if (
    body.tool_choice !== undefined &&
    body.tool_choice !== null &&
    listOf(body.tools).length === 0 &&
    body.tool_choice !== 'none' &&
    body.tool_choice !== 'auto'
  ) {
    refuse("Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.", 'tool_choice');
  }
  const { function: named, custom } = objectOf(body.tool_choice);
  const { name } = objectOf(named ?? custom);
  if (name !== undefined && !listOf(body.tools).some((tool) => toolOf(objectOf(tool)).some((each) => each.name === name)))
    refuse(`Tool choice '${stringOf(name)}' not found in 'tools' parameter.`, 'tool_choice');
  if (body.parallel_tool_calls !== undefined && body.parallel_tool_calls !== null && listOf(body.tools).length === 0)
    refuse("'parallel_tool_calls' is only allowed when 'tools' are specified.", 'parallel_tool_calls');
}

export function kindOf(value: JsonValue | undefined): string {
  if (value === undefined || value === null) return 'null';
  if (isArray(value)) return 'an array';
  if (isObject(value)) return 'an object';
  if (typeof value === 'number') return Number.isInteger(value) ? 'an integer' : 'a decimal';
  return typeof value === 'boolean' ? 'a boolean' : 'a string';
}

function wantsReasoning(body: JsonObject): boolean {
  const { reasoning } = body;
  if (isObject(reasoning)) return reasoning.effort !== 'none' && reasoning.enabled !== false && Object.keys(reasoning).length > 0;
  const thinking = objectOf(body.thinking).type;
  if (typeof thinking === 'string') return thinking !== 'disabled';
  return typeof body.reasoning_effort === 'string' && body.reasoning_effort !== 'none';
}

function prompt({ body }: Turn): Prompt {
  const messages = listOf(body.messages).map(objectOf);
  const lastUser = messages.findLastIndex(({ role }) => role === 'user');
  const names = new Map<string, string>();
  for (const message of messages) {
    for (const call of listOf(message.tool_calls).map(objectOf)) {
      names.set(stringOf(call.id), stringOf(objectOf(call.function ?? call.custom).name));
    }
  }
  const format = objectOf(body.response_format);
  return {
    text: JSON.stringify(body.messages),
    lastUserText: contentText(messages[lastUser]?.content),
    tools: listOf(body.tools).flatMap((tool) => toolOf(objectOf(tool))),
    toolChoice: choiceOf(body.tool_choice),
    parallel: body.parallel_tool_calls !== false,
    toolResults: messages
      .slice(lastUser + 1)
      .filter(({ role }) => role === 'tool')
      .map((message) => ({ name: names.get(stringOf(message.tool_call_id)) ?? '', text: contentText(message.content) })),
    maxTokens: numberOf(body.max_completion_tokens) ?? numberOf(body.max_tokens),
    stop: typeof body.stop === 'string' ? [body.stop] : listOf(body.stop).map(stringOf),
    seed: numberOf(body.seed),
    temperature: numberOf(body.temperature),
    topLogprobs: body.logprobs === true ? (numberOf(body.top_logprobs) ?? 0) : undefined,
    // A router shows details for its own `reasoning` object; elsewhere raw text stands in `reasoning_content`.
    reasoning: !wantsReasoning(body)
      ? undefined
      : isObject(body.reasoning)
        ? { raw: false, summary: true, opaque: true }
        : { raw: true, summary: false, opaque: false },
    answerSchema:
      format.type === 'json_schema'
        ? objectOf(objectOf(format.json_schema).schema)
        : format.type === 'json_object'
          ? {}
          : undefined,
    drawImage: listOf(body.modalities).includes('image'),
  };
}

export function contentText(content: JsonValue | undefined): string {
  if (typeof content === 'string') return content;
  return listOf(content)
    .map((part) => stringOf(objectOf(part).text))
    .join('');
}

function toolOf(tool: JsonObject): PromptTool[] {
  const custom = tool.type === 'custom';
  const inner = objectOf(custom ? tool.custom : tool.function);
  const name = stringOf(inner.name);
  return name === '' ? [] : [{ name, custom, schema: objectOf(inner.parameters) }];
}

function choiceOf(choice: JsonValue | undefined): Prompt['toolChoice'] {
  if (choice === 'none' || choice === 'required') return choice;
  const named = objectOf(choice);
  const name = stringOf(objectOf(named.function ?? named.custom).name);
  if (name !== '') return { name };
  return objectOf(named.allowed_tools).mode === 'required' ? 'required' : 'auto';
}
