/** The responses upstream: what OpenAI refuses, how a request is read, and the memory behind `previous_response_id`. */
import { contentText, kindOf } from './chat.ts';
import type { Dialect, Prompt, PromptTool, Turn } from './dialect.ts';
import { isArray, isObject, type JsonObject, type JsonValue, listOf, numberOf, objectOf, stringOf } from './json.ts';
import { compactWhole, type Remember, responsesStream, responsesWhole } from './responses-wire.ts';
import {
  checkFormat,
  checkLength,
  checkName,
  checkParameters,
  checkRanges,
  checkShared,
  refuse,
  RESPONSES_RANGES,
} from './openai-limits.ts';
import { openAiError } from './vendor-error.ts';

export const responses: Dialect = {
  check,
  prompt,
  stream: (reply, turn) => responsesStream(reply, turn, rememberer(turn)),
  whole: (reply, turn) => responsesWhole(reply, turn, rememberer(turn)),
  failure: openAiError,
  failureFrame: (
    before,
    error = {
      type: 'server_error',
      code: 'server_error',
      message: 'The server had an error while processing your request.',
      param: null,
    },
  ) => ({
    part: 'content',
    text: `event: error\ndata: ${JSON.stringify({ type: 'error', error, sequence_number: before })}\n\n`,
  }),
  headers: (requestId) => ({ 'x-request-id': requestId, 'openai-version': '2020-10-01', 'openai-processing-ms': '12' }),
  streamType: 'text/event-stream; charset=utf-8',
};

/** `POST /v1/responses/compact`. Throws {@link VendorError}. */
export function answerCompact(turn: Turn): string {
  check(turn);
  return compactWhole(historyOf(turn), turn);
}

function rememberer(turn: Turn): Remember {
  return (id, output) => {
    if (turn.body.store !== false) turn.memory.keep(id, historyOf(turn), output);
  };
}

/** What the model reads: the stored turn, then the input, with references put in. */
function historyOf({ body, memory }: Turn): JsonObject[] {
  const before = typeof body.previous_response_id === 'string' ? (memory.turn(body.previous_response_id) ?? []) : [];
  const input =
    typeof body.input === 'string' ? [{ type: 'message', role: 'user', content: body.input }] : listOf(body.input).map(objectOf);
  return [
    ...before,
    ...input.map((item) => (item.type === 'item_reference' ? (memory.item(stringOf(item.id))?.item ?? item) : item)),
  ];
}

const typeOf = (item: JsonObject) => stringOf(item.type) || (item.role === undefined ? '' : 'message');

function check(turn: Turn): void {
  const { body, memory, model } = turn;
  if (model === '') refuse("Missing required parameter: 'model'.", 'model', 'missing_required_parameter');
  const previous = body.previous_response_id;
  if (typeof previous === 'string' && memory.turn(previous) === undefined) {
    refuse(`Previous response with id '${previous}' not found.`, 'previous_response_id', 'previous_response_not_found');
  }
  // A stored prompt may bring the input, as an earlier answer may.
  const isBrought = body.input === undefined && (typeof previous === 'string' || isObject(body.prompt));
  if (typeof body.input !== 'string' && !isArray(body.input) && !isBrought) {
    if (body.input === undefined || body.input === null)
      refuse("Missing required parameter: 'input'.", 'input', 'missing_required_parameter');
    refuse(
      `Invalid type for 'input': expected one of an array of objects or string, but got ${kindOf(body.input)} instead.`,
      'input',
      'invalid_type',
    );
  }
  const isContinued = typeof previous === 'string' || isObject(body.prompt) || body.conversation !== undefined;
  if (isArray(body.input) && body.input.length === 0 && !isContinued) {
    refuse(
      `One of "input" or "previous_response_id" or 'prompt' or 'conversation' must be provided.`,
      null,
      'missing_required_parameter',
    );
  }
  for (const [index, item] of listOf(body.input).entries()) checkItem(objectOf(item), index, turn);
  checkOrder(historyOf(turn), turn);
  checkTools(body);
  checkRanges(body, RESPONSES_RANGES);
  checkShared(body);
  const format = objectOf(objectOf(body.text).format);
  checkFormat({ type: format.type, said: format, at: 'text.format', read: JSON.stringify(historyOf(turn)) });
}

