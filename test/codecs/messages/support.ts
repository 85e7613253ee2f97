/** Small drivers for the messages codec: contexts with a readable seal, frames from SSE text, whole streams through stages. */
import type { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, Step } from '../../../src/codecs/canonical/event.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/codecs/canonical/json.ts';
import type { Owner } from '../../../src/codecs/canonical/opaque.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import type { CanonicalRequest } from '../../../src/codecs/canonical/request.ts';
import type { DecodeContext, Frame, RequestContext, ResponseContext, Target } from '../../../src/codecs/codec.ts';
import { messagesClient, messagesUpstream } from '../../../src/codecs/messages/index.ts';
import * as wire from '../../support/wire.ts';

export const owner: Owner = { channelType: 'messages', scope: 'https://upstream.test', model: 'up-model' };

export const seal = wire.sealForTests;
export const open = wire.openForTests;

export const requestContext: RequestContext = { open };

export function decodeBody(body: unknown): CanonicalRequest {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const json = parseJson(text);
  if (!isObject(json)) throw new Error('the body is not an object');
  return messagesClient.decodeRequest(text, json, requestContext);
}

export const request = decodeBody({ model: 'logical', max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] });

export function canonical(parts: Partial<CanonicalRequest>): CanonicalRequest {
  return wire.requestOf('chat', { model: 'logical', stream: false, includeUsage: false, ...parts });
}

export function target(parts: Partial<Target> = {}): Target {
  return wire.targetOf(owner, parts);
}

export function encodeFor(parts: Partial<CanonicalRequest>, to: Partial<Target> = {}): JsonObject {
  const json = parseJson(messagesUpstream.encodeRequest(canonical(parts), target(to)).body);
  if (!isObject(json)) throw new Error('the body is not an object');
  return json;
}

export function decodeContext(parts: Partial<DecodeContext> = {}): DecodeContext {
  return wire.decodeContext(owner, { request, ...parts });
}

export function responseContext(parts: Partial<ResponseContext> = {}): ResponseContext {
  const own = { model: 'logical', createdAt: 1_700_000_000, request };
  return wire.responseContext(messagesClient, owner, { ...own, ...parts });
}

/** Frames of SSE text, or of one JSON payload a line. */
export function framesOf(text: string): Frame[] {
  if (!/^(event|data):/m.test(text)) {
    return text
      .split('\n')
      .filter((line) => line.trim() !== '')
      .map((data) => ({ event: String((JSON.parse(data) as JsonObject)['type']), data }));
  }
  const frames: Frame[] = [];
  for (const block of text.split(/\r?\n\r?\n/)) {
    const lines = block.split(/\r?\n/);
    const data = lines.filter((line) => line.startsWith('data:')).map((line) => line.slice(5).replace(/^ /, ''));
    if (data.length === 0) continue;
    const event = lines
      .find((line) => line.startsWith('event:'))
      ?.slice(6)
      .trim();
    frames.push({ event, data: data.join('\n') });
  }
  return frames;
}

export function payloads(list: readonly JsonObject[]): Frame[] {
  return list.map((payload) => {
    const { type } = payload;
    return { event: typeof type === 'string' ? type : JSON.stringify(type), data: JSON.stringify(payload) };
  });
}

export interface Decoded {
  readonly steps: Step[];
  readonly events: CanonicalEvent[];
  readonly error: GatewayError | undefined;
}

/** All frames, then the end, through the decoder and the canonical order. */
export function decodeFrames(frames: readonly Frame[], context: DecodeContext = decodeContext()): Decoded {
  const steps: Step[] = [];
  const decoder = messagesUpstream.decodeEvents(context);
  const order = new Order();
  let error: GatewayError | undefined;
  try {
    for (const frame of frames) {
      const batch: Step[] = [];
      decoder.push(frame, batch);
      for (const step of batch) order.push(step, steps);
    }
    decoder.end([]);
  } catch (thrown) {
    error = thrown as GatewayError;
  }
  return { steps, events: steps.flatMap((step) => step.events), error };
}

/** Steps as a client's stream; `failure` ends it when it has no ending of its own. */
export function encodeSteps(
  steps: readonly Step[],
  failure?: GatewayError,
  context: ResponseContext = responseContext(),
): Frame[] {
  const out: Frame[] = [];
  const encoder = messagesClient.encodeEvents(context);
  try {
    for (const step of wire.inOrder(steps)) encoder.push(step, out);
    if (failure === undefined) encoder.end(out);
    else encoder.fail(failure, out);
  } catch (thrown) {
    encoder.fail(thrown as GatewayError, out);
  }
  return out;
}

/** The same steps as another dialect's upstream would give them. */
export function stripped(steps: readonly Step[]): Step[] {
  return steps.map(({ events }) => ({ events }));
}
