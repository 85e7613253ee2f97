/**
 * Canonical items into chat messages for a chat upstream. One assistant message holds the text and the calls of a run; tool
 * results are one message each; what a tool message cannot hold follows the last of them in one user message.
 */
import { withAnsweredCalls } from '../tools/call-pairs.ts';
import { notConvertible } from '../canonical/error.ts';
import type { RequestFeature } from '../canonical/features.ts';
import type { Item, Media, MediaItem, ReasoningItem, Role, TextItem, ToolCallItem, ToolResultItem } from '../canonical/item.ts';
import { isObjectText, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Opaque } from '../canonical/opaque.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { CodecOptions, Target } from '../codec.ts';
import { customToolOf, wrapFreeform } from '../tools/freeform.ts';
import { refuseForeignItem } from '../requests/foreign-content.ts';
import { mayReplay } from '../requests/opaque-replay.ts';
import type { ToolNames } from '../tools/names.ts';
import { CALL_FORM, signedCall } from './call-signatures.ts';
import { detailEntries, entryOfForm, SCALAR_FORM, UNKNOWN_FORMAT } from './details.ts';
import { mediaPart, splitResult, textPart } from './encode-parts.ts';
import { isLowered } from './encode-tools.ts';
import { missingReasoning } from './missing-reasoning.ts';

interface Assistant {
  /** `apart`: something stood between the text and the one before it. */
  readonly texts: { readonly text: string; readonly turn: number | undefined; readonly apart: boolean }[];
  refusal: string;
  raw: string | undefined;
  scalar: string | undefined;
  readonly details: JsonObject[];
  readonly calls: JsonObject[];
  /** Signatures of the calls, by call id. */
  readonly signatures: Map<string, string>;
  readonly media: MediaItem[];
}

/** The messages; names of features that were left out or coerced are added to `losses`. */
export function encodeMessages(
  request: CanonicalRequest,
  target: Target,
  names: ToolNames,
  losses: Set<RequestFeature>,
): readonly JsonObject[] {
  const writer = new MessageWriter(request, target, names, losses);
  for (const item of withAnsweredCalls(request.items, (feature) => losses.add(feature))) writer.add(item);
  return writer.finish();
}

class MessageWriter {
  readonly #messages: JsonObject[] = [];
  readonly #request: CanonicalRequest;
  readonly #target: Target;
  readonly #names: ToolNames;
  readonly #losses: Set<RequestFeature>;
  /** Media of the tool messages of the present run, and of assistant turns: they need a user message. */
  readonly #beside: JsonObject[] = [];
  #assistant: Assistant | undefined;
  #open: { readonly role: Role; readonly turn: number | undefined; readonly parts: JsonObject[] } | undefined;
  #begun = false;
  /** Something else than a text came since the last one of the assistant. */
  #apart = false;

  constructor(request: CanonicalRequest, target: Target, names: ToolNames, losses: Set<RequestFeature>) {
    this.#request = request;
    this.#target = target;
    this.#names = names;
    this.#losses = losses;
  }

  add(item: Item): void {
    if (item.cacheControl !== undefined) this.#losses.add('cache breakpoint');
    if (item.kind !== 'text') this.#apart = true;
    switch (item.kind) {
      case 'text':
        if (item.role === 'assistant') this.#assistantText(item);
        else this.#said(this.#roleOf(item), item.turn, item.text === '' ? undefined : textPart(item.text));
        return;
      case 'media':
        this.#leaveOut(item.opaque);
        if (item.role === 'assistant') this.#turn().media.push(item);
        // System messages hold text only: a picture or file of one is the user's, in its place.
        else this.#said('user', item.turn, this.#media(item.media, item.at));
        return;
      case 'refusal':
        this.#turn().refusal += item.text;
        return;
      case 'reasoning':
        this.#reasoning(item);
        return;
      case 'toolCall':
        this.#call(item);
        return;
      case 'toolResult':
        this.#result(item);
        return;
      case 'native':
        refuseForeignItem(item);
        this.#losses.add('native item');
        return;
    }
  }

  #roleOf({ role }: TextItem): Role {
    if (role !== 'developer' || this.#target.options.developerAsSystem !== true) return role;
    this.#losses.add('developer text');
    return 'system';
  }

