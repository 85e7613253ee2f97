/**
 * How a Claude model takes effort where the operator does not say (semantics 6.7.4): models up to 4.5 think by budget and refuse
 * adaptive thinking, later and unknown ones are adaptive. A Gemini model of the Pro
 * kind has no level `minimal`. Only this file looks at model names; encoders get facts.
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
const LAST_BY_BUDGET = [4, 5] as const;

/** The operator's facts, with the default that the name gives. */
export function factsByName(facts: ModelFacts, type: ChannelType, upstreamModel: string): ModelFacts {
  if (type === 'gemini' && facts.thinking === 'level' && PRO.test(upstreamModel)) return { ...facts, noMinimalThinking: true };
  if (type !== 'messages' || facts.thinking !== undefined || !thinksByBudget(upstreamModel)) return facts;
  return { ...facts, thinking: 'budget' };
}

function thinksByBudget(model: string): boolean {
  if (!CLAUDE.test(model)) return false;
  const [, major, minor = '0'] = VERSION_BEHIND.exec(model) ?? VERSION_BEFORE.exec(model) ?? [];
  if (major === undefined) return false;
  const [lastMajor, lastMinor] = LAST_BY_BUDGET;
  return Number(major) < lastMajor || (Number(major) === lastMajor && Number(minor) <= lastMinor);
}
