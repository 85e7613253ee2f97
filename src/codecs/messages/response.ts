/** Whole JSON answers: decoded through the same blocks as a stream, encoded with the same words as a stream. */
import { append } from '../append.ts';
import { upstreamFault } from '../canonical/error.ts';
import type { CanonicalEvent, Native, Step } from '../canonical/event.ts';
import type { Whole, WholeItem } from '../canonical/fold.ts';
import { isObject, isObjectText, type JsonObject, type JsonValue, tryJson } from '../canonical/json.ts';
import type { DecodeContext, ResponseContext } from '../codec.ts';
import { editJson, type JsonEdit, jsonSlicer } from '../json/text.ts';
import type { BlockHost } from './block.ts';
import { readWholeBlock } from './blocks.ts';
import { saidError, wireStop } from './decode-events.ts';
import {
  attachedSignature,
  checkInput,
  citationBodies,
  isRedacted,
  mediaRefused,
  thinkingText,
  unfinishedCall,
  wireInput,
} from './message-parts.ts';
import { messageEdits } from './native-splice.ts';
import { decodeStop, encodeStop, endOfLast, stopMembers } from './stop-reason.ts';
import { encodeUsage, UsageReader } from './usage.ts';
import { malformed, mayString, needString } from './wire.ts';

/** A whole body as one step. Throws GatewayError blaming the upstream. */
export function decodeResponse(text: string, context: DecodeContext): Step {
  const json = parseBody(text);
  const native: Native = { dialect: 'messages', name: 'response', text, json };
  if (json['type'] === 'error' || (json['content'] === undefined && isObject(json['error']))) {
    return { native, events: [{ type: 'response.end', outcome: { status: 'failed', error: saidError(json, text) } }] };
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
  const id = mayString(json, 'id', 'message');
  const model = mayString(json, 'model', 'message');
  const stop = wireStop(needString(json, 'stop_reason', 'message'), json);
  const events: CanonicalEvent[] = [
    { type: 'response.start', ...(id === undefined ? {} : { id }), ...(model === undefined ? {} : { model }) },
  ];
  let items = 0;
  const reader = new UsageReader();
  const host: BlockHost = { context, nextIndex: () => items++, serverToolCalled: (name) => reader.called(name) };
  let calledTool = false;
  const slice = jsonSlicer(text);
  content.forEach((block: JsonValue, at) => {
    const status = at === content.length - 1 ? endOfLast(stop.reason) : 'completed';
    const { kind } = readWholeBlock(block, status, () => slice(['content', at, 'input']), host, events);
    calledTool ||= kind === 'tool';
  });
  const report = json['usage'];
  if (report !== undefined && report !== null && !isObject(report)) throw malformed('usage is not an object');
  const usage = reader.read(isObject(report) ? report : {});
  if (usage !== undefined) events.push({ type: 'usage.report', usage });
  events.push({ type: 'response.end', outcome: decodeStop(stop, calledTool) });
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
  const content: JsonObject[] = [];
  const inputs: JsonEdit[] = [];
  const said = { toolUse: false, refusal: false };
  for (const entry of whole.items) {
    const { item } = entry;
    if (item.kind === 'toolCall') {
      inputs.push({ path: ['content', content.length, 'input'], value: wholeInput(entry) });
      said.toolUse = true;
    }
    if (item.kind === 'refusal') said.refusal = true;
    append(content, encodeItem(entry, context));
  }
  const body = {
    id: context.responseId,
    type: 'message',
    role: 'assistant',
    model: context.model,
    content,
    ...stopMembers(encodeStop(whole.outcome, said)),
    usage: encodeUsage(whole.usage),
  };
  return editJson(JSON.stringify(body), inputs);
}

/** The argument text itself, so that key order and number spelling survive. */
function wholeInput({ item, status }: WholeItem): string {
  if (item.kind !== 'toolCall') throw unfinishedCall();
  // What was cut before its arguments is no call without arguments: nobody may run it.
  if (status === 'incomplete' && !isObjectText(item.flavour === 'function' ? item.input : wireInput(item)))
    throw unfinishedCall();
  checkInput(item);
  return wireInput(item);
}

function encodeItem({ item }: WholeItem, context: ResponseContext): JsonObject[] {
  const signature = attachedSignature(item, context);
  const signed = signature === undefined ? [] : [{ type: 'thinking', thinking: '', signature }];
  switch (item.kind) {
    case 'text': {
      const citations = citationBodies(item);
      if (item.text === '' && citations.length === 0) return signed;
      return [{ type: 'text', ...(citations.length > 0 ? { citations } : {}), text: item.text }, ...signed];
    }
    case 'refusal':
      return item.text === '' ? [] : [{ type: 'text', text: item.text }];
    case 'reasoning': {
      const thinking = thinkingText(item);
      const { opaque } = item;
      if (opaque !== undefined && isRedacted(opaque) && thinking === '') {
        return [{ type: 'redacted_thinking', data: context.seal(opaque) }];
      }
      if (thinking === '' && opaque === undefined) return [];
      return [{ type: 'thinking', thinking, signature: opaque === undefined ? '' : context.seal(opaque) }];
    }
    case 'toolCall':
      return [{ type: 'tool_use', id: item.callId, name: item.tool.name, input: {} }, ...signed];
    case 'native':
      return item.dialect === 'messages' && isObject(item.body) ? [item.body] : [];
    case 'media':
      throw mediaRefused();
  }
}
