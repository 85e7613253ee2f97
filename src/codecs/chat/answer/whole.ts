/** Whole chat-completions bodies, both ways. A whole answer is a stream that arrived at once, so decoding uses the parts of the stream decoder. */
import { append } from '../../append.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import type { Whole } from '../../canonical/fold.ts';
import type { MediaItem, OutputItem, ReasoningItem, TextItem, TokenLogprob, ToolCallItem } from '../../canonical/item.ts';
import { isObject, type JsonObject, tryJson } from '../../canonical/json.ts';
import type { Opaque } from '../../canonical/opaque.ts';
import type { DecodeContext, ResponseContext } from '../../codec.ts';
import { defined } from '../../defined.ts';
import { CodePointCounter } from '../../answers/citations.ts';
import { editJson } from '../../json/edit.ts';
import { logprobsOf, writeLogprobs } from '../../answers/logprobs.ts';
import { TextJoin } from '../../answers/text-join.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { readTokenUsage, writeTokenUsage } from '../../answers/token-usage.ts';
import { Answer } from './decode-message.ts';
import { writeAnnotation } from './annotations.ts';
import { imageSignatureId, sealedEntry, textSignatureId } from '../opaque.ts';
import { failureIn, undecodable } from '../errors.ts';
import {
  callsReason,
  mediaMember,
  reasoningId,
  refuseSeveralAudios,
  refuseSeveralLegacyCalls,
  SUMMARY_SEPARATOR,
  summaryEntry,
  toolCallHead,
  wantsLegacyCalls,
} from './encode-message.ts';
import { responseLosses } from '../losses.ts';
import { bodyEdits } from './splice.ts';
import { finishOf, finishReason, lastItemStatus, outcomeOf, outweighs } from './outcome.ts';
import { createdAtOf, firstChoice, listAt, objectAt, usageIn, nonEmptyString } from '../wire.ts';

export function decodeResponse(text: string, context: DecodeContext): Step {
  const body = readBody(text);
  const native: Native = { dialect: 'chat', name: 'response', text, json: body };
  const events: CanonicalEvent[] = [startOf(body)];
  const tier = nonEmptyString(body['service_tier']);
  const usage = readTokenUsage(usageIn(body));
  const report: CanonicalEvent[] =
    usage === undefined ? [] : [{ type: 'usage.report', usage: tier === undefined ? usage : { ...usage, serviceTier: tier } }];
  const failure = failureIn(body, undefined, text);
  if (failure !== undefined) {
    events.push(...report, { type: 'response.end', outcome: { status: 'failed', error: failure } });
    return { native, events };
  }
  if (!Array.isArray(body['choices'])) throw undecodable('it has no choices');
  const choices = choicesOf(body);
  if (choices.length === 0) throw undecodable('it has no choices');
  const answer = new Answer(context, true);
  let reason: string | undefined;
  for (const choice of choices) {
    const given = finishReason(choice);
    if (given !== undefined && outweighs(given, reason)) reason = given;
    const { message } = choice;
    // A filtered answer may have no message.
    if (message !== undefined && message !== null) answer.push(objectAt(message, 'message'), choice, 'whole', events);
    if (isObject(message)) answer.addSources(message);
  }
  // A whole body was not cut off, so one that says something is the answer.
  if (reason === undefined && (context.options.acceptDoneWithoutFinish === true || saysSomething(events))) reason = 'stop';
  if (reason === undefined) throw upstreamFault('truncated', 'The upstream answered without a finish reason.');
  answer.addSources(body);
  const outcome = outcomeOf(reason, answer.hasToolCalls);
  answer.close(lastItemStatus(outcome), events);
  events.push(...report, { type: 'response.end', outcome });
  // Clients read one choice, so an answer that is split over several has no native form.
  return choices.length === 1 ? { native, events } : { events };
}

/**
 * The choices that make up the answer: the first one, or all. Copilot splits an answer over several choices without an index, its text in one
 * and its calls in others. Two choices that both have text are candidates.
 */
function choicesOf(body: JsonObject): readonly JsonObject[] {
  const all = listAt(body['choices'], 'choices').map((choice) => objectAt(choice, 'choices'));
  const isNumbered = all.some(({ index }) => index !== undefined && index !== null && index !== 0);
  if (!isNumbered && all.filter(hasText).length <= 1) return all;
  const first = firstChoice(body);
  return first === undefined ? [] : [first.choice];
}

function hasText({ message }: JsonObject): boolean {
  const content = isObject(message) ? message['content'] : undefined;
  return content !== undefined && content !== null && content !== '';
}

function saysSomething(events: readonly CanonicalEvent[]): boolean {
  return events.some((event) => event.type === 'item.start' && event.head.kind !== 'reasoning' && event.head.kind !== 'native');
}

function readBody(text: string): JsonObject {
  const body = tryJson(text);
  if (body === undefined) throw undecodable('it is not JSON');
  if (!isObject(body)) throw undecodable('it is not an object');
  return body;
}

function startOf(body: JsonObject): CanonicalEvent {
  const meta = { id: nonEmptyString(body['id']), model: nonEmptyString(body['model']), createdAt: createdAtOf(body) };
  return { type: 'response.start', ...defined(meta) };
}

