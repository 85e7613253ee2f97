/**
 * Reads the input items of a responses request as canonical items. Item and part types without a canonical reading stay native,
 * in their place. Ids and statuses that clients make up are not checked.
 */
import { invalid } from '../../canonical/error.ts';
import {
  type CacheBreakpoint,
  type Item,
  isRole,
  type Media,
  type Part,
  ROLES,
  type ReasoningItem,
  type Role,
  type ToolName,
} from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { isEnvelope, type Opaque } from '../../canonical/opaque.ts';
import { fitCitations } from '../../answers/citations.ts';
import type { RequestContext } from '../../codec.ts';
import { parseDataUri, sniffMime } from '../../media.ts';
import { readPromptBreakpoint } from '../../requests/cache-breakpoints.ts';
import { objectAt, optionalArray, optionalString, requiredName, requiredString, wrongType } from '../../requests/members.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { readAnnotation } from '../annotations.ts';
import { joinRaw } from '../answer/decode-items.ts';
import { OPAQUE_MEMBERS, nonEmptyString } from '../wire.ts';
import { readMedia } from './read-media.ts';

const DIALECT = 'responses';

export interface InputReader {
  readonly context: RequestContext;
  /** The tool behind a name, with the namespace that a client may leave out. */
  readonly resolve: (name: string, namespace: string | undefined) => ToolName;
  /** Filled with the items that the input only refers to, by id. */
  readonly named: Map<string, JsonObject>;
  /** The exact text of a member of the body. */
  readonly slice: (...path: (string | number)[]) => string | undefined;
}

interface Place {
  readonly at: string;
  readonly turn: number;
}

/** One element of `input` (or of an `instructions` array, whose messages need no role). */
export function* readInputItem(
  reader: InputReader,
  value: JsonValue,
  path: readonly (string | number)[],
  turn: number,
  role?: Role,
): Steps<Item[]> {
  const place = placeOf(path, turn);
  const { at } = place;
  if (typeof value === 'string') return [textItem(value, role ?? 'user', place)];
  const item = objectAt(value, at);
  const type = optionalString(item, 'type', at) ?? implicitType(item, at, role);
  switch (type) {
    case 'message':
      return yield* readMessage(item, place, role);
    case 'function_call':
    case 'custom_tool_call':
      return [readCall(reader, item, type, place)];
    case 'function_call_output':
    case 'custom_tool_call_output':
      return [readResult(reader, item, type, [...path, 'output'], place)];
    case 'reasoning':
      return readReasoning(reader, item, place);
    case 'image_generation_call':
      return isReference(item) ? yield* readReference(reader, item, path, turn) : [readImageCall(item, place)];
    case 'item_reference':
      return yield* readReference(reader, item, path, turn);
    case 'additional_tools':
      return [];
    default:
      return [isPart(item) ? readContent(item, role ?? 'user', place) : nativeItem(item, place)];
  }
}

/** True for a part outside of a message: content of the user is never left out. */
export function isPart({ type }: JsonObject): boolean {
  return type === 'input_text' || type === 'input_image' || type === 'input_file' || type === 'input_audio';
}

/**
 * A reference to an item of an earlier answer (the AI SDK sends one wherever answers are stored): reads the item itself, so that
 * every protocol can be sent it. The text of the request keeps the reference for the upstream that stored the item.
 */
function* readReference(reader: InputReader, item: JsonObject, path: readonly (string | number)[], turn: number): Steps<Item[]> {
  const { id } = item;
  // Its content stands in the conversation already.
  if (typeof id === 'string' && reader.named.has(id)) return [];
  const named = typeof id === 'string' ? reader.context.item?.(id) : undefined;
  if (typeof id !== 'string' || named === undefined || isReference(named)) return [nativeItem(item, placeOf(path, turn))];
  reader.named.set(id, named);
  return yield* readInputItem(reader, named, path, turn);
}

/** True for an item that refers to another by its id. So does an image call without its result, as in the vendor's guide. */
export function isReference(item: JsonObject): boolean {
  switch (item['type']) {
    case undefined:
    case null:
      return item['role'] === undefined && typeof item['id'] === 'string';
    case 'image_generation_call':
      return nonEmptyString(item, 'result') === undefined && typeof item['id'] === 'string';
    default:
      return item['type'] === 'item_reference';
  }
}

/**
 * True for an item that asks for a compaction in place of an answer. It asks as the last item alone: behind it stands what came
 * of it, in a conversation that goes on.
 */
