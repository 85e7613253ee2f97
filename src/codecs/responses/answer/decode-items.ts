/**
 * Reads finished output items as canonical items, as `output_item.done`, the terminal event and a whole body have them. Knows the
 * shapes of items and nothing of streams. An item type without a canonical reading becomes a native item.
 */
import { NO_ARGUMENTS } from '../../tools/arguments.ts';
import type { ItemStatus, MediaItem, NativeItem, OutputItem, ReasoningItem, ToolCallItem } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import { fitCitations } from '../../answers/citations.ts';
import type { DecodeContext } from '../../codec.ts';
import { customToolOf } from '../../tools/freeform.ts';
import { readAnnotation } from '../annotations.ts';
import { logprobsOf, readLogprobs } from '../../answers/logprobs.ts';
import { joinBase64, mimeOfAudioFormat, parseDataUri, readBase64, sniffMime } from '../../media.ts';
import { writeForm } from '../opaque.ts';
import { IMAGE_FACTS, arrayOrEmpty, malformed, OPAQUE_MEMBERS, needString, nonEmptyString } from '../wire.ts';

const DIALECT = 'responses';
/** Between the raw texts of one reasoning item. */
export const PARAGRAPH = '\n\n';

/** `incomplete` only where the upstream says so: some leave `in_progress` or `generating` in finished items. */
export function statusOf(item: JsonObject): ItemStatus {
  return item['status'] === 'incomplete' ? 'incomplete' : 'completed';
}

/**
 * In an answer that was cut, an item is complete only where its status says so. Reasoning, which has no status, is where another
 * item follows.
 */
export function cutStatusOf(item: JsonObject, isLast: boolean): ItemStatus {
  if (item['type'] === 'reasoning' && !isLast) return statusOf(item);
  return item['status'] === 'completed' ? 'completed' : 'incomplete';
}

/** An item without deltas: an image, or a native item. */
export function readWholeItem(item: JsonObject): OutputItem {
  return item['type'] === 'image_generation_call' ? readImage(item) : nativeItem(item);
}

export function nativeItem(body: JsonObject): NativeItem {
  const id = nonEmptyString(body, 'id');
  return { kind: 'native', dialect: DIALECT, body, ...(id === undefined ? {} : { id }) };
}

/** One content part of a message; parts of unknown type stay native. */
export function readPart(part: JsonValue, message: JsonObject): OutputItem {
  if (!isObject(part)) throw malformed('content part');
  const id = nonEmptyString(message, 'id');
  const facts = id === undefined ? {} : { id };
  if (needString(part, 'type', 'content part') === 'refusal')
    return { kind: 'refusal', text: needString(part, 'refusal', 'refusal'), ...facts };
  if (part['type'] === 'output_audio') {
    return audioItem([needString(part, 'data', 'output audio')], nonEmptyString(part, 'transcript') ?? '', facts);
  }
  if (part['type'] !== 'output_text') return { kind: 'native', dialect: DIALECT, body: part, role: 'assistant', ...facts };
  const text = needString(part, 'text', 'output text');
  const citations = fitCitations(text, arrayOrEmpty(part, 'annotations', 'output text').map(readAnnotation));
  const logprobs = logprobsOf(text, readLogprobs(part['logprobs']));
  const phase = nonEmptyString(message, 'phase');
  return {
    kind: 'text',
    role: 'assistant',
    text,
    citations,
    ...(logprobs === undefined ? {} : { logprobs }),
    ...(phase === undefined ? {} : { phase }),
    ...facts,
  };
}

/** Texts of `content` or `summary` parts, in order; parts of another kind have none. */
function textsOf(item: JsonObject, key: 'content' | 'summary'): string[] {
  return arrayOrEmpty(item, key, 'reasoning item').flatMap((part) => {
    if (!isObject(part)) throw malformed('reasoning item');
    return part['text'] === undefined || part['text'] === null ? [] : [needString(part, 'text', 'reasoning item')];
  });
}

/** Parts of raw reasoning as one text, with an empty line between two. */
export function joinRaw(texts: readonly string[]): string {
  return texts.filter((text) => text !== '').join(PARAGRAPH);
}

/** Undefined where the item holds no reasoning of any kind. */
export function readReasoning(item: JsonObject, context: DecodeContext): ReasoningItem | undefined {
  const raw = joinRaw(textsOf(item, 'content'));
  const summary = textsOf(item, 'summary');
  const opaque = readOpaque(item, context);
  const hasSummary = summary.some((text) => text !== '');
  if (raw === '' && !hasSummary && opaque === undefined) return undefined;
  const id = nonEmptyString(item, 'id');
  return {
    kind: 'reasoning',
    ...(raw === '' ? {} : { raw }),
    ...(hasSummary ? { summary } : {}),
    ...(opaque === undefined ? {} : { opaque }),
    ...(id === undefined ? {} : { id }),
  };
}

/** The {@link OpaqueForm} of the value in that member of a reasoning item, as text. */
export function formOf(item: JsonObject, member: (typeof OPAQUE_MEMBERS)[number]): string | undefined {
  const { content } = item;
  const parts = Array.isArray(content) ? content.filter(isObject) : [];
  const raw = joinRaw(parts.map((part) => nonEmptyString(part, 'text') ?? ''));
  return writeForm({ member, format: nonEmptyString(item, 'format'), raw: raw === '' ? undefined : raw });
}

