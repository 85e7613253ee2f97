/**
 * `response.steer`: input for a response that is being generated. Upstreams are asked over HTTP, which has no way to add input
 * once a request is sent, so every steer is refused at once, in the vendor's own event: the input was not used, and the client
 * keeps it for its next turn.
 */
import { isObject, type JsonObject, type JsonValue } from '../../codecs/canonical/json.ts';
import { sliceJson } from '../../codecs/json/text.ts';
import type { ClientEvent } from './client-event.ts';

type SteerCode = 'invalid_input' | 'response_already_completed' | 'response_not_found' | 'steering_not_supported';

const MESSAGES: Readonly<Record<SteerCode, string>> = {
  invalid_input: 'A steer needs previous_response_id, and input: a string or an array of user messages.',
  response_already_completed: 'The response is complete and takes no more input.',
  response_not_found: 'There is no such response on this connection.',
  steering_not_supported: 'Responses cannot be steered here. Send the input as the next turn.',
};

/** The `response.steer.failed` event. `isBusy`: a response is being generated; `lastId`: the last one that was completed. */
export function steerFailed(
  { text, envelope }: ClientEvent & { readonly kind: 'steer' },
  isBusy: boolean,
  lastId: string | undefined,
): string {
  const { previous_response_id: id, stream_id: streamId } = envelope;
  const code = codeOf(envelope, isBusy, lastId);
  const error = { type: 'invalid_request_error', code, message: MESSAGES[code] };
  const input = sliceJson(text, ['input']) ?? 'null';
  const lane = typeof streamId === 'string' ? `,"stream_id":${JSON.stringify(streamId)}` : '';
  const steer = `{"input":${input},"previous_response_id":${JSON.stringify(id ?? null)}}`;
  return `{"type":"response.steer.failed","sequence_number":0,"error":${JSON.stringify(error)},"steer":${steer}${lane}}`;
}

function codeOf({ previous_response_id: id, input }: JsonObject, isBusy: boolean, lastId: string | undefined): SteerCode {
  if (typeof id !== 'string' || !isSteerInput(input)) return 'invalid_input';
  if (isBusy) return 'steering_not_supported';
  return id === lastId ? 'response_already_completed' : 'response_not_found';
}

/** A text, or messages of the user, and results that the response waits for. */
function isSteerInput(input: JsonValue | undefined): boolean {
  if (typeof input === 'string') return input !== '';
  if (!Array.isArray(input) || input.length === 0) return false;
  return input.every((item) => {
    if (!isObject(item)) return false;
    return item['type'] === 'function_call_output' || (item['role'] === 'user' && (item['type'] ?? 'message') === 'message');
  });
}