  finish(): readonly JsonObject[] {
    this.#closeAssistant();
    this.#closeOpen();
    this.#closeBeside();
    // Empty texts are not said, but a conversation of nothing else is still one: no upstream takes a list without a message.
    if (this.#messages.length === 0) this.#messages.push({ role: 'user', content: '' });
    return this.#messages;
  }

  #said(role: Role, turn: number | undefined, part: JsonObject | undefined): void {
    if (part === undefined) return;
    this.#closeAssistant();
    this.#closeBeside();
    if (role === 'user') this.#begun = true;
    if (this.#begun && role === 'system') this.#losses.add('system text after the first turn');
    if (this.#open === undefined || this.#open.role !== role || this.#open.turn !== turn) {
      this.#closeOpen();
      this.#open = { role, turn, parts: [] };
    }
    this.#open.parts.push(part);
  }

  #turn(): Assistant {
    this.#closeOpen();
    this.#closeBeside();
    this.#assistant ??= {
      texts: [],
      refusal: '',
      raw: undefined,
      scalar: undefined,
      details: [],
      calls: [],
      signatures: new Map(),
      media: [],
    };
    return this.#assistant;
  }

  /** Two messages of one role stay two, but nothing may stand between calls and their results; texts of one message are one content. */
  #assistantText(item: TextItem): void {
    if (item.text === '') return;
    if (item.phase !== undefined) this.#losses.add('assistant phase');
    const known = this.#assistant?.texts.at(-1);
    if (known !== undefined && known.turn !== item.turn && this.#assistant?.calls.length === 0) this.#closeAssistant();
    const turn = this.#turn();
    turn.texts.push({ text: item.text, turn: item.turn, apart: this.#apart || known?.turn !== item.turn });
    this.#apart = false;
    this.#leaveOut(item.opaque);
  }

  /** Texts and pictures are signed by another protocol alone. */
  #leaveOut(opaque: Opaque | undefined): void {
    if (opaque !== undefined) this.#losses.add('reasoning: opaque of another owner');
  }

  #reasoning(item: ReasoningItem): void {
    const opaque = this.#allowed(item.opaque);
    if (item.opaque !== undefined && opaque === undefined) {
      this.#losses.add('reasoning: opaque of another owner');
      return;
    }
    const turn = this.#turn();
    const summary = item.summary === undefined || item.summary.length === 0 ? undefined : item.summary.join('\n\n');
    if (opaque !== undefined) {
      const form = entryOfForm(opaque.form);
      const readable = form?.['type'] === 'reasoning.text' ? (item.raw ?? summary) : summary;
      this.#opaque(opaque, readable, turn);
      if (item.raw !== undefined && form?.['type'] !== 'reasoning.text') this.#raw(item.raw, turn);
      return;
    }
    if (item.raw !== undefined) this.#raw(item.raw, turn);
    else if (summary !== undefined) this.#unsigned(summary, turn);
  }

  #raw(raw: string, turn: Assistant): void {
    this.#losses.add('reasoning: raw text in history');
    if (this.#target.options.replayReasoningContent === true) turn.raw = (turn.raw ?? '') + raw;
  }

  /** messages clients have one readable slot: what a chat upstream said as raw text comes back in it. */
  #unsigned(summary: string, turn: Assistant): void {
    if (this.#request.dialect === 'messages' && this.#target.options.replayReasoningContent === true) this.#raw(summary, turn);
    else this.#losses.add('reasoning: summary in history');
  }

  #allowed(opaque: Opaque | undefined): Opaque | undefined {
    return opaque !== undefined && mayReplay(opaque, this.#target, 'chat') ? opaque : undefined;
  }

  #opaque(opaque: Opaque, readable: string | undefined, turn: Assistant): void {
    if (opaque.form === CALL_FORM) {
      if (opaque.itemId !== undefined) turn.signatures.set(opaque.itemId, opaque.value);
      return;
    }
    if (opaque.form === SCALAR_FORM) {
      turn.scalar = opaque.value;
      return;
    }
    const form = entryOfForm(opaque.form) ?? { type: 'reasoning.encrypted', id: opaque.itemId ?? null, format: UNKNOWN_FORMAT };
    turn.details.push(...detailEntries(form, readable, opaque.value));
  }

  #call(item: ToolCallItem): void {
    const turn = this.#turn();
    const name = this.#names.toWire(item.tool);
    const opaque = this.#allowed(item.opaque);
    if (opaque !== undefined) this.#opaque({ ...opaque, itemId: item.callId }, undefined, turn);
    else if (item.opaque !== undefined) this.#losses.add('reasoning: opaque of another owner');
    if (item.flavour === 'custom') turn.calls.push(this.#customCall(item, name));
    else turn.calls.push(functionCall(item.callId, name, item.input === '' ? '{}' : item.input));
  }

  #customCall(item: ToolCallItem, name: string): JsonObject {
    const tool = customToolOf(this.#request.tools, item.tool);
    if (!isLowered(tool, this.#target.options)) return { id: item.callId, type: 'custom', custom: { name, input: item.input } };
    if (tool?.inputSchema === undefined) return functionCall(item.callId, name, wrapFreeform(item.input));
    if (isObjectText(item.input)) return functionCall(item.callId, name, item.input);
    throw notConvertible(item.at, 'The input of this tool call must be a JSON object.');
  }

  #result(item: ToolResultItem): void {
    this.#closeAssistant();
    this.#closeOpen();
    const { text, media } = splitResult(item.content);
    for (const part of item.content) {
      if (part.kind === 'native') this.#losses.add('native item');
      else if (part.kind === 'media' && part.media.source.from === 'text') this.#losses.add('file: text');
    }
    if (item.isError) this.#losses.add('tool result: error flag');
    const said = item.isError ? [`Error: ${text[0] ?? ''}`, ...text.slice(1)] : text;
    const content = said.length <= 1 ? (said[0] ?? '') : said.map(textPart);
    this.#messages.push({ role: 'tool', tool_call_id: item.callId, content });
    if (media.length === 0) return;
    for (const one of media) this.#losses.add(one.type === 'image' ? 'tool result: image' : 'tool result: file');
    this.#beside.push(textPart(`Result of tool call ${item.callId}:`), ...media.map((one) => this.#media(one, item.at)));
  }

  #media(media: Media, at: string | undefined): JsonObject {
    if (media.type === 'audio') this.#losses.add('audio: inline');
    if (media.source.from === 'text') this.#losses.add('file: text');
    return mediaPart(media, at);
  }

  #closeBeside(): void {
    if (this.#beside.length === 0) return;
    this.#messages.push({ role: 'user', content: this.#beside.splice(0) });
  }

  #closeOpen(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    const only = open.parts.length === 1 ? open.parts[0] : undefined;
    const content: JsonValue = only?.['type'] === 'text' ? (only['text'] ?? '') : open.parts;
    this.#messages.push({ role: open.role, content });
  }

  #closeAssistant(): void {
    const turn = this.#assistant;
    this.#assistant = undefined;
    if (turn === undefined) return;
    const message = messageOf(turn, this.#target.options);
    if (message !== undefined) this.#messages.push(message);
    if (turn.media.length === 0) return;
    // After calls the tool messages come first, so the media waits for the end of their run.
    this.#losses.add('image by assistant in history');
    this.#beside.push(textPart('Media of the previous assistant message:'));
    this.#beside.push(...turn.media.map((item) => this.#media(item.media, item.at)));
  }
}

