/** Prices of routers stay with the gateway: the edits that take them out of the usage of an answer that keeps its own text. */
import type { JsonObject } from './canonical/json.ts';
import { isPrice } from './canonical/usage.ts';
import type { JsonEdit, JsonPath } from './json-text.ts';

/** `path` is that of the usage object. */
export function priceEdits(path: JsonPath, usage: JsonObject): JsonEdit[] {
  return Object.keys(usage)
    .filter(isPrice)
    .map((key) => ({ path: [...path, key], value: undefined }));
}
