/**
 * Members of a function that only its own dialect can honour: who may call it, when it is loaded, what it gives, and that it may
 * answer later. Another upstream is offered the function without them, unless only programs may call it.
 */
import { notConvertible } from '../canonical/error.ts';
import type { FunctionFeature } from '../canonical/features.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { CanonicalRequest, Tool } from '../canonical/request.ts';
import type { Losses } from '../requests/losses.ts';
import { optionalBoolean, optionalObject, optionalStrings } from '../requests/members.ts';
import { toolKey } from './names.ts';

export interface FunctionMembers {
  readonly beyond?: readonly FunctionFeature[];
  readonly isForProgramsOnly?: true;
}

/** `direct` is the model itself; every other caller is a program that it has written. */
const DIRECT = 'direct';

/** `async`, `output_schema`, `allowed_callers` and `defer_loading` of the tool at `at`. */
export function readFunctionMembers(tool: JsonObject, at: string): FunctionMembers {
  const callers = optionalStrings(tool, 'allowed_callers', at);
  const has: readonly (readonly [FunctionFeature, boolean])[] = [
    ['function tool: async', optionalBoolean(tool, 'async', at) === true],
    ['function tool: output schema', optionalObject(tool, 'output_schema', at) !== undefined],
    ['function tool: allowed callers', callers?.some((caller) => caller !== DIRECT) === true],
    ['function tool: deferred loading', optionalBoolean(tool, 'defer_loading', at) === true],
  ];
  const beyond = has.flatMap(([feature, isThere]) => (isThere ? [feature] : []));
  if (beyond.length === 0) return {};
  const isForProgramsOnly = callers !== undefined && callers.length > 0 && !callers.includes(DIRECT);
  return { beyond, ...(isForProgramsOnly ? { isForProgramsOnly } : {}) };
}

/**
 * The request as another dialect can honour it. Throws where the client requires a function that only programs may call. The
 * request itself where no function has such members.
 */
export function withDirectTools(request: CanonicalRequest, losses: Losses): CanonicalRequest {
  if (!request.tools.some((tool) => 'beyond' in tool)) return request;
  const left = new Set<string>();
  const tools = request.tools.filter((tool) => {
    if (tool.kind === 'native') return true;
    for (const feature of tool.beyond ?? []) losses.note(feature, tool.at);
    if (tool.isForProgramsOnly === true) left.add(toolKey(tool.tool));
    return tool.isForProgramsOnly !== true;
  });
  const { toolChoice } = request;
  if (left.size === 0 || toolChoice === undefined) return { ...request, tools };
  if (toolChoice.mode === 'tool' && left.has(toolKey(toolChoice.tool))) throw onlyPrograms();
  if (toolChoice.mode === 'required' && !tools.some(isOffered)) throw onlyPrograms();
  if (toolChoice.mode !== 'allowed') return { ...request, tools };
  const allowed = toolChoice.tools.filter((tool) => !left.has(toolKey(tool)));
  if (toolChoice.require && allowed.length === 0) throw onlyPrograms();
  return { ...request, tools, toolChoice: { ...toolChoice, tools: allowed } };
}

function isOffered({ kind }: Tool): boolean {
  return kind !== 'native';
}

function onlyPrograms() {
  return notConvertible(
    'tool_choice',
    'tool_choice requires a function that only programs may call, which this upstream cannot run.',
  );
}