function readOpaque(item: JsonObject, context: DecodeContext): Opaque | undefined {
  const id = nonEmptyString(item, 'id');
  for (const member of OPAQUE_MEMBERS) {
    const value = nonEmptyString(item, member);
    if (value === undefined) continue;
    const form = formOf(item, member);
    return {
      owner: context.owner,
      value,
      ...(id === undefined ? {} : { itemId: id }),
      ...(form === undefined ? {} : { form }),
    };
  }
  return undefined;
}

/** What identifies a call; undefined while its call id or its name is unknown. */
export function callHead(
  item: JsonObject,
  context: DecodeContext,
): Pick<ToolCallItem, 'toolType' | 'callId' | 'tool' | 'id'> | undefined {
  const id = nonEmptyString(item, 'id');
  const callId = nonEmptyString(item, 'call_id');
  const name = nonEmptyString(item, 'name');
  if (callId === undefined || name === undefined) return undefined;
  const namespace = nonEmptyString(item, 'namespace');
  const tool = namespace === undefined ? context.toolNames.fromWire(name) : { name, namespace };
  const { dialect, tools } = context.request;
  // A custom tool of another dialect with an object schema was sent as a function.
  const isLowered = dialect !== DIALECT && customToolOf(tools, tool)?.inputSchema !== undefined;
  return {
    toolType: isLowered || item['type'] === 'custom_tool_call' ? 'custom' : 'function',
    callId,
    tool,
    ...(id === undefined ? {} : { id }),
  };
}

export function readCall(item: JsonObject, context: DecodeContext): ToolCallItem {
  const what = String(item['type']);
  const head = callHead(item, context);
  if (head === undefined) throw malformed(what);
  return { kind: 'toolCall', ...head, input: finalInput(item, needString(item, inputMember(item), what)) };
}

/** The types of tools that clients run. */
const CLIENT_TOOLS: ReadonlySet<unknown> = new Set(['function', 'custom', 'namespace', 'tool_search']);

/**
 * True for a custom call that the vendor ran itself, as xAI shows the steps of its searches: the response's `tools` have a tool
 * that vendors run, and no client tool of that name.
 */
export function ranByVendor(item: JsonObject, tools: JsonValue | undefined): boolean {
  if (item['type'] !== 'custom_tool_call' || !Array.isArray(tools)) return false;
  const declared = tools.filter(isObject);
  const isClients = ({ type, name }: JsonObject) =>
    type === 'namespace' || type === 'tool_search' || (type === 'custom' && name === item['name']);
  return !declared.some(isClients) && declared.some(({ type }) => !CLIENT_TOOLS.has(type));
}

export function inputMember(item: JsonObject): 'arguments' | 'input' {
  return item['type'] === 'custom_tool_call' ? 'input' : 'arguments';
}

/**
 * The arguments of a completed function call without any are `{}`, behind the white space that came, since every dialect wants an
 * object.
 */
export function finalInput(item: JsonObject, input: string): string {
  const isNone = input.trim() === '' && item['type'] === 'function_call' && statusOf(item) === 'completed';
  return isNone ? input + NO_ARGUMENTS : input;
}

/** Audio from pieces of base64. Only chat clients can be sent it; for others the encoder refuses it (spec rule 4). */
export function audioItem(pieces: readonly string[], transcript: string, facts: { readonly id?: string } = {}): MediaItem {
  const data = joinBase64(pieces);
  const reported = transcript === '' ? {} : { reported: { transcript } };
  const source = { from: 'inline', mime: sniffMime(data) ?? mimeOfAudioFormat('pcm16'), data } as const;
  return { kind: 'media', role: 'assistant', media: { type: 'audio', source, ...reported }, ...facts };
}

/** An image with its result is finished whatever its status says (Azure leaves `generating`); without one it is native. */
function readImage(item: JsonObject): MediaItem | NativeItem {
  const result = nonEmptyString(item, 'result');
  if (result === undefined) return nativeItem(item);
  const data = readBase64(result) ?? result;
  const inline = parseDataUri(result) ?? { mime: imageMime(nonEmptyString(item, 'output_format'), data), data };
  const facts = IMAGE_FACTS.flatMap((key) => {
    const value = item[key];
    return value === undefined || value === null ? [] : [[key, value] as const];
  });
  const id = nonEmptyString(item, 'id');
  return {
    kind: 'media',
    role: 'assistant',
    media: {
      type: 'image',
      source: { from: 'inline', ...inline },
      ...(facts.length === 0 ? {} : { reported: Object.fromEntries(facts) }),
    },
    ...(id === undefined ? {} : { id }),
  };
}

function imageMime(format: string | undefined, data: string): string {
  const seen = sniffMime(data);
  if (format === undefined) return seen?.startsWith('image/') === true ? seen : 'image/png';
  if (format === 'svg') return 'image/svg+xml';
  return `image/${format === 'jpg' ? 'jpeg' : format}`;
}
