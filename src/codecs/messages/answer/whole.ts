/** Whole JSON answers. They are decoded by the same block readers as a stream, and encoded with the same parts. */
import { append } from '../../append.ts';
import { AnswerLosses } from '../../answers/losses.ts';
import { upstreamFault } from '../../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../../canonical/event.ts';
import type { Whole, WholeItem } from '../../canonical/fold.ts';
import { isObject, isObjectText, type JsonObject, type JsonValue, tryJson } from '../../canonical/json.ts';
import type { DecodeContext, ResponseContext } from '../../codec.ts';
import { editJson, type JsonEdit } from '../../json/edit.ts';
import { jsonSlicer } from '../../json/text.ts';
import { AnswerReader } from './answer-reader.ts';
import { reportedError } from '../errors.ts';
import {
  attachedSignature,
  checkInput,
  citationBodies,
  mediaRefused,
  NO_FACTS,
  thinkingText,
  toolUseBlock,
  unfinishedCall,
  unsignedSignature,
  wireInput,
} from '../message-parts.ts';
import { responseLosses } from '../losses.ts';
import { messageEdits } from './splice.ts';
import { isRedacted } from '../opaque.ts';
import { encodeStop, endOfLast, readStop, stopMembers } from './outcome.ts';
import { encodeUsage } from './usage.ts';
import { needString } from '../wire.ts';

/** A whole body as one step. Throws GatewayError blaming the upstream. */
export function decodeResponse(text: string, context: DecodeContext): Step {
  const json = parseBody(text);
  const native: Native = { dialect: 'messages', name: 'response', text, json };
  if (json['type'] === 'error' || (json['content'] === undefined && isObject(json['error']))) {
    return { native, events: [{ type: 'response.end', outcome: { status: 'failed', error: reportedError(json, text) } }] };
  }
  return { native, events: readMessage(json, text, context) };
}

function parseBody(text: string): JsonObject {
  const json = tryJson(text);
  if (json === undefined) throw upstreamFault('undecodable', 'The upstream sent a body that is not JSON.');
  if (!isObject(json)) throw upstreamFault('undecodable', 'The upstream sent a body that is not an object.');
  return json;
}

function readMessage(json: JsonObject, text: string, context: DecodeContext): CanonicalEvent[] {
  const content = json['content'];
  if (!Array.isArray(content)) throw upstreamFault('undecodable', 'The upstream sent a message without content.');
  const answer = new AnswerReader(context);
  const events: CanonicalEvent[] = [];
  answer.start(json, 'message', events);
  const stop = readStop(needString(json, 'stop_reason', 'message'), json);
  const slice = jsonSlicer(text);
  content.forEach((block: JsonValue, at) => {
    const status = at === content.length - 1 ? endOfLast(stop.reason) : 'completed';
    answer.readBlock(block, status, () => slice(['content', at, 'input']), events);
  });
  answer.readUsage(json['usage'] ?? {}, events);
  answer.end(stop, events);
  return events;
}

/**
 * The body for a client. Throws the error of an answer that failed, and `response_not_representable` for media and for
 * calls without whole arguments (spec rule 11).
 */
export function encodeResponse(whole: Whole, native: Native | undefined, context: ResponseContext): string {
  if (native?.dialect === 'messages' && isObject(native.json)) {
    return editJson(native.text, messageEdits(native.json, [], context));
  }
  if (whole.outcome.status === 'failed' || whole.outcome.status === 'cancelled') throw whole.outcome.error;
  const content = new Content();
  const inputs: JsonEdit[] = [];
  const answered = { toolUse: false, refusal: false };
  const { items, usage } = new AnswerLosses('messages', responseLosses, context).keptWhole(whole);
  for (const entry of items) {
    const { item } = entry;
    if (item.kind === 'toolCall') answered.toolUse = true;
    if (item.kind === 'refusal') answered.refusal = true;
    for (const block of encodeItem(entry, context)) {
      const at = content.add(block);
      if (block['type'] === 'tool_use') inputs.push({ path: ['content', at, 'input'], value: wholeInput(entry) });
    }
  }
  const body = {
    id: context.responseId,
    type: 'message',
    role: 'assistant',
    model: context.model,
    content: content.blocks,
    ...stopMembers(encodeStop(whole.outcome, answered)),
    ...NO_FACTS,
    usage: encodeUsage(usage, context.inputEstimate),
  };
  return editJson(JSON.stringify(body), inputs);
}

/** The blocks of an answer. A signature behind a text waits for another block, as in a stream. */
class Content {
  readonly blocks: JsonObject[] = [];
  #waiting: JsonObject[] = [];

  /** Returns the place of the block, or where it would stand. */
  add(block: JsonObject): number {
    if (isOpaqueOnly(block)) {
      if (this.blocks.at(-1)?.['type'] === 'text') this.#waiting.push(block);
      else this.blocks.push(block);
      return this.blocks.length - 1;
    }
    append(this.blocks, this.#waiting);
    this.#waiting = [];
    return this.blocks.push(block) - 1;
  }
}

function isOpaqueOnly({ type, thinking }: JsonObject): boolean {
  return type === 'redacted_thinking' || (type === 'thinking' && thinking === '');
}

/** The argument text itself, so that key order and number spelling survive. */
function wholeInput({ item, status }: WholeItem): string {
  if (item.kind !== 'toolCall') throw unfinishedCall();
  // A call that was cut before its arguments must not become a call without arguments, which the client would run.
  if (status === 'incomplete' && !isObjectText(item.flavour === 'function' ? item.input : wireInput(item)))
    throw unfinishedCall();
  checkInput(item);
  return wireInput(item);
}

function textBlock(text: string, citations: readonly JsonObject[]): JsonObject {
  return { type: 'text', citations: citations.length > 0 ? [...citations] : null, text };
}

function encodeItem({ item }: WholeItem, context: ResponseContext): JsonObject[] {
  const signature = attachedSignature(item, context);
  const signed = signature === undefined ? [] : [{ type: 'thinking', thinking: '', signature }];
  switch (item.kind) {
    case 'text': {
      const citations = citationBodies(item);
      if (item.text === '' && citations.length === 0) return signed;
      return [textBlock(item.text, citations), ...signed];
    }
    case 'refusal':
      return item.text === '' ? [] : [textBlock(item.text, [])];
    case 'reasoning': {
      const thinking = thinkingText(item);
      const { opaque } = item;
      if (opaque !== undefined && isRedacted(opaque) && thinking === '') {
        return [{ type: 'redacted_thinking', data: context.seal(opaque) }];
      }
      if (thinking === '' && opaque === undefined) return [];
      const signature = opaque === undefined ? unsignedSignature(item, context) : context.seal(opaque);
      return [{ type: 'thinking', thinking, signature }];
    }
    case 'toolCall':
      return [toolUseBlock(item.callId, item.tool.name), ...signed];
    case 'native':
      return item.dialect === 'messages' && isObject(item.body) ? [item.body] : [];
    case 'media':
      throw mediaRefused();
  }
}
