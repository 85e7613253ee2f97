/** The members that are read of a responses request. Any other member is reported as lost. */
import type { ReadMembers } from '../../canonical/request.ts';
import { ofType, own } from '../../requests/members.ts';
import { IMAGE_FACTS, OPAQUE_MEMBERS } from '../wire.ts';

const PART: ReadMembers = {
  own: new Set([
    ...['type', 'text', 'refusal', 'image_url', 'detail'],
    ...['file_id', 'file_data', 'file_url', 'filename', 'input_audio', 'prompt_cache_breakpoint'],
  ]),
  of: ofType(
    ...['input_text', 'output_text', 'text', 'summary_text', 'reasoning_text', 'refusal'],
    ...['input_image', 'input_file', 'input_audio'],
  ),
};

const BEYOND = ['async', 'output_schema', 'allowed_callers', 'defer_loading'] as const;

const TOOL: ReadMembers = {
  ...own('type', 'name', 'description', 'parameters', 'strict', 'format', 'input_schema', 'tools', ...BEYOND),
  of: ofType('function', 'custom', 'namespace'),
};

/** `stream_options` concern only the client's own stream. */
export const READ: ReadMembers = {
  own: new Set([
    ...['model', 'input', 'instructions', 'prompt', 'previous_response_id', 'conversation', 'background', 'store', 'include'],
    ...['stream', 'stream_options', 'tools', 'tool_choice', 'parallel_tool_calls', 'max_output_tokens', 'temperature', 'top_p'],
    ...['top_logprobs', 'text', 'reasoning', 'user', 'metadata', 'service_tier', 'prompt_cache_key', 'safety_identifier'],
    'prompt_cache_options',
  ]),
  within: {
    input: {
      own: new Set([
        ...['type', 'id', 'status', 'role', 'phase', 'content', 'summary', 'call_id', 'name', 'namespace', 'arguments', 'input'],
        ...['output', 'result', 'format', 'tools', ...OPAQUE_MEMBERS, ...IMAGE_FACTS],
      ]),
      of: ofType(
        ...['message', 'function_call', 'function_call_output', 'custom_tool_call', 'custom_tool_call_output', 'reasoning'],
        ...['image_generation_call', 'additional_tools'],
      ),
      within: { content: PART, output: PART, tools: TOOL },
    },
    tools: { ...TOOL, within: { tools: TOOL } },
    reasoning: own('effort', 'summary', 'generate_summary'),
  },
};
