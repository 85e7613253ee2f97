/**
 * Chunks of a chat upstream for a chat client: every byte stays but the gateway's own members, and those come that official clients break
 * without. Holds the finish chunk until the stream is over, so that repeated finish chunks and usage inside them become one finish and one
 * usage chunk.
 */
import type { CanonicalEvent, Native } from '../canonical/event.ts';
import type { Whole } from '../canonical/fold.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Frame, ResponseContext } from '../codec.ts';
import { RepeatedEdits } from '../json/repeated-native.ts';
import { editJson, type JsonEdit, type JsonPath } from '../json/text.ts';
import { readTokenUsage } from '../answers/token-usage.ts';
import { completeChoice, completeDelta, completeMessage, completeUsage } from './answer-members.ts';
import { sealSignatures } from './call-signatures.ts';
import { SCALAR_FORM } from './details.ts';
import { sealDetails } from './envelopes.ts';
import { saysSomething } from './lifecycle.ts';
import { callsReason } from './message.ts';
import { completeCalls, NativeCalls } from './native-calls.ts';
import { finishOf, finishReason, outweighs } from './outcome.ts';
import { DONE, type FirstChoice, firstChoice, usageIn } from './wire.ts';

export class NativeStream {
  readonly #context: ResponseContext;
  /** Made for the first call. */
  #calls: NativeCalls | undefined;
  #hasRole = false;
  /** The chunk that finished the answer, held until that is certain, and the reason that it gives. */
  #held: { readonly text: string; readonly reason: string } | undefined;
  /** The chunk that brought the latest usage, as it came. */
  #usage: string | undefined;
  /** The first chunk as its client read it: chunks of our own are made from it. */
  #shell: string | undefined;
  /** Fragments of the scalar `reasoning_opaque`: sealed once, as one value. */
  #opaque = '';
  /** What is spliced into a chunk that gets nothing but id and model, for those that repeat it. */
  readonly #repeated = new RepeatedEdits();

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  /** `events`: what was read in the chunk. */
  push(native: Native, events: readonly CanonicalEvent[], out: Frame[]): void {
    const isRepeat = this.#held === undefined && this.#calls?.areRenumbered !== true;
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
      if (this.#usage === undefined || readTokenUsage(usage) !== undefined) this.#usage = withCounters(native.text, usage);
    } else if (!Array.isArray(choices) || choices.length === 0) this.#pushOther(native, chunk, out);
    // What is left holds candidates beside the first alone: they are never part of the answer.
  }

