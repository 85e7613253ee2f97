/**
 * Encodes canonical items as chat messages for a chat upstream. One assistant message holds the text and the calls of a run of
 * items. Each tool result is a message, and the media of a run of results, which tool messages cannot hold, follow in one user
 * message.
 */
import { callArguments, NO_ARGUMENTS } from '../../tools/arguments.ts';
import { isObjectInput, readCallInputs } from '../../tools/call-inputs.ts';
import { withAnsweredCalls } from '../../tools/call-pairs.ts';
import { notConvertible } from '../../canonical/error.ts';
import type {
  Item,
  Media,
  MediaItem,
  ReasoningItem,
  Role,
  TextItem,
  ToolCallItem,
  ToolResultItem,
} from '../../canonical/item.ts';
import type { JsonObject, JsonValue } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import type { CodecOptions, Target } from '../../codec.ts';
import { customToolOf, wrapFreeform } from '../../tools/freeform.ts';
import { refuseForeignItem } from '../../requests/foreign-content.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { placeBreakpoints } from '../../requests/cache-breakpoints.ts';
import { mayReplay } from '../../requests/opaque-replay.ts';
import type { EncodeContext } from '../../requests/request-encoder.ts';
import { wireCallId } from '../wire.ts';
import { CALL_FORM, signedCall } from '../opaque.ts';
import { blockOfDetail, detailEntries, entryOfForm, SCALAR_FORM, UNKNOWN_FORMAT } from '../details.ts';
import { cacheMember, holdsBreakpoint, mediaPart, splitResult, textPart } from './encode-parts.ts';
import { isLowered } from './encode-tools.ts';

/** An assistant message that is being built. */
interface AssistantDraft {
  /** `isSeparate`: another item stood between the text and the one before it. */
  readonly texts: { readonly text: string; readonly turn: number | undefined; readonly isSeparate: boolean }[];
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
export function* encodeMessages(request: CanonicalRequest, context: EncodeContext): Steps<readonly JsonObject[]> {
  const { target, losses } = context;
  const writer = new MessageWriter(request, context);
  const items = placeBreakpoints(request, {
    target,
    holds: holdsBreakpoint,
    onTools: target.options.routerCacheControl === true,
    losses,
  });
  yield;
  const settled = yield* withAnsweredCalls(items, (feature) => losses.note(feature));
  // Only the inputs of freeform tools that are declared as functions have to be objects.
  if (settled.some((item) => item.kind === 'toolCall' && item.toolType === 'custom')) yield* readCallInputs(settled);
  for (const [index, item] of settled.entries()) {
    if (endsStep(index)) yield;
    writer.add(item);
  }
  return writer.finish();
}

class MessageWriter {
  readonly #messages: JsonObject[] = [];
  readonly #request: CanonicalRequest;
  readonly #target: Target;
  readonly #names: EncodeContext['names'];
  readonly #losses: EncodeContext['losses'];
  /** Media of tool results and of assistant messages, which need a user message of their own. */
  readonly #deferredMedia: JsonObject[] = [];
  #assistant: AssistantDraft | undefined;
  /** The message of another role that is being built. */
  #open: { readonly role: Role; readonly turn: number | undefined; readonly parts: JsonObject[] } | undefined;
  /** Another item came since the latest text of the assistant. */
  #isSeparate = false;

  constructor(request: CanonicalRequest, { target, names, losses }: EncodeContext) {
    this.#request = request;
    this.#target = target;
    this.#names = names;
    this.#losses = losses;
  }

  add(item: Item): void {
    if (item.kind !== 'text') this.#isSeparate = true;
    switch (item.kind) {
      case 'text':
        if (item.role === 'assistant') this.#assistantText(item);
        else this.#addPart(this.#roleOf(item), item.turn, item.text === '' ? undefined : this.#marked(textPart(item.text), item));
        return;
      case 'media':
        this.#dropSignature(item.opaque);
        if (item.role === 'assistant') this.#draft().media.push(item);
        // System messages hold text only, so their images and files become the user's, in the same place.
        else this.#addPart('user', item.turn, this.#marked(this.#media(item.media, item.at), item));
        return;
      case 'refusal':
        this.#draft().refusal += item.text;
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
        this.#losses.note('native item', item.at);
        return;
    }
  }

