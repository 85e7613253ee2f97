/**
 * Server tools that the upstream charges by the call and that the model's price has no rate for. Agents send such tools with
 * every request, used or not, so by default they are forwarded and calls are flagged. A request that forces one is refused; with
 * `unpriced_tools: "refuse"` every request with one is.
 */
import type { Dialect } from '../../codecs/canonical/dialect.ts';
import { GatewayError } from '../../codecs/canonical/error.ts';
import { isObject } from '../../codecs/canonical/json.ts';
import type { CanonicalRequest, Tool } from '../../codecs/canonical/request.ts';
import type { CodecSet } from '../../codecs/codec-set.ts';
import type { Rates } from '../../store/prices.ts';
import type { Channel } from '../config/config.ts';

/** Prefixes of tool types, which are the names of their meters; a version may follow. */
const METERED = ['web_search', 'x_search', 'file_search', 'code_interpreter', 'code_execution'] as const;

export interface MeterPolicy {
  readonly codecs: CodecSet;
  /** Those that may be asked: a tool of another dialect never reaches them. */
  readonly channels: readonly Channel[];
  readonly rates: Rates | undefined;
  readonly unpricedTools: 'forward' | 'refuse';
}

/** Throws `model_pricing_required` naming the tool. */
export function checkMeters(request: CanonicalRequest, policy: MeterPolicy): void {
  for (const tool of request.tools) {
    if (tool.kind !== 'native') continue;
    const meter = METERED.find((name) => tool.type.startsWith(name));
    if (meter === undefined || policy.rates === undefined || policy.rates.meters.has(meter)) continue;
    if (policy.unpricedTools === 'forward' && !isForced(request, tool)) continue;
    if (!reaches(tool.dialect, policy)) continue;
    throw new GatewayError('model_pricing_required', `The model ${request.model} has no price for the tool ${meter}.`, {
      param: tool.at,
    });
  }
}

function reaches(dialect: Dialect, { codecs, channels }: MeterPolicy): boolean {
  const types = codecs.typesOf(dialect);
  return channels.some(({ type }) => types.has(type));
}

/** Whether `tool_choice` forces it: by its type (responses) or its name (messages). */
function isForced({ toolChoice, tools }: CanonicalRequest, tool: Extract<Tool, { readonly kind: 'native' }>): boolean {
  switch (toolChoice?.mode) {
    case 'required':
      return tools.length === 1;
    case 'tool':
      return toolChoice.tool.name === tool.name;
    case 'native': {
      const { body } = toolChoice;
      return isObject(body) && (body['type'] === tool.type || (tool.name !== undefined && body['name'] === tool.name));
    }
    default:
      return false;
  }
}
