/** Tools as function declarations, and the tool choice as a calling configuration. */
import { notConvertible } from '../../canonical/error.ts';
import type { ToolName } from '../../canonical/item.ts';
import { isObject, type JsonObject } from '../../canonical/json.ts';
import type { CanonicalRequest, Tool, ToolChoice } from '../../canonical/request.ts';
import { freeformSchema } from '../../tools/freeform.ts';
import { GENERATIVE_JSON_SCHEMA, lowerSchema } from '../../schemas/lowering.ts';
import { endsStep, type Steps } from '../../steps.ts';
import type { NameRule, ToolNames } from '../../tools/names.ts';
import { objectSchema } from '../../schemas/object-schema.ts';
import type { EncodeContext } from '../../requests/request-encoder.ts';

/** Letters, digits, `_`, `.`, `:` and `-`; the first is a letter or `_`. Older models take no more than 64 characters. */
export const NAME_RULE: NameRule = { illegal: /[^A-Za-z0-9_.:-]/g, maxLength: 64, startsWithLetter: true };

export interface ToolMembers {
  readonly tools?: readonly [{ readonly functionDeclarations: readonly Declaration[] }];
  readonly toolConfig?: { readonly functionCallingConfig: CallingConfig };
}
export interface Declaration {
  readonly name: string;
  readonly description?: string;
  readonly parametersJsonSchema?: JsonObject;
}
export interface CallingConfig {
  readonly mode: 'AUTO' | 'ANY' | 'NONE';
  readonly allowedFunctionNames?: readonly string[];
}

export function* encodeTools(request: CanonicalRequest, context: EncodeContext): Steps<ToolMembers> {
  const { names, target } = context;
  const choice = request.toolChoice;
  const declarations: Declaration[] = [];
  const declared = new Set<string>();
  const allowed = choice?.mode === 'allowed' ? new Set(choice.tools.map((tool) => names.toWire(tool))) : undefined;
  for (const [index, tool] of request.tools.entries()) {
    if (endsStep(index)) yield;
    if (target.options.lowerCustomTools !== true && isExcluded(tool, allowed, names)) continue;
    const declaration = yield* declare(tool, context);
    if (declaration === undefined) continue;
    declared.add(declaration.name);
    declarations.push(declaration);
  }
  const config = callingConfig(choice, names, declared);
  if (config?.mode === 'ANY' && (declarations.length === 0 || config.allowedFunctionNames?.length === 0)) {
    throw notConvertible('tool_choice', 'tool_choice requires a tool, and none of the tools exists on the selected upstream.');
  }
  const offered = choice?.mode === 'allowed' && !choice.require ? onlyAllowed(declarations, choice.tools, names) : declarations;
  if (offered.length === 0) return {};
  const tools = [{ functionDeclarations: offered }] as const;
  return config === undefined ? { tools } : { tools, toolConfig: { functionCallingConfig: config } };
}

/**
 * True for a freeform tool that the tool choice does not allow. The model may not call it, so nothing is lost if it cannot be
 * declared. Every tool that can be declared is, and the names of the allowed ones are sent beside them.
 */
function isExcluded(tool: Tool, allowed: ReadonlySet<string> | undefined, names: ToolNames): boolean {
  if (allowed === undefined || tool.kind !== 'custom' || tool.inputSchema !== undefined) return false;
  return !allowed.has(names.toWire(tool.tool));
}

function* declare(tool: Tool, { names, losses, target }: EncodeContext): Steps<Declaration | undefined> {
  if (tool.kind === 'native') {
    losses.note('native tool', tool.at);
    return undefined;
  }
  const name = names.toWire(tool.tool);
  const head = { name, ...(tool.description === undefined ? {} : { description: tool.description }) };
  if (tool.kind === 'function') {
    return { ...head, ...(yield* parametersOf(tool.parameters, `${tool.at}.parameters`)) };
  }
  if (tool.inputSchema !== undefined) {
    return { ...head, ...(yield* parametersOf(tool.inputSchema, `${tool.at}.input_schema`)) };
  }
  if (target.options.lowerCustomTools !== true) losses.note('custom tool: freeform', tool.at);
  return { ...head, parametersJsonSchema: freeformSchema(tool.format) };
}

/** A function without parameters is declared without the member. */
function* parametersOf(schema: JsonObject | undefined, at: string): Steps<Pick<Declaration, 'parametersJsonSchema'>> {
  if (schema === undefined) return {};
  const { type: _type, ...rest } = yield* lowerSchema(objectSchema(schema, at), GENERATIVE_JSON_SCHEMA);
  const lowered: JsonObject = { type: 'object', ...rest };
  return isEmpty(lowered) ? {} : { parametersJsonSchema: lowered };
}

function isEmpty(schema: JsonObject): boolean {
  const properties = schema['properties'];
  if (isObject(properties) && Object.keys(properties).length > 0) return false;
  const isOpen = schema['additionalProperties'] !== undefined && schema['additionalProperties'] !== false;
  return !isOpen && !['$ref', 'anyOf', 'oneOf'].some((key) => Object.hasOwn(schema, key));
}

function callingConfig(
  choice: ToolChoice | undefined,
  names: ToolNames,
  declared: ReadonlySet<string>,
): CallingConfig | undefined {
  const offered = (tools: readonly ToolName[]) => tools.map((tool) => names.toWire(tool)).filter((name) => declared.has(name));
  switch (choice?.mode) {
    case 'auto':
      return { mode: 'AUTO' };
    case 'none':
      return { mode: 'NONE' };
    case 'required':
      return { mode: 'ANY' };
    case 'tool':
      return { mode: 'ANY', allowedFunctionNames: offered([choice.tool]) };
    case 'allowed':
      // Names are legal with ANY only; otherwise just these tools are declared.
      return choice.require ? { mode: 'ANY', allowedFunctionNames: offered(choice.tools) } : { mode: 'AUTO' };
    case 'native':
    case undefined:
      return undefined;
  }
}

function onlyAllowed(declarations: readonly Declaration[], allowed: readonly ToolName[], names: ToolNames): Declaration[] {
  const wanted = new Set(allowed.map((tool) => names.toWire(tool)));
  return declarations.filter((declaration) => wanted.has(declaration.name));
}