  #marked(part: JsonObject, { breakpoint }: Item): JsonObject {
    return breakpoint === undefined ? part : { ...part, ...cacheMember(breakpoint, this.#target.options) };
  }

  #roleOf({ role }: TextItem): Role {
    if (role !== 'developer' || this.#target.options.developerAsSystem !== true) return role;
    this.#losses.add('developer text');
    return 'system';
  }

  finish(): readonly JsonObject[] {
    this.#closeAssistant();
    this.#closeOpen();
    this.#closeDeferredMedia();
    // Empty texts are left out, but no upstream takes an empty list of messages.
    if (this.#messages.length === 0) this.#messages.push({ role: 'user', content: '' });
    return this.#messages;
  }

  #addPart(role: Role, turn: number | undefined, part: JsonObject | undefined): void {
    if (part === undefined) return;
    this.#closeAssistant();
    this.#closeDeferredMedia();
    if (this.#open === undefined || this.#open.role !== role || this.#open.turn !== turn) {
      this.#closeOpen();
      this.#open = { role, turn, parts: [] };
    }
    this.#open.parts.push(part);
  }

  #draft(): AssistantDraft {
    this.#closeOpen();
    this.#closeDeferredMedia();
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

  /**
   * Texts of one source message are one content. Another source message begins a new one, unless calls wait for their results.
   */
  #assistantText(item: TextItem): void {
    if (item.text === '') return;
    const known = this.#assistant?.texts.at(-1);
    if (known !== undefined && known.turn !== item.turn && this.#assistant?.calls.length === 0) this.#closeAssistant();
    const draft = this.#draft();
    draft.texts.push({ text: item.text, turn: item.turn, isSeparate: this.#isSeparate || known?.turn !== item.turn });
    this.#isSeparate = false;
    this.#dropSignature(item.opaque);
  }

  /** Chat upstreams do not sign texts and images. */
  #dropSignature(opaque: Opaque | undefined): void {
    if (opaque !== undefined) this.#losses.note('reasoning: opaque of another owner');
  }

  #reasoning(item: ReasoningItem): void {
    const opaque = this.#allowed(item.opaque);
    if (item.opaque !== undefined && opaque === undefined) {
      this.#losses.note('reasoning: opaque of another owner');
      return;
    }
    const draft = this.#draft();
    const summary = item.summary === undefined || item.summary.length === 0 ? undefined : item.summary.join('\n\n');
    if (opaque !== undefined) {
      const form = entryOfForm(opaque.form);
      const readable = form?.['type'] === 'reasoning.text' ? (item.raw ?? summary) : summary;
      this.#opaque(opaque, readable, draft);
      if (item.raw !== undefined && form?.['type'] !== 'reasoning.text') this.#raw(item.raw, draft);
      return;
    }
    if (item.raw !== undefined) this.#raw(item.raw, draft);
    else if (summary !== undefined) this.#unsignedSummary(summary, draft);
  }

  #raw(raw: string, draft: AssistantDraft): void {
    this.#losses.note('reasoning: raw text in history');
    if (this.#target.options.replayReasoningContent === true) draft.raw = (draft.raw ?? '') + raw;
  }

  /** Messages clients have one member for readable reasoning, so the raw text of a chat upstream comes back as a summary. */
  #unsignedSummary(summary: string, draft: AssistantDraft): void {
    if (this.#request.dialect === 'messages' && this.#target.options.replayReasoningContent === true) this.#raw(summary, draft);
    else this.#losses.note('reasoning: summary in history');
  }

  #allowed(opaque: Opaque | undefined): Opaque | undefined {
    return opaque !== undefined && mayReplay(opaque, this.#target, 'chat') ? opaque : undefined;
  }

  #opaque(opaque: Opaque, readable: string | undefined, draft: AssistantDraft): void {
    if (opaque.form === CALL_FORM) {
      if (opaque.itemId !== undefined) draft.signatures.set(opaque.itemId, opaque.value);
      return;
    }
    if (opaque.form === SCALAR_FORM) {
      draft.scalar = opaque.value;
      return;
    }
    const form = entryOfForm(opaque.form) ?? { type: 'reasoning.encrypted', id: opaque.itemId ?? null, format: UNKNOWN_FORMAT };
    draft.details.push(...detailEntries(form, readable, opaque.value));
  }

  #call(item: ToolCallItem): void {
    const draft = this.#draft();
    const name = this.#names.toWire(item.tool);
    const opaque = this.#allowed(item.opaque);
    const id = wireCallId(item.callId);
    if (opaque !== undefined) this.#opaque({ ...opaque, itemId: id }, undefined, draft);
    else if (item.opaque !== undefined) this.#losses.note('reasoning: opaque of another owner');
    if (item.toolType === 'custom') draft.calls.push(this.#customCall(item, id, name));
    else draft.calls.push(functionCall(id, name, callArguments(item.input)));
  }

