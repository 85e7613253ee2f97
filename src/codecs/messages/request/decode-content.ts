/**
 * Reads the conversation of a messages request as canonical items: system, messages and their blocks, in order. Keeps the path of
 * each item for errors and its turn for grouping.
 */
import { NO_ARGUMENTS } from '../../tools/arguments.ts';
import { append } from '../../append.ts';
import { invalid } from '../../canonical/error.ts';
import {
  type Citation,
  hasOpaque,
  type Item,
  type ItemFacts,
  isRole,
  type Media,
  type MediaSource,
  type NativeItem,
  type Part,
  type Role,
} from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { isEnvelope, type Opaque } from '../../canonical/opaque.ts';
import type { RequestContext } from '../../codec.ts';
import { type JsonPath, jsonSlicer } from '../../json/text.ts';
import { sourceOfUrl } from '../../media.ts';
import {
  objectAt,
  optionalArray,
  optionalBoolean,
  optionalString,
  requiredName,
  requiredString,
  wrongType,
} from '../../requests/members.ts';
import { readCacheControl } from '../../requests/cache-breakpoints.ts';
import { UNSIGNED, unsignedReasoning } from '../message-parts.ts';
import { REDACTED } from '../opaque.ts';
import { restoreSignatures } from './decode-signatures.ts';
import { clearedBefore, isForOneTurn, toolChange } from './decode-changes.ts';
import { endsStep, type Steps } from '../../steps.ts';

/** Where a block stands. */
interface Place {
  readonly role: Role;
  readonly turn: number;
  /** Path for errors, and the same path for slicing the exact text. */
  readonly at: string;
  readonly path: JsonPath;
}

export class ConversationReader {
  readonly #slice: (path: JsonPath) => string | undefined;
  readonly #context: RequestContext;

  /** `text` is the exact body. */
  constructor(text: string, context: RequestContext) {
    this.#slice = jsonSlicer(text);
    this.#context = context;
  }

  /** Turn 0 is `system`, turn n the n-th message. */
  *read(body: JsonObject): Steps<Item[]> {
    const items: Item[] = [];
    const { system } = body;
    if (system !== undefined && system !== null) {
      yield* this.#content(system, { role: 'system', turn: 0, at: 'system', path: ['system'] }, items);
    }
    const messages = body['messages'];
    if (!Array.isArray(messages)) throw wrongType('messages', 'an array');
    if (messages.length === 0) throw invalid('messages', 'messages must hold at least one message.');
    const cleared = clearedBefore(messages);
    yield;
    for (const [index, message] of messages.entries()) {
      if (endsStep(index)) yield;
      const read = yield* this.#message(message, index);
      if (index > cleared || !isForOneTurn(message)) append(items, read);
    }
    return items;
  }

