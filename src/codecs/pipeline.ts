/**
 * The way of an answer through the gateway. The gateway pumps it (`streams/pump.ts`), and `mizu convert` pipes the same stages as Web Streams:
 *
 *     bytes ─ SSE decode ─ dialect decode ─ order ─ client encode ─ seal ─ frames
 */
import { chain } from '../streams/chain.ts';
import { seal, type Sealed, sealed } from '../streams/seal.ts';
import { sseDecode, type SseDecodeOptions, type SseEvent } from '../streams/sse-decode.ts';
import type { Stage } from '../streams/stage.ts';
import { toTransform } from '../streams/to-transform.ts';
import type { GatewayError } from './canonical/error.ts';
import type { Step } from './canonical/event.ts';
import type { Fold } from './canonical/fold.ts';
import { Order } from './canonical/order.ts';
import type { ClientEncoder, EventDecoder, Frame } from './codec.ts';

/** Something that gives the steps of an answer, with the fold of those that it has given. */
export interface Answer<Steps> {
  readonly steps: Steps;
  readonly fold: Fold;
}

/** How events are framed on the wire. All upstreams but those behind another door frame them as SSE. */
export type Framing = (options: SseDecodeOptions) => Stage<Uint8Array, SseEvent>;

/** Reads an upstream's stream. An event of more than `maxEventBytes` throws StreamError; whatever else is wrong throws GatewayError. */
export function readAnswer(
  decoder: EventDecoder,
  maxEventBytes: number,
  framing: Framing = sseDecode,
): Answer<Stage<Uint8Array, Step>> {
  const order = new Order();
  return { steps: chain(chain(framing({ maxEventBytes }), decoder), order), fold: order.fold };
}

/** Reads a whole body, which its dialect has decoded as one step. */
export function readWhole(decoded: Step): Answer<Step[]> {
  const order = new Order();
  const steps: Step[] = [];
  order.push(decoded, steps);
  order.end();
  return { steps, fold: order.fold };
}

/** Writes for a streaming client. `toFailure` gets whatever was thrown above, and by the encoder itself. */
export function writeAnswer(encoder: ClientEncoder, toFailure: (thrown: unknown) => GatewayError): Sealed<Step, Frame> {
  return sealed(encoder, toFailure);
}

type Batches<T> = ReadableStream<readonly T[]>;

/** {@link readAnswer} as Web Streams. */
export function pipeAnswer(
  bytes: Batches<Uint8Array>,
  decoder: EventDecoder,
  maxEventBytes: number,
  framing: Framing = sseDecode,
): Answer<Batches<Step>> {
  const order = new Order();
  const events = bytes.pipeThrough(toTransform(framing({ maxEventBytes })));
  return { steps: events.pipeThrough(toTransform(decoder)).pipeThrough(toTransform(order)), fold: order.fold };
}

/** {@link writeAnswer} as Web Streams: the frames end in order, whatever happens to the steps. */
export function pipeFrames(
  steps: Batches<Step>,
  encoder: ClientEncoder,
  toFailure: (thrown: unknown) => GatewayError,
): Batches<Frame> {
  return steps.pipeThrough(seal(encoder, toFailure));
}
