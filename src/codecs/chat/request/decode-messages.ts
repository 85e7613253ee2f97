/** Decodes the messages of a chat request into items, in order. Knows every role. */
import { callArguments, NO_ARGUMENTS } from '../../tools/arguments.ts';
import { append } from '../../append.ts';
import { invalid } from '../../canonical/error.ts';
import type { CacheBreakpoint, Item, ToolCallItem } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { RequestContext } from '../../codec.ts';
import { type JsonPath, jsonSlicer } from '../../json/text.ts';
import { readCacheControl } from '../../requests/cache-breakpoints.ts';
import { arrayAt, objectAt, optionalString, present, requiredString } from '../../requests/members.ts';
import { callOpaque, signatureOf, imageSignatureId, type SignedText, signTexts, UNKNOWN_RANGE } from '../opaque.ts';
import { HistoryReasoning, readOpaque } from './decode-reasoning.ts';
import { readImage } from '../wire.ts';
import { breakpointOf, readContent, readResultParts } from './decode-parts.ts';
import { endsStep, type Steps } from '../../steps.ts';

/** Reads `messages`; `text` is the exact body. Throws `invalid_request` with the path of what is wrong. */
export function* readMessages(value: JsonValue | undefined, text: string, context: RequestContext): Steps<Item[]> {
  if (!present(value)) throw invalid('messages', "Missing required parameter: 'messages'.");
  const messages = arrayAt(value, 'messages');
  if (messages.length === 0) throw invalid('messages', "'messages' must not be empty.");
  const reader = new MessageReader(text, context);
  for (const [turn, message] of messages.entries()) {
    if (endsStep(turn)) yield;
    yield* reader.read(objectAt(message, `messages[${turn}]`), turn);
  }
  return reader.items;
}

class MessageReader {
  readonly items: Item[] = [];
  readonly #slice: (path: JsonPath) => string | undefined;
  readonly #context: RequestContext;
  readonly #toolTypes = new Map<string, ToolCallItem['toolType']>();
  /**
   * How often each deprecated call was made, by name. These calls have no ids: each gets one, which the next result of that name
   * shares.
   */
  readonly #legacyCalls = new Map<string, number>();

  constructor(text: string, context: RequestContext) {
    this.#slice = jsonSlicer(text);
    this.#context = context;
  }

  *read(message: JsonObject, turn: number): Steps<void> {
    const from = this.items.length;
    yield* this.#read(message, turn);
    this.#markLast(from, readCacheControl(message, `messages[${turn}]`));
  }

