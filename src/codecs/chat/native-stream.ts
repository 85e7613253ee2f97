/**
 * Chunks of a chat upstream for a chat client: every byte stays but the gateway's own members. Holds the finish chunk until
 * the stream is over, so that repeated finish chunks and usage inside them become one finish and one usage chunk.
 */
import type { Native } from '../canonical/event.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Frame, ResponseContext } from '../codec.ts';
import { RepeatedEdits } from '../json-repeat.ts';
import { editJson, type JsonEdit } from '../json-text.ts';
import { priceEdits } from '../router-prices.ts';
import { readTokenUsage } from '../token-usage.ts';
import { sealSignatures } from './call-signatures.ts';
import { SCALAR_FORM } from './details.ts';
import { sealDetails } from './envelopes.ts';
import { saysSomething } from './lifecycle.ts';
import { finishReason, outweighs } from './outcome.ts';
import { DONE, firstChoice, usageIn } from './wire.ts';

export class NativeStream {
  readonly #context: ResponseContext;
  #finish: string | undefined;
  #reason: string | undefined;
  /** The chunk that brought the latest usage, as it came. */
  #usage: { readonly text: string; readonly members: JsonObject } | undefined;
  #shell: string | undefined;
  /** Fragments of the scalar `reasoning_opaque`: sealed once, as one value. */
  #opaque = '';
  /** Of chunks into which nothing but id and model is spliced. */
  readonly #repeated = new RepeatedEdits();

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  push(native: Native, out: Frame[]): void {
    const repeated = this.#finish === undefined ? this.#repeated.apply(native, undefined) : undefined;
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
    if (choice === undefined && isObject(chunk['usage'])) {
      if (this.#usage === undefined || readTokenUsage(chunk['usage']) !== undefined)
        this.#usage = { text: native.text, members: chunk['usage'] };
      return;
    }
    // Candidates beside the first are never part of the answer.
    if (choice === undefined && Array.isArray(choices) && choices.length > 0) return;
    if (Array.isArray(choices)) dropOtherChoices(choices, choice?.at, edits);
    const delta = choice !== undefined && isObject(choice.choice['delta']) ? choice.choice['delta'] : {};
    if (choice !== undefined) {
      const path = ['choices', choice.at];
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
      const isOwn = usage === chunk['usage'];
      const text = isOwn ? native.text : editJson(native.text, [{ path: ['usage'], value: JSON.stringify(usage) }]);
      this.#usage = { text, members: usage };
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
    if (this.#finish === undefined && edits.length === OWN_MEMBERS) this.#repeated.note(native, edits);
  }

  /** The good ending: what was held, the usage if the client asked for it, `[DONE]`. */
  close(out: Frame[]): void {
    if (this.#opaque !== '' && this.#shell !== undefined) out.push({ event: undefined, data: this.#opaqueChunk(this.#shell) });
    if (this.#finish !== undefined) out.push({ event: undefined, data: this.#finish });
    if (this.#usage !== undefined && this.#context.request.includeUsage)
      out.push({ event: undefined, data: this.#usageChunk(this.#usage.text, this.#usage.members) });
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

  #usageChunk(text: string, members: JsonObject): string {
    const edits: JsonEdit[] = [{ path: ['choices'], value: '[]' }, ...priceEdits(['usage'], members)];
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

/** How many edits {@link NativeStream} makes in a chunk that holds nothing special. */
const OWN_MEMBERS = 2;

/** The members of a choice beside which others are a word about it, such as Azure's late filter results. */
const PLAIN_MEMBERS = new Set(['index', 'delta', 'finish_reason', 'native_finish_reason', 'logprobs', 'usage']);

function saysNothing(choice: JsonObject, delta: JsonObject): boolean {
  if (saysSomething(delta) || Array.isArray(delta['annotations'])) return false;
  return Object.entries(choice).every(([key, member]) => member === null || PLAIN_MEMBERS.has(key));
}

function dropOtherChoices(choices: readonly JsonValue[], kept: number | undefined, edits: JsonEdit[]): void {
  for (const at of choices.keys()) if (at !== kept) edits.push({ path: ['choices', at], value: undefined });
}

/** Edits for a whole native body. */
export function ownBody(body: JsonObject, context: ResponseContext): JsonEdit[] {
  const edits: JsonEdit[] = [
    { path: ['id'], value: JSON.stringify(context.responseId) },
    { path: ['model'], value: JSON.stringify(context.model) },
    ...(isObject(body['usage']) ? priceEdits(['usage'], body['usage']) : []),
  ];
  const first = firstChoice(body);
  if (Array.isArray(body['choices'])) dropOtherChoices(body['choices'], first?.at, edits);
  const message = first?.choice['message'];
  if (first === undefined || !isObject(message)) return edits;
  const path = ['choices', first.at, 'message'];
  sealDetails(message, path, context, edits);
  sealSignatures(message, path, context, edits);
  const opaque = message['reasoning_opaque'];
  if (typeof opaque === 'string' && opaque !== '') {
    const sealed = context.seal({ owner: context.owner, value: opaque, form: SCALAR_FORM });
    edits.push({ path: [...path, 'reasoning_opaque'], value: JSON.stringify(sealed) });
  }
  return edits;
}
