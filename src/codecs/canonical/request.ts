/** A decoded request: what the client wants, in nobody's protocol, beside the exact text that it sent. */
import type { Dialect } from './dialect.ts';
import type { Item, ToolName } from './item.ts';
import type { JsonObject, JsonValue } from './json.ts';

export type Effort = 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';

export type Tool =
  | {
      readonly kind: 'function';
      readonly tool: ToolName;
      readonly description?: string;
      /** JSON Schema; absent when the client gave none. */
      readonly parameters?: JsonObject;
      readonly strict?: boolean;
      readonly cacheControl?: JsonObject;
      readonly at: string;
    }
  | {
      readonly kind: 'custom';
      readonly tool: ToolName;
      readonly description?: string;
      /** `{type: "text"}` or `{type: "grammar", syntax, definition}` in the flat (responses) spelling. */
      readonly format?: JsonObject;
      /** Only such a custom tool can be said on messages (spec rule 14). */
      readonly inputSchema?: JsonObject;
      readonly at: string;
    }
  /** A tool that the upstream itself runs, or any other that only its own dialect knows. */
  | {
      readonly kind: 'native';
      readonly dialect: Dialect;
      readonly type: string;
      readonly name?: string;
      readonly body: JsonObject;
      /** Path of a private file that it names: only Channels of that file's scope may get the request (spec rules 2 and 3). */
      readonly referenceAt?: string;
      readonly at: string;
    };

export type ToolChoice =
  | { readonly mode: 'auto' | 'none' | 'required' }
  | { readonly mode: 'tool'; readonly flavour: 'function' | 'custom'; readonly tool: ToolName }
  | { readonly mode: 'allowed'; readonly require: boolean; readonly tools: readonly ToolName[] }
  | { readonly mode: 'native'; readonly dialect: Dialect; readonly body: JsonValue };

export type Format =
  | { readonly type: 'text' }
  | { readonly type: 'json_object' }
  | {
      readonly type: 'json_schema';
      readonly name?: string;
      readonly description?: string;
      readonly schema?: JsonObject;
      readonly strict?: boolean;
    };

export interface ReasoningControl {
  /** Absent: the upstream chooses (spec, "Disabling reasoning"). Kept as the client's word, so unknown words survive. */
  readonly effort?: string;
  /** An explicit token budget (messages `budget_tokens`, chat `reasoning.max_tokens`). */
  readonly budget?: number;
  /** The client asked for readable summaries: `auto`, `concise`, `detailed`. Never added by the gateway. */
  readonly summary?: string;
  /** Thinking is asked for, how much is left to the upstream: messages `thinking: {type: "adaptive"}`, a switch of chat vendors. */
  readonly adaptive?: boolean;
}

/** What of the reasoning in a history an upstream may refuse: opaque values that it did not make, or raw text of any model. */
export type ReasoningFace = 'opaque' | 'raw';

/** The members of an object, or of each entry of a list, whose meaning a decoder reads. */
export interface ReadMembers {
  readonly own: ReadonlySet<string>;
  /** The entries that this is true of; absent: of all. Others are native to their dialect and named as such, or say nothing more. */
  readonly of?: (entry: JsonObject) => boolean;
  readonly within?: Readonly<Record<string, ReadMembers>>;
}

/** Where schemas stand: that of a function within its tool, and that of the format within the body. */
export interface SchemaPlaces {
  readonly inTool: readonly string[];
  readonly format: readonly string[];
}

export interface CanonicalRequest {
  /** The client's dialect. */
  readonly dialect: Dialect;
  /** The body exactly as received (after history was expanded), for an upstream of the same dialect. */
  readonly text: string;
  readonly json: JsonObject;
  /** The members of the body whose meaning is held here; whatever else it says, only an upstream of its dialect can read. */
  readonly reads: ReadonlySet<string>;
  /** The same of what these members hold, where that is known. */
  readonly readsIn?: Readonly<Record<string, ReadMembers>>;
  readonly schemas?: SchemaPlaces;
  /** The logical model. */
  readonly model: string;
  readonly stream: boolean;
  readonly items: readonly Item[];
  /** Each name once, but for native ones. */
  readonly tools: readonly Tool[];
  readonly toolChoice?: ToolChoice;
  readonly parallelToolCalls?: boolean;
  readonly maxOutputTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly seed?: number;
  readonly presencePenalty?: number;
  readonly frequencyPenalty?: number;
  /** Token id to bias (chat, completions). */
  readonly logitBias?: JsonObject;
  readonly stop?: readonly string[];
  /** Present when the client wants logprobs; `top` alternatives for each token (0 to 20). */
  readonly logprobs?: { readonly top: number };
  readonly format?: Format;
  readonly verbosity?: string;
  readonly reasoning?: ReasoningControl;
  readonly user?: string;
  readonly metadata?: JsonObject;
  readonly serviceTier?: string;
  readonly promptCacheKey?: string;
  readonly safetyIdentifier?: string;
  /** The client's `store` member, absent when not given. */
  readonly store?: boolean;
  readonly include?: readonly string[];
  readonly modalities?: readonly string[];
  /** A cache breakpoint of the whole request, which the upstream places by itself. */
  readonly cacheControl?: JsonObject;
  readonly previousResponseId?: string;
  readonly conversation?: JsonValue;
  /** chat and completions: `stream_options.include_usage` was true. Other dialects always carry usage. */
  readonly includeUsage: boolean;
  /** A member that only an upstream of this dialect can honour (responses `prompt`, messages `max_tokens: 0`): elsewhere `unsupported_conversion` at `at`. */
  readonly boundTo?: { readonly dialect: Dialect; readonly at: string };
  /** What the items said that the text only names, by their ids: for upstreams that hold no such items. */
  readonly named?: ReadonlyMap<string, JsonObject>;
  /** Session ids for affinity beyond `promptCacheKey` and `user`. */
  readonly sessionId?: string;
}

/** A request that was sent: without what may be long and nothing that reads or writes the answer needs. */
export type SentRequest = Omit<CanonicalRequest, 'text' | 'named'>;

export function asSent(request: CanonicalRequest): SentRequest {
  const { text: _text, named: _named, ...sent } = request;
  return sent;
}
