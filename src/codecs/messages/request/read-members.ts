/** The members that are read of a messages request. Any other member is reported as lost. */
import type { ReadMembers } from '../../canonical/request.ts';
import { ofType, own } from '../../requests/members.ts';

const SOURCE = own('type', 'media_type', 'data', 'url', 'file_id', 'content');

const RESULT_PART: ReadMembers = {
  ...own('type', 'text', 'source', 'title', 'context', 'content', 'tool_name'),
  of: ofType('text', 'image', 'document', 'search_result', 'tool_reference'),
  within: { source: SOURCE },
};

const BLOCK: ReadMembers = {
  own: new Set([
    ...['type', 'text', 'cache_control', 'source', 'title', 'context', 'content', 'thinking', 'signature', 'data'],
    ...['id', 'name', 'input', 'caller', 'tool_use_id', 'is_error'],
  ]),
  of: ofType(
    ...['text', 'image', 'document', 'search_result', 'tool_use', 'tool_result', 'thinking', 'redacted_thinking', 'compaction'],
  ),
  within: { source: SOURCE, content: RESULT_PART },
};

export const READ: ReadMembers = {
  own: new Set([
    ...['model', 'system', 'messages', 'stream', 'max_tokens', 'tools', 'tool_choice', 'temperature', 'top_p', 'top_k'],
    ...['stop_sequences', 'thinking', 'output_config', 'output_format', 'metadata', 'service_tier', 'cache_control'],
    'fallbacks',
  ]),
  within: {
    system: BLOCK,
    messages: {
      ...own('role', 'content', 'output_config', 'clear_at'),
      within: { content: BLOCK, output_config: own('effort') },
    },
    tools: {
      ...own('type', 'name', 'description', 'input_schema', 'strict', 'cache_control', 'allowed_callers', 'defer_loading'),
      of: ofType('custom'),
    },
    thinking: own('type', 'budget_tokens', 'display'),
    output_config: own('effort', 'format'),
    metadata: own('user_id'),
  },
};
