/**
 * Members of an answer that are added or left out on its way to a client of the same dialect. Added is what the official clients
 * read without asking and break without: servers that speak this protocol for models of other vendors leave some of it out (seen:
 * no `usage`, no `role`, calls without `input`, counters as words). Left out are the prices that routers tell us.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { countOf } from '../canonical/usage.ts';
import type { JsonEdit, JsonPath } from '../json/text.ts';
import { leaveOutPrices } from '../answers/router-prices.ts';

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
 * For a message_delta. `output` is what the upstream has counted so far; `ending` the `delta` that said how the answer ended: one behind it that only
 * reports usage says that again, since clients go by the last one.
 */
export function completeDelta(json: JsonObject, output: number, ending: JsonObject): JsonEdit[] {
  const edits: JsonEdit[] = [];
  editUsage(json, [], { output_tokens: output }, edits);
  const delta = isObject(json['delta']) ? json['delta'] : {};
  if (!isMissing(delta['stop_reason'])) return edits;
  for (const key of OF_ENDING) {
    const said = ending[key];
    if (said !== undefined && isMissing(delta[key])) edits.push({ path: ['delta', key], value: JSON.stringify(said) });
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
    const said = usage[key];
    if (typeof said !== 'number' && countOf(said) === undefined)
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