  /** A cache breakpoint of the whole message belongs to its last item. */
  #markLast(from: number, breakpoint: CacheBreakpoint | undefined): void {
    const last = this.items.at(-1);
    if (last === undefined || this.items.length === from || breakpoint === undefined) return;
    this.items[this.items.length - 1] = { ...last, breakpoint };
  }

  *#read(message: JsonObject, turn: number): Steps<void> {
    const at = `messages[${turn}]`;
    const role = requiredString(message, 'role', at);
    if (isObject(message['configuration_update']) || role === 'configuration_update') {
      const itemRole = role === 'developer' ? 'developer' : 'system';
      this.items.push({ kind: 'native', dialect: 'chat', role: itemRole, body: message, at, turn });
      const { content } = message;
      if (present(content) && content !== '')
        append(this.items, yield* readContent(content, `${at}.content`, { role: itemRole, turn }));
      return;
    }
    switch (role) {
      case 'system':
      case 'developer':
      case 'user':
        append(this.items, yield* readContent(message['content'], `${at}.content`, { role, turn }));
        return;
      case 'assistant':
        yield* this.#assistant(message, turn, at);
        return;
      case 'tool':
        yield* this.#result(requiredString(message, 'tool_call_id', at), message, turn, at);
        return;
      case 'function':
        yield* this.#result(this.#legacyId(requiredString(message, 'name', at)), message, turn, at);
        return;
      default:
        throw invalid(`${at}.role`, `'${at}.role' must be one of system, developer, user, assistant, tool and function.`);
    }
  }

  *#result(callId: string, message: JsonObject, turn: number, at: string): Steps<void> {
    if (callId === '') throw invalid(`${at}.tool_call_id`, `'${at}.tool_call_id' must not be empty.`);
    const toolType = this.#toolTypes.get(callId) ?? 'function';
    const content = yield* readResultParts(message['content'], `${at}.content`);
    const breakpoint = breakpointIn(message['content'], `${at}.content`);
    const marked = breakpoint === undefined ? {} : { breakpoint };
    this.items.push({ kind: 'toolResult', toolType, callId, content, isError: false, at, turn, ...marked });
  }

  *#assistant(message: JsonObject, turn: number, at: string): Steps<void> {
    const calls = yield* this.#calls(message, turn, at);
    const reasoning = yield* HistoryReasoning.read(message, at, turn, this.#context);
    const from = this.items.length;
    append(this.items, reasoning.items());
    if (present(message['content'])) {
      const content = yield* readContent(message['content'], `${at}.content`, { role: 'assistant', turn });
      append(this.items, signTexts(content, this.#signedTexts(message, reasoning)));
    }
    const refusal = optionalString(message, 'refusal', at);
    if (refusal !== undefined && refusal !== '') this.items.push({ kind: 'refusal', text: refusal, at: `${at}.refusal`, turn });
    if (isObject(message['audio'])) {
      // An earlier audio of the upstream, by its id, for upstreams of the same dialect only.
      this.items.push({
        kind: 'native',
        dialect: 'chat',
        role: 'assistant',
        body: { audio: message['audio'] },
        at: `${at}.audio`,
        turn,
      });
    }
    for (const [index, image] of (present(message['images']) ? arrayAt(message['images'], `${at}.images`) : []).entries()) {
      if (endsStep(index)) yield;
      const path = `${at}.images[${index}]`;
      const body = objectAt(image, path);
      requiredString(objectAt(body['image_url'], `${path}.image_url`), 'url', `${path}.image_url`);
      this.items.push({ kind: 'media', role: 'assistant', media: { ...readImage(body), at: path }, at: path, turn });
    }
    this.#signImages(from, reasoning);
    for (const call of calls) {
      const opaque = reasoning.signatureOf(call.callId);
      this.items.push(opaque === undefined ? call : { ...call, opaque });
    }
  }

  #signedTexts(message: JsonObject, reasoning: HistoryReasoning): readonly SignedText[] {
    if (reasoning.signedTexts.length > 0) return reasoning.signedTexts;
    const opaque = readOpaque(signatureOf(message), this.#context, (raw) => callOpaque(raw, { client: 'chat' }));
    return opaque === undefined ? [] : [{ ...UNKNOWN_RANGE, opaque }];
  }

  /** Gives each image of the message the signature with its number. `from`: the index of the first item of the message. */
  #signImages(from: number, reasoning: HistoryReasoning): void {
    let image = 0;
    for (let index = from; index < this.items.length; index++) {
      const item = this.items[index];
      if (item?.kind !== 'media' || item.media.type !== 'image') continue;
      const opaque = reasoning.signatureOf(imageSignatureId(image++));
      if (opaque !== undefined) this.items[index] = { ...item, opaque };
    }
  }

  *#calls(message: JsonObject, turn: number, at: string): Steps<ToolCallItem[]> {
    const legacy = message['function_call'];
    const modern = present(message['tool_calls']) ? arrayAt(message['tool_calls'], `${at}.tool_calls`) : [];
    if (modern.length === 0) {
      if (!present(legacy)) return [];
      const body = objectAt(legacy, `${at}.function_call`);
      const name = requiredString(body, 'name', `${at}.function_call`);
      const input = readArguments(body, `${at}.function_call`, () =>
        this.#slice(['messages', turn, 'function_call', 'arguments']),
      );
      this.#legacyCalls.set(name, (this.#legacyCalls.get(name) ?? 0) + 1);
      const callId = this.#legacyId(name);
      return [{ kind: 'toolCall', toolType: 'function', callId, tool: { name }, input, at: `${at}.function_call`, turn }];
    }
    const calls: ToolCallItem[] = [];
    for (const [index, value] of modern.entries()) {
      if (endsStep(index)) yield;
      const path = `${at}.tool_calls[${index}]`;
      const inBody = ['messages', turn, 'tool_calls', index, 'function', 'arguments'];
      const call = readCall(objectAt(value, path), path, turn, () => this.#slice(inBody));
      this.#toolTypes.set(call.callId, call.toolType);
      const opaque = readOpaque(signatureOf(value), this.#context, (raw) => callOpaque(raw, { client: 'chat' }));
      calls.push(opaque === undefined ? call : { ...call, opaque });
    }
    return calls;
  }

  #legacyId(name: string): string {
    const count = this.#legacyCalls.get(name) ?? 1;
    return count === 1 ? `legacy_function:${name}` : `legacy_function:${name}:${count}`;
  }
}

/** The cache breakpoint of a result, whichever of its parts holds it. */
function breakpointIn(content: JsonValue | undefined, at: string): CacheBreakpoint | undefined {
  if (!Array.isArray(content)) return undefined;
  const found = content.map((part: JsonValue, index) => (isObject(part) ? breakpointOf(part, `${at}[${index}]`) : undefined));
  return found.findLast((each) => each !== undefined);
}

/** `slice` returns the exact text of the arguments. */
function readCall(call: JsonObject, at: string, turn: number, slice: () => string | undefined): ToolCallItem {
  const callId = requiredString(call, 'id', at);
  if (callId === '') throw invalid(`${at}.id`, `'${at}.id' must not be empty.`);
  if (call['type'] === 'custom') {
    const body = objectAt(call['custom'], `${at}.custom`);
    const name = requiredString(body, 'name', `${at}.custom`);
    const input = requiredString(body, 'input', `${at}.custom`);
    return { kind: 'toolCall', toolType: 'custom', callId, tool: { name }, input, at, turn };
  }
  if (present(call['type']) && call['type'] !== 'function') {
    throw invalid(`${at}.type`, `'${at}.type' must be "function" or "custom".`);
  }
  const body = objectAt(call['function'], `${at}.function`);
  const name = requiredString(body, 'name', `${at}.function`);
  const input = readArguments(body, `${at}.function`, slice);
  return { kind: 'toolCall', toolType: 'function', callId, tool: { name }, input, at, turn };
}

/**
 * Absent and "" mean a call without arguments. Some vendors (Mistral, Ollama) also take the object itself, whose text is kept as
 * it is.
 */
function readArguments(body: JsonObject, at: string, slice: () => string | undefined): string {
  if (isObject(body['arguments'])) return slice() ?? NO_ARGUMENTS;
  return callArguments(optionalString(body, 'arguments', at) ?? '');
}
