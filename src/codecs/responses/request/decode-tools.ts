/**
 * Tools and tool choices of a responses request. Built-in tools of the protocol stay native; namespaces are flattened into names.
 */
import { invalid } from '../../canonical/error.ts';
import type { ToolName } from '../../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { Tool, ToolChoice } from '../../canonical/request.ts';
import { defined } from '../../defined.ts';
import { readFunctionMembers } from '../../tools/function-members.ts';
import {
  arrayAt,
  objectAt,
  optionalArray,
  optionalBoolean,
  optionalObject,
  optionalString,
  present,
  requiredName,
  wrongType,
} from '../../requests/members.ts';

const DIALECT = 'responses';

/** `at`: the path of the array. The first declaration of a name wins (known failure T3). */
export function readTools(value: JsonValue | undefined, at: string): Tool[] {
  if (!present(value)) return [];
  return arrayAt(value, at).flatMap((tool, index) => readTool(tool, `${at}[${index}]`, undefined));
}

/** Characters. A namespace is part of the name of each of its tools: a long one would be said for all of them. */
const LONGEST_NAMESPACE = 256;

function readTool(value: JsonValue, at: string, namespace: string | undefined): Tool[] {
  const body = objectAt(value, at);
  const type = requiredName(body, 'type', at);
  switch (type) {
    case 'function':
      return [readFunction(body, at, namespace)];
    case 'custom':
      return [readCustom(body, at, namespace)];
    case 'namespace': {
      const name = requiredName(body, 'name', at);
      if (name.length > LONGEST_NAMESPACE)
        throw invalid(`${at}.name`, `${at}.name must have at most ${LONGEST_NAMESPACE} characters.`);
      return (optionalArray(body, 'tools', at) ?? []).flatMap((tool, index) => readTool(tool, `${at}.tools[${index}]`, name));
    }
    default: {
      const name = body['name'];
      const referenceAt = fileIn(body, at);
      const named = typeof name === 'string' ? { name } : {};
      const scoped = referenceAt === undefined ? {} : { referenceAt };
      return [{ kind: 'native', dialect: DIALECT, type, ...named, body, ...scoped, at }];
    }
  }
}

/** The path of a private file in a built-in tool: the mask of the image tool, the files of the container of code or a shell. */
function fileIn(tool: JsonObject, at: string): string | undefined {
  const mask = tool['input_image_mask'];
  if (isObject(mask) && typeof mask['file_id'] === 'string') return `${at}.input_image_mask.file_id`;
  for (const place of ['container', 'environment']) {
    const container = tool[place];
    const files = isObject(container) ? container['file_ids'] : undefined;
    if (Array.isArray(files) && files.length > 0) return `${at}.${place}.file_ids`;
  }
  return undefined;
}

function readFunction(tool: JsonObject, at: string, namespace: string | undefined): Tool {
  return {
    kind: 'function',
    tool: nameOf(tool, at, namespace),
    ...defined({
      description: optionalString(tool, 'description', at),
      parameters: optionalObject(tool, 'parameters', at),
      strict: optionalBoolean(tool, 'strict', at),
    }),
    ...readFunctionMembers(tool, at),
    at,
  };
}

function readCustom(tool: JsonObject, at: string, namespace: string | undefined): Tool {
  return {
    kind: 'custom',
    tool: nameOf(tool, at, namespace),
    ...defined({
      description: optionalString(tool, 'description', at),
      format: optionalObject(tool, 'format', at),
      inputSchema: optionalObject(tool, 'input_schema', at),
    }),
    ...readFunctionMembers(tool, at),
    at,
  };
}

function nameOf(tool: JsonObject, at: string, namespace: string | undefined): ToolName {
  const name = requiredName(tool, 'name', at);
  return namespace === undefined ? { name } : { name, namespace };
}

/**
 * Resolves a name that leaves out its namespace: to the only tool of that name, else to the name as it is. A tool search names a
 * plain tool with a namespace of the tool's own name.
 */
export function namesIn(tools: readonly Tool[]): (name: string, namespace: string | undefined) => ToolName {
  const byName = new Map<string, SameName>();
  for (const tool of tools) {
    if (tool.kind === 'native') continue;
    const { name, namespace } = tool.tool;
    let same = byName.get(name);
    if (same === undefined) {
      same = { first: tool.tool, count: 0, plain: undefined, namespaces: new Set() };
      byName.set(name, same);
    }
    same.count += 1;
    if (namespace === undefined) same.plain ??= tool.tool;
    else same.namespaces.add(namespace);
  }
  return (name, namespace) => {
    const same = byName.get(name);
    if (namespace === undefined) return same?.count === 1 ? same.first : { name };
    const isOwn = namespace === name && same?.namespaces.has(namespace) !== true;
    return (isOwn ? same?.plain : undefined) ?? { name, namespace };
  };
}

/** The declared tools of one name. */
interface SameName {
  readonly first: ToolName;
  count: number;
  plain: ToolName | undefined;
  readonly namespaces: Set<string>;
}

export function readToolChoice(value: JsonValue | undefined, tools: readonly Tool[]): ToolChoice | undefined {
  if (!present(value)) return undefined;
  if (value === 'auto' || value === 'none' || value === 'required') return { mode: value };
  if (!isObject(value)) throw wrongType('tool_choice', '"auto", "none", "required" or an object');
  const resolve = namesIn(tools);
  const type = requiredName(value, 'type', 'tool_choice');
  if (type === 'function' || type === 'custom') {
    const namespace = optionalString(value, 'namespace', 'tool_choice');
    return { mode: 'tool', toolType: type, tool: resolve(requiredName(value, 'name', 'tool_choice'), namespace) };
  }
  if (type !== 'allowed_tools') return { mode: 'native', dialect: DIALECT, body: value };
  const mode = value['mode'];
  if (mode !== undefined && mode !== 'auto' && mode !== 'required') {
    throw wrongType('tool_choice.mode', '"auto" or "required"');
  }
  const allowed = arrayAt(value['tools'], 'tool_choice.tools').flatMap((tool, index): ToolName[] => {
    const at = `tool_choice.tools[${index}]`;
    const entry = objectAt(tool, at);
    if (entry['type'] !== 'function' && entry['type'] !== 'custom') return [];
    return [resolve(requiredName(entry, 'name', at), optionalString(entry, 'namespace', at))];
  });
  return { mode: 'allowed', require: mode === 'required', tools: allowed };
}
