/** Tools and tool choices of a responses request. Built-in tools of the protocol stay native; namespaces are flattened into names. */
import { invalid } from '../canonical/error.ts';
import type { ToolName } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { Tool, ToolChoice } from '../canonical/request.ts';
import { optionalBoolean, optionalObject, optionalString, requiredString } from './members.ts';

const DIALECT = 'responses';

/** `at`: the path of the array. The first declaration of a name wins (known failure T3). */
export function readTools(value: JsonValue | undefined, at: string): Tool[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw invalid(at, `${at} must be an array.`);
  return value.flatMap((tool, index) => readTool(tool, `${at}[${index}]`, undefined));
}

function readTool(value: JsonValue, at: string, namespace: string | undefined): Tool[] {
  if (!isObject(value)) throw invalid(at, `${at} must be an object.`);
  const type = requiredString(value, 'type', at);
  switch (type) {
    case 'function':
      return [readFunction(value, at, namespace)];
    case 'custom':
      return [readCustom(value, at, namespace)];
    case 'namespace': {
      const name = requiredString(value, 'name', at);
      const inner = value['tools'];
      if (inner === undefined || inner === null) return [];
      if (!Array.isArray(inner)) throw invalid(`${at}.tools`, `${at}.tools must be an array.`);
      return inner.flatMap((tool, index) => readTool(tool, `${at}.tools[${index}]`, name));
    }
    default: {
      const name = value['name'];
      const referenceAt = fileIn(value, at);
      const named = typeof name === 'string' ? { name } : {};
      const scoped = referenceAt === undefined ? {} : { referenceAt };
      return [{ kind: 'native', dialect: DIALECT, type, ...named, body: value, ...scoped, at }];
    }
  }
}

/** The path of a private file in a built-in tool: the mask of the image tool, the files of a code container. */
function fileIn(tool: JsonObject, at: string): string | undefined {
  const { input_image_mask: mask, container } = tool;
  if (isObject(mask) && typeof mask['file_id'] === 'string') return `${at}.input_image_mask.file_id`;
  const files = isObject(container) ? container['file_ids'] : undefined;
  return Array.isArray(files) && files.length > 0 ? `${at}.container.file_ids` : undefined;
}

function readFunction(tool: JsonObject, at: string, namespace: string | undefined): Tool {
  const description = optionalString(tool, 'description', at);
  const parameters = optionalObject(tool, 'parameters', at);
  const strict = optionalBoolean(tool, 'strict', at);
  return {
    kind: 'function',
    tool: nameOf(tool, at, namespace),
    ...(description === undefined ? {} : { description }),
    ...(parameters === undefined ? {} : { parameters }),
    ...(strict === undefined ? {} : { strict }),
    at,
  };
}

function readCustom(tool: JsonObject, at: string, namespace: string | undefined): Tool {
  const description = optionalString(tool, 'description', at);
  const format = optionalObject(tool, 'format', at);
  const inputSchema = optionalObject(tool, 'input_schema', at);
  return {
    kind: 'custom',
    tool: nameOf(tool, at, namespace),
    ...(description === undefined ? {} : { description }),
    ...(format === undefined ? {} : { format }),
    ...(inputSchema === undefined ? {} : { inputSchema }),
    at,
  };
}

function nameOf(tool: JsonObject, at: string, namespace: string | undefined): ToolName {
  const name = requiredString(tool, 'name', at);
  return namespace === undefined ? { name } : { name, namespace };
}

/** Every tool once: those of `tools` first, then those that items of the input brought. */
export function uniqueTools(tools: readonly Tool[]): Tool[] {
  const seen = new Set<string>();
  return tools.filter((tool) => {
    if (tool.kind === 'native') return true;
    const key = `${tool.tool.namespace ?? ''}\n${tool.tool.name}`;
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/**
 * Completes names that leave their namespace out: a plain tool of that name wins, else the only namespaced one. Two
 * namespaces with one such tool each leave it as it is. A tool search calls a plain tool by a namespace of the tool's own name.
 */
export function namesIn(tools: readonly Tool[]): (name: string, namespace: string | undefined) => ToolName {
  const byName = new Map<string, ToolName[]>();
  for (const tool of tools) {
    if (tool.kind === 'native') continue;
    const list = byName.get(tool.tool.name);
    if (list === undefined) byName.set(tool.tool.name, [tool.tool]);
    else list.push(tool.tool);
  }
  return (name, namespace) => {
    const declared = byName.get(name) ?? [];
    if (namespace !== undefined) {
      const isOwn = namespace === name && !declared.some((tool) => tool.namespace === namespace);
      return (isOwn ? declared.find((tool) => tool.namespace === undefined) : undefined) ?? { name, namespace };
    }
    const [first, ...others] = declared;
    return first !== undefined && others.length === 0 ? first : { name };
  };
}

export function readToolChoice(value: JsonValue | undefined, tools: readonly Tool[]): ToolChoice | undefined {
  if (value === undefined || value === null) return undefined;
  if (value === 'auto' || value === 'none' || value === 'required') return { mode: value };
  if (!isObject(value)) throw invalid('tool_choice', 'tool_choice must be "auto", "none", "required" or an object.');
  const resolve = namesIn(tools);
  const type = requiredString(value, 'type', 'tool_choice');
  if (type === 'function' || type === 'custom') {
    const namespace = optionalString(value, 'namespace', 'tool_choice');
    return { mode: 'tool', flavour: type, tool: resolve(requiredString(value, 'name', 'tool_choice'), namespace) };
  }
  if (type !== 'allowed_tools') return { mode: 'native', dialect: DIALECT, body: value };
  const list = value['tools'];
  if (!Array.isArray(list)) throw invalid('tool_choice.tools', 'tool_choice.tools must be an array.');
  const mode = value['mode'];
  if (mode !== undefined && mode !== 'auto' && mode !== 'required') {
    throw invalid('tool_choice.mode', 'tool_choice.mode must be "auto" or "required".');
  }
  const allowed = list.flatMap((entry, index): ToolName[] => {
    const at = `tool_choice.tools[${index}]`;
    if (!isObject(entry)) throw invalid(at, `${at} must be an object.`);
    if (entry['type'] !== 'function' && entry['type'] !== 'custom') return [];
    return [resolve(requiredString(entry, 'name', at), optionalString(entry, 'namespace', at))];
  });
  return { mode: 'allowed', require: mode === 'required', tools: allowed };
}
