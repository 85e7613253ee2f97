/** Contexts, frames and small readers shared by the tests of the responses dialect. */
import assert from 'node:assert/strict';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { Step } from '../../../src/codecs/canonical/event.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/codecs/canonical/json.ts';
import type { Owner } from '../../../src/codecs/canonical/opaque.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import type { CanonicalRequest } from '../../../src/codecs/canonical/request.ts';
import type { DecodeContext, Frame, ResponseContext, Target } from '../../../src/codecs/codec.ts';
import { responsesClient, responsesUpstream } from '../../../src/codecs/responses/index.ts';
import * as wire from '../../support/wire.ts';

export const OWNER: Owner = { channelType: 'responses', scope: 'https://api.example', model: 'upstream-model' };

export const seal = wire.sealForTests;
export const open = wire.openForTests;

export function objectFrom(text: string): JsonObject {
  const json = parseJson(text);
  if (!isObject(json)) throw new Error('no object');
  return json;
}

export function decode(body: JsonObject | string, item?: (id: string) => JsonObject | undefined): CanonicalRequest {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return responsesClient.decodeRequest(text, objectFrom(text), item === undefined ? { open } : { open, item });
}

export function refusalOf(run: () => unknown): GatewayError {
  try {
    run();
  } catch (error) {
    if (!(error instanceof GatewayError)) throw error;
    assert.match(error.message, /\w/, 'it says what is wrong');
    return error;
  }
  throw new Error('nothing was thrown');
}

export function target(more: Partial<Target> = {}): Target {
  return wire.targetOf(OWNER, more);
}

const REQUEST = decode({ model: 'logical-model', input: 'hi' });

export function decodeContext(request: CanonicalRequest = REQUEST): DecodeContext {
  return wire.decodeContext(OWNER, { request });
}

export function responseContext(request: CanonicalRequest = REQUEST): ResponseContext {
  return wire.responseContext(responsesClient, OWNER, { createdAt: 1_700_000_000, request });
}

/** Frames of JSON lines, as an upstream would name them. */
export function framesOf(...events: (JsonObject | string)[]): Frame[] {
  return events.map((event) => {
    const data = typeof event === 'string' ? event : JSON.stringify(event);
    return { event: undefined, data };
  });
}

/** Decodes a whole stream, checked by the canonical order as in the pipeline. */
export function decodeAll(frames: readonly Frame[]): { steps: Step[]; order: Order } {
  const decoder = responsesUpstream.decodeEvents(decodeContext());
  const order = new Order();
  const steps: Step[] = [];
  for (const frame of frames) {
    const batch: Step[] = [];
    decoder.push(frame, batch);
    for (const step of batch) order.push(step, steps);
  }
  decoder.end([]);
  order.end();
  return { steps, order };
}

export function encodeAll(steps: readonly Step[], request?: CanonicalRequest): Frame[] {
  const encoder = responsesClient.encodeEvents(responseContext(request));
  const frames: Frame[] = [];
  for (const step of wire.inOrder(steps)) encoder.push(step, frames);
  encoder.end(frames);
  return frames;
}

export function eventsOnly(steps: readonly Step[]): Step[] {
  return steps.map(({ events }) => ({ events }));
}

export function bodiesOf(frames: readonly Frame[]): JsonObject[] {
  return frames.map((frame) => objectFrom(frame.data));
}

export function terminalOf(frames: readonly Frame[]): JsonObject {
  const last = bodiesOf(frames).at(-1) ?? {};
  const response = last['response'];
  if (!isObject(response)) throw new Error('the last event carries no response');
  return response;
}

/** How the streams of the case documents begin, where they write `…`. */
export const CREATED =
  '{"type":"response.created","sequence_number":0,"response":{"id":"r","model":"m","status":"in_progress","output":[]}}';

/** What the client read, with the gateway's own words by short names. */
export function readable(data: string): string {
  return data
    .replaceAll(`"resp_mizu_${'0'.repeat(32)}"`, '"R"')
    .replaceAll('"logical-model"', '"M"')
    .replaceAll(/"(mz2\.[^"]*)"/g, (_, sealed: string) => `"sealed ${open(sealed)?.value}"`);
}
