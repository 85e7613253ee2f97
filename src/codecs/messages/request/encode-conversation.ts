/**
 * Encodes canonical items as `system` and alternating `messages`. System text after the first turn stays in its place, as marked
 * user text (semantics 6.1.3). Results go first in the user message right after their calls (M9).
 */
import { isEmptyInput, NO_ARGUMENTS } from '../../tools/arguments.ts';
import { append } from '../../append.ts';
import { isObjectInput, readCallInputs } from '../../tools/call-inputs.ts';
import { withAnsweredCalls } from '../../tools/call-pairs.ts';
import { notConvertible } from '../../canonical/error.ts';
import type { Item, MediaItem, Part, ReasoningItem, ToolCallItem, ToolResultItem } from '../../canonical/item.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { isEnvelope } from '../../canonical/opaque.ts';
import type { Tool } from '../../canonical/request.ts';
import { customToolOf, wrapFreeform } from '../../tools/freeform.ts';
import { refuseForeignItem } from '../../requests/foreign-content.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { cacheControlOf } from '../../requests/cache-breakpoints.ts';
import { mayReplay } from '../../requests/opaque-replay.ts';
import { REDACTED } from '../opaque.ts';
import { mediaBlock } from './encode-media.ts';
import { joinSummary, thinkingText } from '../message-parts.ts';
import { isBlank, NO_CONTENT, type WireBlock } from '../wire.ts';
import { CallIds } from './call-ids.ts';
import type { EncodeContext } from '../../requests/request-encoder.ts';

export interface Turn {
  readonly role: 'user' | 'assistant';
  readonly results: WireBlock[];
  readonly blocks: WireBlock[];
}

export interface Conversation {
  readonly system: WireBlock[];
  readonly turns: Turn[];
}

/** The tag around system text in the middle of a conversation, since this wire has system text only at the start. */
const SYSTEM_TAG = 'system_message';

export function* encodeConversation(items: readonly Item[], tools: readonly Tool[], context: EncodeContext): Steps<Conversation> {
  const builder = new ConversationBuilder(tools, context);
  yield* readCallInputs(items);
  const settled = yield* withAnsweredCalls(items, (feature, item) => {
    context.losses.note(feature);
    if (item.kind === 'toolCall') builder.inputOf(item);
  });
  // Calls of one id are copies with ids of their own.
  yield* readCallInputs(settled);
  for (const [index, item] of settled.entries()) {
    if (endsStep(index)) yield;
    builder.add(item);
  }
  return yield* builder.build();
}

class ConversationBuilder {
  readonly #tools: readonly Tool[];
  readonly #context: EncodeContext;
  readonly #system: WireBlock[] = [];
  readonly #turns: Turn[] = [];
  readonly #callIds = new CallIds();
  /** Since the last block, the user has said nothing but white space. */
  #endsBlank = false;

  constructor(tools: readonly Tool[], context: EncodeContext) {
    this.#tools = tools;
    this.#context = context;
  }