export function isTrigger(item: JsonValue | undefined): boolean {
  return isObject(item) && item['type'] === 'compaction_trigger';
}

function placeOf(path: readonly (string | number)[], turn: number): Place {
  return {
    at: path.reduce<string>((text, step) => (typeof step === 'number' ? `${text}[${step}]` : `${text}${step}`), ''),
    turn,
  };
}

function implicitType(item: JsonObject, at: string, role: Role | undefined): string {
  if (item['role'] !== undefined || role !== undefined) return 'message';
  if (typeof item['id'] === 'string') return 'item_reference';
  throw invalid(`${at}.role`, `${at} has neither a role nor a type.`);
}

function nativeItem(body: JsonObject, place: Place): Item {
  const { output } = body;
  // The screenshot of a computer call may be a private file.
  const isFile = isObject(output) && typeof output['file_id'] === 'string';
  const scoped = isFile ? { referenceAt: `${place.at}.output.file_id` } : {};
  return { kind: 'native', dialect: DIALECT, body, ...scoped, ...idOf(body), ...place };
}

function idOf(item: JsonObject): { id?: string } {
  return typeof item['id'] === 'string' && item['id'] !== '' ? { id: item['id'] } : {};
}

export function textItem(text: string, role: Role, place: Place): Item {
  return { kind: 'text', role, text, citations: [], ...place };
}

function* readMessage(item: JsonObject, place: Place, fallback: Role | undefined): Steps<Item[]> {
  const role = item['role'] ?? fallback;
  if (!isRole(role)) throw invalid(`${place.at}.role`, `${place.at}.role must be one of ${ROLES.join(', ')}.`);
  const { content } = item;
  const facts = { ...idOf(item), ...phaseOf(item, place.at), ...place };
  if (typeof content === 'string') return [{ kind: 'text', role, text: content, citations: [], ...facts }];
  if (!Array.isArray(content)) throw wrongType(`${place.at}.content`, 'a string or an array of parts');
  const items: Item[] = [];
  for (const [index, part] of content.entries()) {
    if (endsStep(index)) yield;
    items.push(readContent(part, role, { ...facts, at: `${place.at}.content[${index}]` }));
  }
  return items;
}

function phaseOf(item: JsonObject, at: string): { phase?: string } {
  const phase = optionalString(item, 'phase', at);
  return phase === undefined ? {} : { phase };
}

type Facts = Place & { readonly id?: string; readonly phase?: string };

function readContent(value: JsonValue, role: Role, facts: Facts): Item {
  const { phase, ...rest } = facts;
  const textFacts = phase === undefined ? rest : { ...rest, phase };
  if (typeof value === 'string') return { kind: 'text', role, text: value, citations: [], ...textFacts };
  const part = objectAt(value, facts.at);
  const breakpoint = readPromptBreakpoint(part, facts.at);
  const item = readPart(part, role, facts);
  return breakpoint === undefined ? item : { ...item, breakpoint };
}

function readPart(part: JsonObject, role: Role, facts: Facts): Item {
  const { phase, ...rest } = facts;
  const textFacts = phase === undefined ? rest : { ...rest, phase };
  switch (requiredName(part, 'type', facts.at)) {
    case 'input_text':
    case 'output_text':
    case 'text': {
      const text = requiredString(part, 'text', facts.at);
      const notes = Array.isArray(part['annotations']) ? part['annotations'].filter(isObject) : [];
      return { kind: 'text', role, text, citations: fitCitations(text, notes.map(readAnnotation)), ...textFacts };
    }
    case 'refusal':
      return { kind: 'refusal', text: requiredString(part, 'refusal', facts.at), ...rest };
    default: {
      const media = readMedia(part, facts.at);
      if (media !== undefined) return { kind: 'media', role, media, ...rest };
      return { kind: 'native', dialect: DIALECT, body: part, role, ...rest };
    }
  }
}

function readCall(reader: InputReader, item: JsonObject, type: string, place: Place): Item {
  const isCustom = type === 'custom_tool_call';
  const namespace = optionalString(item, 'namespace', place.at);
  return {
    kind: 'toolCall',
    toolType: isCustom ? 'custom' : 'function',
    callId: requiredName(item, 'call_id', place.at),
    tool: reader.resolve(requiredName(item, 'name', place.at), namespace),
    input: requiredString(item, isCustom ? 'input' : 'arguments', place.at),
    ...idOf(item),
    ...place,
  };
}

