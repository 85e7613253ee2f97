/**
 * The names of everything that a conversation can hold. The loss table of each encoder has an entry for every name (design: "A
 * different dialect sees only canonical meaning"), so a missing decision does not compile.
 */

/** Members of a function that only its own dialect can honour. */
const FUNCTION_FEATURES = [
  'function tool: async',
  'function tool: output schema',
  'function tool: allowed callers',
  'function tool: deferred loading',
] as const;
export type FunctionFeature = (typeof FUNCTION_FEATURES)[number];

/** What a request can hold; decided by each upstream encoder. */
export const REQUEST_FEATURES = [
  'system text',
  'system text after the first turn',
  'developer text',
  'user text',
  'assistant text',
  'assistant phase',
  'refusal in history',
  'reasoning: raw text in history',
  'reasoning: summary in history',
  'reasoning: opaque of this owner',
  'reasoning: opaque of another owner',
  'function call',
  'function call signature',
  'custom tool call',
  'function call without a result',
  'tool result without a call',
  'tool result: text',
  'tool result: image',
  'tool result: file',
  'tool result: error flag',
  'image: inline',
  'image: url',
  'image: reference',
  'image by assistant in history',
  'audio: inline',
  'audio: url',
  'video: inline',
  'video: url',
  'file: inline',
  'file: url',
  'file: reference',
  'file: text',
  'call of an undeclared tool',
  'assistant turn first',
  'native item',
  'cache breakpoint',
  'function tool',
  'function tool: strict',
  'function tool: namespace',
  ...FUNCTION_FEATURES,
  'custom tool with object schema',
  'custom tool: freeform',
  'native tool',
  'tool choice: auto, none, required',
  'tool choice: one tool',
  'tool choice: allowed tools',
  'tool choice: native',
  'parallel tool calls: off',
  'output cap',
  'temperature, top_p',
  'top_k',
  'seed',
  'presence and frequency penalty',
  'logit bias',
  'stop sequences',
  'logprobs',
  'format: json object',
  'format: json schema',
  'verbosity',
  'output modalities',
  'reasoning effort',
  'reasoning effort: none',
  'reasoning budget',
  'reasoning summary asked',
  'reasoning between tools',
  'user',
  'metadata',
  'service tier',
  'prompt cache key',
  'safety identifier',
  'store',
  'include',
  'fallback models',
  'unknown members',
] as const;
export type RequestFeature = (typeof REQUEST_FEATURES)[number];

/** What a response can hold; decided by each client encoder. */
export const RESPONSE_FEATURES = [
  'text',
  'text phase',
  'several texts',
  'refusal',
  'url citation with position',
  'url citation without position',
  'native citation',
  'citation of an ended text',
  'logprobs',
  'text signature',
  'reasoning: raw text',
  'reasoning: summary',
  'reasoning: opaque',
  'reasoning: redacted',
  'function call',
  'function call: namespace',
  'function call signature',
  'custom tool call',
  'image',
  'image signature',
  'audio',
  'file',
  'native item',
  'native items alone',
  'native event',
  'usage: cache',
  'usage: reasoning',
  'usage: iterations',
  'usage: unknown members',
  'completed: stop sequence',
  'completed: tool use',
  'incomplete: max output',
  'incomplete: content filter',
  'incomplete: context window',
  'incomplete: pause',
  'incomplete: compaction',
  'failed with partial output',
  'cancelled',
  'service tier',
] as const;
export type ResponseFeature = (typeof RESPONSE_FEATURES)[number];
/** What stands in an event of its own, and in no item. */
export type NativeEventFeature = Extract<ResponseFeature, 'native event' | 'citation of an ended text'>;

/** What an encoder does with a feature when the dialects differ. */
export type Decision =
  | { readonly does: 'keep' }
  /** Written in another form; `to` documents it. */
  | { readonly does: 'coerce'; readonly to: string }
  /** Left out, and named in the request log with the reason `why`. */
  | { readonly does: 'drop'; readonly why: string }
  /** An explicit error instead of a loss: `unsupported_conversion` (request) or `response_not_representable` (response). */
  | { readonly does: 'refuse'; readonly why: string };

export type RequestLosses = Readonly<Record<RequestFeature, Decision>>;
export type ResponseLosses = Readonly<Record<ResponseFeature, Decision>>;

export const keep: Decision = { does: 'keep' };
export const coerce = (to: string): Decision => ({ does: 'coerce', to });
export const drop = (why: string): Decision => ({ does: 'drop', why });
export const refuse = (why: string): Decision => ({ does: 'refuse', why });
