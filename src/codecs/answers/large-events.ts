/**
 * Stands before a decoder whose caller reads large events itself, in steps: at one of them nothing more is decoded until the
 * caller has done so. What follows it waits here.
 */
import type { Step } from '../canonical/event.ts';
import type { JsonValue } from '../canonical/json.ts';
import { readUtf8, UTF8_STEP } from '../bodies/utf8.ts';
import type { EventDecoder, Frame } from '../codec.ts';
import { tryInSteps } from '../json/parse-in-steps.ts';
import type { Ends } from '../json/text.ts';
import type { Steps } from '../steps.ts';
import type { Stage } from '../../streams/stage.ts';

/** Events of so many characters or bytes take the engine some milliseconds to decode and to parse. */
export const LARGE_EVENT = 256 * 1024;

export class LargeEvents implements Stage<Frame, Step> {
  readonly #decoder: EventDecoder;
  /** The first one is large, and is to be read or was. */
  #frames: Frame[] = [];
  #isRead = false;
  /** It was read, and is to be refused. */
  #refusal: unknown;

  constructor(decoder: EventDecoder) {
    this.#decoder = decoder;
  }

  get ended(): boolean {
    return this.#decoder.ended;
  }

  /** There is an event that is to be read before anything else, or was: {@link goOn} decodes it. */
  get isWaiting(): boolean {
    return this.#frames.length > 0;
  }

  push(frame: Frame, out: Step[]): void {
    if (this.#frames.length > 0 || this.#isLarge(frame)) this.#frames.push(frame);
    else this.#decoder.push(frame, out);
  }

  pushAll(frames: readonly Frame[], out: Step[]): void {
    const decoder = this.#decoder;
    const isPlain = this.#frames.length === 0 && !frames.some((frame) => this.#isLarge(frame));
    if (isPlain && decoder.pushAll !== undefined) decoder.pushAll(frames, out);
    else for (const frame of frames) this.push(frame, out);
  }

  end(out: Step[]): void {
    this.#decoder.end(out);
  }

  /** Reads the event that waits. What is no JSON is left to the decoder to judge. */
  *read(): Steps<void> {
    const [large] = this.#frames;
    if (large === undefined) return;
    const { event } = large;
    const data = yield* dataOf(large);
    this.#frames[0] = { event, data };
    this.#isRead = true;
    const ends: Ends = new Map();
    let json: JsonValue | undefined;
    try {
      json = yield* tryInSteps(data, ends);
    } catch (refusal) {
      // Told where it is decoded: a failure of the decoder ends the answer, and what came before it has been told by then.
      this.#refusal = refusal;
    }
    if (json !== undefined) this.#frames[0] = { event, data, json, ends };
  }

  /** Decodes the event that was read, and what follows it up to the next large one. */
  goOn(out: Step[]): void {
    if (!this.#isRead) return;
    this.#isRead = false;
    const frames = this.#frames;
    this.#frames = [];
    if (this.#refusal !== undefined) throw this.#refusal;
    for (const [at, frame] of frames.entries()) {
      if (at > 0 && this.#isLarge(frame)) {
        this.#frames = frames.slice(at);
        return;
      }
      this.#decoder.push(frame, out);
    }
  }

  #isLarge({ data, isUndecoded }: Frame): boolean {
    return !this.ended && (isUndecoded === true || data.length >= LARGE_EVENT);
  }
}

/** The data of an event, decoded where it came as its bytes. */
export function* dataOf({ data, isUndecoded }: Frame): Steps<string> {
  return isUndecoded === true ? yield* readUtf8(bytesOf(data), new TextDecoder('utf-8', { ignoreBOM: true })) : data;
}

function* bytesOf(text: string): Generator<Uint8Array, void, undefined> {
  for (let at = 0; at < text.length; at += UTF8_STEP) yield Buffer.from(text.slice(at, at + UTF8_STEP), 'latin1');
}