const ROLES = new Set(['user', 'assistant', 'system', 'developer']);
const ITEMS = new Set(
  (
    'message function_call function_call_output custom_tool_call custom_tool_call_output reasoning item_reference compaction compaction_trigger ' +
    'configuration_update additional_tools tool_search_call tool_search_output web_search_call file_search_call code_interpreter_call ' +
    'image_generation_call computer_call computer_call_output local_shell_call local_shell_call_output shell_call shell_call_output ' +
    'apply_patch_call apply_patch_call_output mcp_list_tools mcp_call mcp_approval_request mcp_approval_response program program_output'
  ).split(' '),
);
const INPUT_PARTS = new Set(['input_text', 'input_image', 'input_file', 'input_audio', 'text']);
const OUTPUT_PARTS = new Set(['output_text', 'refusal']);

function checkItem(item: JsonObject, index: number, turn: Turn): void {
  const at = `input[${index}]`;
  const type = typeOf(item);
  if (!ITEMS.has(type))
    refuse(
      `Invalid value: '${type}'. Supported values are: ${[...ITEMS].map((name) => `'${name}'`).join(', ')}.`,
      at,
      'invalid_value',
    );
  if (type === 'message') checkMessage(item, at);
  const needed = NEEDED.get(type) ?? [];
  for (const field of needed) {
    if (item[field] === undefined)
      refuse(`Missing required parameter: '${at}.${field}'.`, `${at}.${field}`, 'missing_required_parameter');
  }
  for (const field of ['arguments', 'name', 'call_id']) {
    const value = item[field];
    if (value !== undefined && needed.includes(field) && typeof value !== 'string') {
      refuse(
        `Invalid type for '${at}.${field}': expected a string, but got ${kindOf(value)} instead.`,
        `${at}.${field}`,
        'invalid_type',
      );
    }
  }
  checkLength(item.call_id, 64, `${at}.call_id`);
  checkLength(item.id, 64, `${at}.id`);
  const prefix = type === 'item_reference' ? undefined : ID_PREFIXES.get(type);
  if (prefix !== undefined && typeof item.id === 'string' && !item.id.startsWith(prefix))
    refuse(`Invalid '${at}.id': '${item.id}'. Expected an ID that begins with '${prefix}'.`, `${at}.id`, 'invalid_value');
  if (type === 'reasoning' || type === 'compaction') checkOpaque(item, type, turn);
  if (type === 'item_reference' && turn.memory.item(stringOf(item.id)) === undefined) notPersisted(item);
}

const ID_PREFIXES = new Map([
  ['message', 'msg'],
  ['function_call', 'fc'],
  ['custom_tool_call', 'ctc'],
  ['reasoning', 'rs'],
]);

const NEEDED = new Map<string, readonly string[]>([
  ['function_call', ['call_id', 'name', 'arguments']],
  ['function_call_output', ['call_id', 'output']],
  ['custom_tool_call', ['call_id', 'name', 'input']],
  ['custom_tool_call_output', ['call_id', 'output']],
  ['reasoning', ['summary']],
  ['compaction', ['encrypted_content']],
]);

function checkMessage(item: JsonObject, at: string): void {
  const role = stringOf(item.role);
  if (!ROLES.has(role))
    refuse(
      `Invalid value: '${role}'. Supported values are: 'assistant', 'system', 'developer', and 'user'.`,
      at,
      'invalid_value',
    );
  if (item.content === undefined)
    refuse(`Missing required parameter: '${at}.content'.`, `${at}.content`, 'missing_required_parameter');
  const allowed = role === 'assistant' ? OUTPUT_PARTS : INPUT_PARTS;
  listOf(item.content).forEach((part, place) => {
    const type = stringOf(objectOf(part).type);
    const param = `${at}.content[${place}]`;
    if (!allowed.has(type)) {
      refuse(
        `Invalid value: '${type}'. Supported values are: ${[...allowed].map((name) => `'${name}'`).join(', ')}.`,
        param,
        'invalid_value',
      );
    }
    if (
      type === 'input_image' &&
      objectOf(part).image_url !== undefined &&
      typeof objectOf(part).image_url !== 'string' &&
      objectOf(part).image_url !== null
    ) {
      refuse(
        `Invalid type for '${param}.image_url': expected a string, but got ${kindOf(objectOf(part).image_url)} instead.`,
        `${param}.image_url`,
        'invalid_type',
      );
    }
  });
}

