/**
 * From the commit point to the end: the upstream's steps through the client's encoder into its connection, at the client's pace.
 * The one place where a failure becomes an event of a stream (through the seal).
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Step } from '../../codecs/canonical/event.ts';
import type { ClientCodec, ClientEncoder, Frame, OutFrame } from '../../codecs/codec.ts';
import { writeAnswer } from '../../codecs/pipeline.ts';
import { type PumpOptions, type PumpWriter, pump } from '../../streams/pump.ts';
import type { LoopTurns } from '../../streams/loop-turns.ts';
import type { Committed } from '../exchange/reply.ts';
import { toGatewayError } from '../errors.ts';
import type { AnswerSource } from './answer-stream.ts';

/** How the client's dialect writes the answer. */
export interface ClientOutput {
  readonly encoder: ClientEncoder;
  /** For when the encoder itself is broken. */
  readonly errorFrame: ClientCodec['errorFrame'];
}

export interface RelayWatch {
  readonly turns: LoopTurns;
  /** Whose turns: the key's. */
  readonly party: string;
  /** A part of the answer was written. */
  onOutput(): void;
  /**
   * Awaited before the last batch is written. `failure` is the failure that it reports to the client. Rejects with what it must
   * report instead.
   */
  beforeEnd?(failure: GatewayError | undefined): Promise<void> | undefined;
}

/**
 * Resolves with the failure that was sent to the client, or undefined after a good ending. Rejects when the client left (the
 * upstream is then cancelled). `held` was read before the commit; it is emptied.
 */
export function relay(
  held: Step[],
  source: AnswerSource,
  output: ClientOutput,
  committed: Committed,
  watch: RelayWatch,
): Promise<GatewayError | undefined> {
  const observer = new RelayObserver(held, output, watch);
  const stage = writeAnswer(output.encoder, (reason) => observer.fail(reason));
  const pumped = pump(source, stage, new FramedWriter(committed), observer);
  // The head is sent with the first batch, in one write; without a batch it is sent alone.
  if (observer.silent) committed.flushHead();
  return pumped.then(() => observer.failure);
}

class RelayObserver implements PumpOptions<Step, OutFrame> {
  readonly held: Step[];
  readonly turns: LoopTurns;
  readonly party: string;
  readonly isGone = isGone;
  /** The failure that was sent to the client. */
  failure: GatewayError | undefined;
  silent = true;
  readonly #output: ClientOutput;
  readonly #watch: RelayWatch;

  constructor(held: Step[], output: ClientOutput, watch: RelayWatch) {
    this.held = held;
    this.turns = watch.turns;
    this.party = watch.party;
    this.#output = output;
    this.#watch = watch;
  }

  fail(reason: unknown): GatewayError {
    this.failure = toGatewayError(reason);
    return this.failure;
  }

  beforeEnd(words: OutFrame[]): Promise<void> | undefined {
    return this.#watch.beforeEnd?.(this.failure)?.catch((reason: unknown) => {
      this.#output.encoder.failInstead(this.fail(reason), words);
    });
  }

  finalFrames(reason: unknown): readonly Frame[] {
    return [this.#output.errorFrame(toGatewayError(reason))];
  }

  onOutput(): void {
    this.silent = false;
    this.#watch.onOutput();
  }
}

/** The client left. A WebSocket client that cancelled is still there and reads how the turn ended. */
function isGone(reason: unknown): boolean {
  const { code, shownCode } = toGatewayError(reason);
  return code === 'client_closed_request' && shownCode !== 'cancelled';
}

class FramedWriter implements PumpWriter<OutFrame> {
  readonly #committed: Committed;

  constructor(committed: Committed) {
    this.#committed = committed;
  }

  gone(): unknown {
    return this.#committed.writer.gone();
  }

  write(frames: readonly OutFrame[]): Promise<void> | undefined {
    return this.#committed.writer.write(this.#committed.framed(frames));
  }

  end(frames: readonly OutFrame[]): Promise<void> {
    return this.#committed.writer.end(this.#committed.framed(frames));
  }

  destroy(reason: unknown): void {
    this.#committed.writer.destroy(reason);
  }
}

/** The events of a failure on a stream that never got an answer. */
export function failureFrames(encoder: ClientEncoder, error: GatewayError): Frame[] {
  const frames: Frame[] = [];
  encoder.fail(error, frames);
  return frames;
}
