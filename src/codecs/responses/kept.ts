/**
 * Final forms that leave out what was streamed: a text that ends as an empty one, a call without its arguments, a message without
 * its parts. An empty form erases nothing and contradicts nothing (semantics 3.13.3, 8.2.2): it is filled in before anything reads
 * it, as `places.ts` gives events their place, so that clients of the same dialect read the same as all others.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { JsonEdit, JsonPath } from '../json/text.ts';
import { writeCitations } from './annotations.ts';
import { meaningOf } from './lifecycle.ts';
import { inputMember } from './read-items.ts';
import { repeatedItems, spoken } from './repeated.ts';
import type { Slot, TextPart } from './slot.ts';
import { nonEmptyString } from './wire.ts';

const NONE: readonly JsonEdit[] = [];

/** What an event lacks of what its items have streamed. */
export function keptEdits(name: string, json: JsonObject, slots: ReadonlyMap<number, Slot>): readonly JsonEdit[] {
  const { stream, item: verb, part: partVerb, input, text, isSummary = false } = meaningOf(name);
  if (stream === 'terminal') return listedEdits(json['response'], slots);
  const isEnd = verb === 'done' || partVerb === 'said' || partVerb === 'done' || input === 'said';
  const slot = isEnd ? slots.get(Number(json['output_index'])) : undefined;
  if (slot === undefined) return NONE;
  if (verb === 'done') return itemEdits(['item'], json['item'], slot);
  if (text !== undefined)
    return textEdits([text], json[text], input === 'said' ? slot.input : streamedText(slot, json, isSummary));
  const { part } = json;
  if (!isObject(part)) return NONE;
  const member = part['type'] === 'refusal' ? 'refusal' : 'text';
  return textEdits(['part', member], part[member], streamedText(slot, json, isSummary));
}

function textEdits(path: JsonPath, said: JsonValue | undefined, streamed: string): readonly JsonEdit[] {
  return said === '' && streamed !== '' ? [{ path, value: JSON.stringify(streamed) }] : NONE;
}

function streamedText(slot: Slot, json: JsonObject, isSummary: boolean): string {
  if (isSummary) return slot.summary[Number(json['summary_index'])] ?? '';
  const index = Number(json['content_index']);
  return (slot.type === 'reasoning' ? slot.raw[index] : slot.parts[index]?.text) ?? '';
}

function listedEdits(response: JsonValue | undefined, slots: ReadonlyMap<number, Slot>): readonly JsonEdit[] {
  const output = isObject(response) ? response['output'] : undefined;
  if (!Array.isArray(output) || !output.some(isSilent)) return NONE;
  return repeatedItems(output, slots).found.flatMap(({ item, slot, position }) =>
    slot === undefined ? NONE : itemEdits(['response', 'output', position], item, slot),
  );
}

/** An item that says nothing where items of its type speak. */
function isSilent(item: JsonValue): boolean {
  if (!isObject(item)) return false;
  switch (item['type']) {
    case 'message':
      return spoken(item) === '';
    case 'reasoning':
      return Array.isArray(item['summary']) && item['summary'].length === 0;
    case 'function_call':
    case 'custom_tool_call':
      return nonEmptyString(item, inputMember(item)) === undefined;
    default:
      return false;
  }
}

function itemEdits(path: JsonPath, item: JsonValue | undefined, slot: Slot): readonly JsonEdit[] {
  if (!isObject(item) || item['type'] !== slot.type || !isSilent(item)) return NONE;
  const member = slot.type === 'message' ? 'content' : slot.type === 'reasoning' ? 'summary' : inputMember(item);
  const kept = slot.closed ? (isSilent(slot.item) ? undefined : slot.item[member]) : streamed(slot);
  return kept === undefined ? NONE : [{ path: [...path, member], value: JSON.stringify(kept) }];
}

/** The member of an open item that holds what it says; undefined where it has said nothing. */
function streamed({ type, parts, summary, input }: Slot): JsonValue | undefined {
  switch (type) {
    case 'message': {
      const begun = parts.filter((part) => part !== undefined);
      return begun.some(({ text }) => text !== '') ? begun.map(partObject) : undefined;
    }
    case 'reasoning':
      return summary.some((text) => text !== '') ? summary.map((text) => ({ type: 'summary_text', text })) : undefined;
    default:
      return input === '' ? undefined : input;
  }
}

function partObject({ kind, text, citations, done }: TextPart): JsonObject {
  if (done !== undefined) return done;
  if (kind === 'refusal') return { type: 'refusal', refusal: text };
  return { type: 'output_text', annotations: writeCitations(citations), logprobs: [], text };
}
