/**
 * Token counts by a tokenizer in a thread of its own, started with the first count: loading its vocabulary takes a fifth of a second and
 * 70 MB, and no stream should stand still for that.
 */
import { Worker } from 'node:worker_threads';

/** To the thread, and back from it. */
export interface CountRequest {
  readonly id: number;
  readonly text: string;
}
export interface CountReply {
  readonly id: number;
  readonly tokens: number;
}

const THREAD = new URL('./tokenizer-thread.ts', import.meta.url);

export class Tokenizer {
  readonly #waiting = new Map<number, PromiseWithResolvers<number>>();
  readonly #file: URL;
  #thread: Worker | undefined;
  #lastId = 0;

  constructor(file: URL = THREAD) {
    this.#file = file;
  }

  /** Rejects if the thread ends before it has answered; the next count starts another. */
  count(text: string): Promise<number> {
    this.#thread ??= this.#start();
    const thread = this.#thread;
    const id = ++this.#lastId;
    const reply = Promise.withResolvers<number>();
    this.#waiting.set(id, reply);
    // A process that drains waits for what is still to be charged, and for nothing else here.
    thread.ref();
    thread.postMessage({ id, text } satisfies CountRequest);
    return reply.promise;
  }

  #start(): Worker {
    const thread = new Worker(this.#file);
    thread.on('message', ({ id, tokens }: CountReply) => {
      this.#waiting.get(id)?.resolve(tokens);
      this.#waiting.delete(id);
      if (this.#waiting.size === 0) thread.unref();
    });
    let failure: unknown;
    thread.on('error', (error) => {
      failure = error;
    });
    thread.on('exit', () => {
      this.#thread = undefined;
      const lost = [...this.#waiting.values()];
      this.#waiting.clear();
      for (const { reject } of lost) reject(new Error('the tokenizer thread ended', { cause: failure }));
    });
    return thread;
  }
}
