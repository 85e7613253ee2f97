/**
 * Stands before a decoder whose reader parses large events itself, in steps: at one of them nothing more is decoded until the
 * reader has done so. What follows it waits here.
 */
import type { Step } from '../canonical/event.ts';
import type { JsonValue } from '../canonical/json.ts';
import type { EventDecoder, Frame } from '../codec.ts';
import type { Stage } from '../../streams/stage.ts';

/** Events of so many characters take the engine some milliseconds to parse. */
const LARGE = 256 * 1024;

export class LargeEvents implements Stage<Frame, Step> {
  readonly #decoder: EventDecoder;
  /** The first one is large and is being parsed, or was. */
  #frames: Frame[] = [];
  #isParsed = false;

  constructor(decoder: EventDecoder) {
    this.#decoder = decoder;
  }

  get ended(): boolean {
    return this.#decoder.ended;
  }

  /** The text of the event that is to be parsed before anything else; undefined where there is none. */
  get waiting(): string | undefined {
    return this.#frames[0]?.data;
  }

  push(frame: Frame, out: Step[]): void {
    if (this.#frames.length > 0 || (frame.data.length >= LARGE && !this.ended)) this.#frames.push(frame);
    else this.#decoder.push(frame, out);
  }

  end(out: Step[]): void {
    this.#decoder.end(out);
  }

  /** What {@link waiting} holds; undefined where the decoder is to parse it after all. It is decoded by {@link goOn}. */
  parsed(json: JsonValue | undefined): void {
    const [large, ...others] = this.#frames;
    if (large === undefined) return;
    this.#frames = [json === undefined ? large : { ...large, json }, ...others];
    this.#isParsed = true;
  }

  /** Decodes the event that was parsed, and what follows it up to the next large one. */
  goOn(out: Step[]): void {
    if (!this.#isParsed) return;
    this.#isParsed = false;
    const frames = this.#frames;
    this.#frames = [];
    for (const [at, frame] of frames.entries()) {
      if (at > 0 && frame.data.length >= LARGE && !this.ended) {
        this.#frames = frames.slice(at);
        return;
      }
      this.#decoder.push(frame, out);
    }
  }
}
