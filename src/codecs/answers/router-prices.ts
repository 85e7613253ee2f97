/** What routers say of their prices beside the usage, which is no client's business (semantics 7.2.5). */
import type { JsonObject } from '../canonical/json.ts';
import { isPrice } from '../canonical/usage.ts';
import type { JsonEdit, JsonPath } from '../json/text.ts';

/** Edits for the text of an answer that goes to a client as it is: the prices of its usage, which stands at `path`, stay with the gateway. */
export function leaveOutPrices(usage: JsonObject, path: JsonPath, edits: JsonEdit[]): void {
  for (const key of Object.keys(usage)) if (isPrice(key)) edits.push({ path: [...path, key], value: undefined });
}
