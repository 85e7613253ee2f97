/**
 * From the commit point to the end: steps of the upstream through the client's encoder into its connection. Reads no faster than the
 * client does. The one place where a failure becomes words of a stream (through the seal).
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Step } from '../../codecs/canonical/event.ts';
import type { Frame } from '../../codecs/codec.ts';
import { sealed } from '../../streams/seal.ts';
import type { SealingStage } from '../../streams/stage.ts';
import { ENDED } from '../../streams/stream-error.ts';
import type { Committed } from '../exchange.ts';
import { toGatewayError } from '../errors.ts';
import type { AnswerSource } from './answer-stream.ts';

export interface RelayWatch {
  /** Something of the answer was written. */
  onWords(): void;
  /** What must be done before the words in hand may go out. */
  beforeWords?(): Promise<void> | undefined;
  /** What must be done before the last words may go out. `told` is the failure that they say. */
  beforeEnd?(told: GatewayError | undefined): Promise<void> | undefined;
}

/**
 * Resolves with the failure that the client was told, or undefined after a good ending. Rejects when the client left (the upstream is
 * then cancelled). `held` was read before the commit.
 */
export async function relay(
  held: readonly Step[],
  source: AnswerSource,
  encoder: SealingStage<Step, Frame, GatewayError>,
  committed: Committed,
  watch: RelayWatch,
): Promise<GatewayError | undefined> {
  let told: GatewayError | undefined;
  const voice = sealed(inFrames(encoder, committed.frame), (reason) => {
    told = toGatewayError(reason);
    return told;
  });
  const { writer } = committed;
  try {
    let words: string[] = [];
    voice.push(held, words);
    if (source.ended && !voice.over) voice.end(words);
    // The head goes out with the first words, in one write; without words it goes alone.
    if (words.length === 0) committed.flushHead();
    for (;;) {
      if (words.length > 0) {
        const pending = watch.beforeWords?.();
        if (pending !== undefined) await pending;
        const ending = voice.over ? watch.beforeEnd?.(told) : undefined;
        if (ending !== undefined) await ending;
        const full = writer.write(words);
        watch.onWords();
        if (full !== undefined) {
          source.pause();
          await full;
          source.resume();
        }
      }
      if (voice.over) break;
      words = [];
      const steps: Step[] = [];
      try {
        if (!source.take(steps)) {
          await source.wait();
          continue;
        }
        voice.push(steps, words);
        if (source.ended && !voice.over) voice.end(words);
      } catch (reason) {
        if (isClientGone(reason) && !isCancelled(reason)) throw reason;
        voice.push(steps, words);
        voice.abort(reason, words);
      }
    }
    if (!source.ended) source.cancel(ENDED);
    await writer.end();
    return told;
  } catch (reason) {
    source.cancel(reason);
    if (!isClientGone(reason)) writer.destroy(reason);
    throw reason;
  }
}

/** The client does not want the answer any more, but is still there (a WebSocket): it reads how the answer ended. */
function isCancelled(reason: unknown): boolean {
  return toGatewayError(reason).shownCode === 'cancelled';
}

function isClientGone(reason: unknown): boolean {
  return toGatewayError(reason).code === 'client_closed_request';
}

/** The words of a failure on a stream that never got an answer. */
export function failureFrames(
  encoder: SealingStage<Step, Frame, GatewayError>,
  error: GatewayError,
  frame: (frame: Frame) => string,
): string[] {
  const words: string[] = [];
  inFrames(encoder, frame).fail(error, words);
  return words;
}

/** Puts an encoder's events into the frames of the client's connection. */
function inFrames(
  encoder: SealingStage<Step, Frame, GatewayError>,
  frame: (frame: Frame) => string,
): SealingStage<Step, string, GatewayError> {
  const frames: Frame[] = [];
  const flush = (out: string[]): void => {
    for (const said of frames) out.push(frame(said));
    frames.length = 0;
  };
  return {
    get ended() {
      return encoder.ended;
    },
    push(step, out) {
      frames.length = 0;
      encoder.push(step, frames);
      flush(out);
    },
    end(out) {
      frames.length = 0;
      encoder.end(frames);
      flush(out);
    },
    fail(failure, out) {
      frames.length = 0;
      encoder.fail(failure, frames);
      flush(out);
    },
  };
}
