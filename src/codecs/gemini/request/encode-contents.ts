/**
 * A conversation as `systemInstruction` and `contents`. Roles alternate and start with the user. A content of the model that
 * calls functions is followed by a content of the user that begins with the responses to all its calls, in the order of the
 * calls.
 */
import { append } from '../../append.ts';
import { notConvertible } from '../../canonical/error.ts';
import type { Item, MediaItem, TextItem, ToolCallItem, ToolResultItem } from '../../canonical/item.ts';
import { isObjectInput, readCallInputs } from '../../tools/call-inputs.ts';
import { isOfModel, OwnIds, pairCalls } from '../../tools/call-pairs.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import type { Target } from '../../codec.ts';
import { customToolOf } from '../../tools/freeform.ts';
import { refuseForeignItem } from '../../requests/foreign-content.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { titledText } from '../../media.ts';
import type { ToolNames } from '../../tools/names.ts';
import { argumentsOf, type Content, type FunctionResponse, type Part } from '../wire.ts';
import type { Losses } from '../../requests/losses.ts';
import type { EncodeContext } from '../../requests/request-encoder.ts';
import { fitsResponse, mediaPart } from './encode-media.ts';
import { FOREIGN_CALL_SIGNATURE, Signatures, signedText } from '../opaque.ts';

export interface Conversation {
  readonly systemInstruction?: { readonly parts: readonly Part[] };
  readonly contents: readonly Content[];
}

/** Written where the protocol needs a turn of the user and the history has none. */
const PLACEHOLDER: Part = { text: ' ' };

export function encodeConversation(request: CanonicalRequest, context: EncodeContext): Steps<Conversation> {
  return new Writer(request, context).write();
}

interface DraftContent {
  readonly role: Content['role'];
  readonly parts: Part[];
}

class Writer {
  readonly #request: CanonicalRequest;
  readonly #names: ToolNames;
  readonly #losses: Losses;
  readonly #options: Target['options'];
  readonly #facts: Target['facts'];
  readonly #signatures: Signatures;
  #results: ReadonlyMap<ToolCallItem, ToolResultItem> = new Map();
  readonly #system: Part[] = [];
  readonly #contents: DraftContent[] = [];
  /** Calls of the current content of the model, which have no responses yet. */
  #unansweredCalls: ToolCallItem[] = [];
  #ownIds = new OwnIds([]);

  constructor(request: CanonicalRequest, { target, names, losses }: EncodeContext) {
    this.#request = request;
    this.#names = names;
    this.#losses = losses;
    this.#options = target.options;
    this.#facts = target.facts;
    this.#signatures = new Signatures(request.items, target);
  }

