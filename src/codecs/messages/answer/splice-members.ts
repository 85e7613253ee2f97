/**
 * Members that are added to or removed from an answer for a client of the same dialect. Added are those that the official clients
 * need and that servers with models of other vendors leave out (seen: no `usage`, no `role`, calls without `input`, counters as
 * strings). Removed are the prices of routers.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { countOf } from '../../canonical/usage.ts';
import type { JsonEdit } from '../../json/edit.ts';
import type { JsonPath } from '../../json/text.ts';
import { leaveOutPrices } from '../../answers/token-usage.ts';

const NEEDED = [
  ['type', '"message"'],
  ['role', '"assistant"'],
  ['content', '[]'],
] as const;

const NEEDED_OF_BLOCK: ReadonlyMap<JsonValue | undefined, readonly (readonly [string, string])[]> = new Map([
  [
    'thinking',
    [
      ['thinking', '""'],
      ['signature', '""'],
    ],
  ],
  ['tool_use', [['input', '{}']]],
]);

/** For a whole block, or the block of content_block_start. */
export function completeBlock(block: JsonObject, path: JsonPath): JsonEdit[] {
  const needed = NEEDED_OF_BLOCK.get(block['type']) ?? [];
  return needed.flatMap(([key, value]) => (isMissing(block[key]) ? [{ path: [...path, key], value }] : []));
}

/** For a whole message, or the message of message_start. */
export function completeMessage(message: JsonObject, path: JsonPath): JsonEdit[] {
  const edits: JsonEdit[] = [];
  for (const [key, value] of NEEDED) if (isMissing(message[key])) edits.push({ path: [...path, key], value });
  editUsage(message, path, { input_tokens: 0, output_tokens: 0 }, edits);
  return edits;
}

const OF_ENDING = ['stop_reason', 'stop_sequence', 'stop_details'] as const;

/**
 * For a message_delta. `output`: the output tokens so far. `ending`: the `delta` with the stop reason, which a later
 * message_delta with only usage repeats, since clients go by the last one.
 */
export function completeDelta(json: JsonObject, output: number, ending: JsonObject): JsonEdit[] {
  const edits: JsonEdit[] = [];
  editUsage(json, [], { output_tokens: output }, edits);
  const delta = isObject(json['delta']) ? json['delta'] : {};
  if (!isMissing(delta['stop_reason'])) return edits;
  for (const key of OF_ENDING) {
    const given = ending[key];
    if (given !== undefined && isMissing(delta[key])) edits.push({ path: ['delta', key], value: JSON.stringify(given) });
  }
  return edits;
}

function editUsage(holder: JsonObject, path: JsonPath, needed: Readonly<Record<string, number>>, edits: JsonEdit[]): void {
  const { usage } = holder;
  if (!isObject(usage)) {
    edits.push({ path: [...path, 'usage'], value: JSON.stringify(needed) });
    return;
  }
  for (const [key, count] of Object.entries(needed)) {
    const given = usage[key];
    if (typeof given !== 'number' && countOf(given) === undefined)
      edits.push({ path: [...path, 'usage', key], value: String(count) });
  }
  for (const [key, value] of Object.entries(usage)) {
    const count = typeof value === 'string' && key.endsWith('_tokens') ? countOf(value) : undefined;
    if (count !== undefined) edits.push({ path: [...path, 'usage', key], value: String(count) });
  }
  leaveOutPrices(usage, [...path, 'usage'], edits);
}

function isMissing(value: JsonValue | undefined): boolean {
  return value === undefined || value === null;
}
