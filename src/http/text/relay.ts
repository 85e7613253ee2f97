/**
 * From the commit point to the end: steps of the upstream through the client's encoder into its connection. Reads no faster than the
 * client does. The one place where a failure becomes words of a stream (through the seal).
 */
import type { GatewayError } from '../../codecs/canonical/error.ts';
import type { Step } from '../../codecs/canonical/event.ts';
import type { ClientCodec, ClientEncoder, Frame } from '../../codecs/codec.ts';
import { type PumpOptions, type PumpWriter, pump } from '../../streams/pump.ts';
import { sealed } from '../../streams/seal.ts';
import type { Committed } from '../exchange/reply.ts';
import { toGatewayError } from '../errors.ts';
import type { AnswerSource } from './answer-stream.ts';

/** What the client is told in. */
export interface Voice {
  readonly encoder: ClientEncoder;
  readonly errorFrame: ClientCodec['errorFrame'];
}

export interface RelayWatch {
  /** Something of the answer was written. */
  onWords(): void;
  /** What must be done before the last words may go out. `told` is the failure that they say. Rejects with what they must say instead. */
  beforeEnd?(told: GatewayError | undefined): Promise<void> | undefined;
}

/**
 * Resolves with the failure that the client was told, or undefined after a good ending. Rejects when the client left (the upstream is
 * then cancelled). `held` was read before the commit; it is emptied.
 */
export function relay(
  held: Step[],
  source: AnswerSource,
  voice: Voice,
  committed: Committed,
  watch: RelayWatch,
): Promise<GatewayError | undefined> {
  const observer = new RelayObserver(held, voice, watch);
  const stage = sealed(voice.encoder, (reason) => observer.tell(reason));
  const pumped = pump(source, stage, new FramedWriter(committed), observer);
  // The head goes out with the first words, in one write; without words it goes alone.
  if (observer.silent) committed.flushHead();
  return pumped.then(() => observer.told);
}

class RelayObserver implements PumpOptions<Step, Frame> {
  readonly held: Step[];
  readonly isGone = isGone;
  /** The failure that the client was told. */
  told: GatewayError | undefined;
  silent = true;
  readonly #voice: Voice;
  readonly #watch: RelayWatch;

  constructor(held: Step[], voice: Voice, watch: RelayWatch) {
    this.held = held;
    this.#voice = voice;
    this.#watch = watch;
  }

  tell(reason: unknown): GatewayError {
    this.told = toGatewayError(reason);
    return this.told;
  }

  beforeEnd(words: Frame[]): Promise<void> | undefined {
    return this.#watch.beforeEnd?.(this.told)?.catch((reason: unknown) => {
      this.#voice.encoder.failInstead(this.tell(reason), words);
    });
  }

  lastWords(reason: unknown): readonly Frame[] {
    return [this.#voice.errorFrame(toGatewayError(reason))];
  }

  onWords(): void {
    this.silent = false;
    this.#watch.onWords();
  }
}

/** The client left. One that is still there (a WebSocket) and does not want the answer any more reads how it ended. */
function isGone(reason: unknown): boolean {
  const { code, shownCode } = toGatewayError(reason);
  return code === 'client_closed_request' && shownCode !== 'cancelled';
}

class FramedWriter implements PumpWriter<Frame> {
  readonly #committed: Committed;

  constructor(committed: Committed) {
    this.#committed = committed;
  }

  gone(): unknown {
    return this.#committed.writer.gone();
  }

  write(words: readonly Frame[]): Promise<void> | undefined {
    return this.#committed.writer.write(words.map(this.#committed.frame));
  }

  end(words: readonly Frame[]): Promise<void> {
    return this.#committed.writer.end(words.map(this.#committed.frame));
  }

  destroy(reason: unknown): void {
    this.#committed.writer.destroy(reason);
  }
}

/** The words of a failure on a stream that never got an answer. */
export function failureFrames(encoder: ClientEncoder, error: GatewayError): Frame[] {
  const words: Frame[] = [];
  encoder.fail(error, words);
  return words;
}