/** An encrypted value must be one that this vendor issued in a finished item; a bare id must have been stored. */
function checkOpaque(item: JsonObject, kind: 'reasoning' | 'compaction', turn: Turn): void {
  const value = item.encrypted_content;
  if (typeof value === 'string') {
    if (!turn.seals.accepts(kind, '', value)) {
      refuse(
        `The encrypted content ${value.slice(0, 4)}...${value.slice(-4)} could not be verified. Reason: Encrypted content could not be decrypted or parsed.`,
        null,
        'invalid_encrypted_content',
      );
    }
    return;
  }
  if (typeof item.id === 'string' && item.id !== '' && turn.memory.item(item.id) === undefined) notPersisted(item);
}

function notPersisted(item: JsonObject): never {
  refuse(
    `Item with id '${stringOf(item.id)}' not found. Items are not persisted when \`store\` is set to false. ` +
      'Try again with `store` set to true, or remove this item from your input.',
    'input',
    null,
    404,
  );
}

/** What the model says or has the vendor do: reasoning stands before one of them. */
const FOLLOWS_REASONING = new Set([
  ...[
    'message',
    'function_call',
    'custom_tool_call',
    'reasoning',
    'compaction',
    'tool_search_call',
    'mcp_call',
    'mcp_list_tools',
  ],
  ...['web_search_call', 'file_search_call', 'image_generation_call', 'code_interpreter_call', 'computer_call'],
  ...['mcp_approval_request', 'local_shell_call', 'shell_call', 'apply_patch_call', 'program'],
]);

/** Calls and their outputs, reasoning and what it led to. */
function checkOrder(history: readonly JsonObject[], turn: Turn): void {
  const open = new Map<string, string>();
  const searches = new Set<string>();
  history.forEach((item, index) => {
    const type = typeOf(item);
    const callId = stringOf(item.call_id);
    if (type === 'function_call' || type === 'custom_tool_call') open.set(callId, type);
    if (type === 'tool_search_call') searches.add(callId);
    if (type === 'function_call_output' || type === 'custom_tool_call_output') {
      const [label, wanted] =
        type === 'function_call_output' ? ['function call', 'function_call'] : ['custom tool call', 'custom_tool_call'];
      // A search that the client runs may be answered as a function is.
      const isSearched = type === 'function_call_output' && searches.has(callId);
      if (open.get(callId) !== wanted && !isSearched)
        refuse(`No tool call found for ${label} output with call_id ${callId}.`, 'input');
      open.delete(callId);
    }
    if (type === 'reasoning') {
      const next = history[index + 1];
      const follows =
        next !== undefined && FOLLOWS_REASONING.has(typeOf(next)) && (typeOf(next) !== 'message' || next.role === 'assistant');
      if (!follows)
        refuse(`Item '${stringOf(item.id)}' of type 'reasoning' was provided without its required following item.`, 'input');
    }
    checkCompanion(item, history[index - 1], turn);
  });
  const [waiting] = open.keys();
  if (waiting !== undefined)
    refuse(
      `No tool output found for ${open.get(waiting) === 'function_call' ? 'function' : 'custom tool'} call ${waiting}.`,
      'input',
    );
}

/** A stored item that came after reasoning must come back with that reasoning. */
function checkCompanion(item: JsonObject, before: JsonObject | undefined, { memory }: Turn): void {
  const id = stringOf(item.id);
  const needs = memory.item(id)?.needs;
  if (needs === undefined || before?.id === needs || before?.type === 'reasoning') return;
  refuse(`Item '${id}' of type '${typeOf(item)}' was provided without its required 'reasoning' item: '${needs}'.`, 'input');
}

