/**
 * Source, sealed step and writer joined by one loop instead of Web Streams. Law: the same bytes as piping them, endings, cancel and
 * back-pressure included. What arrives is read, turned into words and written in one go, without a promise unless somebody must wait.
 */
import type { Sealed } from './seal.ts';
import { ENDED } from './stream-error.ts';

export interface PumpSource<In> {
  /** Appends everything that is here; false when nothing is (then `ready`). Throws once it has failed, after what came before was appended. */
  take(out: In[]): boolean;
  /** Calls `wake` once, when `take` may have something new to say; never before this call has returned. */
  ready(wake: () => void): void;
  /** Everything was taken. */
  readonly ended: boolean;
  /** Between these two the reader is behind, and silence is not the source's fault. */
  pause(): void;
  resume(): void;
  /** Lets go of what is behind the source. Reason `ended`: everything was said. */
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
  /** What was taken from the source before. Emptied when it was said, so that nothing keeps it while the stream is open. */
  readonly held?: In[];
  /** What must be done before the last words may go out. May put others in their place. */
  beforeEnd?(words: Out[]): Promise<void> | undefined;
  /** Words were written. */
  onWords?(): void;
  /** A failure of the source that only says that nobody is there to hear of it. */
  isGone?(reason: unknown): boolean;
  /** What is said before the connection is cut, should the step break its contract and throw `reason`. */
  lastWords?(reason: unknown): readonly Out[];
}

/**
 * Resolves when the writer has ended, be it in words of failure. Rejects when the reader left or stalled (the source is then cancelled
 * at once), and when `fail` broke its contract (the connection is then cut).
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
  readonly #goOn = (): void => this.#run(undefined);
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
  }

  start(): void {
    const { held } = this.#options;
    this.#run(held);
    if (held !== undefined) held.length = 0;
  }

  /** Reads and writes until somebody has to be waited for, or everything was said. Never throws. */
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
    if (words.length > 0) this.#options.onWords?.();
    return ended;
  }

  #write(words: readonly Out[]): Promise<void> | undefined {
    const full = this.#writer.write(words);
    this.#options.onWords?.();
    if (full === undefined) return undefined;
    this.#source.pause();
    return full.then(() => this.#source.resume());
  }

  /** The words of what is there; undefined when nothing is. Throws when nobody is there to read them. */
  #read(): Out[] | undefined {
    // Nobody is left to hear the words of a failure that is only our own cancel.
    this.#checkReader();
    const taken: In[] = [];
    try {
      if (!this.#source.take(taken)) return undefined;
    } catch (reason) {
      if (this.#options.isGone?.(reason) === true) throw reason;
      return this.#words(taken, { reason });
    }
    return this.#words(taken, undefined);
  }

  /** Throws what a broken `fail` threw. */
  #words(taken: readonly In[], failure: { readonly reason: unknown } | undefined): Out[] {
    const words: Out[] = [];
    try {
      this.#step.push(taken, words);
      if (failure !== undefined) this.#step.abort(failure.reason, words);
      else if (this.#source.ended) this.#step.end(words);
    } catch (broken) {
      const lastWords = this.#options.lastWords?.(broken);
      if (lastWords !== undefined && this.#writer.gone() === undefined) {
        // The connection is cut next: a reader that went before it had these words is told nothing more.
        this.#writer.write([...words, ...lastWords])?.catch(() => undefined);
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
