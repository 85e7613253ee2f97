/** Contexts, requests and runs shared by the tests of the generative-content protocol. */
import assert from 'node:assert/strict';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, Step } from '../../../src/codecs/canonical/event.ts';
import { fold, type Whole } from '../../../src/codecs/canonical/fold.ts';
import type { Item } from '../../../src/codecs/canonical/item.ts';
import { isObject, type JsonObject, parseJson } from '../../../src/codecs/canonical/json.ts';
import type { Owner } from '../../../src/codecs/canonical/opaque.ts';
import { Order } from '../../../src/codecs/canonical/order.ts';
import type { CanonicalRequest } from '../../../src/codecs/canonical/request.ts';
import type { DecodeContext, Frame, Target } from '../../../src/codecs/codec.ts';
import { GenerateContentDecoder, geminiUpstream } from '../../../src/codecs/gemini/index.ts';
import * as wire from '../../support/wire.ts';

export const OWNER: Owner = { channelType: 'gemini', scope: 'https://generative.example', model: 'gemini-x' };

export function requestOf(members: Partial<CanonicalRequest> = {}): CanonicalRequest {
  const hi: Item = { kind: 'text', role: 'user', text: 'Hi', citations: [], at: 'messages[0].content' };
  return wire.requestOf('chat', { model: 'logical', stream: false, items: [hi], includeUsage: false, ...members });
}

export function targetOf(members: Partial<Target> = {}): Target {
  return wire.targetOf(OWNER, members);
}

export function contextOf(members: Partial<DecodeContext> = {}): DecodeContext {
  return wire.decodeContext(OWNER, { request: requestOf(), ...members });
}

/** The body that the encoder makes, parsed. */
export function bodyOf(members: Partial<CanonicalRequest>, target: Partial<Target> = {}): JsonObject {
  const body = parseJson(geminiUpstream.encodeRequest(requestOf(members), targetOf(target)).body);
  assert.ok(isObject(body));
  return body;
}

export function frameOf(chunk: unknown): Frame {
  return { event: undefined, data: typeof chunk === 'string' ? chunk : JSON.stringify(chunk) };
}

/** A chunk with one candidate of these parts. */
export function chunkOf(parts: readonly unknown[], finishReason?: string, more: Readonly<Record<string, unknown>> = {}): unknown {
  return {
    candidates: [{ content: { role: 'model', parts }, ...(finishReason === undefined ? {} : { finishReason }), ...more }],
  };
}

/** All events of a stream, checked against the canonical order. */
export function decodeStream(chunks: readonly unknown[], context: Partial<DecodeContext> = {}): CanonicalEvent[] {
  const decoder = new GenerateContentDecoder(contextOf(context));
  const steps: Step[] = [];
  for (const chunk of chunks) decoder.push(frameOf(chunk), steps);
  decoder.end(steps);
  return ordered(steps);
}

export function decodeWhole(body: unknown, context: Partial<DecodeContext> = {}): CanonicalEvent[] {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  return ordered([geminiUpstream.decodeResponse(text, contextOf(context))]);
}

export function ordered(steps: readonly Step[]): CanonicalEvent[] {
  const order = new Order();
  const passed: Step[] = [];
  for (const step of steps) order.push(step, passed);
  order.end();
  return passed.flatMap((step) => step.events);
}

export function foldStream(chunks: readonly unknown[], context: Partial<DecodeContext> = {}): Whole {
  return fold(decodeStream(chunks, context));
}

export function foldWhole(body: unknown, context: Partial<DecodeContext> = {}): Whole {
  return fold(decodeWhole(body, context));
}

/** Matches a GatewayError by some of its facts, for `assert.throws`. */
export function gatewayError(code: string, facts: { reason?: string; param?: string } = {}): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof GatewayError, String(error));
    assert.equal(error.code, code, error.message);
    if (facts.reason !== undefined) assert.equal(error.details.reason, facts.reason);
    if (facts.param !== undefined) assert.equal(error.param, facts.param);
    return true;
  };
}
