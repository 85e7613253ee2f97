/** The members that are read of a chat request. Any other member is reported as lost. */
import type { ReadMembers } from '../../canonical/request.ts';
import { ofType, own } from '../../requests/members.ts';

const PART: ReadMembers = {
  own: new Set([
    ...['type', 'text', 'refusal', 'image_url', 'input_audio', 'cache_control', 'prompt_cache_breakpoint'],
    ...['file', 'file_id', 'document_url', 'document_name'],
  ]),
  of: ofType('text', 'input_text', 'output_text', 'refusal', 'image_url', 'input_audio', 'file', 'document_url'),
  within: {
    image_url: own('url', 'detail'),
    input_audio: own('data', 'format'),
    file: own('file_id', 'file_data', 'filename'),
  },
};

const CALL: ReadMembers = {
  ...own('id', 'type', 'index', 'function', 'custom', 'extra_content'),
  within: { function: own('name', 'arguments'), custom: own('name', 'input') },
};

export const READ: ReadMembers = {
  own: new Set([
    ...['model', 'messages', 'stream', 'stream_options', 'n', 'session_id', 'user', 'metadata', 'store', 'service_tier'],
    ...['tools', 'tool_choice', 'parallel_tool_calls', 'functions', 'function_call', 'max_completion_tokens', 'max_tokens'],
    ...['temperature', 'top_p', 'top_k', 'seed', 'presence_penalty', 'frequency_penalty', 'logit_bias', 'stop', 'logprobs'],
    ...['top_logprobs', 'response_format', 'modalities', 'verbosity', 'reasoning', 'reasoning_effort', 'thinking'],
    ...['prompt_cache_key', 'prompt_cache_options', 'safety_identifier', 'cache_control'],
  ]),
  within: {
    reasoning: own('effort', 'max_tokens', 'summary', 'enabled'),
    thinking: own('type', 'budget_tokens'),
    messages: {
      own: new Set([
        ...['role', 'id', 'content', 'refusal', 'audio', 'images', 'tool_calls', 'tool_call_id', 'function_call'],
        ...['reasoning', 'reasoning_content', 'reasoning_details', 'reasoning_opaque', 'thinking_blocks', 'extra_content'],
        ...['cache_control', 'configuration_update'],
      ]),
      // Other members of a result only repeat what its call holds.
      of: ({ role }) => role !== 'tool' && role !== 'function',
      within: { content: PART, tool_calls: CALL },
    },
    tools: {
      ...own('type', 'function', 'custom', 'cache_control', 'input_schema'),
      of: ofType('function', 'custom'),
      within: {
        function: own('name', 'description', 'parameters', 'strict'),
        custom: own('name', 'description', 'format', 'input_schema'),
      },
    },
  },
};

/** A format without a canonical form: a grammar, or that of another vendor. */
export const READ_EXCEPT_FORMAT: ReadMembers = {
  ...READ,
  own: new Set([...READ.own].filter((key) => key !== 'response_format')),
};
