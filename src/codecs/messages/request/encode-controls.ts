/**
 * Generates thinking, effort and sampling for a messages upstream from another dialect's controls (semantics 6.7.4 to
 * 6.7.6). A messages client's own controls pass as they are.
 */
import type { JsonObject } from '../../canonical/json.ts';
import type { CanonicalRequest, ReasoningControl } from '../../canonical/request.ts';
import type { ModelFacts, Target } from '../../codec.ts';
import { effortOfBudget } from '../../requests/effort-of-budget.ts';
import { requiresCall } from '../../tools/choice.ts';
import type { Losses } from '../../requests/losses.ts';

export interface Controls {
  readonly thinking?: JsonObject;
  /** `output_config.effort`. */
  readonly effort?: string;
}

/** The vendor's floor for `budget_tokens`. */
const MIN_BUDGET = 1024;
const BUDGETS: Readonly<Record<string, number>> = {
  minimal: 1024,
  minimum: 1024,
  low: 1024,
  medium: 4096,
  high: 16384,
  xhigh: 32000,
  max: 32000,
};
const DEFAULT_BUDGET = 4096;
/** Efforts of other dialects that this wire has no word for: thinking is on, without an effort. */
const WITHOUT_WORD: ReadonlySet<string> = new Set(['minimal', 'minimum']);

export function encodeControls(request: CanonicalRequest, facts: ModelFacts, maxTokens: number, losses: Losses): Controls {
  const reasoning = request.reasoning ?? {};
  const thinking = encodeThinking(reasoning, facts, maxTokens);
  // Thinking that is generated here must not conflict with the client's tool_choice (semantics 6.3.3).
  const conflicts = thinking !== undefined && thinking['type'] !== 'disabled' && requiresCall(request.toolChoice);
  const noRoom = thinking?.['type'] === 'disabled' && reasoning.effort !== 'none';
  if (reasoning.summary !== undefined && thinking?.['display'] === undefined) losses.note('reasoning summary asked');
  const asked = facts.thinking === 'budget' ? undefined : wireEffort(reasoning);
  // The next level below, as the vendor's own client has it.
  const effort = asked === 'xhigh' && facts.noXhighEffort === true ? 'high' : asked;
  if (conflicts || noRoom || effort !== asked) losses.note('reasoning effort');
  return {
    ...(thinking === undefined || conflicts ? {} : { thinking }),
    ...(effort === undefined ? {} : { effort }),
  };
}

function encodeThinking(reasoning: ReasoningControl, facts: ModelFacts, maxTokens: number): JsonObject | undefined {
  const { effort, budget } = reasoning;
  if (effort === 'none' || (effort === undefined && budget !== undefined && budget <= 0)) return { type: 'disabled' };
  if (effort === undefined && budget === undefined && reasoning.adaptive !== true) return undefined;
  const display = reasoning.summary === undefined || reasoning.summary === 'none' ? {} : { display: 'summarized' };
  if (facts.thinking !== 'budget') return { type: 'adaptive', ...display };
  const wanted = BUDGETS[effort ?? ''] ?? budget ?? DEFAULT_BUDGET;
  const budgetTokens = fitBudget(wanted, facts, maxTokens);
  return budgetTokens === undefined ? { type: 'disabled' } : { type: 'enabled', budget_tokens: budgetTokens, ...display };
}

/** A budget within the model's bounds and below the output cap; undefined when the cap leaves no room for the smallest budget. */
function fitBudget(wanted: number, facts: ModelFacts, maxTokens: number): number | undefined {
  const least = Math.max(MIN_BUDGET, facts.minThinkingBudget ?? MIN_BUDGET);
  if (maxTokens - 1 < least) return undefined;
  const most = facts.maxThinkingBudget ?? Number.POSITIVE_INFINITY;
  const bounded = Math.min(Math.max(Math.trunc(wanted), least), most, maxTokens - 1);
  return bounded >= MIN_BUDGET ? bounded : undefined;
}

function wireEffort({ effort, budget }: ReasoningControl): string | undefined {
  if (effort === undefined) return budget !== undefined && budget > 0 ? effortOfBudget(budget) : undefined;
  return effort === 'none' || WITHOUT_WORD.has(effort) ? undefined : effort;
}

/** Other vendors take up to 2. */
const MOST_TEMPERATURE = 1;
/** The smallest `top_p` that thinking allows, and that a model of fixed sampling takes. */
const LEAST_THINKING_TOP_P = 0.95;
const LEAST_FIXED_TOP_P = 0.99;

/**
 * The client's sampling. With thinking on, and for models of fixed sampling at all times, the vendor refuses most values of it:
 * those are left out, since the client asked for thinking too (semantics 6.7.5).
 */
export function encodeSampling(
  request: CanonicalRequest,
  thinks: boolean,
  { facts, without }: Target,
  losses: Losses,
): JsonObject {
  const { temperature, topP, topK } = request;
  const isFixed = facts.fixedSampling === true;
  if (!thinks && !isFixed) {
    const isTooHigh = temperature !== undefined && temperature > MOST_TEMPERATURE;
    if (isTooHigh) losses.note('temperature, top_p');
    const sampling = { temperature: isTooHigh ? MOST_TEMPERATURE : temperature, top_p: topP, top_k: topK };
    return without.has('both_samplings') ? oneOfBoth(sampling, losses) : sampling;
  }
  const leastTopP = isFixed ? LEAST_FIXED_TOP_P : LEAST_THINKING_TOP_P;
  const allowed = {
    temperature: temperature === 1 ? temperature : undefined,
    top_p: topP !== undefined && topP >= leastTopP && topP <= 1 ? topP : undefined,
    top_k: undefined,
  };
  if (allowed.temperature !== temperature || allowed.top_p !== topP) losses.note('temperature, top_p');
  if (topK !== undefined) losses.add('top_k');
  return without.has('both_samplings') ? oneOfBoth(allowed, losses) : allowed;
}

interface Sampling {
  readonly temperature: number | undefined;
  readonly top_p: number | undefined;
  readonly top_k: number | undefined;
}

/** The vendor's own values, which change nothing. */
const USUAL_TEMPERATURE = 1;
const USUAL_TOP_P = 1;

/**
 * Models from Claude 4.1 on refuse `temperature` and `top_p` together, which clients of other dialects often send. The one that
 * is the vendor's own value goes; of two that are not, the vendor advises to set the temperature.
 */
function oneOfBoth({ temperature, top_p: topP, top_k }: Sampling, losses: Losses): JsonObject {
  if (temperature === undefined || topP === undefined) return { temperature, top_p: topP, top_k };
  if (topP !== USUAL_TOP_P && temperature === USUAL_TEMPERATURE) return { top_p: topP, top_k };
  if (topP !== USUAL_TOP_P) losses.note('temperature, top_p');
  return { temperature, top_k };
}
