/** Sampling, limits, output format and thinking as `generationConfig`. */
import { invalid, notConvertible } from '../../canonical/error.ts';
import type { JsonObject } from '../../canonical/json.ts';
import type { CanonicalRequest, Format, ReasoningControl } from '../../canonical/request.ts';
import type { ModelFacts } from '../../codec.ts';
import { GENERATIVE_JSON_SCHEMA, lowerSchema } from '../../schemas/lowering.ts';
import type { Steps } from '../../steps.ts';
import type { Losses } from '../../requests/losses.ts';
import type { EncodeContext } from '../../requests/request-encoder.ts';

/** The specification's limit. */
const MAX_TOP_LOGPROBS = 20;

/** The members that the client set; undefined when there is none. */
export function* encodeGenerationConfig(
  request: CanonicalRequest,
  { target, stops, losses }: EncodeContext,
): Steps<JsonObject | undefined> {
  const config: Record<string, JsonObject[string]> = {
    temperature: request.temperature,
    topP: request.topP,
    topK: request.topK,
    maxOutputTokens: request.maxOutputTokens,
    stopSequences: stops.sent,
    presencePenalty: request.presencePenalty,
    frequencyPenalty: request.frequencyPenalty,
    // The protocol takes 32 bits. The value does not matter as long as equal seeds stay equal.
    seed: request.seed === undefined ? undefined : request.seed | 0,
    ...logprobMembers(request),
    ...(yield* formatMembers(request.format)),
    responseModalities: modalitiesOf(request.modalities, losses),
    thinkingConfig: thinkingOf(request, target.facts),
  };
  return Object.values(config).some((value) => value !== undefined) ? config : undefined;
}

function logprobMembers(request: CanonicalRequest): JsonObject {
  if (request.logprobs === undefined) return {};
  const { top } = request.logprobs;
  if (top > MAX_TOP_LOGPROBS) throw invalid('top_logprobs', `At most ${MAX_TOP_LOGPROBS} top logprobs can be asked for.`);
  return top > 0 ? { responseLogprobs: true, logprobs: top } : { responseLogprobs: true };
}

function* formatMembers(format: Format | undefined): Steps<JsonObject> {
  if (format === undefined || format.type === 'text') return {};
  if (format.type === 'json_object' || format.schema === undefined) return { responseMimeType: 'application/json' };
  return {
    responseMimeType: 'application/json',
    responseJsonSchema: yield* lowerSchema(format.schema, GENERATIVE_JSON_SCHEMA),
  };
}

const MODALITIES: ReadonlyMap<string, string> = new Map([
  ['text', 'TEXT'],
  ['image', 'IMAGE'],
  ['audio', 'AUDIO'],
]);

function modalitiesOf(modalities: readonly string[] | undefined, losses: Losses): string[] | undefined {
  if (modalities === undefined || modalities.every((modality) => modality === 'text')) return undefined;
  const names = modalities.map((modality) => {
    const name = MODALITIES.get(modality.toLowerCase());
    if (name === undefined) throw notConvertible('modalities', 'The selected upstream does not know this output modality.');
    return name;
  });
  if (!names.includes('AUDIO') || names.length === 1) return names;
  // Models that speak answer in audio alone, and refuse to be asked for text as well.
  losses.note('output modalities');
  return ['AUDIO'];
}

const BUDGETS: ReadonlyMap<string, number> = new Map([
  ['minimal', 512],
  ['minimum', 512],
  ['low', 1024],
  ['medium', 8192],
  ['high', 24_576],
  ['xhigh', 32_768],
  ['max', 32_768],
]);
const LEVELS: ReadonlyMap<string, string> = new Map([
  ['minimal', 'minimal'],
  ['minimum', 'minimal'],
  ['low', 'low'],
  ['medium', 'medium'],
  ['high', 'high'],
  ['xhigh', 'high'],
  ['max', 'high'],
]);
/** The largest budgets that count as `low` and as `medium`. */
const LOW_BUDGET = 1024;
const MEDIUM_BUDGET = 4096;

function thinkingOf(request: CanonicalRequest, facts: ModelFacts): JsonObject | undefined {
  const control = request.reasoning;
  if (control === undefined) return undefined;
  if (control.effort === 'none' || (control.effort === undefined && control.budget === 0)) {
    return { thinkingBudget: 0 };
  }
  const amount = amountOf(control, facts, request.dialect);
  const wantsSummary = control.summary !== undefined && control.summary !== 'none';
  if (amount === undefined) return wantsSummary ? { includeThoughts: true } : undefined;
  return wantsSummary ? { ...amount, includeThoughts: true } : amount;
}

/** A level or a budget, never both: the protocol refuses them together. */
function amountOf(control: ReasoningControl, facts: ModelFacts, dialect: CanonicalRequest['dialect']): JsonObject | undefined {
  const { effort, budget } = control;
  const byLevel = facts.thinking === 'level';
  if (effort !== undefined) {
    const level = LEVELS.get(effort);
    const wanted = BUDGETS.get(effort);
    if (level === undefined || wanted === undefined) {
      throw notConvertible(effortPath(dialect), 'The selected upstream does not know this reasoning effort.');
    }
    if (byLevel) return { thinkingLevel: level === 'minimal' && facts.noMinimalThinking === true ? 'low' : level };
    return { thinkingBudget: clamp(isLeast(effort) ? leastBudget(facts) : wanted, facts) };
  }
  if (budget === undefined) return undefined;
  if (!byLevel) return { thinkingBudget: budget < 0 ? budget : clamp(budget, facts) };
  return { thinkingLevel: budget <= LOW_BUDGET ? 'low' : budget <= MEDIUM_BUDGET ? 'medium' : 'high' };
}

function isLeast(effort: string): boolean {
  return effort === 'minimal' || effort === 'minimum';
}

/** The budget for "minimal": the smallest of the model, where that is known. */
function leastBudget(facts: ModelFacts): number {
  const least = facts.minThinkingBudget ?? 0;
  return least > 0 ? least : 512;
}

function clamp(budget: number, facts: ModelFacts): number {
  return Math.max(facts.minThinkingBudget ?? 0, Math.min(budget, facts.maxThinkingBudget ?? budget));
}

function effortPath(dialect: CanonicalRequest['dialect']): string {
  if (dialect === 'responses') return 'reasoning.effort';
  return dialect === 'messages' ? 'output_config.effort' : 'reasoning_effort';
}
