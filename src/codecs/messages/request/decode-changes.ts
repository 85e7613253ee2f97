/**
 * System messages in the middle of a conversation may change the tools and the effort of the request (beta). Other protocols have
 * one value for the whole request, so the state at the end of the conversation counts there. A messages upstream reads the
 * changes itself.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Tool } from '../../canonical/request.ts';

/**
 * The tools at the end of the conversation, in the order of their declarations; the latest definition of a name counts. `read`
 * throws for a malformed definition.
 */
export function withToolChanges(
  declared: readonly Tool[],
  messages: JsonValue | undefined,
  read: (definition: JsonValue | undefined, at: string) => Tool,
): readonly Tool[] {
  const changes = toolChanges(messages);
  if (changes.length === 0) return declared;
  const tools = [...declared];
  const removed = new Set<string>();
  const latest = new Map<string, Tool>();
  for (const { change, at } of changes) {
    const tool = change.defines ? read(change.tool['definition'], `${at}.tool.definition`) : undefined;
    const name = tool === undefined ? change.tool['name'] : nameOf(tool);
    if (tool !== undefined) tools.push(tool);
    if (typeof name !== 'string') continue;
    if (tool !== undefined) latest.set(name, tool);
    if (change.adds) removed.delete(name);
    else removed.add(name);
  }
  return tools.filter((tool) => {
    const name = nameOf(tool) ?? '';
    return !removed.has(name) && (latest.get(name) ?? tool) === tool;
  });
}

/** In the order of the conversation, each with the path of its block. */
function toolChanges(messages: JsonValue | undefined): { readonly change: ToolChange; readonly at: string }[] {
  return systemMessages(messages).flatMap(({ message: { content }, at }) =>
    (Array.isArray(content) ? content : []).flatMap((block: JsonValue, index: number) => {
      const change = isObject(block) ? toolChange(block) : undefined;
      return change === undefined ? [] : [{ change, at: `${at}.content[${index}]` }];
    }),
  );
}

interface ToolChange {
  readonly adds: boolean;
  /** True when it holds the definition, false when it names a declared tool. */
  readonly defines: boolean;
  readonly tool: JsonObject;
}

/** Undefined for any other block, and for changes of MCP tools, which only the vendor knows. */
export function toolChange({ type, tool }: JsonObject): ToolChange | undefined {
  if ((type !== 'tool_addition' && type !== 'tool_removal') || !isObject(tool)) return undefined;
  const adds = type === 'tool_addition';
  if (tool['type'] === 'tool_reference') return { adds, defines: false, tool };
  return adds && tool['type'] === 'tool_definition' ? { adds, defines: true, tool } : undefined;
}

/** The effort at the end of the conversation; undefined where no message changes it. */
export function changedEffort(messages: JsonValue | undefined): string | undefined {
  const efforts = systemMessages(messages).flatMap(({ message: { output_config: config } }) =>
    isObject(config) && typeof config['effort'] === 'string' ? [config['effort']] : [],
  );
  return efforts.at(-1);
}

/** The index of the last user message: system messages for one turn alone do not count before it. */
export function clearedBefore(messages: readonly JsonValue[]): number {
  return messages.findLastIndex((message) => isObject(message) && message['role'] === 'user');
}

/** True for a system message that is for one turn alone. */
export function isForOneTurn(message: JsonValue): boolean {
  return isObject(message) && message['role'] === 'system' && message['clear_at'] === 'next_user_message';
}

function systemMessages(messages: JsonValue | undefined): { readonly message: JsonObject; readonly at: string }[] {
  if (!Array.isArray(messages)) return [];
  return messages.flatMap((message: JsonValue, index) =>
    isObject(message) && message['role'] === 'system' ? [{ message, at: `messages[${index}]` }] : [],
  );
}

function nameOf(tool: Tool): string | undefined {
  return tool.kind === 'native' ? tool.name : tool.tool.name;
}
