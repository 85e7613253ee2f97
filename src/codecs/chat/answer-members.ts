/**
 * Members of an answer that are added on its way to a client of the same dialect: what the official clients break without. Vendors leave
 * some of it out (seen: no `role` in a whole stream, no `message` beside a filter's verdict), or spell it otherwise. Left out are the
 * prices that routers tell us.
 */
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import { countOf } from '../canonical/usage.ts';
import type { JsonEdit, JsonPath } from '../json/text.ts';
import { leaveOutPrices } from '../answers/router-prices.ts';
import { spelled } from './content-blocks.ts';
import { word } from './wire.ts';

export function completeChoice(choice: JsonObject, path: JsonPath, edits: JsonEdit[]): void {
  if (typeof choice['index'] !== 'number') edits.push({ path: [...path, 'index'], value: '0' });
}

/** Every chunk of a choice has a delta (Azure's late filter results bring none), and the first of a stream says the role. */
export function completeDelta(delta: JsonValue | undefined, isFirst: boolean, path: JsonPath, edits: JsonEdit[]): void {
  if (!isObject(delta)) edits.push({ path, value: isFirst ? '{"role":"assistant"}' : '{}' });
  else if (isFirst && word(delta['role']) === undefined) edits.push({ path: [...path, 'role'], value: '"assistant"' });
}

/** For the message of a whole answer. */
export function completeMessage(message: JsonValue | undefined, path: JsonPath, edits: JsonEdit[]): void {
  if (!isObject(message)) {
    edits.push({ path, value: '{"role":"assistant","content":null,"refusal":null}' });
    return;
  }
  if (word(message['role']) === undefined) edits.push({ path: [...path, 'role'], value: '"assistant"' });
  const content = spelled(message['content']);
  if (content !== undefined) edits.push({ path: [...path, 'content'], value: JSON.stringify(content) });
}

/** For usage that counts anything: its three counters under their own names, as numbers. Prices of routers stay with the gateway. */
export function completeUsage(usage: JsonObject, path: JsonPath, edits: JsonEdit[]): void {
  leaveOutPrices(usage, path, edits);
  const prompt = countOf(usage['prompt_tokens']) ?? countOf(usage['input_tokens']);
  const completion = countOf(usage['completion_tokens']) ?? countOf(usage['output_tokens']);
  if (prompt === undefined && completion === undefined) return;
  for (const [key, otherwise] of [
    ['prompt_tokens', prompt ?? 0],
    ['completion_tokens', completion ?? 0],
    ['total_tokens', (prompt ?? 0) + (completion ?? 0)],
  ] as const) {
    const given = usage[key];
    if (typeof given !== 'number') edits.push({ path: [...path, key], value: String(countOf(given) ?? otherwise) });
  }
}
