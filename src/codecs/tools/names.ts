/**
 * A bijection between tools and the names that a target protocol allows. It is made for each request from the order of its tools,
 * so that equal requests get equal names (spec rule 1; prompt caches).
 */
import { hash } from 'node:crypto';
import type { ToolName } from '../canonical/item.ts';
import type { CanonicalRequest, Tool } from '../canonical/request.ts';
import { atOnce, endsStep, type Steps, whole } from '../steps.ts';

export interface NameRule {
  /** Characters that the target refuses in a name. Must have the `g` flag. */
  readonly illegal: RegExp;
  readonly maxLength: number;
  /** True when a name may not start with a digit, `-`, `.` or `:`. */
  readonly startsWithLetter?: boolean;
}

/** Letters, digits, `_` and `-`, as most vendors want it. */
export const PLAIN_NAMES: NameRule = { illegal: /[^A-Za-z0-9_-]/g, maxLength: 64 };

export interface ToolNames {
  /** The name on the wire. A tool that was not declared gets a name by the same rule. */
  toWire(tool: ToolName): string;
  /** The tool with this wire name; for an unknown name, a tool of that name. */
  fromWire(name: string): ToolName;
}

/** For an upstream of the client's own dialect: tools keep their names. */
export const verbatimNames: ToolNames = { toWire: (tool) => tool.name, fromWire: (name) => ({ name }) };

const SEPARATOR = '__';

function sameTool(a: ToolName, b: ToolName): boolean {
  return a.name === b.name && a.namespace === b.namespace;
}

/** A list that is searched as fast as a map: most requests have no more tools. */
const FEW_TOOLS = 8;
/** Made for the first search of a long list. Lists of tools do not change. */
const indices = new WeakMap<readonly Tool[], ReadonlyMap<string, Exclude<Tool, { kind: 'native' }>>>();

/** The declared tool of this name; a native one has none. Of several the first. Takes the same time for any number of tools. */
export function declaredTool(tools: readonly Tool[], name: ToolName): Exclude<Tool, { kind: 'native' }> | undefined {
  if (tools.length <= FEW_TOOLS) {
    for (const tool of tools) if (tool.kind !== 'native' && sameTool(tool.tool, name)) return tool;
    return undefined;
  }
  let index = indices.get(tools);
  if (index === undefined) {
    const made = new Map<string, Exclude<Tool, { kind: 'native' }>>();
    for (const tool of tools) if (tool.kind !== 'native' && !made.has(toolKey(tool.tool))) made.set(toolKey(tool.tool), tool);
    indices.set(tools, made);
    index = made;
  }
  return index.get(toolKey(name));
}

/** Each tool once, by its first declaration: vendors refuse a repeated name (known failure T3). */
export function uniqueTools(tools: readonly Tool[]): Tool[] {
  const seen = new Set<string>();
  return tools.filter((tool) => {
    if (tool.kind === 'native') return true;
    const key = toolKey(tool.tool);
    if (seen.has(key)) return false;
    seen.add(key);
    return true;
  });
}

/** Names for the declared tools of a request, then for those that only its history calls. */
export function nameAllTools({ tools, items }: Pick<CanonicalRequest, 'tools' | 'items'>, rule: NameRule): Steps<ToolNames> {
  const declared = tools.flatMap((tool) => (tool.kind === 'native' ? [] : [tool.tool]));
  const called = items.flatMap((item) => (item.kind === 'toolCall' ? [item.tool] : []));
  return nameInSteps([...declared, ...called], rule);
}

/**
 * A tool keeps its name if that is legal and unique. A namespaced one whose name is taken becomes `namespace__name`. A name that
 * is still too long or taken gets a hash suffix.
 */
export const nameTools = whole(nameInSteps);

function* nameInSteps(tools: readonly ToolName[], rule: NameRule): Steps<ToolNames> {
  if (tools.length === 0) return new UndeclaredNames(rule);
  return yield* declaredNames(tools, rule);
}

/** For requests without tools, as most are: an open stream then keeps no tables in memory. */
class UndeclaredNames implements ToolNames {
  readonly #rule: NameRule;
  #named: ToolNames | undefined;

  constructor(rule: NameRule) {
    this.#rule = rule;
  }

  toWire(tool: ToolName): string {
    this.#named ??= atOnce(declaredNames([], this.#rule));
    return this.#named.toWire(tool);
  }

  fromWire(name: string): ToolName {
    return this.#named?.fromWire(name) ?? { name };
  }
}

function* declaredNames(list: readonly ToolName[], rule: NameRule): Steps<ToolNames> {
  const wireByTool = new Map<string, string>();
  const toolByWire = new Map<string, ToolName>();
  const plainNames = new Map<string, number>();
  for (const key of new Set(list.map(toolKey))) {
    const name = key.slice(key.indexOf('\n') + 1);
    plainNames.set(name, (plainNames.get(name) ?? 0) + 1);
  }
  yield;

  const assign = (tool: ToolName): string => {
    const key = toolKey(tool);
    const known = wireByTool.get(key);
    if (known !== undefined) return known;
    const ambiguous = tool.namespace !== undefined && ((plainNames.get(tool.name) ?? 0) > 1 || toolByWire.has(tool.name));
    const wanted = ambiguous ? `${tool.namespace}${SEPARATOR}${tool.name}` : tool.name;
    let wire = fit(wanted, rule);
    if (wire !== wanted && toolByWire.has(wire)) wire = withHash(wanted, key, rule);
    if (toolByWire.has(wire)) wire = withHash(wanted, key, rule);
    wireByTool.set(key, wire);
    toolByWire.set(wire, tool);
    return wire;
  };

  // Names that need no change are assigned first, so that a changed name cannot take them.
  for (const [index, tool] of list.entries()) {
    if (endsStep(index)) yield;
    if (tool.namespace === undefined && fit(tool.name, rule) === tool.name) assign(tool);
  }
  for (const [index, tool] of list.entries()) {
    if (endsStep(index)) yield;
    assign(tool);
  }
  return { toWire: assign, fromWire: (name) => toolByWire.get(name) ?? { name } };
}

/** Equal for equal names. */
export function toolKey(tool: ToolName): string {
  return `${tool.namespace ?? ''}\n${tool.name}`;
}

function fit(name: string, rule: NameRule): string {
  const legal = legalName(name, rule) || '_';
  return legal.length <= rule.maxLength ? legal : withHash(legal, name, rule);
}

function withHash(name: string, seed: string, rule: NameRule): string {
  const suffix = hash('sha256', seed, 'hex').slice(0, 8);
  return `${legalName(name, rule).slice(0, rule.maxLength - 9)}_${suffix}`;
}

/** Of a name that is too long only as much as shows that it is, and is kept: one of megabytes would keep everybody waiting. */
function legalName(name: string, rule: NameRule): string {
  // A pair of surrogates may become one character.
  const legal = name.slice(0, 2 * (rule.maxLength + 1)).replace(rule.illegal, '_');
  return rule.startsWithLetter === true && !/^[A-Za-z_]/.test(legal) ? `_${legal}` : legal;
}