function readResult(reader: InputReader, item: JsonObject, type: string, path: readonly (string | number)[], place: Place): Item {
  const { output } = item;
  if (output === undefined) throw invalid(`${place.at}.output`, `${place.at}.output is required.`);
  const parts = Array.isArray(output) ? readParts(output, `${place.at}.output`) : undefined;
  // Other JSON (known failure R11) is kept as the text that the client wrote.
  const text = typeof output === 'string' ? output : (reader.slice(...path) ?? JSON.stringify(output));
  return {
    kind: 'toolResult',
    toolType: type === 'custom_tool_call_output' ? 'custom' : 'function',
    callId: requiredName(item, 'call_id', place.at),
    content: parts ?? [{ kind: 'text', text }],
    isError: false,
    ...(parts === undefined ? {} : lastBreakpoint(output, `${place.at}.output`)),
    ...idOf(item),
    ...place,
  };
}

/** The cache breakpoint of a result, whichever of its parts holds it. */
function lastBreakpoint(output: JsonValue, at: string): { breakpoint?: CacheBreakpoint } {
  const parts = Array.isArray(output) ? output : [];
  const found = parts.map((part: JsonValue, index) =>
    isObject(part) ? readPromptBreakpoint(part, `${at}[${index}]`) : undefined,
  );
  const breakpoint = found.findLast((each) => each !== undefined);
  return breakpoint === undefined ? {} : { breakpoint };
}

/** Content parts of a result; undefined where the array is some other JSON. */
function readParts(output: readonly JsonValue[], at: string): Part[] | undefined {
  const parts: Part[] = [];
  for (const [index, part] of output.entries()) {
    if (typeof part === 'string') {
      parts.push({ kind: 'text', text: part });
      continue;
    }
    if (!isObject(part) || typeof part['type'] !== 'string') return undefined;
    const { type, text } = part;
    if ((type === 'input_text' || type === 'output_text' || type === 'text') && typeof text === 'string') {
      parts.push({ kind: 'text', text });
      continue;
    }
    const media = readMedia(part, `${at}[${index}]`);
    if (media === undefined) return undefined;
    parts.push({ kind: 'media', media });
  }
  return parts;
}

function readReasoning(reader: InputReader, item: JsonObject, place: Place): Item[] {
  const summary = textsOf(item, 'summary', place.at);
  const contents = textsOf(item, 'content', place.at);
  const raw = joinRaw(contents.length === 0 ? [optionalString(item, 'text', place.at) ?? ''] : contents);
  const opaque = readOpaque(reader, item, place.at);
  // An item whose envelope does not open is dropped (semantics 9.2.3, 9.3.1).
  if (opaque === undefined && OPAQUE_MEMBERS.some((member) => stringIn(item, member))) return [];
  const reasoning: ReasoningItem = {
    kind: 'reasoning',
    ...(raw === '' ? {} : { raw }),
    ...(summary.length === 0 ? {} : { summary }),
    ...(opaque === undefined ? {} : { opaque }),
    ...idOf(item),
    ...place,
  };
  return [reasoning];
}

function stringIn(item: JsonObject, member: string): boolean {
  return typeof item[member] === 'string' && item[member] !== '';
}

function textsOf(item: JsonObject, key: string, at: string): string[] {
  return (optionalArray(item, key, at) ?? []).map((part, index) => {
    const place = `${at}.${key}[${index}]`;
    return requiredString(objectAt(part, place), 'text', place);
  });
}

/** The value in an envelope, or a vendor's own value; undefined for an envelope that does not open. */
function readOpaque(reader: InputReader, item: JsonObject, at: string): Opaque | undefined {
  for (const member of OPAQUE_MEMBERS) {
    const value = optionalString(item, member, at);
    if (value === undefined || value === '') continue;
    if (isEnvelope(value)) return reader.context.open(value);
    const id = idOf(item).id;
    return { owner: { client: DIALECT }, value, ...(id === undefined ? {} : { itemId: id }) };
  }
  return undefined;
}

function readImageCall(item: JsonObject, place: Place): Item {
  const result = optionalString(item, 'result', place.at);
  if (result === undefined || result === '') return nativeItem(item, place);
  const inline = parseDataUri(result) ?? { mime: sniffMime(result) ?? 'image/png', data: result };
  const media: Media = { type: 'image', source: { from: 'inline', ...inline }, at: place.at };
  return { kind: 'media', role: 'assistant', media, ...idOf(item), ...place };
}
