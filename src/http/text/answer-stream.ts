/**
 * An upstream's body read by the first stages of the pipeline (`codecs/pipeline.ts`). Holds nothing back, and loses nothing that
 * arrived before a failure. Its timers measure the upstream only: they pause while the client is slow.
 */
import type { LargeEvents } from '../../codecs/answers/large-events.ts';
import { byClient, type GatewayError, type UpstreamReason } from '../../codecs/canonical/error.ts';
import type { Step } from '../../codecs/canonical/event.ts';
import type { Fold } from '../../codecs/canonical/fold.ts';
import type { EventDecoder } from '../../codecs/codec.ts';
import { type Answer, type Framing, readAnswer, readWhole, type Wording } from '../../codecs/pipeline.ts';
import type { BodyReader } from '../../streams/body-source.ts';
import type { Clock } from '../../streams/clock.ts';
import { createDeadline, type Deadline } from '../../streams/deadline.ts';
import type { IdleTimers } from '../../streams/idle-timers.ts';
import type { PumpSource } from '../../streams/pump.ts';
import { ENDED, StreamError } from '../../streams/stream-error.ts';
import type { Stage } from '../../streams/stage.ts';
import { isCutAtLimit, upstreamFailure } from '../errors.ts';
import type { LargeWork } from '../request/large-work.ts';

export interface AnswerStreamOptions {
  readonly clock: Clock;
  readonly maxEventBytes: number;
  /** Of the whole stream: the answer is folded in memory, so a stream without end is cut here. */
  readonly maxBytes: number;
  /** Running since the request was sent. */
  readonly timers: IdleTimers;
  /** Words the errors that the answer reports. */
  readonly word?: Wording;
  /** Default: SSE. */
  readonly framing?: Framing | undefined;
  /** Reads large events in steps. Absent: they are read at once. */
  readonly work?: LargeWork;
}

const NOTHING = new Uint8Array(0);
const NO_BYTES: readonly Uint8Array[] = [NOTHING];

/** An upstream that nobody reads for so long may give up: servers and proxies end a connection that takes nothing. */
const HELD_UP_MS = 10_000;
const BROKEN: ReadonlySet<string> = new Set(['network', 'truncated'] satisfies UpstreamReason[]);
/** After the dialect's finish, a silence of this length is the end of the stream (design: "What ends a stream well"). */
const FINISHED_SILENCE_MS = 5_000;

/** Ended once the terminal was read. Fails with GatewayError. */
export interface AnswerSource extends PumpSource<Step> {
  /** The answer so far. */
  readonly fold: Fold;
  /** Bytes or characters of it that were read. */
  readonly length: number;
}

export class AnswerStream implements AnswerSource {
  readonly #reader: BodyReader;
  readonly #decoder: EventDecoder;
  readonly #stages: Stage<Uint8Array, Step>;
  readonly fold: Fold;
  readonly #timers: IdleTimers;
  readonly #clock: Clock;
  readonly #word: Wording | undefined;
  /** Running once the dialect's finish was seen. */
  #silence: Deadline | undefined;
  readonly #maxBytes: number;
  #bytes = 0;
  readonly #large: LargeEvents | undefined;
  readonly #work: LargeWork | undefined;
  /** A large event is read, in turns of its own. */
  #isReading = false;
  #wake: (() => void) | undefined;
  /** What was read behind a large event, and how the bytes failed behind it. */
  #rest: readonly Uint8Array[] | undefined;
  #late: { readonly thrown: unknown } | undefined;
  #failed: GatewayError | undefined;
  #over = false;
  /** The dialect's finish was seen, and the silence is being counted. */
  #finished = false;
  /** By its reader, and by what else its upstream says: each resumes once. */
  #pauses = 0;
  #pausedAt = 0;
  #wasHeldUp = false;

  constructor(body: BodyReader, decoder: EventDecoder, options: AnswerStreamOptions) {
    this.#reader = body;
    this.#decoder = decoder;
    const { work } = options;
    const { steps, fold, large } = readAnswer(decoder, options.maxEventBytes, options.word, options.framing, work !== undefined);
    this.#stages = steps;
    this.fold = fold;
    this.#large = large;
    this.#work = work;
    this.#timers = options.timers;
    this.#maxBytes = options.maxBytes;
    this.#clock = options.clock;
    this.#word = options.word;
    body.watchHolds?.(this);
  }

  get ended(): boolean {
    return this.#over;
  }

  get length(): number {
    return this.#bytes;
  }