  *build(): Steps<Conversation> {
    const filled = joinNeighbours(this.#turns.map((turn) => ({ ...turn, blocks: withoutBlankTexts(turn) })));
    yield;
    for (const { role, blocks } of filled) if (role === 'assistant') dropLastThinking(blocks);
    const turns = joinNeighbours(filled);
    const last = turns.at(-1);
    if (last?.role === 'assistant' && this.#endsBlank)
      turns.push({ role: 'user', results: [], blocks: [{ json: { type: 'text', text: NO_CONTENT } }] });
    else if (last?.role === 'assistant') trimLastText(last.blocks);
    return { system: this.#system, turns };
  }

  add(item: Item): void {
    // Only another protocol signs texts and images.
    if ((item.kind === 'text' || item.kind === 'media') && item.opaque !== undefined)
      this.#context.losses.note('reasoning: opaque of another owner');
    switch (item.kind) {
      case 'text':
        this.#addText(item);
        return;
      case 'refusal':
        if (item.text !== '') this.#put('assistant', textBlock(item.text, item));
        return;
      case 'reasoning':
        this.#addReasoning(item);
        return;
      case 'toolCall':
        this.#addCall(item);
        return;
      case 'toolResult':
        this.#addResult(item);
        return;
      case 'media':
        this.#addMedia(item);
        return;
      case 'native':
        refuseForeignItem(item);
        this.#context.losses.note('native item', item.at);
        return;
    }
  }

  /** Assistant content takes no media: what the assistant made becomes labelled content of the user. */
  #addMedia(item: MediaItem): void {
    const { role, media } = item;
    const json = mediaBlock(media);
    if (role === 'assistant') {
      const what = json['type'] === 'image' ? 'Image' : 'File';
      this.#put('user', { json: { type: 'text', text: `[${what} made by the assistant]` } });
    }
    this.#put('user', { json, cacheControl: cacheControlIn(item) });
  }

  #addText(item: Extract<Item, { kind: 'text' }>): void {
    if (item.role !== 'assistant' && isBlank(item.text)) {
      this.#endsBlank ||= item.role === 'user';
      return;
    }
    if (item.text === '') return;
    if (item.role === 'user' || item.role === 'assistant') {
      this.#put(item.role, textBlock(item.text, item));
      return;
    }
    if (this.#turns.length === 0) {
      this.#system.push(textBlock(item.text, item));
      return;
    }
    this.#context.losses.note('system text after the first turn');
    this.#put('user', textBlock(`<${SYSTEM_TAG}>\n${item.text}\n</${SYSTEM_TAG}>`, item));
  }

  /**
   * Only signed thinking of this owner is replayed, unmodified: the vendor rejects all other thinking (semantics 9.4). A Channel
   * option replays unsigned thinking, for servers that sign nothing.
   */
  #addReasoning(item: ReasoningItem): void {
    const { target, losses } = this.#context;
    const { opaque } = item;
    const isOurs = opaque !== undefined && mayReplay(opaque, target, 'messages');
    if (!isOurs) {
      if (opaque !== undefined) losses.note('reasoning: opaque of another owner');
      if (item.raw !== undefined) losses.note('reasoning: raw text in history');
      const hasSummary = item.summary !== undefined && item.summary.length > 0;
      const isKept = !hasSummary || losses.note('reasoning: summary in history', item.at);
      const isReplayed = opaque === undefined && isKept && target.options.replayReasoningContent === true;
      const thinking = isReplayed ? thinkingText(item) : '';
      if (thinking !== '') this.#put('assistant', { json: { type: 'thinking', thinking, signature: '' } });
      return;
    }
    const json: JsonObject =
      opaque.form === REDACTED
        ? { type: 'redacted_thinking', data: opaque.value }
        : { type: 'thinking', thinking: joinSummary(item.summary), signature: opaque.value };
    this.#put('assistant', { json });
  }

  #addCall(item: ToolCallItem): void {
    const input = this.inputOf(item);
    const id = this.#callIds.ofCall(item.callId);
    const json = { type: 'tool_use', id, name: this.#context.names.toWire(item.tool) };
    this.#put('assistant', { json, input, cacheControl: cacheControlIn(item) });
  }

  /**
   * The JSON text of a call's arguments; empty text and null count as none (T8). Throws for any other text that is not a JSON
   * object: dropping the call would orphan its result (M8, spec rules 11 and 14).
   */
  inputOf(item: ToolCallItem): string {
    const { options } = this.#context.target;
    if (item.toolType === 'custom') {
      const hasSchema = customToolOf(this.#tools, item.tool)?.inputSchema !== undefined;
      if (!hasSchema && options.lowerCustomTools === true) return wrapFreeform(item.input);
    }
    const isEmpty = item.toolType === 'custom' ? item.input.trim() === '' : isEmptyInput(item.input);
    if (isEmpty) return NO_ARGUMENTS;
    if (!isObjectInput(item)) {
      throw notConvertible(item.at, `The arguments of call ${item.callId} are not a JSON object.`);
    }
    return item.input;
  }

  #addResult(item: ToolResultItem): void {
    const content = this.#resultContent(item.content);
    const json: JsonObject = {
      type: 'tool_result',
      tool_use_id: this.#callIds.ofResult(item.callId),
      ...(content.length === 0 ? {} : { content }),
      ...(item.isError ? { is_error: true } : {}),
    };
    this.#turn('user').results.push({ json, cacheControl: cacheControlIn(item) });
  }

