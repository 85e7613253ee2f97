/** What each text dialect of the simulator provides: a check as strict as the vendor's, a reading, and the literal bytes. */
import type { Frame } from './frame.ts';
import type { JsonObject, JsonValue } from './json.ts';
import type { Reply } from './reply.ts';
import type { ResponseMemory } from './response-memory.ts';
import type { Seals } from './seals.ts';
import type { VendorError } from './vendor-error.ts';

export interface PromptTool {
  readonly name: string;
  readonly namespace?: string;
  readonly custom: boolean;
  /** The JSON schema of the arguments; `{}` for none. */
  readonly schema: JsonObject;
}

/** Which faces of its reasoning a model shows: the text itself, a summary, an opaque value to send back. */
export interface ReasoningFaces {
  readonly raw: boolean;
  readonly summary: boolean;
  readonly opaque: boolean;
}

/** A request as the demonstration needs it, of no dialect. */
export interface Prompt {
  /** All text of the request, for counting and seeding. */
  readonly text: string;
  readonly lastUserText: string;
  readonly tools: readonly PromptTool[];
  readonly toolChoice: 'auto' | 'none' | 'required' | { readonly name: string };
  readonly parallel: boolean;
  /** Results since the last user text, in order. */
  readonly toolResults: readonly { readonly name: string; readonly text: string }[];
  readonly maxTokens?: number | undefined;
  readonly stop: readonly string[];
  readonly seed?: number | undefined;
  readonly temperature?: number | undefined;
  /** Absent: no logprobs asked. 0: the chosen token only. */
  readonly topLogprobs?: number | undefined;
  /** The faces of reasoning that the caller is shown; absent: the model does not reason. */
  readonly reasoning?: ReasoningFaces | undefined;
  /** The schema that the whole answer must fit. */
  readonly answerSchema?: JsonObject | undefined;
  readonly drawImage: boolean;
}

/** One request being answered. */
export interface Turn {
  readonly body: JsonObject;
  /** From the body or the path. */
  readonly model: string;
  readonly createdS: number;
  /** A fresh id with this prefix. */
  readonly mint: (prefix: string) => string;
  readonly seals: Seals;
  readonly memory: ResponseMemory;
}

export interface Dialect {
  /** Throws {@link VendorError} where the vendor would refuse. Tests call it with every request that the gateway can write. */
  check(turn: Turn): void;
  prompt(turn: Turn): Prompt;
  stream(reply: Reply, turn: Turn): Frame[];
  whole(reply: Reply, turn: Turn): string;
  /** The body of an HTTP error. */
  failure(error: VendorError, turn?: Pick<Turn, 'mint'>): string;
  /** An error inside a stream that has begun, after `before` frames. `error` replaces the usual content. */
  failureFrame(before: number, error?: JsonValue): Frame;
  /** Headers that the vendor adds. */
  headers(requestId: string): Record<string, string>;
  readonly streamType: string;
}