/** The body for a client that does not stream. */
export function encodeResponse(whole: Whole, native: Native | undefined, context: ResponseContext): string {
  if (whole.outcome.status === 'failed' || whole.outcome.status === 'cancelled') throw whole.outcome.error;
  if (native?.dialect === 'chat' && isObject(native.json)) return editJson(native.text, bodyEdits(native.json, whole, context));
  const parts = new Parts(context);
  const { items, usage, outcome } = new AnswerLosses('chat', responseLosses, context).keptWhole(whole);
  for (const { item } of items) parts.add(item);
  const choice = {
    index: 0,
    message: parts.message(),
    logprobs: parts.logprobs.length === 0 ? null : { content: writeLogprobs(parts.logprobs), refusal: null },
    ...finishOf(outcome, parts.toolCalls.length > 0 ? callsReason(context) : undefined),
  };
  return JSON.stringify({
    id: context.responseId,
    object: 'chat.completion',
    created: context.createdAt,
    model: context.model,
    choices: [choice],
    ...(usage === undefined ? {} : { usage: writeTokenUsage(usage) }),
  });
}

class Parts {
  content = '';
  refusal = '';
  raw = '';
  reasoning = '';
  readonly details: JsonObject[] = [];
  readonly toolCalls: ToolCallItem[] = [];
  readonly annotations: JsonObject[] = [];
  readonly images: JsonObject[] = [];
  readonly logprobs: TokenLogprob[] = [];
  #audio: JsonObject | undefined;
  #hasText = false;
  #index = 0;
  readonly #join = new TextJoin();
  /** Code points of the content. */
  readonly #length = new CodePointCounter();
  readonly #context: ResponseContext;

  constructor(context: ResponseContext) {
    this.#context = context;
  }

  add(item: OutputItem): void {
    this.#join.begin(item.kind, item.kind === 'text' ? item.phase : undefined);
    switch (item.kind) {
      case 'text':
        this.#addText(item);
        break;
      case 'refusal':
        this.refusal += item.text;
        break;
      case 'reasoning':
        this.#addReasoning(item);
        break;
      case 'toolCall':
        this.toolCalls.push(item);
        this.#addSealed(item.opaque, item.callId);
        break;
      case 'media':
        this.#addMedia(item);
        break;
      case 'native':
        break;
    }
  }

  #addText({ text, citations, logprobs, opaque }: TextItem): void {
    this.#hasText = true;
    const separator = text === '' ? '' : this.#join.beforeWords();
    this.content += separator;
    const base = this.#length.add(separator);
    const start = this.content.length;
    this.content += text;
    this.#length.add(text);
    append(this.logprobs, logprobsOf(text, logprobs) ?? []);
    for (const citation of citations) {
      const written = writeAnnotation(citation, base);
      if (written !== undefined) this.annotations.push(written);
    }
    this.#addSealed(opaque, textSignatureId({ start, end: this.content.length }));
  }

  #addReasoning(item: ReasoningItem): void {
    this.raw += item.raw ?? '';
    const summary = (item.summary ?? []).filter((part) => part !== '').join(SUMMARY_SEPARATOR);
    if (summary === '' && item.opaque === undefined) return;
    // Summary and payload of one item share their index.
    const index = this.#index++;
    const id = reasoningId(item, this.#context);
    if (summary !== '') {
      this.details.push(summaryEntry(summary, id, index));
      this.reasoning += this.reasoning === '' ? summary : SUMMARY_SEPARATOR + summary;
    }
    if (item.opaque !== undefined) this.details.push(sealedEntry(item.opaque, id, index, this.#context));
  }

  #addMedia(item: MediaItem): void {
    const member = mediaMember(item, this.#context);
    if ('images' in member) {
      const id = imageSignatureId(this.images.length);
      this.images.push(member.images);
      this.#addSealed(item.opaque, id);
    } else if (this.#audio !== undefined) refuseSeveralAudios();
    else this.#audio = { ...member.audio, expires_at: 0 };
  }

  /** Adds an entry for an item's opaque value, under the item's id. */
  #addSealed(opaque: Opaque | undefined, id: string): void {
    if (opaque !== undefined) this.details.push(sealedEntry(opaque, id, this.#index++, this.#context));
  }

  message(): JsonObject {
    const hasOtherContent = this.toolCalls.length > 0 || this.refusal !== '' || this.#audio !== undefined;
    return {
      role: 'assistant',
      content: this.#hasText || !hasOtherContent ? this.content : null,
      refusal: this.refusal === '' ? null : this.refusal,
      ...(this.raw === '' ? {} : { reasoning_content: this.raw }),
      ...(this.reasoning === '' ? {} : { reasoning: this.reasoning }),
      ...(this.details.length === 0 ? {} : { reasoning_details: this.details }),
      ...(this.images.length === 0 ? {} : { images: this.images }),
      ...(this.#audio === undefined ? {} : { audio: this.#audio }),
      ...(this.annotations.length === 0 ? {} : { annotations: this.annotations }),
      ...this.#callMembers(),
    };
  }

  #callMembers(): JsonObject {
    const [first, ...others] = this.toolCalls;
    if (first === undefined) return {};
    if (!wantsLegacyCalls(this.#context)) return { tool_calls: this.toolCalls.map((call) => toolCallHead(call, call.input)) };
    if (others.length > 0) refuseSeveralLegacyCalls();
    return { function_call: { name: first.tool.name, arguments: first.input } };
  }
}
