/**
 * Whole chat-completions bodies, both ways. A whole answer is a stream that arrived at once, so decoding uses the parts of the
 * stream decoder.
 */
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import type { Whole, WholeItem } from '../../canonical/fold.ts';
import { unfold } from '../../canonical/item-emitter.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { type Served, shownUsage } from '../../canonical/usage.ts';
import type { DecodeContext, ResponseContext } from '../../codec.ts';
import { defined } from '../../defined.ts';
import { without } from '../../entries.ts';
import { editJson } from '../../json/edit.ts';
import { readTextInSteps } from '../../json/parse-in-steps.ts';
import { writeInSteps } from '../../json/write-in-steps.ts';
import { logprobsOf } from '../../answers/logprobs.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { readTokenUsage, writeTokenUsage } from '../../answers/token-usage.ts';
import { Answer } from './decode-message.ts';
import { MessageSink } from './delta-sinks.ts';
import { ItemWriter } from './encode-items.ts';
import { failureIn, undecodable } from '../errors.ts';
import { responseLosses } from '../losses.ts';
import { bodyEdits } from './splice.ts';
import { finishOf, finishReason, lastItemStatus, outcomeOf, overrides } from './outcome.ts';
import type { Steps } from '../../steps.ts';
import { checkHasMessage, createdAtOf, firstChoice, listAt, objectAt, usageIn, nonEmptyString } from '../wire.ts';

export function* decodeInSteps(text: string, context: DecodeContext): Steps<Step> {
  const { body, ends } = yield* readBody(text);
  yield;
  const native: Native = { dialect: 'chat', name: 'response', text, json: body, ends };
  const tier = nonEmptyString(body['service_tier']);
  const usage = readTokenUsage(usageIn(body));
  const served = tier === undefined || usage !== undefined ? undefined : { serviceTier: tier };
  const events: CanonicalEvent[] = [startOf(body, served)];
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
    checkHasMessage(choice);
    const given = finishReason(choice);
    if (given !== undefined && overrides(given, reason)) reason = given;
    const { message } = choice;
    // A filtered answer may have no message.
    if (message !== undefined && message !== null) answer.push(objectAt(message, 'message'), choice, 'whole', events);
    if (isObject(message)) answer.addSources(message);
  }
  // A whole body was not cut off, so one that has output is the answer.
  if (reason === undefined && (context.options.acceptDoneWithoutFinish === true || hasOutput(events))) reason = 'stop';
  if (reason === undefined) throw upstreamFault('truncated', 'The upstream answered without a finish reason.');
  answer.addSources(body);
  const outcome = outcomeOf(reason, answer.hasToolCalls);
  answer.close(lastItemStatus(outcome), events);
  events.push(...report, { type: 'response.end', outcome });
  // Clients read one choice, so an answer that is split over several has no native form.
  return choices.length === 1 ? { native, events } : { events };
}

/**
 * The choices that make up the answer: the first one, or all. Copilot splits an answer over several choices without an index, its
 * text in one and its calls in others. Two choices that both have text are candidates.
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

function hasOutput(events: readonly CanonicalEvent[]): boolean {
  return events.some((event) => event.type === 'item.start' && event.head.kind !== 'reasoning' && event.head.kind !== 'native');
}

function* readBody(text: string): Steps<{ readonly body: JsonObject; readonly ends: Native['ends'] }> {
  const { json: body, ends } = yield* readTextInSteps(text);
  if (body === undefined) throw undecodable('it is not JSON');
  if (!isObject(body)) throw undecodable('it is not an object');
  return { body, ends };
}

function startOf(body: JsonObject, served: Served | undefined): CanonicalEvent {
  const meta = { id: nonEmptyString(body['id']), model: nonEmptyString(body['model']), createdAt: createdAtOf(body) };
  return { type: 'response.start', ...defined({ ...meta, served }) };
}

/** The body for a client that does not stream. */
export function* encodeInSteps(whole: Whole, native: Native | undefined, context: ResponseContext): Steps<string> {
  if (whole.outcome.status === 'failed' || whole.outcome.status === 'cancelled') throw whole.outcome.error;
  if (native?.dialect === 'chat' && isObject(native.json)) {
    return editJson(native.text, bodyEdits(native.json, whole, context), native.ends);
  }
  const sink = new MessageSink();
  const writer = new ItemWriter(context, sink);
  const { items, usage, outcome } = new AnswerLosses('chat', responseLosses, context).keptWhole(whole);
  for (const [index, entry] of items.entries()) for (const event of unfold(index, spelled(entry))) writer.write(event);
  const choice = {
    index: 0,
    message: messageOf(sink.message, writer.annotations, items),
    logprobs: sink.logprobs.length === 0 ? null : { content: sink.logprobs, refusal: null },
    ...finishOf(outcome, writer.hasCalls, context),
  };
  const shown = shownUsage(usage);
  yield;
  return yield* writeInSteps({
    id: context.responseId,
    object: 'chat.completion',
    created: context.createdAt,
    model: context.model,
    choices: [choice],
    ...(shown === undefined ? {} : { usage: writeTokenUsage(shown) }),
  });
}

/** Logprobs are shown where they spell their text. */
function spelled(entry: WholeItem): WholeItem {
  const { item } = entry;
  if (item.kind !== 'text' || item.logprobs === undefined) return entry;
  const logprobs = logprobsOf(item.text, item.logprobs);
  return logprobs === undefined ? { ...entry, item: without(item, 'logprobs') } : entry;
}

function messageOf(written: JsonObject, annotations: readonly JsonObject[], items: readonly WholeItem[]): JsonObject {
  const { content = '', refusal = null, images, audio, tool_calls: calls, function_call: call } = written;
  const hasText = items.some(({ item }) => item.kind === 'text');
  const hasOther = refusal !== null || audio !== undefined || calls !== undefined || call !== undefined;
  return {
    role: 'assistant',
    content: hasText || !hasOther ? content : null,
    refusal,
    ...defined({
      reasoning_content: written['reasoning_content'],
      reasoning: written['reasoning'],
      reasoning_details: written['reasoning_details'],
      images: withoutIndices(images),
      audio: isObject(audio) ? { ...audio, expires_at: 0 } : undefined,
      annotations: annotations.length === 0 ? undefined : annotations,
      tool_calls: withoutIndices(calls),
      function_call: call,
    }),
  };
}

/** The entries of a list that stand in its order. */
function withoutIndices(entries: JsonValue | undefined): JsonValue[] | undefined {
  if (!Array.isArray(entries)) return undefined;
  return entries.map((entry: JsonValue) => (isObject(entry) ? without(entry, 'index') : entry));
}
