/**
 * Chunks of a chat upstream for a chat client: every byte stays but the gateway's own members, and those come that official clients break
 * without. Holds the finish chunk until the stream is over, so that repeated finish chunks and usage inside them become one finish and one
 * usage chunk.
 */
import type { CanonicalEvent, Native } from '../canonical/event.ts';
import type { OutputItem } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { leaveOutPrices } from '../canonical/usage.ts';
import type { Frame, ResponseContext } from '../codec.ts';
import { RepeatedEdits } from '../json-repeat.ts';
import { editJson, type JsonEdit } from '../json-text.ts';
import { readTokenUsage } from '../token-usage.ts';
import { completeChoice, completeDelta, completeMessage } from './answer-members.ts';
import { sealSignatures } from './call-signatures.ts';
import { SCALAR_FORM } from './details.ts';
import { sealDetails } from './envelopes.ts';
import { saysSomething } from './lifecycle.ts';
import { completeCalls, NativeCalls } from './native-calls.ts';
import { finishReason, outweighs } from './outcome.ts';
import { DONE, firstChoice, usageIn } from './wire.ts';

export class NativeStream {
  readonly #context: ResponseContext;
  /** Made for the first call. */
  #calls: NativeCalls | undefined;
  #hasRole = false;
  #finish: string | undefined;
  #reason: string | undefined;
  /** The chunk that brought the latest usage, as it came. */
  #usage: string | undefined;
  #shell: string | undefined;
  /** Fragments of the scalar `reasoning_opaque`: sealed once, as one value. */
  #opaque = '';
  /** Of chunks into which nothing but id and model is spliced. */
  readonly #repeated = new RepeatedEdits();

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  /** `events`: what was read in the chunk. */
  push(native: Native, events: readonly CanonicalEvent[], out: Frame[]): void {
    const isRepeat = this.#finish === undefined && this.#calls?.areRenumbered !== true;
    const repeated = isRepeat ? this.#repeated.apply(native, undefined) : undefined;
    if (repeated !== undefined) {
      out.push(repeated);
      return;
    }
    const chunk = native.json;
    if (!isObject(chunk) || chunk['type'] === 'ping' || native.name === 'ping') return;
    const edits: JsonEdit[] = [];
    const choices = chunk['choices'];
    this.#own(edits, Array.isArray(choices) ? undefined : chunk);
    const choice = firstChoice(chunk);
    if (choice !== undefined) completeChoice(choice.choice, ['choices', choice.at], edits);
    // These do not depend on what the chunk says.
    const constant = edits.length;
    if (choice === undefined && isObject(chunk['usage'])) {
      if (this.#usage === undefined || readTokenUsage(chunk['usage']) !== undefined)
        this.#usage = withoutPrices(native.text, chunk['usage']);
      return;
    }
    // Candidates beside the first are never part of the answer.
    if (choice === undefined && Array.isArray(choices) && choices.length > 0) return;
    if (Array.isArray(choices)) dropOtherChoices(choices, choice?.at, edits);
    const delta = choice !== undefined && isObject(choice.choice['delta']) ? choice.choice['delta'] : {};
    if (choice !== undefined) {
      const path = ['choices', choice.at];
      if (!this.#hasRole) completeDelta(choice.choice['delta'], [...path, 'delta'], edits);
      this.#hasRole = true;
      const calls = delta['tool_calls'];
      if (calls !== undefined && calls !== null) this.#calls ??= new NativeCalls();
      this.#calls?.complete(calls, [...path, 'delta', 'tool_calls'], events, edits);
      sealDetails(delta, [...path, 'delta'], this.#context, edits);
      sealSignatures(delta, [...path, 'delta'], this.#context, edits);
      this.#takeScalar(delta, [...path, 'delta'], edits);
      const { message } = choice.choice;
      if (isObject(message)) {
        sealDetails(message, [...path, 'message'], this.#context, edits);
        sealSignatures(message, [...path, 'message'], this.#context, edits);
      }
    }
    const usage = usageIn(chunk);
    if (isObject(usage) && readTokenUsage(usage) !== undefined) {
      const said =
        usage === chunk['usage'] ? native.text : editJson(native.text, [{ path: ['usage'], value: JSON.stringify(usage) }]);
      this.#usage = withoutPrices(said, usage);
    }
    if (isObject(chunk['usage'])) edits.push({ path: ['usage'], value: 'null' });
    const text = editJson(native.text, edits);
    if (Array.isArray(choices) && choices.length > 0) this.#shell ??= text;
    const reason = choice === undefined ? undefined : finishReason(choice.choice);
    if (reason !== undefined) {
      if (outweighs(reason, this.#reason)) this.#hold(text, reason, out);
      return;
    }
    // After the finish an empty delta only repeats it, or brought the usage that was taken above.
    if (this.#finish !== undefined && choice !== undefined && saysNothing(choice.choice, delta)) return;
    out.push({ event: undefined, data: text });
    if (this.#finish === undefined && edits.length === constant) this.#repeated.note(native, edits);
  }

  /** The good ending: what was held, the usage if the client asked for it, `[DONE]`. */
  close(out: Frame[]): void {
    if (this.#opaque !== '' && this.#shell !== undefined) out.push({ event: undefined, data: this.#opaqueChunk(this.#shell) });
    if (this.#finish !== undefined) out.push({ event: undefined, data: this.#finish });
    if (this.#usage !== undefined && this.#context.request.includeUsage)
      out.push({ event: undefined, data: this.#usageChunk(this.#usage) });
    out.push({ event: undefined, data: DONE });
  }

  get hasFinish(): boolean {
    return this.#finish !== undefined;
  }

  /** What was held before may have said the last piece of the answer, too. */
  #hold(finish: string, reason: string, out: Frame[]): void {
    const before = this.#finish;
    if (before !== undefined)
      out.push({ event: undefined, data: editJson(before, [{ path: ['choices', 0, 'finish_reason'], value: 'null' }]) });
    this.#finish = finish;
    this.#reason = reason;
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

function withoutPrices(text: string, usage: JsonObject): string {
  const edits: JsonEdit[] = [];
  leaveOutPrices(usage, ['usage'], edits);
  return editJson(text, edits);
}

/** Edits for a whole native body, which was read as `items`. */
export function ownBody(body: JsonObject, items: readonly OutputItem[], context: ResponseContext): JsonEdit[] {
  const edits: JsonEdit[] = [
    { path: ['id'], value: JSON.stringify(context.responseId) },
    { path: ['model'], value: JSON.stringify(context.model) },
  ];
  const first = firstChoice(body);
  if (Array.isArray(body['choices'])) dropOtherChoices(body['choices'], first?.at, edits);
  if (isObject(body['usage'])) leaveOutPrices(body['usage'], ['usage'], edits);
  if (first === undefined) return edits;
  const { message } = first.choice;
  const path = ['choices', first.at, 'message'];
  completeChoice(first.choice, ['choices', first.at], edits);
  completeMessage(message, path, edits);
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