/** Items that bring tools of their own. */
const LATER_TOOLS = new Set(['additional_tools', 'tool_search_output']);

function checkTools(body: JsonObject): void {
  const tools = listOf(body.tools).map(objectOf);
  tools.forEach((tool, index) => {
    if (tool.type !== 'function' && tool.type !== 'custom') return;
    checkName(tool.name, `tools[${index}].name`);
    if (tool.type === 'function') checkParameters(tool, `tools[${index}].parameters`);
  });
  const choice = objectOf(body.tool_choice);
  const isNamed = choice.type === 'function' || choice.type === 'custom';
  const later = listOf(body.input).some((item) => LATER_TOOLS.has(stringOf(objectOf(item).type)));
  const known = tools.flatMap((tool) => toolsOf(tool));
  if (isNamed && !later && !known.some(({ custom, name }) => custom === (choice.type === 'custom') && name === choice.name))
    refuse(`Tool choice '${stringOf(choice.type)}' not found in 'tools' parameter.`, 'tool_choice');
  if (body.tool_choice === 'required' && tools.length === 0)
    refuse("Tool choice 'required' must be specified with 'tools' parameter.", 'tool_choice');
}

function prompt(turn: Turn): Prompt {
  const { body } = turn;
  const history = historyOf(turn);
  const lastUser = history.findLastIndex(({ role }) => role === 'user');
  const names = new Map(
    history.map((item) => [stringOf(item.call_id), stringOf(item.name)]).filter(([, name]) => name !== '') as [string, string][],
  );
  const reasoning = objectOf(body.reasoning);
  const format = objectOf(objectOf(body.text).format);
  const wantsLogprobs = listOf(body.include).includes('message.output_text.logprobs');
  return {
    text: `${stringOf(body.instructions)}${JSON.stringify(history)}`,
    lastUserText: contentText(history[lastUser]?.content),
    tools: listOf(body.tools).flatMap((tool) => toolsOf(objectOf(tool))),
    toolChoice: choiceOf(body.tool_choice),
    parallel: body.parallel_tool_calls !== false,
    toolResults: history
      .slice(lastUser + 1)
      .filter((item) => typeOf(item).endsWith('_call_output'))
      .map((item) => ({ name: names.get(stringOf(item.call_id)) ?? '', text: contentText(item.output) })),
    maxTokens: numberOf(body.max_output_tokens),
    stop: [],
    temperature: numberOf(body.temperature),
    topLogprobs: wantsLogprobs ? (numberOf(body.top_logprobs) ?? 0) : undefined,
    reasoning: !(typeof reasoning.effort === 'string' ? reasoning.effort !== 'none' : typeof reasoning.summary === 'string')
      ? undefined
      : {
          raw: false,
          summary: typeof reasoning.summary === 'string',
          opaque: listOf(body.include).includes('reasoning.encrypted_content'),
        },
    answerSchema: format.type === 'json_schema' ? objectOf(format.schema) : format.type === 'json_object' ? {} : undefined,
    drawImage:
      listOf(body.tools).some((tool) => objectOf(tool).type === 'image_generation') &&
      objectOf(body.tool_choice).type === 'image_generation',
  };
}

function toolsOf(tool: JsonObject, namespace?: string): PromptTool[] {
  if (tool.type === 'namespace') return listOf(tool.tools).flatMap((inner) => toolsOf(objectOf(inner), stringOf(tool.name)));
  if ((tool.type !== 'function' && tool.type !== 'custom') || typeof tool.name !== 'string') return [];
  const custom = tool.type === 'custom';
  return [{ name: tool.name, custom, schema: objectOf(tool.parameters), ...(namespace === undefined ? {} : { namespace }) }];
}

function choiceOf(choice: JsonValue | undefined): Prompt['toolChoice'] {
  if (choice === 'none' || choice === 'required') return choice;
  if (!isObject(choice)) return 'auto';
  if (typeof choice.name === 'string' && (choice.type === 'function' || choice.type === 'custom')) return { name: choice.name };
  return choice.mode === 'required' ? 'required' : 'auto';
}
