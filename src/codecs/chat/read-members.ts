/** What is read inside the lists of a chat request, so that whatever else stands there can be named as lost. */
import type { ReadMembers } from '../canonical/request.ts';
import { own } from '../unread-members.ts';

const PART: ReadMembers = {
  own: new Set([
    ...['type', 'text', 'refusal', 'image_url', 'input_audio', 'cache_control'],
    ...['file', 'file_id', 'document_url', 'document_name'],
  ]),
  types: new Set(['text', 'input_text', 'output_text', 'refusal', 'image_url', 'input_audio', 'file', 'document_url']),
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

export const READ_IN: Readonly<Record<string, ReadMembers>> = {
  messages: {
    own: new Set([
      ...['role', 'name', 'id', 'content', 'refusal', 'audio', 'images', 'tool_calls', 'tool_call_id', 'function_call'],
      ...['reasoning', 'reasoning_content', 'reasoning_details', 'reasoning_opaque', 'extra_content'],
      ...['cache_control', 'configuration_update'],
    ]),
    within: { content: PART, tool_calls: CALL },
  },
  tools: {
    ...own('type', 'function', 'custom', 'cache_control'),
    types: new Set(['function', 'custom']),
    within: { function: own('name', 'description', 'parameters', 'strict'), custom: own('name', 'description', 'format') },
  },
};
