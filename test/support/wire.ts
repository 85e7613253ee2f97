/** Runs codecs as the gateway does, without sockets: bytes -> events -> order -> frames. */
import { GatewayError, upstreamFault } from '../../src/codecs/canonical/error.ts';
import type { CanonicalEvent, Step } from '../../src/codecs/canonical/event.ts';
import type { Fold, Whole } from '../../src/codecs/canonical/fold.ts';
import type { Item } from '../../src/codecs/canonical/item.ts';
import type { JsonObject } from '../../src/codecs/canonical/json.ts';
import type { Opaque, Owner } from '../../src/codecs/canonical/opaque.ts';
import type { CanonicalRequest } from '../../src/codecs/canonical/request.ts';
import { shownUsage, type Usage } from '../../src/codecs/canonical/usage.ts';
import { singleEvents, singleFrames } from './runs.ts';
import type {
  ClientCodec,
  DecodeContext,
  Frame,
  OutFrame,
  ResponseContext,
  Target,
  UpstreamCodec,
} from '../../src/codecs/codec.ts';
import { Order } from '../../src/codecs/canonical/order.ts';
import { type Framing, readAnswer, writeAnswer } from '../../src/codecs/pipeline.ts';
import { verbatimNames } from '../../src/codecs/tools/names.ts';
import { createSseFramer } from '../../src/streams/sse-encode.ts';
import { StreamError } from '../../src/streams/stream-error.ts';

/** Ids that count: the same run makes the same ids. */
export function countingMint(): (prefix: string) => string {
  let count = 0;
  return (prefix) => `${prefix}${(++count).toString(16).padStart(32, '0')}`;
}

/** An envelope without a secret, for tests that look inside. */
export const sealForTests = (opaque: Opaque): string => `mz2.${Buffer.from(JSON.stringify(opaque)).toString('base64url')}`;
export function openForTests(sealed: string): Opaque | undefined {
  if (!sealed.startsWith('mz2.')) return undefined;
  try {
    return JSON.parse(Buffer.from(sealed.slice(4), 'base64url').toString()) as Opaque;
  } catch {
    return undefined; // a broken envelope is dropped, which is what the caller tests
  }
}

export function ownerOf(codec: UpstreamCodec, scope = 'https://up.example'): Owner {
  return { channelType: codec.channelType, scope, model: 'up-model' };
}

/** A minimal request of any dialect; the encoders need only its facts. */
export function requestOf(dialect: CanonicalRequest['dialect'], changes: Partial<CanonicalRequest> = {}): CanonicalRequest {
  const json: JsonObject = { model: 'logical-model' };
  return {
    dialect,
    text: JSON.stringify(json),
    json,
    reads: { own: new Set(['model']) },
    model: 'logical-model',
    stream: true,
    items: [],
    tools: [],
    includeUsage: true,
    ...changes,
  };
}

export function responseContext(client: ClientCodec, owner: Owner, changes: Partial<ResponseContext> = {}): ResponseContext {
  return {
    responseId: `${client.idPrefix}${'0'.repeat(32)}`,
    model: 'logical-model',
    createdAt: 1_760_000_001,
    request: requestOf(client.dialect),
    owner,
    seal: sealForTests,
    mint: countingMint(),
    ...changes,
  };
}

export function decodeContext(owner: Owner, changes: Partial<DecodeContext> = {}): DecodeContext {
  return { owner, request: requestOf('chat'), toolNames: verbatimNames, options: {}, mint: countingMint(), ...changes };
}

export function targetOf(owner: Owner, changes: Partial<Target> = {}): Target {
  return { owner, options: {}, facts: {}, without: new Set(), ...changes };
}

export interface Decoded {
  readonly steps: readonly Step[];
  readonly events: readonly CanonicalEvent[];
  readonly failure: GatewayError | undefined;
  readonly fold: Fold;
}

export const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Anything thrown above the seal, as the error that a client would meet. */
export function toFailure(reason: unknown): GatewayError {
  if (reason instanceof GatewayError) return reason;
  if (reason instanceof StreamError)
    return upstreamFault(reason.reason === 'truncated_event' ? 'truncated' : 'undecodable', `stream: ${reason.reason}`);
  throw reason;
}

/** An upstream's bytes, in any chunks, through the reading half of the pipeline. */
export function decodeBytes(
  upstream: UpstreamCodec,
  chunks: Iterable<Uint8Array>,
  changes: Partial<DecodeContext> = {},
  framing?: Framing,
): Decoded {
  const decoder = upstream.decodeEvents(decodeContext(ownerOf(upstream), changes));
  const { steps: stage, fold } = readAnswer(decoder, 32 * 1024 * 1024, undefined, framing);
  const steps: Step[] = [];
  let failure: GatewayError | undefined;
  try {
    for (const chunk of chunks) if (!stage.ended) stage.push(chunk, steps);
    if (!stage.ended) stage.end(steps);
  } catch (reason) {
    failure = toFailure(reason);
  }
  return { steps, events: singleEvents(steps.flatMap((step) => step.events)), failure, fold };
}

/** Steps as an encoder gets them: behind the order, which inserts what the deltas of an item lack. */
export function inOrder(steps: readonly Step[]): Step[] {
  const order = new Order();
  const checked: Step[] = [];
  for (const step of steps) order.push(step, checked);
  return checked;
}

/** What a streaming client gets for the steps, with the dialect's ending or its error form. */
export function encodeSteps(
  client: ClientCodec,
  steps: readonly Step[],
  context: ResponseContext,
  failure?: GatewayError,
): Frame[] {
  const writer = writeAnswer(client.encodeEvents(context), toFailure);
  const frames: OutFrame[] = [];
  writer.push(inOrder(steps), frames);
  // The order would have refused steps that stop before the end of the answer.
  if (!writer.over) writer.abort(failure ?? upstreamFault('truncated', 'ended early'), frames);
  return singleFrames(frames);
}

/** Frames as the bytes of an SSE body. */
export function sseText(frames: readonly OutFrame[]): string {
  return frames.map(createSseFramer()).join('');
}

/** Cuts bytes at the given fractions. */
export function cutBytes(bytes: Uint8Array, fractions: readonly number[]): Uint8Array[] {
  const points = [...new Set(fractions.map((fraction) => Math.floor(fraction * bytes.length)))]
    .filter((point) => point > 0 && point < bytes.length)
    .sort((a, b) => a - b);
  return [0, ...points].map((point, index) => bytes.subarray(point, points[index] ?? bytes.length));
}

/** What two dialects must agree on: items without ids and dialect facts, the usage figures, the outcome without native words. */
export function meaning(whole: Whole): unknown {
  return {
    items: whole.items.map(({ item, status }) => ({ ...withoutFacts(item), status })),
    usage: figuresOf(shownUsage(whole.usage)),
    outcome: outcomeMeaning(whole),
  };
}

function figuresOf(usage: Usage | undefined): unknown {
  if (usage === undefined) return undefined;
  const { input = 0, cacheRead = 0, output = 0, reasoning = 0 } = usage;
  return { input, cacheRead, output, reasoning };
}

function outcomeMeaning({ outcome }: Whole): unknown {
  if (outcome.status === 'completed') return { status: 'completed', stop: outcome.stop };
  if (outcome.status === 'incomplete') return { status: 'incomplete', reason: outcome.reason };
  return { status: outcome.status };
}

export function withoutFacts(item: Item): Item {
  const { id: _id, turn: _turn, at: _at, ...rest } = item;
  return rest as Item;
}