  *#message(value: JsonValue, index: number): Steps<Item[]> {
    const at = `messages[${index}]`;
    const message = objectAt(value, at);
    const role = requiredString(message, 'role', at);
    if (!isRole(role)) throw wrongType(`${at}.role`, 'user, assistant or system');
    const content = message['content'];
    // A system message without content may set options alone (beta).
    if ((content === undefined || content === null) && role === 'system') return [];
    const items: Item[] = [];
    yield* this.#content(content, { role, turn: index + 1, at: `${at}.content`, path: ['messages', index, 'content'] }, items);
    return role === 'assistant' ? restoreSignatures(items) : items;
  }

  *#content(content: JsonValue | undefined, place: Place, items: Item[]): Steps<void> {
    if (typeof content === 'string') {
      if (content !== '')
        items.push({ kind: 'text', role: place.role, text: content, citations: [], turn: place.turn, at: place.at });
      return;
    }
    if (!Array.isArray(content)) throw wrongType(place.at, 'a string or an array of blocks');
    /** The type of the block that gave the last item. */
    let before: JsonValue | undefined;
    for (const [index, value] of content.entries()) {
      if (endsStep(index)) yield;
      const inner = { ...place, at: `${place.at}[${index}]`, path: [...place.path, index] };
      const block = objectAt(value, inner.at);
      const read = this.#block(block, inner);
      if (read.length === 0) continue;
      if (before === 'compaction' && block['type'] === 'text') endParagraph(items);
      append(items, read);
      before = block['type'];
      if (read.some(hasOpaque)) yield;
    }
  }

  #block(block: JsonObject, place: Place): Item[] {
    const { at, role, turn } = place;
    const breakpoint = readCacheControl(block, at);
    const facts: ItemFacts = { turn, at, ...(breakpoint === undefined ? {} : { breakpoint }) };
    const type = requiredString(block, 'type', at);
    if (role === 'system' && turn === 0 && type !== 'text') throw wrongType(`${at}.type`, 'text');
    switch (type) {
      case 'text':
        return textItems(block, role, at, facts);
      case 'image':
        return [{ kind: 'media', role, media: imageOf(block, at), ...facts }];
      case 'document':
        return documentParts(block, at).map((part) => itemOf(part, role, facts));
      case 'search_result':
        return [{ kind: 'text', role, text: searchResultText(block, at), citations: [], ...facts }];
      case 'tool_use':
        return [this.#toolUse(block, place, facts)];
      case 'tool_result':
        return [toolResult(block, place, facts)];
      case 'thinking':
        return this.#thinking(block, at, facts);
      case 'redacted_thinking':
        return this.#redacted(block, at, facts);
      case 'compaction':
        return [compaction(block, role, facts)];
      case 'container_upload':
        return [{ ...nativeItem(block, role, facts), referenceAt: `${at}.file_id` }];
      default:
        return role === 'system' && toolChange(block) !== undefined ? [] : [nativeItem(block, role, facts)];
    }
  }

  #thinking(block: JsonObject, at: string, facts: ItemFacts): Item[] {
    const thinking = optionalString(block, 'thinking', at) ?? '';
    const signature = optionalString(block, 'signature', at) ?? '';
    const opaque = this.#opaque(signature, undefined);
    if (opaque?.form === UNSIGNED) {
      const held = unsignedReasoning(opaque.value);
      const isHeld = held.raw !== undefined || held.summary !== undefined;
      if (!isHeld && thinking === '') return [];
      return [{ kind: 'reasoning', ...(isHeld ? held : { summary: [thinking] }), ...facts }];
    }
    // An item whose envelope does not open is dropped (semantics 9.2.3, 9.3.1).
    if (opaque === undefined && (thinking === '' || signature !== '')) return [];
    const summary = thinking === '' ? {} : { summary: [thinking] };
    return [{ kind: 'reasoning', ...summary, ...(opaque === undefined ? {} : { opaque }), ...facts }];
  }

  #redacted(block: JsonObject, at: string, facts: ItemFacts): Item[] {
    const opaque = this.#opaque(requiredString(block, 'data', at), REDACTED);
    return opaque === undefined ? [] : [{ kind: 'reasoning', opaque, ...facts }];
  }

  #toolUse(block: JsonObject, place: Place, facts: ItemFacts): Item {
    const { at } = place;
    if (place.role !== 'assistant') throw invalid(`${at}.type`, 'A tool_use belongs in an assistant message.');
    const callId = requiredName(block, 'id', at);
    const name = requiredName(block, 'name', at);
    const input = block['input'];
    if (input !== undefined && input !== null && input !== '' && !isObject(input)) {
      throw wrongType(`${at}.input`, 'an object');
    }
    const text = isObject(input) ? this.#slice([...place.path, 'input']) : undefined;
    return { kind: 'toolCall', toolType: 'function', callId, tool: { name }, input: text ?? NO_ARGUMENTS, ...facts };
  }

  /** Opens an envelope, or drops it. Any other value is a vendor's own, which the client got elsewhere. */
  #opaque(value: string | undefined, form: string | undefined): Opaque | undefined {
    if (value === undefined || value === '') return undefined;
    if (isEnvelope(value)) return this.#context.open(value);
    return { owner: { client: 'messages' }, value, ...(form === undefined ? {} : { form }) };
  }
}

function textItems(block: JsonObject, role: Role, at: string, facts: ItemFacts): Item[] {
  const text = requiredString(block, 'text', at);
  const citations = citationsOf(optionalArray(block, 'citations', at));
  return text === '' ? [] : [{ kind: 'text', role, text, citations, ...facts }];
}

/** Ends a compaction summary with an empty line, since other protocols may join the texts of a message. */
function endParagraph(items: Item[]): void {
  const summary = items.at(-1);
  if (summary?.kind === 'text') items[items.length - 1] = { ...summary, text: `${summary.text}\n\n` };
}

/** A compaction with a readable summary is text. Without one it failed, or only its vendor can read it: then it is native. */
function compaction(block: JsonObject, role: Role, facts: ItemFacts): Item {
  const summary = block['content'];
  if (typeof summary !== 'string' || summary === '') return nativeItem(block, role, facts);
  return { kind: 'text', role, text: summary, citations: [], ...facts };
}

function nativeItem(body: JsonObject, role: Role, facts: ItemFacts): NativeItem {
  return { kind: 'native', dialect: 'messages', body, role, ...facts };
}

function citationsOf(list: readonly JsonValue[] | undefined): Citation[] {
  return (list ?? []).filter(isObject).map((body) => ({ kind: 'native', dialect: 'messages', body }));
}

