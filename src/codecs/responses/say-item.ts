/**
 * The rest of an item whose finished form is known: the events that lead from what the client has read of it to that form, which
 * stays as its upstream wrote it. Texts must extend what was said; the decoder has refused every other.
 */
import { isObject, type JsonObject } from '../canonical/json.ts';
import {
  addPart,
  annotate,
  type Emit,
  endingOf,
  isPartType,
  placeOf,
  sayWholeInput,
  type ToldItem,
  type ToldPart,
  tellItem,
  withoutOpaque,
} from './told.ts';

/** Announces an item that the client has not met, in the form in which items of its type begin. */
export function announceItem(outputIndex: number, final: JsonObject, emit: Emit): ToldItem {
  const item = tellItem(outputIndex, startForm(final));
  emit('response.output_item.added', { output_index: outputIndex, item: item.announced });
  return item;
}

function startForm(final: JsonObject): JsonObject {
  switch (final['type']) {
    case 'message':
      return { ...final, status: 'in_progress', content: [] };
    case 'reasoning':
      return { ...withoutOpaque(final), summary: [], ...(Array.isArray(final['content']) ? { content: [] } : {}) };
    case 'function_call':
      return { ...final, status: 'in_progress', arguments: '' };
    case 'custom_tool_call':
      return { ...final, status: 'in_progress', input: '' };
    case 'image_generation_call': {
      const { result: _, ...begun } = final;
      return { ...begun, status: 'in_progress' };
    }
    default:
      return final;
  }
}

/** `final` is the finished item, `text` its exact JSON. */
export function sayItem(item: ToldItem, final: JsonObject, text: string, emit: Emit): void {
  sayContent(item, final, emit);
  item.final = text;
  emit('response.output_item.done', { output_index: item.outputIndex, item: final });
}

/** What the finished item says between its announcement and its end. */
export function sayContent(item: ToldItem, final: JsonObject, emit: Emit): void {
  switch (item.type) {
    case 'message':
      sayParts(item, 'content', final, emit);
      break;
    case 'reasoning':
      sayParts(item, 'summary', final, emit);
      sayParts(item, 'content', final, emit);
      break;
    case 'function_call':
      sayInput(item, final, 'arguments', 'response.function_call_arguments', emit);
      break;
    case 'custom_tool_call':
      sayInput(item, final, 'input', 'response.custom_tool_call_input', emit);
      break;
  }
}

function sayParts(item: ToldItem, member: 'content' | 'summary', { [member]: parts }: JsonObject, emit: Emit): void {
  const { [member]: begun } = item.announced;
  // Where the announcement says it all, nothing is said twice.
  if (!Array.isArray(parts) || (Array.isArray(begun) && begun.length > 0)) return;
  for (const [index, final] of parts.entries()) {
    if (!isObject(final)) continue;
    const known = item[member][index];
    if (known?.isClosed === true) continue;
    const type = isPartType(final['type']) ? final['type'] : undefined;
    const part = known ?? addPart(item, type ?? 'output_text', emit, type === undefined ? final : undefined);
    if (type !== undefined) sayText(item, part, final, emit);
    part.isClosed = true;
    emit(endingOf(part), { ...placeOf(item, part), part: final });
  }
}

/** Events about the text of a part, by its type. */
const EVENTS = {
  output_text: 'response.output_text',
  refusal: 'response.refusal',
  reasoning_text: 'response.reasoning_text',
  summary_text: 'response.reasoning_summary_text',
} as const;

/** The end of a text, where its upstream ends the part without it. */
export function sayUnsaid(item: ToldItem, name: string, body: JsonObject, emit: Emit): void {
  const { part: final, summary_index: summary, content_index: content } = body;
  if (!ENDINGS.has(name) || !isObject(final)) return;
  const part = summary === undefined ? item.content[Number(content)] : item.summary[Number(summary)];
  if (part !== undefined && !part.isSaid && part.type === final['type']) sayText(item, part, final, emit);
}

const ENDINGS: ReadonlySet<string> = new Set([
  'response.content_part.done',
  'response.reasoning_part.done',
  'response.reasoning_summary_part.done',
]);

function sayText(item: ToldItem, part: ToldPart, final: JsonObject, emit: Emit): void {
  const place = placeOf(item, part);
  const whole = String(final[part.type === 'refusal' ? 'refusal' : 'text'] ?? '');
  const isText = part.type === 'output_text';
  const given = Array.isArray(final['logprobs']) ? final['logprobs'] : [];
  const tokens = given.length === 0 ? part.logprobs : given;
  if (!part.isSaid && whole.length > part.text.length) {
    // Tokens ride on their text only where none of it was streamed before.
    const logprobs = isText ? { logprobs: part.text === '' ? tokens : [] } : {};
    emit(`${EVENTS[part.type]}.delta`, { ...place, delta: whole.slice(part.text.length), ...logprobs });
  }
  const annotations = isText && Array.isArray(final['annotations']) ? final['annotations'] : [];
  for (const [index, annotation] of annotations.entries()) {
    if (index >= part.annotations.length && isObject(annotation)) annotate(item, part, annotation, emit);
  }
  if (part.isSaid) return;
  part.isSaid = true;
  part.text = whole;
  const said = part.type === 'refusal' ? { refusal: whole } : { text: whole };
  emit(`${EVENTS[part.type]}.done`, { ...place, ...said, ...(isText ? { logprobs: tokens } : {}) });
}

function sayInput(item: ToldItem, final: JsonObject, member: 'arguments' | 'input', event: string, emit: Emit): void {
  if (item.isInputSaid) return;
  const place = { item_id: item.id, output_index: item.outputIndex };
  const whole = String(final[member] ?? item.input);
  const isAnnounced = item.input === '' && item.announced[member] === whole;
  if (whole.length > item.input.length && !isAnnounced)
    emit(`${event}.delta`, { ...place, delta: whole.slice(item.input.length) });
  item.isInputSaid = true;
  item.input = whole;
  sayWholeInput(item, whole, final, emit);
}
