/**
 * The way of an answer through the gateway. The gateway pumps it (`streams/pump.ts`), and `mizu convert` pipes the same stages as
 * Web Streams:
 *
 *     bytes ─ SSE decode ─ dialect decode ─ order ─ client encode ─ seal ─ frames
 */
import { chain } from '../streams/chain.ts';
import { seal, type Sealed, sealed } from '../streams/seal.ts';
import { sseDecode, type SseDecodeOptions, type SseEvent } from '../streams/sse-decode.ts';
import type { Stage } from '../streams/stage.ts';
import { StreamError } from '../streams/stream-error.ts';
import { toTransform } from '../streams/to-transform.ts';
import type { GatewayError } from './canonical/error.ts';
import type { Step } from './canonical/event.ts';
import type { Fold } from './canonical/fold.ts';
import { Order } from './canonical/order.ts';
import { LARGE_EVENT, LargeEvents } from './answers/large-events.ts';
import type { ClientEncoder, EventDecoder, OutFrame } from './codec.ts';

/** Something that gives the steps of an answer, with the fold of those that it has given. */
export interface Answer<Steps> {
  readonly steps: Steps;
  readonly fold: Fold;
}

/** How events are framed on the wire. All upstreams but those behind another door frame them as SSE. */
export type Framing = (options: SseDecodeOptions) => Stage<Uint8Array, SseEvent>;

/** Words an error that an answer reports for the client. */
export type Wording = (error: GatewayError) => GatewayError;

/**
 * Reads an upstream's stream. An event of more than `maxEventBytes` throws StreamError; whatever else is wrong throws
 * GatewayError. With `mayWait` the caller reads large events: see {@link LargeEvents}.
 */
export function readAnswer(
  decoder: EventDecoder,
  maxEventBytes: number,
  word?: Wording,
  framing: Framing = sseDecode,
  mayWait = false,
): Answer<Stage<Uint8Array, Step>> & { readonly large: LargeEvents | undefined } {
  const order = new Order(word);
  const large = mayWait ? new LargeEvents(decoder) : undefined;
  return { steps: chain(new Reading(decoder, maxEventBytes, framing, large), order), fold: order.fold, large };
}

/**
 * Bytes to decoded events. An end of the bytes inside an event is the decoder's to judge, whatever that event would have been. A
 * binary frame says its length, so one that is cut off is a failure.
 */
class Reading implements Stage<Uint8Array, Step> {
  readonly #decoder: EventDecoder;
  readonly #mayEndInside: boolean;
  readonly #stages: Stage<Uint8Array, Step>;
  readonly #large: LargeEvents | undefined;

  constructor(decoder: EventDecoder, maxEventBytes: number, framing: Framing, large?: LargeEvents) {
    this.#decoder = decoder;
    this.#mayEndInside = framing === sseDecode;
    const stages = large === undefined ? framing({ maxEventBytes }) : framing({ maxEventBytes, undecodedBytes: LARGE_EVENT });
    this.#stages = chain(stages, large ?? decoder);
    this.#large = large;
  }

  get ended(): boolean {
    return this.#stages.ended;
  }

  push(bytes: Uint8Array, out: Step[]): void {
    this.#large?.goOn(out);
    this.#stages.push(bytes, out);
  }

  end(out: Step[]): void {
    try {
      this.#stages.end(out);
    } catch (thrown) {
      // An error that was cut off is still one.
      const isCut = thrown instanceof StreamError && thrown.reason === 'truncated_event' && !/error/i.test(thrown.text ?? '');
      if (!isCut || !this.#mayEndInside || this.#decoder.endInside?.(out) !== true) throw thrown;
    }
  }
}

/** Reads a whole body, which its dialect has decoded as one step. */
export function readWhole(decoded: Step, word?: Wording): Answer<Step[]> {
  const order = new Order(word);
  const steps: Step[] = [];
  order.push(decoded, steps);
  order.end();
  return { steps, fold: order.fold };
}

/** Writes for a streaming client. `toFailure` gets whatever was thrown above, and by the encoder itself. */
export function writeAnswer(encoder: ClientEncoder, toFailure: (thrown: unknown) => GatewayError): Sealed<Step, OutFrame> {
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
  const events = bytes.pipeThrough(toTransform(new Reading(decoder, maxEventBytes, framing)));
  return { steps: events.pipeThrough(toTransform(order)), fold: order.fold };
}

/** {@link writeAnswer} as Web Streams: the frames end in order, whatever happens to the steps. */
export function pipeFrames(
  steps: Batches<Step>,
  encoder: ClientEncoder,
  toFailure: (thrown: unknown) => GatewayError,
): Batches<OutFrame> {
  return steps.pipeThrough(seal(encoder, toFailure));
}