function toolResult(block: JsonObject, { role, at }: Place, facts: ItemFacts): Item {
  if (role === 'assistant') throw invalid(`${at}.type`, 'A tool_result belongs in a user message.');
  return {
    kind: 'toolResult',
    toolType: 'function',
    callId: requiredName(block, 'tool_use_id', at),
    content: resultParts(block['content'], `${at}.content`),
    isError: optionalBoolean(block, 'is_error', at) ?? false,
    ...facts,
  };
}

function itemOf(part: Part, role: Role, facts: ItemFacts): Item {
  switch (part.kind) {
    case 'text':
      return { kind: 'text', role, text: part.text, citations: [], ...facts };
    case 'media':
      return { kind: 'media', role, media: part.media, ...facts };
    case 'native':
      return { kind: 'native', dialect: part.dialect, body: part.body, role, ...facts };
  }
}

function resultParts(content: JsonValue | undefined, at: string): Part[] {
  if (content === undefined || content === null) return [];
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }];
  if (!Array.isArray(content)) throw wrongType(at, 'a string or an array of blocks');
  return content.flatMap((value: JsonValue, index): Part[] => {
    const place = `${at}[${index}]`;
    const block = objectAt(value, place);
    switch (requiredString(block, 'type', place)) {
      case 'text': {
        const text = requiredString(block, 'text', place);
        return text === '' ? [] : [{ kind: 'text', text }];
      }
      case 'image':
        return [{ kind: 'media', media: imageOf(block, place) }];
      case 'document':
        return documentParts(block, place);
      case 'search_result':
        return [{ kind: 'text', text: searchResultText(block, place) }];
      case 'tool_reference':
        // A tool that the client's search found. Its definition is among the tools of the request, so the name is enough.
        return [{ kind: 'text', text: `Tool found: ${requiredName(block, 'tool_name', place)}` }];
      default:
        return [{ kind: 'native', dialect: 'messages', body: block }];
    }
  });
}

function imageOf(block: JsonObject, at: string): Media {
  const source = objectAt(block['source'], `${at}.source`);
  return { type: 'image', source: sourceOf(source, `${at}.source`), at };
}

function sourceOf(source: JsonObject, at: string): MediaSource {
  switch (requiredString(source, 'type', at)) {
    case 'base64':
      return {
        from: 'inline',
        mime: requiredName(source, 'media_type', at),
        data: requiredString(source, 'data', at),
      };
    case 'url':
      return sourceOfUrl(requiredName(source, 'url', at));
    case 'file':
      return { from: 'reference', id: requiredName(source, 'file_id', at) };
    case 'text':
      return { from: 'text', text: requiredString(source, 'data', at) };
    default:
      throw invalid(`${at}.type`, `${at}.type is not a known source.`);
  }
}

/** A search result as text, since other dialects have no block for it. */
function searchResultText(block: JsonObject, at: string): string {
  const heading = [optionalString(block, 'title', at), optionalString(block, 'source', at)];
  const texts = resultParts(block['content'], `${at}.content`).flatMap((part) => (part.kind === 'text' ? [part.text] : []));
  return [heading.filter((line) => line !== undefined && line !== '').join('\n'), ...texts]
    .filter((text) => text !== '')
    .join('\n\n');
}

/**
 * A document: one file, or the blocks of a `content` source, after the text of `context`. The title of a file by URL or id, and
 * of blocks, is text before it too, since other protocols take no name there.
 */
function documentParts(block: JsonObject, at: string): Part[] {
  const source = objectAt(block['source'], `${at}.source`);
  const title = optionalString(block, 'title', at);
  const context = optionalString(block, 'context', at);
  const textPart = (text: string | undefined): Part[] => (text === undefined || text === '' ? [] : [{ kind: 'text', text }]);
  const before = textPart(context);
  const named = title === undefined ? {} : { filename: title };
  if (source['type'] !== 'content') {
    const file = sourceOf(source, `${at}.source`);
    const isReferred = file.from === 'url' || file.from === 'reference';
    const media: Media = { type: 'file', source: file, ...named, at };
    return [...(isReferred ? textPart(title) : []), ...before, { kind: 'media', media }];
  }
  const parts = resultParts(source['content'], `${at}.source.content`);
  const texts = parts.flatMap((part) => (part.kind === 'text' ? [part.text] : []));
  // Blocks other than text stay as they are, with the title before them.
  if (texts.length < parts.length) return [...textPart(title), ...before, ...parts];
  const whole: Media = { type: 'file', source: { from: 'text', text: texts.join('\n') }, ...named, at };
  return [...before, { kind: 'media', media: whole }];
}
