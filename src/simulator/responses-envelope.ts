/** The response object around the output, with OpenAI's members in OpenAI's order and number spelling (`1.0`). */
import type { Turn } from './dialect.ts';
import type { JsonObject, JsonValue } from './json.ts';
import { isObject, listOf, numberOf, objectOf } from './json.ts';
import type { Reply, UsageFigures } from './reply.ts';

export interface Envelope {
  readonly id: string;
  /** The object in this status, with this output, as JSON text. */
  at(status: string, output: readonly JsonObject[], ending?: Ending): string;
}

export interface Ending {
  readonly usage: UsageFigures | null;
  readonly error?: JsonObject;
  readonly incomplete?: string;
}

export function createEnvelope(reply: Reply, turn: Turn): Envelope {
  const { body } = turn;
  const id = reply.id ?? turn.mint('resp_');
  const reasoning = objectOf(body.reasoning);
  const text = objectOf(body.text);
  const j = (value: JsonValue | undefined) => JSON.stringify(value ?? null);
  const decimal = (value: JsonValue | undefined) => {
    const number = numberOf(value) ?? 1;
    return Number.isInteger(number) ? number.toFixed(1) : String(number);
  };
  return {
    id,
    at: (status, output, ending) =>
      `{"id":${j(id)},"object":"response","created_at":${turn.createdS},"status":"${status}","background":false,` +
      `"completed_at":${status === 'completed' ? turn.createdS + 1 : 'null'},"error":${j(ending?.error)},"frequency_penalty":0.0,` +
      `"incomplete_details":${ending?.incomplete === undefined ? 'null' : j({ reason: ending.incomplete })},` +
      `"instructions":${j(body.instructions)},"max_output_tokens":${j(body.max_output_tokens)},"max_tool_calls":${j(body.max_tool_calls)},` +
      `"model":${j(reply.model ?? turn.model)},"moderation":null,"output":${j(output)},` +
      `"parallel_tool_calls":${body.parallel_tool_calls !== false},"presence_penalty":0.0,"previous_response_id":${j(body.previous_response_id)},` +
      `"prompt_cache_key":${j(body.prompt_cache_key)},"prompt_cache_retention":"in_memory",` +
      `"reasoning":{"context":"current_turn","effort":${j(reasoning.effort)},"mode":"standard","summary":${j(reasoning.summary)}},` +
      `"safety_identifier":${j(body.safety_identifier)},"service_tier":"${ending === undefined ? 'auto' : 'default'}","store":${body.store !== false},` +
      `"temperature":${decimal(body.temperature)},"text":{"format":${j(isObject(text.format) ? text.format : { type: 'text' })},"verbosity":${j(text.verbosity ?? 'medium')}},` +
      `"tool_choice":${j(body.tool_choice ?? 'auto')},"tools":${j(listOf(body.tools).map(asShown))},"top_logprobs":${numberOf(body.top_logprobs) ?? 0},` +
      `"top_p":${decimal(body.top_p)},"truncation":${j(body.truncation ?? 'disabled')},"usage":${j(usageEntry(ending))},"user":${j(body.user)},` +
      `"metadata":${j(objectOf(body.metadata))}}`,
  };
}

function usageEntry(ending: Ending | undefined): JsonObject | null {
  return ending === undefined || ending.usage === null ? null : responsesUsage(ending.usage);
}

export function responsesUsage(usage: UsageFigures): JsonObject {
  const { input, output, cached = 0, cacheWrite = 0, reasoning = 0, extra = {} } = usage;
  return {
    input_tokens: input,
    input_tokens_details: { cache_write_tokens: cacheWrite, cached_tokens: cached },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: input + output,
    ...extra,
  };
}

/** The vendor shows a function with its defaults. */
function asShown(tool: JsonValue): JsonValue {
  const { type, description = null, parameters = null, strict = true } = objectOf(tool);
  return type === 'function' ? { ...objectOf(tool), description, parameters, strict } : tool;
}
