/** The JSON of an upstream's event. */
import { type JsonValue, tryJson } from '../canonical/json.ts';
import type { Frame } from '../codec.ts';

/** Undefined for data that is not JSON. */
export function jsonOf({ data, json }: Frame): JsonValue | undefined {
  return json ?? tryJson(data);
}