/** Undefined for a turn that says nothing, as one of media alone. What is undefined in it is left out of the body's text. */
function messageOf(turn: Assistant, options: CodecOptions): JsonObject | undefined {
  const content = contentOf(turn);
  const refusal = turn.refusal === '' ? undefined : turn.refusal;
  const details = turn.details.length === 0 ? undefined : turn.details;
  const calls = turn.calls.map((call) => signedCall(call, turn.signatures.get(String(call['id']))));
  const hasCalls = calls.length > 0;
  const raw = turn.raw ?? (hasCalls ? missingReasoning(options) : undefined);
  if (content === '' && !hasCalls && (refusal ?? raw ?? details ?? turn.scalar) === undefined) return undefined;
  return {
    role: 'assistant',
    content: content === '' && (hasCalls || refusal !== undefined) ? null : content,
    refusal,
    reasoning_content: raw,
    reasoning_opaque: turn.scalar,
    reasoning_details: details,
    tool_calls: hasCalls ? calls : undefined,
  };
}

/** The texts of one message, with an empty line where something stood between two: as chat clients read them in an answer. */
function contentOf({ texts }: Assistant): string {
  return texts.map(({ text, apart }, at) => (apart && at > 0 ? `\n\n${text}` : text)).join('');
}

function functionCall(id: string, name: string, args: string): JsonObject {
  return { id, type: 'function', function: { name, arguments: args } };
}
