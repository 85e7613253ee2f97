/** Whole JSON answers. They are decoded by the same block readers as a stream, and encoded with the same parts. */
import { AnswerLosses } from '../../answers/losses.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import type { Whole, WholeItem } from '../../canonical/fold.ts';
import { unfold } from '../../canonical/item-emitter.ts';
import { isObject, isObjectText, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { DecodeContext, ResponseContext } from '../../codec.ts';
import { editJson } from '../../json/edit.ts';
import { readTextInSteps } from '../../json/parse-in-steps.ts';
import { jsonSlicer } from '../../json/text.ts';
import { writeInSteps } from '../../json/write-in-steps.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { AnswerReader } from './answer-reader.ts';
import { ContentSink } from './block-sinks.ts';
import { BlockWriter } from './encode-blocks.ts';
import { reportedError } from '../errors.ts';
import { NO_FACTS, unfinishedCall, wireInput } from '../message-parts.ts';
import { responseLosses } from '../losses.ts';
import { messageEdits } from './splice.ts';
import { encodeStop, endOfLast, readStop, stopMembers } from './outcome.ts';
import { encodeUsage } from './usage.ts';
import { needString } from '../wire.ts';

/** A whole body as one step. Throws GatewayError blaming the upstream. */
export function* decodeInSteps(text: string, context: DecodeContext): Steps<Step> {
  const { json, ends } = yield* parseBody(text);
  yield;
  const native: Native = { dialect: 'messages', name: 'response', text, json, ends };
  if (json['type'] === 'error' || (json['content'] === undefined && isObject(json['error']))) {
    return { native, events: [{ type: 'response.end', outcome: { status: 'failed', error: reportedError(json, text) } }] };
  }
  return { native, events: yield* readMessage(json, text, context) };
}

function* parseBody(text: string): Steps<{ readonly json: JsonObject; readonly ends: Native['ends'] }> {
  const { json, ends } = yield* readTextInSteps(text);
  if (json === undefined) throw upstreamFault('undecodable', 'The upstream sent a body that is not JSON.');
  if (!isObject(json)) throw upstreamFault('undecodable', 'The upstream sent a body that is not an object.');
  return { json, ends };
}

function* readMessage(json: JsonObject, text: string, context: DecodeContext): Steps<CanonicalEvent[]> {
  const content = json['content'];
  if (!Array.isArray(content)) throw upstreamFault('undecodable', 'The upstream sent a message without content.');
  const answer = new AnswerReader(context);
  const events: CanonicalEvent[] = [];
  answer.start(json, 'message', events);
  const stop = readStop(needString(json, 'stop_reason', 'message'), json);
  const slice = jsonSlicer(text);
  const blocks: readonly JsonValue[] = content;
  for (const [at, block] of blocks.entries()) {
    if (endsStep(at)) yield;
    const status = at === blocks.length - 1 ? endOfLast(stop.reason) : 'completed';
    answer.readBlock(block, status, () => slice(['content', at, 'input']), events);
  }
  answer.readUsage(json['usage'] ?? {}, false, events);
  answer.end(stop, events);
  return events;
}

/**
 * The body for a client. Throws the error of an answer that failed, and `response_not_representable` for media and for
 * calls without whole arguments (spec rule 11).
 */
export function* encodeInSteps(whole: Whole, native: Native | undefined, context: ResponseContext): Steps<string> {
  if (native?.dialect === 'messages' && isObject(native.json)) {
    return editJson(native.text, messageEdits(native.json, [], context), native.ends);
  }
  if (whole.outcome.status === 'failed' || whole.outcome.status === 'cancelled') throw whole.outcome.error;
  const sink = new ContentSink();
  const writer = new BlockWriter(context, sink);
  const { items, usage } = new AnswerLosses('messages', responseLosses, context).keptWhole(whole);
  for (const [index, entry] of items.entries()) {
    if (endsStep(index)) yield;
    checkWhole(entry);
    for (const event of unfold(index, entry)) writer.write(event);
  }
  const body = {
    id: context.responseId,
    type: 'message',
    role: 'assistant',
    model: context.model,
    content: sink.content,
    ...stopMembers(encodeStop(whole.outcome, { toolUse: writer.calledTool, refusal: writer.refused })),
    ...NO_FACTS,
    usage: encodeUsage(usage, context.inputEstimate),
  };
  yield;
  const text = yield* writeInSteps(body);
  yield;
  return editJson(text, sink.inputEdits);
}

/** A call that was cut before its arguments must not become a call without arguments, which the client would run. */
function checkWhole({ item, status }: WholeItem): void {
  if (item.kind !== 'toolCall' || status !== 'incomplete') return;
  if (!isObjectText(item.toolType === 'function' ? item.input : wireInput(item))) throw unfinishedCall();
}