  #customCall(item: ToolCallItem, id: string, name: string): JsonObject {
    const tool = customToolOf(this.#request.tools, item.tool);
    if (!isLowered(tool, this.#target.options)) return { id, type: 'custom', custom: { name, input: item.input } };
    if (tool?.inputSchema === undefined) return functionCall(id, name, wrapFreeform(item.input));
    if (item.input.trim() === '') return functionCall(id, name, NO_ARGUMENTS);
    if (isObjectInput(item)) return functionCall(id, name, item.input);
    throw notConvertible(item.at, 'The input of this tool call must be a JSON object.');
  }

  #result(item: ToolResultItem): void {
    this.#closeAssistant();
    this.#closeOpen();
    const { text, media } = splitResult(item.content);
    for (const part of item.content) {
      if (part.kind === 'native') this.#losses.note('native item');
    }
    const texts = item.isError ? [`Error: ${text[0] ?? ''}`, ...text.slice(1)] : text;
    const content = texts.length <= 1 && item.breakpoint === undefined ? (texts[0] ?? '') : this.#resultParts(texts, item);
    this.#messages.push({ role: 'tool', tool_call_id: wireCallId(item.callId), content });
    if (media.length === 0) return;
    this.#deferredMedia.push(textPart(`Result of tool call ${wireCallId(item.callId)}:`));
    for (const one of media) this.#deferredMedia.push(this.#media(one, item.at));
  }

  #resultParts(texts: readonly string[], item: ToolResultItem): JsonObject[] {
    const parts = (texts.length === 0 ? [''] : texts).map(textPart);
    const last = parts.pop();
    return last === undefined ? parts : [...parts, this.#marked(last, item)];
  }

  #media(media: Media, at: string | undefined): JsonObject {
    if (media.type === 'audio') this.#losses.note('audio: inline');
    return mediaPart(media, at);
  }

  #closeDeferredMedia(): void {
    if (this.#deferredMedia.length === 0) return;
    this.#messages.push({ role: 'user', content: this.#deferredMedia.splice(0) });
  }

  #closeOpen(): void {
    const open = this.#open;
    this.#open = undefined;
    if (open === undefined) return;
    const only = open.parts.length === 1 ? open.parts[0] : undefined;
    const isPlain = only?.['type'] === 'text' && Object.keys(only).length === 2;
    const content: JsonValue = isPlain ? (only['text'] ?? '') : open.parts;
    this.#messages.push({ role: open.role, content });
  }

  #closeAssistant(): void {
    const draft = this.#assistant;
    this.#assistant = undefined;
    if (draft === undefined) return;
    const message = messageOf(draft, this.#target.options);
    if (message !== undefined) this.#messages.push(message);
    if (draft.media.length === 0) return;
    // Tool messages must follow their calls, so the media comes after them.
    this.#deferredMedia.push(textPart('Media of the previous assistant message:'));
    for (const item of draft.media) this.#deferredMedia.push(this.#media(item.media, item.at));
  }
}

/**
 * Undefined for a draft without content, such as one of media alone. JSON.stringify leaves out the members that are undefined.
 */
function messageOf(draft: AssistantDraft, options: CodecOptions): JsonObject | undefined {
  const content = contentOf(draft);
  const refusal = draft.refusal === '' ? undefined : draft.refusal;
  const blocks = draft.details.map(blockOfDetail).filter((block) => block !== undefined);
  const details = draft.details.filter((detail) => blockOfDetail(detail) === undefined);
  const calls = draft.calls.map((call) => signedCall(call, draft.signatures.get(String(call['id']))));
  const hasCalls = calls.length > 0;
  const raw = draft.raw ?? (hasCalls ? missingReasoning(options) : undefined);
  if (content === '' && !hasCalls && draft.details.length === 0 && (refusal ?? raw ?? draft.scalar) === undefined)
    return undefined;
  return {
    role: 'assistant',
    content: content === '' && (hasCalls || refusal !== undefined) ? null : content,
    refusal,
    reasoning_content: raw,
    reasoning_opaque: draft.scalar,
    reasoning_details: details.length === 0 ? undefined : details,
    thinking_blocks: blocks.length === 0 ? undefined : blocks,
    tool_calls: hasCalls ? calls : undefined,
  };
}

/** The joined texts, with an empty line between those that another item separates, as chat clients get them in answers. */
function contentOf({ texts }: AssistantDraft): string {
  return texts.map(({ text, isSeparate }, at) => (isSeparate && at > 0 ? `\n\n${text}` : text)).join('');
}

function functionCall(id: string, name: string, args: string): JsonObject {
  return { id, type: 'function', function: { name, arguments: args } };
}

/**
 * The `reasoning_content` for an assistant turn that calls tools and has none, such as a turn of another model. Servers that want
 * reasoning back (DeepSeek) refuse such a turn without the member; an empty one is enough. Undefined for Channels that do not
 * replay reasoning.
 */
export function missingReasoning({ replayReasoningContent }: CodecOptions): string | undefined {
  return replayReasoningContent === true ? '' : undefined;
}
