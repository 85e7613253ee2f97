/** What the simulated upstream received, kept for tests: bounded by count and by bytes a body. */
import type { JsonValue } from './json.ts';

/** `open` while the answer is being written; `left` when the caller went away first; `cut` when a fault destroyed the socket. */
export type AnswerState = 'open' | 'ended' | 'left' | 'cut';

export interface ReceivedRequest {
  readonly at: number;
  readonly method: string;
  /** Path without the query. */
  readonly path: string;
  readonly query: Readonly<Record<string, string>>;
  readonly headers: Readonly<Record<string, string>>;
  /** The parsed JSON body; `undefined` for no body, multipart and text that is no JSON. */
  readonly body: JsonValue | undefined;
  /** The body as text, at most `journalTextBytes` long. */
  readonly text: string;
  readonly bytes: number;
  readonly model: string | undefined;
  /** Multipart parts in order. */
  readonly parts: readonly ReceivedPart[];
  /** The status that was answered; 0 before. */
  status: number;
  state: AnswerState;
  /** Settles when the answer is over in any way. */
  readonly over: Promise<AnswerState>;
}

export interface ReceivedPart {
  readonly name: string | undefined;
  readonly filename: string | undefined;
  readonly mimeType: string | undefined;
  readonly bytes: Uint8Array;
  /** Text of parts without a file name. */
  readonly text: string | undefined;
}

export class Journal {
  readonly #limit: number;
  #entries: ReceivedRequest[] = [];

  constructor(limit: number) {
    this.#limit = limit;
  }

  add(request: ReceivedRequest): void {
    this.#entries.push(request);
    if (this.#entries.length > this.#limit) this.#entries.splice(0, this.#entries.length - this.#limit);
  }

  /** Oldest first. */
  get entries(): readonly ReceivedRequest[] {
    return this.#entries;
  }

  clear(): void {
    this.#entries = [];
  }
}
