/** Prices that routers put into usage. Clients do not get to see them (semantics 7.2.5). */
import type { JsonObject } from '../canonical/json.ts';
import { isPrice } from '../canonical/usage.ts';
import type { JsonEdit } from '../json/edit.ts';
import type { JsonPath } from '../json/text.ts';

/** Adds the edits that remove the prices from `usage`, which stands at `path` of an answer's text. */
export function leaveOutPrices(usage: JsonObject, path: JsonPath, edits: JsonEdit[]): void {
  for (const key of Object.keys(usage)) if (isPrice(key)) edits.push({ path: [...path, key], value: undefined });
}
