/** One answer through both ways in which the stages of `codecs/pipeline.ts` are joined. */
import type { Step } from '../../src/codecs/canonical/event.ts';
import type { ClientEncoder, EventDecoder, OutFrame } from '../../src/codecs/codec.ts';
import { type Framing, pipeAnswer, pipeFrames, readAnswer, writeAnswer } from '../../src/codecs/pipeline.ts';
import { batchSource, collect } from './batches.ts';
import { toFailure } from './wire.ts';

/** The two ends of a pipeline, used once. */
export interface Stages {
  readonly decoder: EventDecoder;
  readonly encoder: ClientEncoder;
  /** Default: SSE. */
  readonly framing?: Framing | undefined;
}

const MAX_EVENT_BYTES = 1 << 20;

/** The frames that the gateway writes for these reads: each read is decoded, ordered and encoded in one go. */
export function pumped(reads: readonly Uint8Array[], { decoder, encoder, framing }: Stages): OutFrame[] {
  const { steps } = readAnswer(decoder, MAX_EVENT_BYTES, undefined, framing);
  const writer = writeAnswer(encoder, toFailure);
  const frames: OutFrame[] = [];
  const pass = (read: (out: Step[]) => void): void => {
    const out: Step[] = [];
    try {
      read(out);
    } catch (thrown) {
      writer.push(out, frames);
      writer.abort(thrown, frames);
      return;
    }
    writer.push(out, frames);
  };
  for (const bytes of reads) if (!writer.over && !steps.ended) pass((out) => steps.push(bytes, out));
  if (!writer.over && !steps.ended) pass((out) => steps.end(out));
  if (!writer.over) writer.end(frames);
  return frames;
}

/** The same as Web Streams, a batch for each read. */
export function piped(reads: readonly Uint8Array[], stages: Stages): Promise<OutFrame[]> {
  return pipedInBatches(
    reads.map((read) => [read]),
    stages,
  );
}

export async function pipedInBatches(
  batches: readonly (readonly Uint8Array[])[],
  { decoder, encoder, framing }: Stages,
): Promise<OutFrame[]> {
  const { steps } = pipeAnswer(batchSource(batches).readable, decoder, MAX_EVENT_BYTES, framing);
  return (await collect(pipeFrames(steps, encoder, toFailure))).values;
}
