/** Receives the JSON body of a call within the limits of the endpoint and of its key. Knows no endpoint. */
import type { JsonObject } from '../../codecs/canonical/json.ts';
import type { Principal } from '../../store/keys.ts';
import { parseJsonBody, receiveWhole } from './body.ts';
import type { Call } from '../gateway.ts';

/** Takes the key's slot until the response closes. Throws what {@link receiveWhole} and {@link parseJsonBody} throw, and `rate_limited`. */
export async function receiveJson(
  call: Call,
  { key }: Principal,
  maxBytes = call.config.limits.jsonBytes,
): Promise<{ readonly text: string; readonly json: JsonObject }> {
  const { gateway, config, request, response } = call;
  const slot = gateway.keySlots.enter(call, key.id, maxBytes);
  const bytes = await receiveWhole(request, response, { maxBytes, timeoutMs: config.limits.bodyMs }, gateway.clock);
  slot.setBytes(bytes.length);
  return parseJsonBody(bytes);
}
