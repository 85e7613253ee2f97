/** The wire shapes of chat completions that are read by name, and checked access to upstream JSON. Knows no meaning. */
import { type GatewayError, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';

export const DONE = '[DONE]';

export function malformed(what: string): GatewayError {
  return upstreamFault('malformed_event', `The upstream sent a malformed chunk (${what}).`);
}

/** Missing, null and "" are alike in upstream deltas. */
export function text(value: JsonValue | undefined, what: string): string {
  if (value === undefined || value === null) return '';
  if (typeof value !== 'string') throw malformed(what);
  return value;
}

/** A string that says something, else undefined; other types are no string and no error. */
export function word(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}

/** The entries of a list that say something: a server may leave one null as it does a member (MiniMax). */
export function list(value: JsonValue | undefined, what: string): readonly JsonValue[] {
  const entries = entriesOf(value, what);
  return entries.includes(null) ? entries.filter((entry) => entry !== null) : entries;
}

function entriesOf(value: JsonValue | undefined, what: string): readonly JsonValue[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw malformed(what);
  return value;
}

export function object(value: JsonValue | undefined, what: string): JsonObject {
  if (!isObject(value)) throw malformed(what);
  return value;
}

export interface FirstChoice {
  readonly choice: JsonObject;
  /** Its place in `choices`. */
  readonly at: number;
}

/** The choice with index 0, else one without an index; other candidates are never merged into the answer. */
export function firstChoice(chunk: JsonObject): FirstChoice | undefined {
  const choices = entriesOf(chunk['choices'], 'choices');
  for (let at = 0; at < choices.length; at += 1) {
    if (choices[at] === null) continue;
    const choice = object(choices[at], 'choices');
    const index = choice['index'];
    if (index === 0 || index === undefined || index === null) return { choice, at };
    if (!Number.isInteger(index)) throw malformed('index');
  }
  return undefined;
}

/** The usage of a chunk or a body: its own, or where vendors put it in streams (Groq; Moonshot: the choice that finishes). */
export function usageIn(chunk: JsonObject): JsonValue | undefined {
  if (isObject(chunk['usage'])) return chunk['usage'];
  const groq = chunk['x_groq'];
  if (isObject(groq) && isObject(groq['usage'])) return groq['usage'];
  return firstChoice(chunk)?.choice['usage'] ?? chunk['usage'];
}
