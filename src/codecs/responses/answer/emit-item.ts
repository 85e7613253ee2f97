/**
 * Sends the rest of an item whose finished form is known: the events that lead from what the client has of it to that form. The
 * form itself stays as its upstream wrote it. Its texts extend what was sent; the decoder has refused every other.
 */
import { isObject, type JsonObject } from '../../canonical/json.ts';
import { specOf } from '../lifecycle.ts';
import { inputMember } from './decode-items.ts';
import {
  addPart,
  type Emit,
  emitAnnotation,
  emitInputDone,
  emitPartDone,
  emitTextDone,
  inputEvents,
  isPartType,
  itemPlace,
  newSentItem,
  partPlace,
  type SentItem,
  type SentPart,
  TEXT_EVENTS,
  withoutOpaque,
} from './sent-items.ts';

/** Announces an item that the client does not know yet, in the form in which items of its type begin. */
export function announceItem(outputIndex: number, final: JsonObject, emit: Emit): SentItem {
  const item = newSentItem(outputIndex, announcedForm(final));
  emit('response.output_item.added', { output_index: outputIndex, item: item.announced });
  return item;
}

function announcedForm(final: JsonObject): JsonObject {
  switch (final['type']) {
    case 'message':
      return { ...final, status: 'in_progress', content: [] };
    case 'reasoning':
      return { ...withoutOpaque(final), summary: [], ...(Array.isArray(final['content']) ? { content: [] } : {}) };
    case 'function_call':
      return { ...final, status: 'in_progress', arguments: '' };
    case 'custom_tool_call':
      return { ...final, status: 'in_progress', input: '' };
    case 'image_generation_call':
      return { ...final, status: 'in_progress', result: null };
    default:
      return final;
  }
}

/** `final` is the finished item, `text` its exact JSON. */
export function emitItem(item: SentItem, final: JsonObject, text: string, emit: Emit): void {
  emitContent(item, final, emit);
  item.final = text;
  emit('response.output_item.done', { output_index: item.outputIndex, item: final });
}

/** Sends what the finished item holds and the client has not got, but not the end of the item. */
export function emitContent(item: SentItem, final: JsonObject, emit: Emit): void {
  switch (item.type) {
    case 'message':
      emitParts(item, 'content', final, emit);
      break;
    case 'reasoning':
      emitParts(item, 'summary', final, emit);
      emitParts(item, 'content', final, emit);
      break;
    case 'function_call':
    case 'custom_tool_call':
      emitInput(item, final, emit);
      break;
  }
}

function emitParts(item: SentItem, member: 'content' | 'summary', { [member]: parts }: JsonObject, emit: Emit): void {
  const { [member]: announced } = item.announced;
  // Parts that came with the announcement are not sent again.
  if (!Array.isArray(parts) || (Array.isArray(announced) && announced.length > 0)) return;
  for (const [index, final] of parts.entries()) {
    if (!isObject(final)) continue;
    const known = item[member][index];
    if (known?.isClosed === true) continue;
    const type = isPartType(final['type']) ? final['type'] : undefined;
    const part = known ?? addPart(item, type ?? 'output_text', () => undefined, emit, type === undefined ? final : undefined);
    if (type !== undefined) emitText(item, part, final, emit);
    emitPartDone(item, part, final, emit);
  }
}

/** For the end of a part whose whole text was not sent: sends that first. */
export function emitMissingTextDone(item: SentItem, name: string, body: JsonObject, emit: Emit): void {
  const { part: final, summary_index: summary, content_index: content } = body;
  if (specOf(name).part !== 'done' || !isObject(final)) return;
  const part = summary === undefined ? item.content[Number(content)] : item.summary[Number(summary)];
  if (part !== undefined && !part.isTextDone && part.type === final['type']) emitText(item, part, final, emit);
}

function emitText(item: SentItem, part: SentPart, final: JsonObject, emit: Emit): void {
  const whole = String(final[part.type === 'refusal' ? 'refusal' : 'text'] ?? '');
  const isText = part.type === 'output_text';
  const given = Array.isArray(final['logprobs']) ? final['logprobs'] : [];
  const tokens = given.length === 0 ? part.logprobs : given;
  const { length } = part.written;
  if (!part.isTextDone && whole.length > length) {
    // Logprobs go with a text of which nothing was streamed; otherwise they would not fit its suffix.
    const logprobs = isText ? { logprobs: length === 0 ? tokens : [] } : {};
    emit(`${TEXT_EVENTS[part.type]}.delta`, { ...partPlace(item, part), delta: whole.slice(length), ...logprobs });
  }
  const annotations = isText && Array.isArray(final['annotations']) ? final['annotations'] : [];
  for (const [index, annotation] of annotations.entries()) {
    if (index >= part.annotations.length && isObject(annotation)) emitAnnotation(item, part, annotation, emit);
  }
  if (part.isTextDone) return;
  part.whole = whole;
  emitTextDone(item, part, tokens, emit);
}

function emitInput(item: SentItem, final: JsonObject, emit: Emit): void {
  if (item.isInputDone) return;
  const member = inputMember(item.announced);
  const whole = String(final[member] ?? item.input.text);
  const { length } = item.input;
  const isAnnounced = length === 0 && item.announced[member] === whole;
  if (whole.length > length && !isAnnounced)
    emit(`${inputEvents(item.type)}.delta`, { ...itemPlace(item), delta: whole.slice(length) });
  item.isInputDone = true;
  emitInputDone(item, whole, final, emit);
}
