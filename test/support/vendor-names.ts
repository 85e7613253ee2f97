/**
 * The names in the types of the vendors' SDKs that no codec has a reading of, and why: one table a vendor. A name that is neither
 * read nor listed here fails `test/codecs/vendor-drift.test.ts`, as does one that is listed and read, or that the types no longer
 * have.
 */

/**
 * `native`: carried whole for its own dialect, and left out or refused for others. `ignored`: nothing of it reaches an answer or
 * a request.
 */
interface Listed {
  readonly is: 'native' | 'ignored';
  readonly why: string;
  readonly names: readonly string[];
}
export type Category = Readonly<Record<string, readonly Listed[]>>;

export const native = (why: string, ...names: readonly string[]): Listed => ({ is: 'native', why, names });
export const ignored = (why: string, ...names: readonly string[]): Listed => ({ is: 'ignored', why, names });

const SERVER_TOOLS = 'a tool that the vendor’s own servers run, its calls and their results';

export const OPENAI = {
  'responses: events': [
    native(
      'progress of a tool that the vendor runs; the finished item says all of it',
      ...['response.code_interpreter_call_code.delta', 'response.code_interpreter_call_code.done'],
      ...['response.code_interpreter_call.completed', 'response.code_interpreter_call.in_progress'],
      ...['response.code_interpreter_call.interpreting', 'response.file_search_call.completed'],
      ...['response.file_search_call.in_progress', 'response.file_search_call.searching'],
      ...['response.image_generation_call.completed', 'response.image_generation_call.generating'],
      ...['response.image_generation_call.in_progress', 'response.mcp_call_arguments.delta', 'response.mcp_call_arguments.done'],
      ...['response.mcp_call.completed', 'response.mcp_call.failed', 'response.mcp_call.in_progress'],
      ...['response.mcp_list_tools.completed', 'response.mcp_list_tools.failed', 'response.mcp_list_tools.in_progress'],
      ...['response.shell_call_command.added', 'response.shell_call_command.delta', 'response.shell_call_command.done'],
      ...['response.shell_call_output_content.delta', 'response.shell_call_output_content.done'],
      ...['response.web_search_call.completed', 'response.web_search_call.in_progress', 'response.web_search_call.searching'],
    ),
    native('pictures on the way; the finished item has the last one', 'response.image_generation_call.partial_image'),
    native('a compaction on its way; the finished item has it', 'response.compaction.compacting'),
    native(
      'audio beside the items: gathered, and an item of the answer at its end (detached-media.ts)',
      ...['response.audio.delta', 'response.audio.done', 'response.audio.transcript.delta', 'response.audio.transcript.done'],
    ),
  ],
  'responses: output items': [
    native(
      SERVER_TOOLS,
      ...['mcp_call', 'mcp_list_tools', 'mcp_approval_request', 'mcp_approval_response', 'code_interpreter_call'],
      ...['file_search_call', 'web_search_call', 'program', 'program_output'],
    ),
    native(
      'a call, or the result of one, of a tool that only this protocol can declare',
      ...['local_shell_call', 'local_shell_call_output', 'shell_call', 'shell_call_output', 'apply_patch_call'],
      ...['apply_patch_call_output', 'computer_call', 'computer_call_output', 'tool_search_call', 'tool_search_output'],
    ),
    native('what a conversation of this vendor repeats of its input', 'function_call_output', 'custom_tool_call_output'),
    native('opaque to all but the vendor that made it', 'compaction'),
    native('tools that were loaded on the way', 'additional_tools'),
  ],
  'responses: output parts': [],
  'responses: annotations': [native('points into files of the vendor', 'container_file_citation', 'file_citation', 'file_path')],
  'responses: reasons': [
    native('said as itself here; a cut everywhere else, with this word beside it', 'max_messages', 'steered'),
  ],
  'responses: usage': [],
  'responses: input token details': [],
  'responses: output token details': [],
  'responses: response members': [
    native(
      'passed on from upstreams of this protocol; the gateway has none of its own',
      ...['conversation', 'image', 'moderation', 'prompt', 'prompt_cache_diagnostics', 'prompt_cache_options'],
      ...['prompt_cache_retention'],
    ),
    ignored('made by the SDK from the items', 'output_text'),
  ],
  'responses: events of sockets': [
    ignored(
      'steers reach no upstream over HTTP, so the gateway never says that one was taken',
      'response.steer.accepted',
      'response.steer.pending',
    ),
  ],
  'chat: delta': [],
  'chat: message': [],
  'chat: finish reasons': [],
  'chat: usage': [],
  'chat: prompt token details': [ignored('what the others leave of the total', 'text_tokens')],
  'chat: completion token details': [
    ignored('what the others leave of the total', 'text_tokens'),
    ignored('billed as output, which the total holds', 'accepted_prediction_tokens', 'rejected_prediction_tokens'),
  ],
} as const satisfies Category;

export const ANTHROPIC = {
  events: [],
  blocks: [],
  deltas: [],
  'stop reasons': [],
  usage: [native('paid in credit of the vendor’s, not in tokens', 'fallback_credit')],
  iterations: [ignored('in the totals already', 'message', 'fallback_message')],
  'message members': [
    native('what the vendor did to its input; only its own servers do it', 'context_management', 'input_transformations'),
  ],
  citations: [
    native(
      'points into sources, not into the answer',
      ...['char_location', 'content_block_location', 'page_location', 'search_result_location', 'web_search_result_location'],
    ),
  ],
} as const satisfies Category;

export const GOOGLE = {
  parts: [
    native(SERVER_TOOLS, 'toolCall', 'toolResponse', 'codeExecutionResult', 'executableCode'),
    native('words of the client’s own audio', 'audioTranscription'),
    native('in requests alone', 'functionResponse'),
  ],
  'finish reasons': [
    native('a cut whose other half only this protocol can ask for; its word stands beside that of a limit', 'CONTINUATION'),
    ignored('the zero value of the enumeration: no reason was given', 'FINISH_REASON_UNSPECIFIED'),
  ],
  candidate: [
    ignored('the token that asks for the other half, of this protocol’s clients', 'continuationToken'),
    ignored('ratings do not change the answer; a filter that does is a finish reason', 'safetyRatings'),
    ignored('counted by the usage, and by each token’s own probability', 'tokenCount', 'avgLogprobs'),
  ],
  usage: [
    ignored(
      'shares of text, pictures and sound that have no price of their own',
      'cacheTokensDetails',
      'toolUsePromptTokensDetails',
    ),
    ignored('how the vendor’s traffic is paid for, and a part of another count', 'trafficType', 'initialPromptTokenCount'),
  ],
  call: [],
  'partial arguments': [],
  'grounding chunks': [native('no link to cite', 'image')],
} as const satisfies Category;
