/**
 * Fills in final forms that leave out what was streamed: an empty text, a call without its arguments, a message or reasoning
 * without its parts. An empty form neither erases nor contradicts what was streamed (semantics 3.13.3, 8.2.2). It is filled in
 * before anything reads the event, so that clients of the same dialect get the same answer as all others.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { specOf } from '../lifecycle.ts';
import { inputMember } from './decode-items.ts';
import { type MatchedItem, messageText } from './match-output.ts';
import { type Slot, streamedInput, type TextPart } from './slot.ts';
import { arrayOrEmpty, nonEmptyString } from '../wire.ts';

const NONE: readonly JsonEdit[] = [];

/** The edits that put into an event what its items have streamed and it leaves out. */
export function backfillEdits(name: string, json: JsonObject, slots: ReadonlyMap<number, Slot>): readonly JsonEdit[] {
  const { item: verb, part: partVerb, input, textMember, isSummary = false } = specOf(name);
  const isEnd = verb === 'done' || partVerb === 'textDone' || partVerb === 'done' || input === 'done';
  const slot = isEnd ? slots.get(Number(json['output_index'])) : undefined;
  if (slot === undefined) return NONE;
  if (verb === 'done') return itemEdits(['item'], json['item'], slot);
  if (textMember !== undefined)
    return textEdits(
      [textMember],
      json[textMember],
      input === 'done' ? streamedInput(slot) : streamedText(slot, json, isSummary),
    );
  const { part } = json;
  if (!isObject(part)) return NONE;
  const member = part['type'] === 'refusal' ? 'refusal' : 'text';
  return textEdits(['part', member], part[member], streamedText(slot, json, isSummary));
}

function textEdits(path: JsonPath, given: JsonValue | undefined, streamed: string): readonly JsonEdit[] {
  return given === '' && streamed !== '' ? [{ path, value: JSON.stringify(streamed) }] : NONE;
}

function streamedText(slot: Slot, json: JsonObject, isSummary: boolean): string {
  if (isSummary) return slot.open?.summary[Number(json['summary_index'])] ?? '';
  const index = Number(json['content_index']);
  return (slot.type === 'reasoning' ? slot.raw[index] : slot.parts[index]?.item)?.text ?? '';
}

/** The same for an entry of a terminal's output. */
export function entryEdits({ item, streamed: slot, position }: MatchedItem): readonly JsonEdit[] {
  return slot === undefined ? NONE : itemEdits(['response', 'output', position], item, slot);
}

/** The members for an item's own content that this form of it leaves empty. */
function emptyMembers(item: JsonObject): readonly string[] {
  switch (item['type']) {
    case 'message':
      return messageText(item) === '' ? ['content'] : [];
    case 'reasoning':
      return ['summary', 'content'].filter((member) => arrayOrEmpty(item, member, 'reasoning item').length === 0);
    case 'function_call':
    case 'custom_tool_call': {
      const member = inputMember(item);
      return nonEmptyString(item, member) === undefined ? [member] : [];
    }
    default:
      return [];
  }
}

function itemEdits(path: JsonPath, item: JsonValue | undefined, slot: Slot): readonly JsonEdit[] {
  if (!isObject(item) || item['type'] !== slot.type) return NONE;
  return emptyMembers(item).flatMap((member) => {
    const content = slot.closed
      ? emptyMembers(slot.item).includes(member)
        ? undefined
        : slot.item[member]
      : streamed(slot, member);
    return content === undefined ? [] : [{ path: [...path, member], value: JSON.stringify(content) }];
  });
}

/** What an open item has streamed, in the form of the member that holds it; undefined where that is nothing. */
function streamed(slot: Slot, member: string): JsonValue | undefined {
  switch (slot.type) {
    case 'message': {
      const started = slot.parts.filter((part) => part !== undefined);
      return started.some(({ item }) => item.text !== '') ? started.map(partObject) : undefined;
    }
    case 'reasoning':
      return member === 'summary'
        ? textParts('summary_text', slot.open?.summary ?? [])
        : textParts(
            'reasoning_text',
            slot.raw.map(({ text }) => text),
          );
    default:
      return streamedInput(slot) || undefined;
  }
}

function textParts(type: string, texts: readonly string[]): JsonValue | undefined {
  return texts.some((text) => text !== '') ? texts.map((text) => ({ type, text })) : undefined;
}

function partObject({ item: { head, text }, annotations, final }: TextPart): JsonObject {
  if (final !== undefined) return final;
  if (head.kind === 'refusal') return { type: 'refusal', refusal: text };
  return { type: 'output_text', annotations, logprobs: [], text };
}
