/**
 * The events that a client sends on a WebSocket, one a message. Reads the envelope only; the request in it is decoded by the
 * codec.
 */
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../../codecs/canonical/json.ts';
import { lastMembers } from '../../codecs/json/edit.ts';
import { knownEndsInSteps } from '../../codecs/json/parse-in-steps.ts';
import { sliceJson } from '../../codecs/json/text.ts';
import type { Steps } from '../../codecs/steps.ts';
import { inputTexts } from '../history/past-turn.ts';
import { type JsonBody, parseJsonBodyInSteps, type ValueLimit } from '../request/body.ts';

export type ClientEvent =
  /** `text` is the request that `json` was parsed from: the fields of a POST body beside the members of the envelope. */
  | (JsonBody & { readonly kind: 'create'; readonly envelope: JsonObject })
  /** `input`: the exact text of the new items. */
  | { readonly kind: 'append'; readonly input: string; readonly envelope: JsonObject }
  | { readonly kind: 'cancel'; readonly envelope: JsonObject }
  /** Input for the response that is being generated: its exact text, and those of its items. */
  | { readonly kind: 'steer'; readonly input: string; readonly items: readonly string[]; readonly envelope: JsonObject }
  /** Needs no answer. */
  | { readonly kind: 'notice' };

/** Throws `invalid_websocket_event`, and as `parseJsonBody` does for the limit. */
export function* readClientEvent(bytes: Uint8Array, isBinary: boolean, limit?: ValueLimit): Steps<ClientEvent> {
  if (isBinary) throw invalidEvent('A message must be text, not binary.');
  const body = yield* readObject(bytes, limit);
  const { text, json, ends } = body;
  switch (json['type']) {
    case 'response.create':
      return yield* readCreate(body);
    case 'response.append':
      yield;
      return readAppend(body);
    case 'response.cancel':
      return { kind: 'cancel', envelope: json };
    case 'response.steer':
      yield;
      return {
        kind: 'steer',
        input: sliceJson(text, ['input'], ends) ?? 'null',
        items: yield* inputTexts(body),
        envelope: json,
      };
    case 'response.processed':
      return { kind: 'notice' };
    default:
      throw invalidEvent(`The event type ${shown(json['type'])} is not supported.`, 'type');
  }
}

function* readObject(bytes: Uint8Array, limit?: ValueLimit): Steps<JsonBody> {
  try {
    return yield* parseJsonBodyInSteps(bytes, limit);
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    const code = error.code === 'invalid_request' ? 'invalid_websocket_event' : error.code;
    throw new GatewayError(code, error.message.replaceAll('body', 'message'), { ...error.details, cause: error });
  }
}

/** The fields stand beside `type`. They may also be nested in `response`, as in the Realtime API. */
function* readCreate(body: JsonBody): Steps<ClientEvent> {
  const { text, json, ends } = body;
  const nested = json['response'];
  if (!isObject(nested) || json['model'] !== undefined || json['input'] !== undefined)
    return { kind: 'create', ...body, envelope: json };
  yield;
  const own = lastMembers(sliceJson(text, ['response'], ends) ?? '{}');
  yield;
  return { kind: 'create', text: own, json: nested, ends: yield* knownEndsInSteps(own), envelope: { ...nested, ...json } };
}

function readAppend({ text, json, ends }: JsonBody): ClientEvent {
  const { input } = json;
  const slice = sliceJson(text, ['input'], ends);
  if (slice === undefined || (typeof input !== 'string' && !Array.isArray(input))) {
    throw new GatewayError('invalid_websocket_event', 'input must be a string or an array of items.', { param: 'input' });
  }
  return { kind: 'append', input: slice, envelope: json };
}

export function invalidEvent(message: string, param?: string): GatewayError {
  return new GatewayError('invalid_websocket_event', message, param === undefined ? {} : { param });
}

function shown(type: JsonValue | undefined): string {
  if (typeof type !== 'string') return '(none)';
  return JSON.stringify(type.length > 60 ? `${type.slice(0, 60)}…` : type);
}

/** The lane that a client names, up to 256 characters. */
export function streamIdOf(envelope: JsonObject): string | undefined {
  const id = envelope['stream_id'];
  return typeof id === 'string' && id.length <= 256 ? id : undefined;
}
