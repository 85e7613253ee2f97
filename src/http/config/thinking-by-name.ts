/**
 * How a Claude model takes effort where the operator has not configured it (semantics 6.7.4): models up to 4.5 think by budget
 * and refuse adaptive thinking, later and unknown ones are adaptive. Those after 4.6 take no sampling of the client's; before
 * them none has the effort `xhigh`. A Gemini model has its smallest and its largest budget, beyond which it refuses the request,
 * and one of the Pro kind no level `minimal`. Those before 3 take no media in the results of functions, and no JSON format beside
 * functions. Only this file looks at model names; encoders get facts.
 */
import type { ChannelType } from '../../codecs/canonical/dialect.ts';
import type { ModelFacts } from '../../codecs/codec.ts';

const CLAUDE = /claude|^(?:opus|sonnet|haiku)-/;
/** `claude-sonnet-4-5-20250929`, `claude-opus-4.1`: a date of eight digits is no version. */
const VERSION_BEHIND = /(?:opus|sonnet|haiku)-(\d{1,2})(?:[-.](\d{1,2}))?(?!\d)/;
/** `claude-3-7-sonnet-20250219`. */
const VERSION_BEFORE = /(?:^|\D)(\d{1,2})(?:[-.](\d{1,2}))?-(?:opus|sonnet|haiku)/;
/** Gemini 3 Pro refuses the level `minimal`, which Flash takes. */
const PRO = /gemini-3[\d.]*-pro/;
/** `gemini-2.5-flash`, `models/gemini-1.5-pro-002`. */
const BEFORE_3 = /gemini-[12]\b/;
const LAST_BY_BUDGET = [4, 5] as const;
const LAST_OF_FREE_SAMPLING = [4, 6] as const;

type Budgets = Pick<ModelFacts, 'minThinkingBudget' | 'maxThinkingBudget'>;

/** The first that fits; models without an entry take any budget, as far as is known. */
const GEMINI_BUDGETS: readonly (readonly [RegExp, Budgets])[] = [
  [/gemini-2\.5-flash-lite/, { minThinkingBudget: 512, maxThinkingBudget: 24_576 }],
  [/gemini-2\.5-flash/, { maxThinkingBudget: 24_576 }],
  [/gemini-2\.5-pro/, { minThinkingBudget: 128, maxThinkingBudget: 32_768 }],
];

/** The operator's facts, with the default that the name gives. */
export function factsByName(facts: ModelFacts, type: ChannelType, upstreamModel: string): ModelFacts {
  if (type === 'gemini') return geminiFacts(facts, upstreamModel);
  if (type !== 'messages') return facts;
  const version = claudeVersion(upstreamModel);
  if (version === undefined) return facts;
  if (!isUpTo(version, LAST_OF_FREE_SAMPLING)) return { ...facts, fixedSampling: true };
  if (facts.thinking === undefined && isUpTo(version, LAST_BY_BUDGET)) return { ...facts, thinking: 'budget' };
  return { ...facts, noXhighEffort: true };
}

function geminiFacts(given: ModelFacts, model: string): ModelFacts {
  const facts = BEFORE_3.test(model) ? { noMediaInResults: true, noFormatBesideTools: true, ...given } : given;
  if (facts.thinking === 'level') return PRO.test(model) ? { ...facts, noMinimalThinking: true } : facts;
  const budgets = GEMINI_BUDGETS.find(([name]) => name.test(model))?.[1];
  return budgets === undefined ? facts : { ...budgets, ...facts };
}

type Version = readonly [major: number, minor: number];

function claudeVersion(model: string): Version | undefined {
  if (!CLAUDE.test(model)) return undefined;
  const [, major, minor = '0'] = VERSION_BEHIND.exec(model) ?? VERSION_BEFORE.exec(model) ?? [];
  return major === undefined ? undefined : [Number(major), Number(minor)];
}

function isUpTo([major, minor]: Version, [lastMajor, lastMinor]: Version): boolean {
  return major < lastMajor || (major === lastMajor && minor <= lastMinor);
}