  *write(): Steps<Conversation> {
    yield* readCallInputs(this.#request.items);
    this.#results = yield* pairCalls(this.#request.items);
    const answered = new Set(this.#results.values());
    yield;
    this.#ownIds = new OwnIds(this.#request.items);
    yield;
    for (const [index, item] of this.#request.items.entries()) {
      if (endsStep(index)) yield;
      const isInstruction = item.kind === 'text' && (item.role === 'system' || item.role === 'developer');
      if (isInstruction && this.#contents.length === 0) {
        if (item.text !== '') this.#system.push({ text: item.text });
        continue;
      }
      if (isOfModel(item)) {
        this.#writeOfModel(item);
      } else {
        yield* this.#answerCalls();
        this.#writeOfUser(item, answered);
      }
    }
    yield* this.#answerCalls();
    if (this.#signatures.droppedForeign) this.#losses.note('reasoning: opaque of another owner');
    this.#refuseEmpty();
    if (this.#contents[0]?.role === 'model') this.#losses.note('assistant turn first');
    if (this.#contents[0]?.role !== 'user') this.#contents.unshift({ role: 'user', parts: [PLACEHOLDER] });
    signForeignCalls(this.#contents);
    return this.#system.length === 0
      ? { contents: this.#contents }
      : { systemInstruction: { parts: this.#system }, contents: this.#contents };
  }

  /** A request whose only content is native to another protocol would leave the model nothing to answer. */
  #refuseEmpty(): void {
    if (this.#contents.length > 0 || this.#system.length > 0) return;
    const unread = this.#request.items.find((item) => item.kind === 'native' && item.role === 'user');
    if (unread !== undefined) throw notConvertible(unread.at, 'The request holds nothing that a gemini upstream can be asked.');
  }

  #writeOfModel(item: Item): void {
    switch (item.kind) {
      case 'text':
        this.#add('model', signedText('text', item.text, this.#signatures.of(item)));
        return;
      case 'refusal':
        this.#add('model', signedText('text', item.text, undefined));
        return;
      case 'reasoning': {
        if (this.#signatures.isForeign(item)) return;
        const joined = item.summary?.join('\n\n') ?? '';
        const summary = joined !== '' && this.#losses.note('reasoning: summary in history', item.at) ? joined : '';
        const opaque = this.#signatures.ofReasoning(item);
        if (opaque?.form === 'empty') this.#add('model', [{ text: '', thoughtSignature: opaque.value }]);
        this.#add('model', signedText('thought', summary, opaque?.form === 'empty' ? undefined : opaque));
        return;
      }
      case 'toolCall':
        this.#writeCall(item);
        return;
      case 'media':
        this.#add('model', [this.#media(item)]);
        return;
      case 'native':
        refuseForeignItem(item);
        this.#losses.note('native item', item.at);
        return;
      case 'toolResult':
        return;
    }
  }

  #writeCall(call: ToolCallItem): void {
    if (!this.#results.has(call)) {
      this.#losses.note('function call without a result');
      return;
    }
    const custom = customToolOf(this.#request.tools, call.tool);
    const isFreeform = call.toolType === 'custom' && custom?.inputSchema === undefined;
    const isLowered = isFreeform && this.#options.lowerCustomTools === true;
    if (isFreeform && !isLowered && call.input.trim() !== '' && !isObjectInput(call))
      this.#losses.note('custom tool: freeform', call.at);
    const opaque = this.#signatures.of(call);
    this.#unansweredCalls.push(call);
    this.#add('model', [
      {
        functionCall: {
          id: this.#ownIds.ofCall(call).callId,
          name: this.#names.toWire(call.tool),
          args: argumentsOf(call, isLowered),
        },
        ...(opaque === undefined ? {} : { thoughtSignature: opaque.value }),
      },
    ]);
  }

  #media(item: MediaItem): Part {
    const opaque = item.role === 'assistant' ? this.#signatures.of(item) : undefined;
    const part = mediaPart(item.media, item.at);
    return opaque === undefined ? part : { ...part, thoughtSignature: opaque.value };
  }

  #writeOfUser(item: Item, answered: ReadonlySet<ToolResultItem>): void {
    switch (item.kind) {
      case 'text':
        this.#add('user', this.#userText(item));
        return;
      case 'media':
        this.#add('user', [this.#media(item)]);
        return;
      case 'native':
        refuseForeignItem(item);
        this.#losses.note('native item', item.at);
        return;
      case 'toolResult':
        // A result is written after its call, unless it has none.
        if (!answered.has(item)) this.#losses.note('tool result without a call');
        return;
      default:
        return;
    }
  }

  #userText(item: TextItem): Part[] {
    if (item.text === '') return [];
    if (item.role === 'user') return [{ text: item.text }];
    this.#losses.note('system text after the first turn');
    return [{ text: `<system_message>\n${item.text}\n</system_message>` }];
  }

  *#answerCalls(): Steps<void> {
    const calls = this.#unansweredCalls;
    if (calls.length === 0) return;
    this.#unansweredCalls = [];
    const parts: Part[] = [];
    const beside: Part[] = [];
    for (const [index, call] of calls.entries()) {
      if (endsStep(index)) yield;
      const result = this.#results.get(call);
      if (result !== undefined) parts.push({ functionResponse: this.#response(call, result, beside) });
    }
    this.#add('user', parts);
    this.#add('user', beside);
    this.#ownIds.endTurn();
  }

  /** The media that a response cannot hold go to `beside`, behind a text that names the call. */
  #response(call: ToolCallItem, result: ToolResultItem, beside: Part[]): FunctionResponse {
    const texts: string[] = [];
    const media: Part[] = [];
    const others: Part[] = [];
    const id = this.#ownIds.idOf(call);
    for (const part of result.content) {
      if (part.kind === 'text') texts.push(part.text);
      else if (part.kind === 'native') this.#losses.note('native item');
      else if (part.media.source.from === 'text') texts.push(titledText(part.media.source.text, part.media.filename));
      else {
        const written = mediaPart(part.media, result.at);
        (this.#facts.noMediaInResults !== true && fitsResponse(written) ? media : others).push(written);
      }
    }
    if (others.length > 0) beside.push({ text: `Result of tool call ${id}:` }, ...others);
    const text = texts.join('\n');
    if (!result.isError) this.#losses.note('tool result: text', result.at);
    return {
      id,
      name: this.#names.toWire(call.tool),
      response: result.isError ? { error: text } : { output: text },
      ...(media.length === 0 ? {} : { parts: media }),
    };
  }

  #add(role: Content['role'], parts: readonly Part[]): void {
    if (parts.length === 0) return;
    const last = this.#contents.at(-1);
    if (last?.role === role) append(last.parts, parts);
    else this.#contents.push({ role, parts: [...parts] });
  }
}

/**
 * Newer models refuse a step of the current turn whose first call is unsigned. They sign that call themselves, so an unsigned one
 * was made by another model and gets the documented value. Calls of earlier turns get it too: a call that lost it when the next
 * question arrives would change the prefix that the upstream caches. Older models ignore it.
 */
function signForeignCalls(contents: readonly DraftContent[]): void {
  for (const { role, parts } of contents) {
    const first = role === 'model' ? parts.findIndex((part) => part.functionCall !== undefined) : -1;
    const call = parts[first];
    if (call === undefined || call.thoughtSignature !== undefined) continue;
    parts[first] = { ...call, thoughtSignature: FOREIGN_CALL_SIGNATURE };
  }
}