  take(out: Step[]): boolean {
    if (this.#over) return true;
    if (this.#failed !== undefined) throw this.#failed;
    const before = out.length;
    try {
      const batch = this.#batch();
      if (batch === undefined) return false;
      if (batch === null) this.#stages.end(out);
      else this.#pushAll(batch, out);
      this.#over = batch === null || this.#stages.ended;
    } catch (thrown) {
      const failure = this.#blamed(upstreamFailure(thrown));
      this.#failed = this.#word?.(failure) ?? failure;
      this.cancel(thrown);
      throw this.#failed;
    } finally {
      this.#watch(out, before);
    }
    if (this.#over) this.cancel(ENDED);
    return true;
  }

  /**
   * A connection that broke where the reader had kept the upstream waiting is the reader's doing, and an answer that goes on for
   * too long is what was asked for.
   */
  #blamed(failure: GatewayError): GatewayError {
    const isBroken = this.#wasHeldUp && BROKEN.has(failure.details.reason ?? '');
    return isBroken || (this.fold.isBegun && isCutAtLimit(byClient(failure))) ? byClient(failure) : failure;
  }

  /** What is to be read next: nothing while a large event is read, no bytes once it was, and then what had come with it. */
  #batch(): readonly Uint8Array[] | undefined | null {
    if (this.#isReading) return undefined;
    if (this.#large?.isWaiting === true) return NO_BYTES;
    const rest = this.#rest;
    this.#rest = undefined;
    return rest ?? this.#reader.take();
  }

  #pushAll(batch: readonly Uint8Array[], out: Step[]): void {
    for (let at = 0; at < batch.length && !this.#stages.ended; at++) {
      this.#push(batch[at] ?? NOTHING, out);
      if (this.#large?.isWaiting !== true) continue;
      if (at + 1 < batch.length) this.#rest = [...batch.slice(at + 1), ...(this.#rest ?? [])];
      this.#read(this.#large);
      return;
    }
    const late = this.#late;
    if (late !== undefined && !this.#stages.ended) throw late.thrown;
  }

  #read(large: LargeEvents): void {
    const work = this.#work;
    if (work === undefined) throw new Error('nobody reads large events');
    this.#isReading = true;
    const goOn = (): void => {
      this.#isReading = false;
      const wake = this.#wake;
      this.#wake = undefined;
      wake?.();
    };
    // It was put together in this turn, which took long enough.
    setImmediate(() => work.run(large.read()).then(goOn, goOn));
  }

  #push(bytes: Uint8Array, out: Step[]): void {
    try {
      this.#pushBytes(bytes, out);
    } catch (thrown) {
      // It came behind a large event that is not decoded yet.
      if (this.#large?.isWaiting !== true) throw thrown;
      this.#late = { thrown };
    }
  }

  #pushBytes(bytes: Uint8Array, out: Step[]): void {
    const room = this.#maxBytes - this.#bytes;
    this.#bytes += bytes.length;
    const isTooMuch = bytes.length > room;
    this.#stages.push(isTooMuch ? bytes.subarray(0, room) : bytes, out);
    // What follows the end in the same read is not counted.
    if (isTooMuch && !this.#stages.ended) throw new StreamError('too_many_bytes', `more than ${this.#maxBytes} bytes`);
  }

  ready(wake: () => void): void {
    if (this.#isReading) this.#wake = wake;
    else this.#reader.ready(wake);
  }

  pause(): void {
    this.#pauses += 1;
    if (this.#pauses > 1) return;
    this.#timers.pause();
    this.#pausedAt = this.#clock.monotonic();
  }

  resume(): void {
    this.#pauses -= 1;
    if (this.#pauses > 0) return;
    this.#timers.resume();
    this.#wasHeldUp ||= this.#clock.monotonic() - this.#pausedAt >= HELD_UP_MS;
  }

  cancel(reason?: unknown): void {
    this.#over ||= this.#failed === undefined;
    this.#timers.stop();
    this.#silence?.stop();
    this.#reader.cancel(reason);
  }

  /** Comments and pings carry no canonical event: they reset the idle timer but do not count as data. */
  #watch(out: readonly Step[], from: number): void {
    if (this.#over || this.#failed !== undefined) return;
    let hasData = false;
    for (let index = from; index < out.length && !hasData; index++) hasData = (out[index]?.events.length ?? 0) > 0;
    if (hasData) this.#timers.data();
    else this.#timers.touch();
    if (this.#decoder.finished !== true || (this.#finished && !hasData)) return;
    // From here on silence is a good end, and comments do not delay it.
    this.#finished = true;
    this.#timers.stop();
    this.#silence ??= createDeadline(this.#clock, () => this.#reader.finish());
    this.#silence.in(FINISHED_SILENCE_MS);
  }
}

/** Events of a whole answer that are written in one go: a client's protocol may make several frames of each. */
const EVENTS_AT_ONCE = 64;

/**
 * A whole JSON answer to a request for a stream, as a stream that arrives at once. It is taken in portions, at the pace of the
 * client and of other streams: megabytes of tiny items are gigabytes of frames.
 */
export function wholeAsSource(step: Step, word: Wording, length = 0): AnswerSource {
  // Without its text: that is a whole body and not an event, so the client's events are built from the canonical ones.
  return new WholeSource(readWhole({ events: step.events }, word), length);
}

function* portionsOf(steps: readonly Step[]): Generator<Step, undefined> {
  for (const { events, ...rest } of steps)
    for (let at = 0; at < events.length; at += EVENTS_AT_ONCE) yield { ...rest, events: events.slice(at, at + EVENTS_AT_ONCE) };
}

class WholeSource implements AnswerSource {
  readonly fold: Fold;
  readonly length: number;
  readonly #portions: Iterator<Step, undefined>;
  #next: Step | undefined;
  /** The next portion is for another turn. */
  #rests = false;

  constructor({ steps, fold }: Answer<readonly Step[]>, length: number) {
    this.length = length;
    this.#portions = portionsOf(steps);
    this.#next = this.#portions.next().value;
    this.fold = fold;
  }

  get ended(): boolean {
    return this.#next === undefined;
  }

  take(out: Step[]): boolean {
    if (this.#next === undefined) return true;
    if (this.#rests) return false;
    out.push(this.#next);
    this.#next = this.#portions.next().value;
    this.#rests = true;
    return true;
  }

  ready(wake: () => void): void {
    queueMicrotask(() => {
      this.#rests = false;
      wake();
    });
  }

  pause(): void {
    // Nothing is on its way.
  }

  resume(): void {
    // Nothing is on its way.
  }

  cancel(): void {
    this.#next = undefined;
  }
}

/**
 * Whether the step is the commit point: an item, a tool that the upstream runs, or the end of an answer without items.
 * `response.start` and usage are held until then.
 */
export function commits(step: Step): boolean {
  return step.acts === true || step.events.some(({ type }) => type.startsWith('item.') || type === 'response.end');
}
