/**
 * Passes chunks of a chat upstream to a chat client. Every byte stays, except for the gateway's own members and for members that
 * are added because official clients break without them. The finish chunk is held until the stream ends, so that repeated finish
 * chunks, and usage in them, become one finish and one usage chunk.
 */
import type { CanonicalEvent, Native } from '../../canonical/event.ts';
import type { Whole } from '../../canonical/fold.ts';
import { isObject, type JsonObject, type JsonValue, tryJson } from '../../canonical/json.ts';
import type { OutFrame, ResponseContext } from '../../codec.ts';
import { RepeatedEdits } from '../../json/repeated-native.ts';
import { editJson, type JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { readTokenUsage } from '../../answers/token-usage.ts';
import {
  completeBody,
  completeChoice,
  completeContent,
  completeDelta,
  completeMessage,
  completeUsage,
} from './splice-members.ts';
import { sealSignatures, sealDetails } from '../opaque.ts';
import { SCALAR_FORM } from '../details.ts';
import { hasContent } from '../lifecycle.ts';
import { toolCallHead } from './encode-items.ts';
import { callEntries } from './call-pieces.ts';
import { completeCalls, NativeCalls } from './splice-calls.ts';
import { freshReasoning, NativeReasoning } from './splice-reasoning.ts';
import { finishOf, finishReason, overrides } from './outcome.ts';
import { DONE, type FirstChoice, firstChoice, usageIn } from '../wire.ts';

export class NativeStream {
  readonly #context: ResponseContext;
  /** Made for the first call. */
  #calls: NativeCalls | undefined;
  #hasRole = false;
  /** Of the first chunk, for those that have none. */
  #created: number | undefined;
  /** The chunk with the finish reason, held until the end of the stream. */
  #held: { readonly text: string; readonly reason: string } | undefined;
  /** The text of the chunk with the latest usage. */
  #usageChunkText: string | undefined;
  /** The first chunk as the client got it: the template for chunks of the gateway. */
  #template: string | undefined;
  /** The joined fragments of the scalar `reasoning_opaque`, which are sealed once as one value. */
  #opaque = '';
  readonly #reasoning = new NativeReasoning();
  /** The edits of a chunk of which only id and model change, for the chunks that repeat its shape. */
  readonly #repeated = new RepeatedEdits();

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  /** `events`: what the decoder read in the chunk. */
  push(native: Native, events: readonly CanonicalEvent[], out: OutFrame[]): void {
    const isRepeat = this.#held === undefined && this.#calls?.areRenumbered !== true && this.#calls?.hasPlaceholder !== true;
    const repeated = isRepeat ? this.#repeated.apply(native, undefined) : undefined;
    if (repeated !== undefined) {
      out.push(repeated);
      return;
    }
    const chunk = native.json;
    if (!isObject(chunk) || chunk['type'] === 'ping' || native.name === 'ping') return;
    const { choices, usage } = chunk;
    const first = firstChoice(chunk);
    if (first !== undefined) this.#pushChoice(native, chunk, first, events, out);
    else if (isObject(usage)) {
      if (this.#usageChunkText === undefined || readTokenUsage(usage) !== undefined)
        this.#usageChunkText = withCounters(native.text, usage);
      // Its usage is not for this client, but what stands beside it is.
      if (!this.#context.request.includeUsage && this.#hasNews(chunk)) this.#pushOther(native, chunk, out);
    } else if (!Array.isArray(choices) || choices.length === 0) this.#pushOther(native, chunk, out);
    // Any other chunk holds only candidates that are not part of the answer.
  }

  #pushChoice(
    native: Native,
    chunk: JsonObject,
    { choice, at }: FirstChoice,
    events: readonly CanonicalEvent[],
    out: OutFrame[],
  ): void {
    const edits: JsonEdit[] = [];
    this.#setIdAndModel(edits);
    this.#completeChunk(chunk, edits);
    completeChoice(choice, ['choices', at], edits);
    this.#removeNullUsage(chunk, edits);
    // The edits so far do not depend on the content of the chunk.
    const constantEdits = edits.length;
    if (Array.isArray(chunk['choices'])) dropOtherChoices(chunk['choices'], at, edits);
    const delta = isObject(choice['delta']) ? choice['delta'] : {};
    const { message } = choice;
    const fresh = delta['reasoning_details'] === undefined && !isObject(message) ? [] : freshReasoning(events);
    this.#editDelta(choice, delta, ['choices', at], events, edits);
    this.#reasoning.editDelta(delta, ['choices', at, 'delta'], fresh, edits);
    this.#takeUsage(native.text, chunk, edits);
    const text = editJson(native.text, edits);
    this.#template ??= text;
    const reason = finishReason(choice);
    const added = isObject(message) ? this.#onlyInMessage(message, delta, events, fresh) : [];
    // The chunk that is held ended a call, not the answer.
    if (this.#held !== undefined && hasContent({ tool_calls: delta['tool_calls'] })) this.#release(out);
    if (reason !== undefined) {
      if (!overrides(reason, this.#held?.reason)) return;
      this.#release(out);
      this.#held = { text, reason };
      if (added.length > 0) this.#writeDeltas(added, out);
      return;
    }
    // After the finish, an empty delta only repeats it, or held the usage that was taken above.
    if (this.#held !== undefined && isEmpty(choice, delta)) return;
    out.push({ event: undefined, data: text });
    if (this.#held === undefined && edits.length === constantEdits) this.#repeated.note(native, edits);
    if (added.length > 0) this.#writeDeltas(added, out);
  }

  /** The deltas for what stands in the `message` of a chunk alone: clients of a stream read only the `delta`. */
  #onlyInMessage(message: JsonObject, delta: JsonObject, events: readonly CanonicalEvent[], fresh: string[]): JsonObject[] {
    const added: JsonObject[] = [];
    const members = { content: '', refusal: '' };
    const refusals = new Set<number>();
    for (const event of events) {
      if (event.type === 'item.start' && event.head.kind === 'refusal') refusals.add(event.index);
      if (event.type !== 'item.delta') continue;
      const { delta: piece, index } = event;
      if (piece.kind === 'text') members[refusals.has(index) ? 'refusal' : 'content'] += piece.text;
    }
    for (const [name, text] of Object.entries(members)) {
      const streamed = Reflect.get(delta, name);
      const rest = typeof streamed === 'string' ? text.slice(streamed.length) : text;
      if (rest !== '') added.push({ [name]: rest });
    }
    const reasoning = this.#reasoning.onlyIn(message, fresh, this.#context);
    if (reasoning !== undefined) added.push(reasoning);
    const calls = callEntries(delta['tool_calls']).length > 0 ? [] : this.#callsOf().fromMessage(events);
    if (calls.length > 0) added.push({ tool_calls: calls });
    return added;
  }

  #callsOf(): NativeCalls {
    this.#calls ??= new NativeCalls();
    return this.#calls;
  }

  #editDelta(
    { delta: given, message }: JsonObject,
    delta: JsonObject,
    choice: JsonPath,
    events: readonly CanonicalEvent[],
    edits: JsonEdit[],
  ): void {
    const path = [...choice, 'delta'];
    completeDelta(given, !this.#hasRole, path, edits);
    this.#hasRole = true;
    const calls = delta['tool_calls'];
    if (calls !== undefined && calls !== null) this.#callsOf();
    this.#calls?.complete(calls, [...path, 'tool_calls'], events, edits);
    completeContent(delta, path, () => this.#callsOf().fromMessage(events), edits);
    sealDetails(delta, path, this.#context, edits);
    sealSignatures(delta, path, this.#context, edits);
    this.#takeScalar(delta, path, edits);
    if (!isObject(message)) return;
    sealDetails(message, [...choice, 'message'], this.#context, edits);
    sealSignatures(message, [...choice, 'message'], this.#context, edits);
  }

  /** True for a chunk with members that are neither standard nor those of the first chunk. */
  #hasNews(chunk: JsonObject): boolean {
    const names = Object.keys(chunk).filter((name) => !STANDARD_CHUNK.has(name) && chunk[name] !== null);
    if (names.length === 0) return false;
    const first = tryJson(this.#template ?? '{}');
    return names.some((name) => !isObject(first) || JSON.stringify(first[name]) !== JSON.stringify(chunk[name]));
  }

  /** A vendor's own event without choices, perhaps with usage. */
  #pushOther(native: Native, chunk: JsonObject, out: OutFrame[]): void {
    const edits: JsonEdit[] = [];
    const isChunk = Array.isArray(chunk['choices']);
    this.#setIdAndModel(edits, isChunk ? undefined : chunk);
    if (isChunk) this.#completeChunk(chunk, edits);
    this.#removeNullUsage(chunk, edits);
    this.#takeUsage(native.text, chunk, edits);
    // The official clients iterate over the choices of everything that calls itself a chunk.
    if (chunk['object'] === 'chat.completion.chunk' && !isChunk) edits.push({ path: ['choices'], value: '[]' });
    out.push({ event: undefined, data: editJson(native.text, edits) });
    if (this.#held === undefined) this.#repeated.note(native, edits);
  }

  /** Takes the usage out of a chunk: it is written once, at the end. */
  #takeUsage(text: string, chunk: JsonObject, edits: JsonEdit[]): void {
    const usage = usageIn(chunk);
    const isOwn = usage === chunk['usage'];
    if (isObject(usage) && readTokenUsage(usage) !== undefined) {
      const withUsage = isOwn ? text : editJson(text, [{ path: ['usage'], value: JSON.stringify(usage) }]);
      this.#usageChunkText = withCounters(withUsage, usage);
    }
    if (isObject(chunk['usage'])) edits.push({ path: ['usage'], value: this.#context.request.includeUsage ? 'null' : undefined });
  }

  /** Upstreams write `usage: null` because the gateway asks them for usage. Strict clients that did not ask refuse the member. */
  #removeNullUsage(chunk: JsonObject, edits: JsonEdit[]): void {
    if (chunk['usage'] === null && !this.#context.request.includeUsage) edits.push({ path: ['usage'], value: undefined });
  }

  /** The successful ending: the held chunk, the usage if the client asked for it, `[DONE]`. `events`: those of the last step. */
  close(events: readonly CanonicalEvent[], out: OutFrame[]): void {
    this.writeRest(events, out);
    if (this.#held !== undefined) out.push({ event: undefined, data: this.#held.text });
    if (this.#usageChunkText !== undefined && this.#context.request.includeUsage)
      out.push({ event: undefined, data: this.#usageChunk(this.#usageChunkText) });
    out.push({ event: undefined, data: DONE });
  }

  /** What comes before the finish: the last pieces of calls and the scalar payload. `events`: those of the last step. */
  writeRest(events: readonly CanonicalEvent[], out: OutFrame[]): void {
    this.#writeLastPieces(events, out);
    if (this.#opaque !== '' && this.#template !== undefined)
      out.push({ event: undefined, data: this.#opaqueChunk(this.#template) });
  }

  /** The last pieces of calls come after the held chunk, in which their call may begin, and before its finish. */
  #writeLastPieces(events: readonly CanonicalEvent[], out: OutFrame[]): void {
    const pieces = this.#calls?.lastPieces(events) ?? [];
    if (pieces.length > 0) this.#writeDeltas([{ tool_calls: pieces }], out);
  }

  /** Writes chunks of the gateway: after the held chunk, which may hold content, and before its finish. */
  #writeDeltas(deltas: readonly JsonObject[], out: OutFrame[]): void {
    const held = this.#held;
    const template = held?.text ?? this.#template;
    if (template === undefined) return;
    this.#release(out);
    for (const delta of deltas) {
      const choices = [{ index: 0, delta, finish_reason: null }];
      out.push({ event: undefined, data: editJson(template, [{ path: ['choices'], value: JSON.stringify(choices) }]) });
    }
    if (held !== undefined) this.#held = { ...held, text: editJson(held.text, [{ path: ['choices', 0, 'delta'], value: '{}' }]) };
  }

  get hasFinish(): boolean {
    return this.#held !== undefined;
  }

  /** Writes the held chunk without its finish reason: it does not end the answer, but may hold content. */
  #release(out: OutFrame[]): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    out.push({ event: undefined, data: editJson(held.text, [{ path: ['choices', 0, 'finish_reason'], value: 'null' }]) });
  }

  /** `other`: a vendor's own event, in which only an id and a model that it has are replaced. */
  #setIdAndModel(edits: JsonEdit[], other?: JsonObject): void {
    const { responseId, model } = this.#context;
    if (other === undefined || other['id'] !== undefined) edits.push({ path: ['id'], value: JSON.stringify(responseId) });
    if (other === undefined || other['model'] !== undefined) edits.push({ path: ['model'], value: JSON.stringify(model) });
  }

  /** A chunk that does not say what it is (Moonshot), or since when, is one of this stream: strict clients refuse to miss it. */
  #completeChunk({ object, created }: JsonObject, edits: JsonEdit[]): void {
    this.#created ??= typeof created === 'number' ? created : this.#context.createdAt;
    if (typeof object !== 'string') edits.push({ path: ['object'], value: '"chat.completion.chunk"' });
    if (typeof created !== 'number') edits.push({ path: ['created'], value: String(this.#created) });
  }

  #usageChunk(text: string): string {
    const edits: JsonEdit[] = [{ path: ['choices'], value: '[]' }];
    this.#setIdAndModel(edits);
    const chunk = tryJson(text);
    if (isObject(chunk)) this.#completeChunk(chunk, edits);
    return editJson(text, edits);
  }

  #takeScalar(delta: JsonObject, path: readonly (string | number)[], edits: JsonEdit[]): void {
    const opaque = delta['reasoning_opaque'];
    if (typeof opaque !== 'string') return;
    this.#opaque += opaque;
    edits.push({ path: [...path, 'reasoning_opaque'], value: undefined });
  }

  #opaqueChunk(template: string): string {
    const value = this.#context.seal({ owner: this.#context.owner, value: this.#opaque, form: SCALAR_FORM });
    const choices = [{ index: 0, delta: { reasoning_opaque: value }, finish_reason: null }];
    return editJson(template, [{ path: ['choices'], value: JSON.stringify(choices) }]);
  }
}

/** The members of a chunk that every stream has, or that differ in every chunk. */
const STANDARD_CHUNK: ReadonlySet<string> = new Set([
  ...['id', 'object', 'created', 'model', 'choices', 'usage'],
  ...['system_fingerprint', 'service_tier', 'obfuscation'],
]);

/** The standard members of a choice. Any other member is content, such as Azure's late filter results. */
const STANDARD_MEMBERS = new Set(['index', 'delta', 'finish_reason', 'native_finish_reason', 'logprobs', 'usage']);

function isEmpty(choice: JsonObject, delta: JsonObject): boolean {
  if (hasContent(delta) || Array.isArray(delta['annotations'])) return false;
  return Object.entries(choice).every(([key, member]) => member === null || STANDARD_MEMBERS.has(key));
}

function dropOtherChoices(choices: readonly JsonValue[], kept: number | undefined, edits: JsonEdit[]): void {
  for (const at of choices.keys()) if (at !== kept) edits.push({ path: ['choices', at], value: undefined });
}

function withCounters(text: string, usage: JsonObject): string {
  const edits: JsonEdit[] = [];
  completeUsage(usage, ['usage'], edits);
  return editJson(text, edits);
}

/** The edits for a native body of a whole answer. */
export function bodyEdits(body: JsonObject, whole: Whole, context: ResponseContext): JsonEdit[] {
  const items = whole.items.map(({ item }) => item);
  const edits: JsonEdit[] = [
    { path: ['id'], value: JSON.stringify(context.responseId) },
    { path: ['model'], value: JSON.stringify(context.model) },
  ];
  completeBody(body, context.createdAt, edits);
  const first = firstChoice(body);
  if (Array.isArray(body['choices'])) dropOtherChoices(body['choices'], first?.at, edits);
  if (isObject(body['usage'])) completeUsage(body['usage'], ['usage'], edits);
  if (first === undefined) return edits;
  const { message } = first.choice;
  const path = ['choices', first.at, 'message'];
  completeChoice(first.choice, ['choices', first.at], edits);
  completeMessage(message, path, edits);
  if (finishReason(first.choice) === undefined) {
    const hasCalls = items.some(({ kind }) => kind === 'toolCall');
    const { finish_reason: reason } = finishOf(whole.outcome, hasCalls, context);
    edits.push({ path: ['choices', first.at, 'finish_reason'], value: JSON.stringify(reason) });
  }
  if (!isObject(message)) return edits;
  completeCalls(message['tool_calls'], [...path, 'tool_calls'], items, edits);
  completeContent(
    message,
    path,
    () => items.flatMap((item) => (item.kind === 'toolCall' ? [toolCallHead(item, item.input)] : [])),
    edits,
  );
  sealDetails(message, path, context, edits);
  sealSignatures(message, path, context, edits);
  const opaque = message['reasoning_opaque'];
  if (typeof opaque === 'string' && opaque !== '') {
    const sealed = context.seal({ owner: context.owner, value: opaque, form: SCALAR_FORM });
    edits.push({ path: [...path, 'reasoning_opaque'], value: JSON.stringify(sealed) });
  }
  return edits;
}
