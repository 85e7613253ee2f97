/** What a generative-content upstream can take. Operators read the reasons in the request log and in the docs. */
import { coerce, drop, keep, type RequestLosses, refuse, type RequestFeature } from '../canonical/features.ts';
import { notConvertible } from '../canonical/error.ts';

export const requestLosses: RequestLosses = {
  'system text': coerce('systemInstruction'),
  'system text after the first turn': coerce('user text inside <system_message> tags, in its place'),
  'developer text': coerce('systemInstruction'),
  'user text': keep,
  'assistant text': keep,
  'assistant phase': drop('the protocol has no phases'),
  'refusal in history': coerce('text of the model'),
  'reasoning: raw text in history': drop('the protocol takes readable thoughts only'),
  'reasoning: summary in history': coerce('thought part'),
  'reasoning: opaque of this owner': keep,
  'reasoning: opaque of another owner': drop('the item goes back to its owner only'),
  'function call': keep,
  'function call signature': keep,
  'custom tool call': coerce('function call'),
  'function call without a result': drop('the upstream refuses a call that nothing answers'),
  'tool result without a call': drop('the upstream refuses an answer to nothing'),
  'tool result: text': coerce('response.output'),
  'tool result: image': coerce('part of the function response'),
  'tool result: file': coerce('part of the function response'),
  'tool result: error flag': coerce('response.error'),
  'image: inline': keep,
  'image: url': coerce('fileData'),
  'image: reference': coerce('fileData, where the id is a file of this vendor'),
  'image by assistant in history': keep,
  'audio: inline': keep,
  'audio: url': coerce('fileData'),
  'file: inline': keep,
  'file: url': coerce('fileData'),
  'file: reference': coerce('fileData, where the id is a file of this vendor'),
  'file: text': coerce('text part'),
  'call of an undeclared tool': keep,
  'assistant turn first': coerce('a turn of the user before it'),
  'native item': drop('readable by its own protocol only; refused where it is media of the user, a compaction or a reference'),
  'cache breakpoint': drop('the protocol caches by prefix'),
  'function tool': keep,
  'function tool: strict': drop('the protocol has no strict functions'),
  'function tool: namespace': coerce('a unique function name, restored in the answer'),
  'function tool: async': drop('the function is called like every other'),
  'function tool: output schema': drop('results are as they come'),
  'function tool: allowed callers': coerce('the model alone; a function that only programs may call is not offered'),
  'function tool: deferred loading': coerce('offered from the start'),
  'custom tool with object schema': coerce('function declaration'),
  'custom tool: freeform': refuse('A freeform custom tool cannot be declared to this upstream.'),
  'native tool': drop('run by the servers of another protocol'),
  'tool choice: auto, none, required': keep,
  'tool choice: one tool': keep,
  'tool choice: allowed tools': coerce('allowedFunctionNames, or only these declarations'),
  'tool choice: native': refuse('The tool that tool_choice requires does not exist on this upstream.'),
  'parallel tool calls: off': drop('the protocol cannot forbid parallel calls'),
  'output cap': keep,
  'temperature, top_p': keep,
  top_k: keep,
  seed: keep,
  'presence and frequency penalty': keep,
  'logit bias': drop('the protocol has no biases'),
  'stop sequences': coerce('the first five; the gateway itself stops at others'),
  logprobs: keep,
  'format: json object': keep,
  'format: json schema': keep,
  verbosity: drop('the protocol has no verbosity'),
  'output modalities': keep,
  'reasoning effort': coerce('thinkingBudget or thinkingLevel'),
  'reasoning effort: none': coerce('thinkingBudget 0'),
  'reasoning budget': coerce('thinkingBudget or thinkingLevel'),
  'reasoning summary asked': coerce('includeThoughts'),
  'reasoning between tools': drop('the upstream thinks where it does by itself'),
  user: drop('the protocol has no end-user id'),
  metadata: drop('the protocol has no metadata'),
  'service tier': drop('tiers are named differently'),
  'prompt cache key': drop('the protocol caches by prefix'),
  'safety identifier': drop('the protocol has no safety identifier'),
  store: drop('the gateway keeps history'),
  include: drop('belongs to another protocol'),
  'fallback models': drop('which models may answer is for the gateway to say'),
  'unknown members': drop('belong to another protocol'),
};

export class LossLog {
  readonly #names = new Set<string>();

  /** Notes a feature that the request holds. Throws `unsupported_conversion` at `path` where the table refuses it. */
  note(feature: RequestFeature, path?: string): void {
    const decision = requestLosses[feature];
    if (decision.does === 'refuse') throw notConvertible(path, decision.why);
    if (decision.does !== 'keep') this.#names.add(feature);
  }

  get names(): readonly string[] {
    return [...this.#names];
  }
}
