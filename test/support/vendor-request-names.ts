/** The names in the request types of the vendors' SDKs that no decoder reads, and why: see `vendor-names.ts`. */
import { type Category, ignored, native } from './vendor-names.ts';

const RUN_BY_VENDOR = 'a tool that the vendor’s own servers run, or that only its own protocol can declare';

export const OPENAI_REQUESTS = {
  'responses: members': [
    native('what the vendor’s own servers do with a request', 'access_programs', 'context_management', 'image', 'moderation'),
    native('how long a cache of the vendor’s lasts, by a name that newer members took over', 'prompt_cache_retention'),
    native('how much the vendor’s own servers may do, repeated in the answer', 'max_tool_calls', 'truncation'),
  ],
  'responses: input items': [
    native(
      RUN_BY_VENDOR,
      ...['apply_patch_call', 'apply_patch_call_output', 'computer_call', 'computer_call_output', 'local_shell_call'],
      ...['local_shell_call_output', 'mcp_approval_request', 'mcp_approval_response', 'mcp_call', 'mcp_list_tools', 'program'],
      ...['program_output', 'code_interpreter_call', 'file_search_call', 'web_search_call', 'shell_call', 'shell_call_output'],
      ...['tool_search_call', 'tool_search_output'],
    ),
    native('opaque to all but its vendor; one of the gateway’s own is read where summaries are opened', 'compaction'),
    native('asks for a compaction, which its endpoint handles before anything is decoded', 'compaction_trigger'),
    native('a name; what it stands for is looked up where it is known', 'item_reference'),
    native('its tools are read with those of the request', 'additional_tools'),
  ],
  'responses: input parts': [],
  'responses: tools': [
    native(
      RUN_BY_VENDOR,
      ...['apply_patch', 'code_interpreter', 'computer', 'computer_use_preview', 'file_search', 'shell', 'image_generation'],
      ...['local_shell', 'mcp', 'programmatic_tool_calling', 'tool_search', 'web_search_preview'],
      ...['web_search_preview_2025_03_11', 'web_search', 'web_search_2025_08_26'],
    ),
  ],
  'chat: members': [
    native('voices and formats of the vendor’s own audio', 'audio'),
    native('what the vendor’s own servers do with a request', 'moderation', 'prediction', 'web_search_options'),
    native('how long a cache of the vendor’s lasts, by a name that newer members took over', 'prompt_cache_retention'),
  ],
  'chat: parts': [],
  'chat: tools': [],
} as const satisfies Category;

export const ANTHROPIC_REQUESTS = {
  members: [
    native(
      'what the vendor’s own servers do with a request',
      ...['container', 'context_management', 'compaction', 'diagnostics', 'mcp_servers', 'thread'],
    ),
    native(
      'where, how fast and at whose cost the vendor answers',
      ...['inference_geo', 'speed', 'billing_policy', 'fallback_credit_token', 'user_profile_id', 'workspace_id'],
    ),
    ignored('the SDK sends it as a header, which is passed on', 'betas'),
  ],
  blocks: [
    native(
      RUN_BY_VENDOR,
      ...['bash_code_execution_tool_result', 'code_execution_tool_result', 'container_upload', 'server_tool_use'],
      ...['text_editor_code_execution_tool_result', 'tool_search_tool_result', 'web_fetch_tool_result'],
      ...['web_search_tool_result', 'advisor_tool_result', 'mcp_tool_listing', 'mcp_tool_use', 'mcp_tool_result'],
    ),
    native('marks where another model took over', 'fallback'),
    native('changes the tools on the way, as only this protocol can', 'tool_addition', 'tool_removal'),
  ],
  tools: [
    native(
      RUN_BY_VENDOR,
      ...['advisor_20260301', 'browser_toolset_20260801', 'code_execution_20250522', 'code_execution_20250825'],
      ...['code_execution_20260120', 'code_execution_20260521', 'computer_toolset_20260801', 'mcp_toolset'],
      ...['tool_search_tool_bm25', 'tool_search_tool_bm25_20251119', 'tool_search_tool_regex'],
      ...['tool_search_tool_regex_20251119', 'web_fetch_20250910', 'web_fetch_20260209', 'web_fetch_20260309'],
      ...['web_fetch_20260318', 'web_search_20250305', 'web_search_20260209', 'web_search_20260318'],
    ),
    native(
      'run by the client, with a schema that only this vendor’s models know',
      ...['memory_20250818', 'bash_20241022', 'bash_20250124', 'computer_20241022', 'computer_20250124', 'computer_20251124'],
      ...['text_editor_20241022', 'text_editor_20250124', 'text_editor_20250429', 'text_editor_20250728'],
    ),
  ],
  thinking: [],
} as const satisfies Category;
