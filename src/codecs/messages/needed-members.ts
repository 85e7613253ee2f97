/**
 * Members of an answer that the official clients read without asking: where one is missing they break in the middle of a turn.
 * Servers that speak this protocol for models of other vendors leave some out (seen: no `usage`, no `role`), so these are added.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { JsonEdit, JsonPath } from '../json-text.ts';

/** For a whole message, or the message of message_start. */
export function addNeeded(message: JsonObject, path: JsonPath, edits: JsonEdit[]): void {
  for (const [key, value] of NEEDED) if (isMissing(message[key])) edits.push({ path: [...path, key], value });
  addCounters(message, path, { input_tokens: 0, output_tokens: 0 }, edits);
}

/** For a message_delta: `output` is what the upstream has counted so far. */
export function addNeededCount(json: JsonObject, output: number, edits: JsonEdit[]): void {
  addCounters(json, [], { output_tokens: output }, edits);
}

const NEEDED = [
  ['type', '"message"'],
  ['role', '"assistant"'],
  ['content', '[]'],
] as const;

function addCounters(holder: JsonObject, path: JsonPath, counters: Record<string, number>, edits: JsonEdit[]): void {
  const { usage } = holder;
  if (!isObject(usage)) {
    edits.push({ path: [...path, 'usage'], value: JSON.stringify(counters) });
    return;
  }
  for (const [key, count] of Object.entries(counters)) {
    if (isMissing(usage[key])) edits.push({ path: [...path, 'usage', key], value: String(count) });
  }
}

function isMissing(value: JsonValue | undefined): boolean {
  return value === undefined || value === null;
}
