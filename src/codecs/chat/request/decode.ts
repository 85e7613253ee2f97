/**
 * Decodes a chat-completions body into a canonical request. Strict about the members that it knows; all others stay in the text.
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest, ReasoningControl, SchemaPlaces } from '../../canonical/request.ts';
import type { RequestContext } from '../../codec.ts';
import { type ConfigurationUpdate, updatedEffort, updatesIn } from '../../requests/configuration-updates.ts';
import { defined } from '../../defined.ts';
import {
  optionalBoolean,
  optionalInteger,
  optionalNumber,
  optionalObject,
  optionalString,
  optionalStrings,
  readSeed,
  readStop,
  readStreaming,
  refuseSeveralChoices,
  requiredName,
} from '../../requests/members.ts';
import { inheritLifetime, readAutomatic, readPromptOptions } from '../../requests/cache-breakpoints.ts';
import { uniqueTools } from '../../tools/names.ts';
import { READ, READ_EXCEPT_FORMAT } from './read-members.ts';
import { readMessages } from './decode-messages.ts';
import { hasFlatSchema, readFormat, readLogprobs, readToolChoice, readTools } from './decode-tools.ts';
import type { Steps } from '../../steps.ts';

const SCHEMAS: SchemaPlaces = {
  inTool: ['parameters'],
  format: ['response_format', 'json_schema', 'schema'],
};
const WITH_FLAT_FORMAT: SchemaPlaces = { ...SCHEMAS, format: ['response_format', 'schema'] };

export function* decodeInSteps(text: string, json: JsonObject, context: RequestContext): Steps<CanonicalRequest> {
  const model = requiredName(json, 'model');
  refuseSeveralChoices(json);
  const optional: Partial<CanonicalRequest> = defined<Partial<CanonicalRequest>>({
    toolChoice: readToolChoice(json),
    parallelToolCalls: optionalBoolean(json, 'parallel_tool_calls'),
    maxOutputTokens:
      optionalInteger(json, 'max_completion_tokens', { least: 1 }) ?? optionalInteger(json, 'max_tokens', { least: 1 }),
    temperature: optionalNumber(json, 'temperature'),
    topP: optionalNumber(json, 'top_p'),
    topK: optionalInteger(json, 'top_k'),
    seed: readSeed(json),
    presencePenalty: optionalNumber(json, 'presence_penalty'),
    frequencyPenalty: optionalNumber(json, 'frequency_penalty'),
    logitBias: optionalObject(json, 'logit_bias'),
    stop: readStop(json),
    logprobs: readLogprobs(json),
    format: readFormat(json),
    verbosity: optionalString(json, 'verbosity'),
    reasoning: readReasoning(json, updatedEffort(updatesIn(json['messages'], updateOf))),
    user: optionalString(json, 'user'),
    metadata: optionalObject(json, 'metadata'),
    serviceTier: optionalString(json, 'service_tier'),
    promptCacheKey: optionalString(json, 'prompt_cache_key'),
    safetyIdentifier: optionalString(json, 'safety_identifier'),
    store: optionalBoolean(json, 'store'),
    modalities: optionalStrings(json, 'modalities'),
    cache: readAutomatic(json) ?? readPromptOptions(json),
    sessionId: optionalString(json, 'session_id'),
  });
  yield;
  const items = yield* readMessages(json['messages'], text, context);
  yield;
  return {
    dialect: 'chat',
    text,
    json,
    reads: optional.format === undefined ? READ_EXCEPT_FORMAT : READ,
    schemas: hasFlatSchema(json['response_format']) ? WITH_FLAT_FORMAT : SCHEMAS,
    model,
    ...readStreaming(json),
    items: inheritLifetime(items, optional.cache?.ttl),
    tools: uniqueTools(readTools(json)),
    ...optional,
  };
}

/** A router's change of the configuration from a message on: a member of that message, or its role. */
function updateOf(message: JsonObject, index: number): ConfigurationUpdate | undefined {
  const { role, configuration_update: update } = message;
  const at = `messages[${index}]`;
  if (isObject(update)) return { members: update, at: `${at}.configuration_update` };
  return role === 'configuration_update' ? { members: message, at } : undefined;
}

/**
 * `reasoning_effort` wins over the routers' `reasoning` object, and both over `thinking` of other vendors (semantics 6.7.2).
 * `enabled: false` is effort none; `enabled: true` leaves the effort to the upstream. `updated`: the effort that the messages
 * have set.
 */
function readReasoning(json: JsonObject, updated: string | undefined): ReasoningControl | undefined {
  const shorthand = optionalString(json, 'reasoning_effort');
  const object = isObject(json['reasoning']) ? json['reasoning'] : {};
  const thinking = isObject(json['thinking']) ? json['thinking'] : {};
  const enabled = optionalBoolean(object, 'enabled', 'reasoning') ?? ENABLED.get(thinking['type']);
  const effort = shorthand ?? optionalString(object, 'effort', 'reasoning') ?? (enabled === false ? 'none' : undefined);
  const budget = optionalInteger(object, 'max_tokens', { least: 0 }, 'reasoning');
  const control = defined<ReasoningControl>({
    effort: effortOf(updated ?? effort),
    budget: budget ?? (enabled === true ? budgetOf(thinking) : undefined),
    summary: optionalString(object, 'summary', 'reasoning'),
    adaptive: enabled === true ? true : undefined,
  });
  return Object.keys(control).length === 0 ? undefined : control;
}

/** This member is a vendor's own, so an invalid value is ignored here and left to an upstream of the same protocol. */
function budgetOf({ budget_tokens: tokens }: JsonObject): number | undefined {
  return Number.isSafeInteger(tokens) && Number(tokens) > 0 ? Number(tokens) : undefined;
}

const ENABLED: ReadonlyMap<JsonValue | undefined, boolean> = new Map([
  ['enabled', true],
  ['adaptive', true],
  ['disabled', false],
]);

/** `minimum` is an old alias. */
function effortOf(name: string | undefined): string | undefined {
  return name === 'minimum' ? 'minimal' : name;
}