  #pushChoice(
    native: Native,
    chunk: JsonObject,
    { choice, at }: FirstChoice,
    events: readonly CanonicalEvent[],
    out: Frame[],
  ): void {
    const edits: JsonEdit[] = [];
    this.#own(edits);
    completeChoice(choice, ['choices', at], edits);
    this.#leaveOutNoUsage(chunk, edits);
    // These do not depend on what the chunk says.
    const constant = edits.length;
    if (Array.isArray(chunk['choices'])) dropOtherChoices(chunk['choices'], at, edits);
    const delta = isObject(choice['delta']) ? choice['delta'] : {};
    this.#editDelta(choice, delta, ['choices', at], events, edits);
    this.#takeUsage(native.text, chunk, edits);
    const text = editJson(native.text, edits);
    this.#shell ??= text;
    const reason = finishReason(choice);
    // What was held ended a call, not the answer.
    if (this.#held !== undefined && saysSomething({ tool_calls: delta['tool_calls'] })) this.#release(out);
    if (reason !== undefined) {
      if (!outweighs(reason, this.#held?.reason)) return;
      this.#release(out);
      this.#held = { text, reason };
      return;
    }
    // After the finish an empty delta only repeats it, or brought the usage that was taken above.
    if (this.#held !== undefined && saysNothing(choice, delta)) return;
    out.push({ event: undefined, data: text });
    if (this.#held === undefined && edits.length === constant) this.#repeated.note(native, edits);
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
    if (calls !== undefined && calls !== null) this.#calls ??= new NativeCalls();
    this.#calls?.complete(calls, [...path, 'tool_calls'], events, edits);
    sealDetails(delta, path, this.#context, edits);
    sealSignatures(delta, path, this.#context, edits);
    this.#takeScalar(delta, path, edits);
    if (!isObject(message)) return;
    sealDetails(message, [...choice, 'message'], this.#context, edits);
    sealSignatures(message, [...choice, 'message'], this.#context, edits);
  }

  /** An event without choices: a word of the vendor's own, perhaps with usage inside. */
  #pushOther(native: Native, chunk: JsonObject, out: Frame[]): void {
    const edits: JsonEdit[] = [];
    this.#own(edits, Array.isArray(chunk['choices']) ? undefined : chunk);
    this.#leaveOutNoUsage(chunk, edits);
    this.#takeUsage(native.text, chunk, edits);
    // The official clients go through the choices of whatever calls itself a chunk.
    if (chunk['object'] === 'chat.completion.chunk' && !Array.isArray(chunk['choices']))
      edits.push({ path: ['choices'], value: '[]' });
    out.push({ event: undefined, data: editJson(native.text, edits) });
    if (this.#held === undefined) this.#repeated.note(native, edits);
  }

  /** Usage goes out once, at the end. */
  #takeUsage(text: string, chunk: JsonObject, edits: JsonEdit[]): void {
    const usage = usageIn(chunk);
    const isOwn = usage === chunk['usage'];
    if (isObject(usage) && readTokenUsage(usage) !== undefined) {
      const said = isOwn ? text : editJson(text, [{ path: ['usage'], value: JSON.stringify(usage) }]);
      this.#usage = withCounters(said, usage);
    }
    if (isObject(chunk['usage'])) edits.push({ path: ['usage'], value: this.#context.request.includeUsage ? 'null' : undefined });
  }

  /** A `null` says that usage is still to come, since the gateway asked for it. Clients that did not ask may be strict and refuse it. */
  #leaveOutNoUsage(chunk: JsonObject, edits: JsonEdit[]): void {
    if (chunk['usage'] === null && !this.#context.request.includeUsage) edits.push({ path: ['usage'], value: undefined });
  }

  /** The good ending: what was held, the usage if the client asked for it, `[DONE]`. `events`: what was read at the end. */
  close(events: readonly CanonicalEvent[], out: Frame[]): void {
    this.#sayLastPieces(events, out);
    if (this.#opaque !== '' && this.#shell !== undefined) out.push({ event: undefined, data: this.#opaqueChunk(this.#shell) });
    if (this.#held !== undefined) out.push({ event: undefined, data: this.#held.text });
    if (this.#usage !== undefined && this.#context.request.includeUsage)
      out.push({ event: undefined, data: this.#usageChunk(this.#usage) });
    out.push({ event: undefined, data: DONE });
  }

  /** Calls may begin in the chunk that was held, and their last piece stands between that and the finish. */
  #sayLastPieces(events: readonly CanonicalEvent[], out: Frame[]): void {
    const pieces = this.#calls?.lastPieces(events) ?? [];
    const held = this.#held;
    if (pieces.length === 0 || held === undefined) return;
    this.#release(out);
    const choices = [{ index: 0, delta: { tool_calls: pieces }, finish_reason: null }];
    out.push({ event: undefined, data: editJson(held.text, [{ path: ['choices'], value: JSON.stringify(choices) }]) });
    this.#held = { ...held, text: editJson(held.text, [{ path: ['choices', 0, 'delta'], value: '{}' }]) };
  }

  get hasFinish(): boolean {
    return this.#held !== undefined;
  }

  /** What was held is no finish, but may have said the last piece of something. */
  #release(out: Frame[]): void {
    const held = this.#held;
    if (held === undefined) return;
    this.#held = undefined;
    out.push({ event: undefined, data: editJson(held.text, [{ path: ['choices', 0, 'finish_reason'], value: 'null' }]) });
  }

  /** `other`: an event without choices is no chunk, and gets no id and no model that it did not have. */
  #own(edits: JsonEdit[], other?: JsonObject): void {
    const { responseId, model } = this.#context;
    if (other === undefined || other['id'] !== undefined) edits.push({ path: ['id'], value: JSON.stringify(responseId) });
    if (other === undefined || other['model'] !== undefined) edits.push({ path: ['model'], value: JSON.stringify(model) });
  }

  #usageChunk(text: string): string {
    const edits: JsonEdit[] = [{ path: ['choices'], value: '[]' }];
    this.#own(edits);
    return editJson(text, edits);
  }

  #takeScalar(delta: JsonObject, path: readonly (string | number)[], edits: JsonEdit[]): void {
    const opaque = delta['reasoning_opaque'];
    if (typeof opaque !== 'string') return;
    this.#opaque += opaque;
    edits.push({ path: [...path, 'reasoning_opaque'], value: undefined });
  }

  #opaqueChunk(shell: string): string {
    const value = this.#context.seal({ owner: this.#context.owner, value: this.#opaque, form: SCALAR_FORM });
    const choices = [{ index: 0, delta: { reasoning_opaque: value }, finish_reason: null }];
    return editJson(shell, [{ path: ['choices'], value: JSON.stringify(choices) }]);
  }
}

/** The members of a choice beside which others are a word about it, such as Azure's late filter results. */
const PLAIN_MEMBERS = new Set(['index', 'delta', 'finish_reason', 'native_finish_reason', 'logprobs', 'usage']);

function saysNothing(choice: JsonObject, delta: JsonObject): boolean {
  if (saysSomething(delta) || Array.isArray(delta['annotations'])) return false;
  return Object.entries(choice).every(([key, member]) => member === null || PLAIN_MEMBERS.has(key));
}

function dropOtherChoices(choices: readonly JsonValue[], kept: number | undefined, edits: JsonEdit[]): void {
  for (const at of choices.keys()) if (at !== kept) edits.push({ path: ['choices', at], value: undefined });
}

function withCounters(text: string, usage: JsonObject): string {
  const edits: JsonEdit[] = [];
  completeUsage(usage, ['usage'], edits);
  return editJson(text, edits);
}

/** Edits for a whole native body, which was read as `whole`. */
export function ownBody(body: JsonObject, whole: Whole, context: ResponseContext): JsonEdit[] {
  const items = whole.items.map(({ item }) => item);
  const edits: JsonEdit[] = [
    { path: ['id'], value: JSON.stringify(context.responseId) },
    { path: ['model'], value: JSON.stringify(context.model) },
  ];
  const first = firstChoice(body);
  if (Array.isArray(body['choices'])) dropOtherChoices(body['choices'], first?.at, edits);
  if (isObject(body['usage'])) completeUsage(body['usage'], ['usage'], edits);
  if (first === undefined) return edits;
  const { message } = first.choice;
  const path = ['choices', first.at, 'message'];
  completeChoice(first.choice, ['choices', first.at], edits);
  completeMessage(message, path, edits);
  if (finishReason(first.choice) === undefined) {
    const called = items.some(({ kind }) => kind === 'toolCall') ? callsReason(context) : undefined;
    const { finish_reason: reason } = finishOf(whole.outcome, called);
    edits.push({ path: ['choices', first.at, 'finish_reason'], value: JSON.stringify(reason) });
  }
  if (!isObject(message)) return edits;
  completeCalls(message['tool_calls'], [...path, 'tool_calls'], items, edits);
  sealDetails(message, path, context, edits);
  sealSignatures(message, path, context, edits);
  const opaque = message['reasoning_opaque'];
  if (typeof opaque === 'string' && opaque !== '') {
    const sealed = context.seal({ owner: context.owner, value: opaque, form: SCALAR_FORM });
    edits.push({ path: [...path, 'reasoning_opaque'], value: JSON.stringify(sealed) });
  }
  return edits;
}
