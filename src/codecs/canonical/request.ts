/** A decoded request: what the client wants in canonical form, and the exact text that it sent. */
import type { Dialect } from './dialect.ts';
import type { FunctionFeature } from './features.ts';
import type { CacheBreakpoint, Item, ToolName } from './item.ts';
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
      readonly breakpoint?: CacheBreakpoint;
      /** What only its own dialect can honour (`tools/function-members.ts`). */
      readonly beyond?: readonly FunctionFeature[];
      /** Only programs that the model writes may call it. */
      readonly isForProgramsOnly?: true;
      readonly at: string;
    }
  | {
      readonly kind: 'custom';
      readonly tool: ToolName;
      readonly description?: string;
      /** `{type: "text"}` or `{type: "grammar", syntax, definition}` in the flat (responses) spelling. */
      readonly format?: JsonObject;
      /** Only a custom tool with a schema has a form in messages (spec rule 14). */
      readonly inputSchema?: JsonObject;
      readonly beyond?: readonly FunctionFeature[];
      readonly isForProgramsOnly?: true;
      readonly at: string;
    }
  /** A tool that only its own dialect has, such as one that the upstream runs itself. */
  | {
      readonly kind: 'native';
      readonly dialect: Dialect;
      readonly type: string;
      readonly name?: string;
      readonly body: JsonObject;
      /**
       * Path of a private file that it refers to: only Channels of that file's scope may get the request (spec rules 2 and 3).
       */
      readonly referenceAt?: string;
      readonly at: string;
    };

export type ToolChoice =
  | { readonly mode: 'auto' | 'none' | 'required' }
  | { readonly mode: 'tool'; readonly toolType: 'function' | 'custom'; readonly tool: ToolName }
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
  /** Absent: the upstream chooses (spec, "Disabling reasoning"). Kept as the client wrote it, so unknown efforts survive. */
  readonly effort?: string;
  /** An explicit token budget (messages `budget_tokens`, chat `reasoning.max_tokens`). */
  readonly budget?: number;
  /** The readable summaries that the client asked for: `auto`, `concise`, `detailed`. Never added by the gateway. */
  readonly summary?: string;
  /**
   * The client asked for thinking and leaves its extent to the upstream: messages `thinking: {type: "adaptive"}`, a member of
   * chat vendors.
   */
  readonly adaptive?: boolean;
  /** messages `thinking: {type: "between_tools"}`. */
  readonly betweenTools?: boolean;
}

/**
 * What of a request an upstream may refuse that can do without it: opaque values that it did not make, raw reasoning of any
 * model, cache breakpoints, ids of items that another vendor of the protocol gave, the stream of a picture, a `top_p` beside a
 * temperature, and an output cap of the gateway's own that is above the one named here.
 */
export type Refusable = 'opaque' | 'raw' | 'breakpoints' | 'ids' | 'picture_stream' | 'both_samplings' | LowerCap;

/** The output caps of models that take less than the gateway says where the client says none. */
export const LOWER_CAPS = [64_000, 32_000, 8192, 4096] as const;
export type LowerCap = `cap_${(typeof LOWER_CAPS)[number]}`;

export interface CacheOptions extends CacheBreakpoint {
  /** The upstream chooses the position of a breakpoint: top-level `cache_control`, or OpenAI's mode `implicit`. */
  readonly isAutomatic: boolean;
}

/** The members that a decoder reads of an object, or of each entry of a list. */
export interface ReadMembers {
  readonly own: ReadonlySet<string>;
  /** The entries to check; absent: all. Others are native to their dialect and reported as such, or hold nothing else. */
  readonly of?: (entry: JsonObject) => boolean;
  /** The same for the values of members. */
  readonly within?: Readonly<Record<string, ReadMembers>>;
}

/** The paths of schemas: that of a function within its tool, and that of the format within the body. */
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
  /** The members of the body that have a canonical form here. All others reach only an upstream of the same dialect. */
  readonly reads: ReadMembers;
  readonly schemas?: SchemaPlaces;
  /** The logical model. */
  readonly model: string;
  readonly stream: boolean;
  readonly items: readonly Item[];
  /** No two have the same name, except native ones. */
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
  /** The client named models to fall back to. */
  readonly fallbacks?: true;
  readonly modalities?: readonly string[];
  /** What the client says of caching for the whole request. */
  readonly cache?: CacheOptions;
  readonly previousResponseId?: string;
  readonly conversation?: JsonValue;
  /** chat and completions: `stream_options.include_usage` was true. Other dialects always carry usage. */
  readonly includeUsage: boolean;
  /**
   * A member that only an upstream of this dialect can honour (responses `prompt`, messages `max_tokens: 0`): elsewhere
   * `unsupported_conversion` at `at`.
   */
  readonly boundTo?: { readonly dialect: Dialect; readonly at: string };
  /** Items that the text only refers to, by id: for upstreams that do not store them. */
  readonly named?: ReadonlyMap<string, JsonObject>;
  /** Session ids for affinity beyond `promptCacheKey` and `user`. */
  readonly sessionId?: string;
}

/**
 * The part of a request that is kept while its answer is read and written. Of `json` it has what an answer repeats or is shaped
 * by.
 */
export type SentRequest = Omit<CanonicalRequest, 'text' | 'named'>;

/** The conversation and unknown members are not among them: their values would stay in memory for as long as the answer takes. */
const KEPT_MEMBERS: Partial<Record<Dialect, readonly string[]>> = {
  chat: ['audio', 'functions', 'tools'],
  responses: [
    ...['frequency_penalty', 'instructions', 'max_output_tokens', 'max_tool_calls', 'metadata', 'parallel_tool_calls'],
    ...['presence_penalty', 'prompt_cache_key', 'reasoning', 'safety_identifier', 'service_tier', 'temperature', 'text'],
    ...['tool_choice', 'tools', 'top_logprobs', 'top_p', 'truncation', 'user'],
  ],
};

export function asSent(request: CanonicalRequest): SentRequest {
  const { text: _text, named: _named, ...sent } = request;
  return { ...sent, json: keptMembers(request) };
}

function keptMembers({ dialect, json }: CanonicalRequest): JsonObject {
  const kept: Record<string, JsonValue> = {};
  for (const name of KEPT_MEMBERS[dialect] ?? []) {
    const value = json[name];
    if (value !== undefined) kept[name] = value;
  }
  return kept;
}