  #resultContent(parts: readonly Part[]): JsonObject[] {
    const content: JsonObject[] = [];
    for (const part of parts) {
      if (part.kind === 'native') this.#context.losses.note('native item');
      else if (part.kind === 'media') content.push(mediaBlock(part.media));
      else if (!isBlank(part.text)) content.push({ type: 'text', text: part.text });
    }
    return content;
  }

  #put(role: Turn['role'], block: WireBlock): void {
    this.#turn(role).blocks.push(block);
  }

  /** The last turn if it has that role, else a new one: neighbours of one role are one message here. */
  #turn(role: Turn['role']): Turn {
    this.#endsBlank = false;
    const last = this.#turns.at(-1);
    if (last?.role === role) return last;
    const turn: Turn = { role, results: [], blocks: [] };
    this.#turns.push(turn);
    return turn;
  }
}

function textOf({ json }: WireBlock): string | undefined {
  return json['type'] === 'text' && typeof json['text'] === 'string' ? json['text'] : undefined;
}

/**
 * Texts of white space, which the vendor refuses wherever they stand: behind another text they are its end, elsewhere they go.
 */
function withoutBlankTexts({ blocks }: Turn): WireBlock[] {
  const kept: WireBlock[] = [];
  for (const block of blocks) {
    const text = textOf(block);
    if (text === undefined || !isBlank(text)) {
      kept.push(block);
      continue;
    }
    const last = kept.at(-1);
    const before = last === undefined ? undefined : textOf(last);
    if (last !== undefined && before !== undefined)
      kept[kept.length - 1] = { ...last, json: { ...last.json, text: before + text } };
  }
  return kept;
}

/** Drops empty turns and joins neighbours of one role, since the vendor wants roles to alternate. */
function joinNeighbours(turns: readonly Turn[]): Turn[] {
  const joined: Turn[] = [];
  for (const turn of turns) {
    if (turn.results.length + turn.blocks.length === 0) continue;
    const last = joined.at(-1);
    if (last?.role === turn.role) {
      append(last.results, turn.results);
      append(last.blocks, turn.blocks);
    } else joined.push({ ...turn, results: [...turn.results], blocks: [...turn.blocks] });
  }
  return joined;
}

/**
 * Drops thinking at the end of an assistant message (its answer was cut within it), which the vendor refuses. An empty thinking
 * block of another gateway after a call or a text stays: it holds the signature of that block (`message-parts.ts`).
 */
function dropLastThinking(blocks: WireBlock[]): void {
  while (isThinking(blocks.at(-1)) && !endsInSignature(blocks)) blocks.pop();
}

function endsInSignature(blocks: readonly WireBlock[]): boolean {
  const { thinking, signature } = blocks.at(-1)?.json ?? {};
  const signs = thinking === '' && typeof signature === 'string' && isEnvelope(signature);
  return signs && blocks.length > 1 && !isThinking(blocks.at(-2));
}

export function isThinking(block: WireBlock | undefined): boolean {
  return block?.json['type'] === 'thinking' || block?.json['type'] === 'redacted_thinking';
}

/** Trims the end of an answer that the model is to continue: it must not end in white space. */
function trimLastText(blocks: WireBlock[]): void {
  for (let last = blocks.at(-1); last !== undefined; last = blocks.at(-1)) {
    const text = textOf(last);
    if (text === undefined) return;
    blocks.pop();
    if (isBlank(text)) continue;
    blocks.push({ ...last, json: { type: 'text', text: text.trimEnd() } });
    return;
  }
}

function textBlock(text: string, item: Item): WireBlock {
  return { json: { type: 'text', text }, cacheControl: cacheControlIn(item) };
}

/** A block of the item can end a cached prefix. */
export function holdsBreakpoint(item: Item): boolean {
  if (item.kind === 'text' || item.kind === 'refusal') return !isBlank(item.text);
  return item.kind === 'media' || item.kind === 'toolCall' || item.kind === 'toolResult';
}

function cacheControlIn({ breakpoint }: Item): JsonObject | undefined {
  return breakpoint === undefined ? undefined : cacheControlOf(breakpoint);
}
