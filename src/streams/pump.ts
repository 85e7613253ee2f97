/**
 * Joins a source, a sealed step and a writer in one loop instead of Web Streams. Law: the same bytes as piping them, endings,
 * cancel and back-pressure included. What has arrived is read, processed and written in one go, without a promise unless somebody
 * must wait. `words` are what the step puts out and the writer writes.
 */
import { empty } from './empty.ts';
import type { Sealed } from './seal.ts';
import { ENDED } from './stream-error.ts';
import type { LoopTurns } from './loop-turns.ts';

export interface PumpSource<In> {
  /**
   * Appends everything that is here; false when nothing is (then `ready`). Throws once it has failed, after what came before was
   * appended.
   */
  take(out: In[]): boolean;
  /** Calls `wake` once, when `take` may have something new; never before this call has returned. */
  ready(wake: () => void): void;
  /** Everything was taken. */
  readonly ended: boolean;
  /** From here to `resume` the reader is behind, so nothing is taken and the source is not to blame for silence. */
  pause(): void;
  resume(): void;
  /** Releases what the source reads from. Reason `ended`: the output is complete. */
  cancel(reason: unknown): void;
}

export interface PumpWriter<Out> {
  /** Why the reader is gone, once it is. */
  gone(): unknown;
  /** Undefined when more may follow, otherwise settles when it may. Throws or rejects once the reader is gone. */
  write(words: readonly Out[]): Promise<void> | undefined;
  /** The last words, and the end. Rejects once the reader is gone. */
  end(words: readonly Out[]): Promise<void>;
  /** Cuts the connection. Does nothing once the reader is gone. */
  destroy(reason: unknown): void;
}

export interface PumpOptions<In, Out> {
  /**
   * Input that was taken from the source before. It is emptied once it was processed, so that it is not kept while the stream is
   * open.
   */
  readonly held?: In[];
  /** What arrives is processed in these turns of the event loop, as a stream of `party`. Absent: as soon as it arrives. */
  readonly turns?: LoopTurns;
  readonly party?: string;
  /** Awaited before the last words are written. May put others in their place. */
  beforeEnd?(words: Out[]): Promise<void> | undefined;
  /** Words were written. */
  onOutput?(): void;
  /** True for a failure of the source that only reports that the reader has left. */
  isGone?(reason: unknown): boolean;
  /** The dialect's error frame, written before the connection is cut if the step breaks its contract and throws `reason`. */
  finalFrames?(reason: unknown): readonly Out[];
}

/**
 * Resolves when the writer has ended, even if its last words are those of a failure. Rejects when the reader left or stalled (the
 * source is then cancelled at once), and when `fail` broke its contract (the connection is then cut).
 */
export function pump<In, Out>(
  source: PumpSource<In>,
  step: Sealed<In, Out>,
  writer: PumpWriter<Out>,
  options: PumpOptions<In, Out> = {},
): Promise<void> {
  return new Promise((resolve, reject) => new Pump(source, step, writer, options, resolve, reject).start());
}

class Pump<In, Out> {
  readonly #source: PumpSource<In>;
  readonly #step: Sealed<In, Out>;
  readonly #writer: PumpWriter<Out>;
  readonly #options: PumpOptions<In, Out>;
  readonly #resolve: () => void;
  readonly #reject: (reason: unknown) => void;
  /** What one read brought, and what was made of it: both are empty while the next is awaited. */
  readonly #taken: In[] = [];
  readonly #made: Out[] = [];
  readonly #goOn: () => void;
  readonly #fail = (reason: unknown): void => this.#stop(reason);

  constructor(
    source: PumpSource<In>,
    step: Sealed<In, Out>,
    writer: PumpWriter<Out>,
    options: PumpOptions<In, Out>,
    resolve: () => void,
    reject: (reason: unknown) => void,
  ) {
    this.#source = source;
    this.#step = step;
    this.#writer = writer;
    this.#options = options;
    this.#resolve = resolve;
    this.#reject = reject;
    const { turns, party = '' } = options;
    const goOn = (): void => this.#run(undefined);
    this.#goOn = turns === undefined ? goOn : () => turns.do(party, goOn);
  }

  start(): void {
    const { held } = this.#options;
    this.#run(held);
    if (held !== undefined) held.length = 0;
  }

  /** Reads and writes until the source or the writer has to be waited for, or the output is complete. Never throws. */
  #run(held: readonly In[] | undefined): void {
    try {
      let words = held === undefined ? this.#read() : this.#words(held, undefined);
      for (;;) {
        if (words === undefined) {
          this.#source.ready(this.#goOn);
          return;
        }
        if (this.#step.over) break;
        const full = words.length === 0 ? undefined : this.#write(words);
        empty(words);
        if (full !== undefined) {
          full.then(this.#goOn, this.#fail);
          return;
        }
        words = this.#read();
      }
      const ended = this.#end(words);
      if (!this.#source.ended) this.#source.cancel(ENDED);
      ended.then(this.#resolve, this.#fail);
    } catch (reason) {
      this.#stop(reason);
    }
  }

  #end(words: Out[]): Promise<void> {
    const settled = this.#options.beforeEnd?.(words);
    return settled === undefined ? this.#writeEnd(words) : settled.then(() => this.#writeEnd(words));
  }

  #writeEnd(words: readonly Out[]): Promise<void> {
    const ended = this.#writer.end(words);
    if (words.length > 0) this.#options.onOutput?.();
    return ended;
  }

  #write(words: readonly Out[]): Promise<void> | undefined {
    const full = this.#writer.write(words);
    this.#options.onOutput?.();
    if (full === undefined) return undefined;
    this.#source.pause();
    return full.then(() => this.#source.resume());
  }

  /** The words for the input that is there; undefined when there is none. Throws when the reader has left. */
  #read(): Out[] | undefined {
    // After the reader has left, the source fails by our own cancel only: no words are made of that.
    this.#checkReader();
    const taken = this.#taken;
    let failure: { readonly reason: unknown } | undefined;
    try {
      if (!this.#source.take(taken)) return undefined;
    } catch (reason) {
      if (this.#options.isGone?.(reason) === true) throw reason;
      failure = { reason };
    }
    const words = this.#words(taken, failure);
    empty(taken);
    return words;
  }

  /** Throws what a broken `fail` threw. */
  #words(taken: readonly In[], failure: { readonly reason: unknown } | undefined): Out[] {
    const words = this.#made;
    try {
      this.#step.push(taken, words);
      if (failure !== undefined) this.#step.abort(failure.reason, words);
      else if (this.#source.ended) this.#step.end(words);
    } catch (broken) {
      const finalFrames = this.#options.finalFrames?.(broken);
      if (finalFrames !== undefined && this.#writer.gone() === undefined) {
        // The connection is cut next, so it does not matter whether the reader gets these words.
        this.#writer.write([...words, ...finalFrames])?.catch(() => undefined);
      }
      throw broken;
    }
    return words;
  }

  #checkReader(): void {
    const gone = this.#writer.gone();
    if (gone !== undefined) throw gone;
  }

  #stop(reason: unknown): void {
    this.#source.cancel(reason);
    if (this.#options.isGone?.(reason) !== true) this.#writer.destroy(reason);
    this.#reject(reason);
  }
}
