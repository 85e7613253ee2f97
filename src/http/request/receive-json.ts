/** Receives the JSON body of a call within the limits of the endpoint and of its key. Knows no endpoint. */
import type { Principal } from '../../store/keys.ts';
import type { Call } from '../gateway.ts';
import { arrivingBody } from './arriving-body.ts';
import { type JsonBody, parseJsonBodyInTurns, receiveWhole, valueLimit } from './body.ts';
import type { KeySlot } from './key-slots.ts';

export interface ReceivedJson extends JsonBody {
  /** What the key has taken for it; released when the response closes. */
  readonly slot: KeySlot;
}

/** Throws what {@link receiveWhole}, {@link parseJsonBodyInTurns} and {@link arrivingBody} throw. */
export async function receiveJson(
  call: Call,
  principal: Principal,
  maxBytes = call.config.limits.jsonBytes,
): Promise<ReceivedJson> {
  const { gateway, config, request, response } = call;
  const { limits } = config;
  const arriving = arrivingBody(call, principal, maxBytes);
  const { slot, weigh } = arriving instanceof Promise ? await arriving : arriving;
  const bytes = await receiveWhole(request, response, { maxBytes, timeoutMs: limits.bodyMs, weigh }, gateway.clock);
  slot.setWeight(bytes.length);
  const entered = gateway.turns.enter(request.socket);
  if (entered !== undefined) await entered;
  const weighed = valueLimit(limits, (values, characters) => slot.setWeight(bytes.length, values, characters));
  const parsed = parseJsonBodyInTurns(bytes, weighed, gateway.largeWork);
  const { text, json, ends } = parsed instanceof Promise ? await parsed : parsed;
  return { text, json, ends, slot };
}
