/**
 * What a test or a bench may order the simulated upstream to do: content, pace and faults. Types and the script book only. A
 * script is chosen by (1) a model named `script:NAME` or `script:NAME/anything`, (2) the first queued script whose `match`
 * accepts the request. Without one the demonstration answers.
 */
import type { JsonObject, JsonValue } from './json.ts';
import type { ReceivedRequest } from './journal.ts';
import type { Reply } from './reply.ts';

export interface Pace {
  /** Before the first body byte. */
  readonly firstMs?: number;
  /** Between writes. 0: a turn of the event loop. */
  readonly ms?: number;
  /**
   * `event`: one write an event. `packet`: the whole body in one write.
   * A number: pieces of that many bytes (1 = one byte chunks), each its own write.
   */
  readonly cut?: 'event' | 'packet' | number;
}

/** `at` counts events of the stream from 0: the fault happens before event `at` is sent. A whole answer is one event. */
export type Fault =
  | {
      readonly type: 'status';
      readonly status: number;
      readonly message?: string;
      readonly code?: string;
      /** Replaces the vendor's error body: JSON, or text as it is. */
      readonly body?: JsonObject | string;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | { readonly type: 'html'; readonly status?: number }
  | { readonly type: 'error-event'; readonly at: number; readonly error?: JsonValue }
  /** Behind Bedrock: an exception in place of event `at`. */
  | { readonly type: 'exception'; readonly at: number; readonly name: string; readonly message: string }
  | { readonly type: 'cut'; readonly at?: number; readonly atByte?: number }
  | { readonly type: 'end'; readonly at?: number; readonly atByte?: number }
  | { readonly type: 'stall'; readonly at: number; readonly ms?: number }
  | { readonly type: 'garbage'; readonly at: number; readonly text?: string }
  | { readonly type: 'content-type'; readonly value: string }
  | { readonly type: 'gzip' }
  | { readonly type: 'no-terminal' }
  | { readonly type: 'done-only' }
  | { readonly type: 'slow-headers'; readonly ms: number }
  | { readonly type: 'silent' };

/** Bytes exactly as given. `chunks` are the writes; `body` is one write, cut as the pace says. */
export interface RawAnswer {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly chunks?: readonly (string | Uint8Array)[];
}

export interface Script {
  readonly match?: (request: ReceivedRequest) => boolean;
  /** How many requests it answers; default 1. */
  readonly times?: number;
  readonly reply?: Reply;
  readonly raw?: RawAnswer;
  readonly pace?: Pace;
  readonly faults?: readonly Fault[];
  /** Refuse what the vendor would refuse. Default: true without `reply` and `raw`, else false. */
  readonly strict?: boolean;
  /** Replaces or adds headers of the answer. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Video upstreams: how the task made by this request goes on. */
  readonly video?: VideoCourse;
}

export interface VideoCourse {
  readonly queueMs?: number;
  readonly runMs?: number;
  readonly outcome?: 'succeeded' | 'failed';
  readonly code?: string;
  readonly message?: string;
}

interface Waiting {
  readonly script: Script;
  left: number;
}

/** The scripts that wait for a request, in order, and those with a name. */
export class ScriptBook {
  #queue: Waiting[] = [];
  readonly #named = new Map<string, Script>();

  enqueue(script: Script): void {
    this.#queue.push({ script, left: script.times ?? 1 });
  }

  define(name: string, script: Script): void {
    this.#named.set(name, script);
  }

  clear(): void {
    this.#queue = [];
    this.#named.clear();
  }

  /**
   * The script for this request, taken out of the queue when its turns are used up. `matched`: only one that says what it is for.
   */
  take(request: ReceivedRequest, matched = false): Script | undefined {
    const name = request.model?.match(/^script:([^/]+)/)?.[1];
    const named = name === undefined ? undefined : this.#named.get(name);
    if (named !== undefined && (named.match?.(request) ?? true)) return named;
    const found = this.#queue.find(({ script }) => script.match?.(request) ?? !matched);
    if (found === undefined) return undefined;
    found.left -= 1;
    if (found.left <= 0) this.#queue = this.#queue.filter((waiting) => waiting !== found);
    return found.script;
  }
}
