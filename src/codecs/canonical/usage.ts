/**
 * Token usage in one form. No counts overlap, except `reasoning`, which is part of `output`, and the shares of images and audio.
 */
import { defined } from '../defined.ts';
import type { JsonObject, JsonValue } from './json.ts';

export interface Usage {
  /** Input tokens that were neither read from nor written to a cache. */
  readonly input?: number;
  readonly cacheRead?: number;
  readonly cacheWrite5m?: number;
  readonly cacheWrite30m?: number;
  readonly cacheWrite1h?: number;
  readonly cacheWrite12h?: number;
  /** Cache writes whose lifetime the upstream did not report. They are never split by guessing. */
  readonly cacheWrite?: number;
  /** All output tokens, reasoning included. */
  readonly output?: number;
  /** The part of `output` that was reasoning. */
  readonly reasoning?: number;
  /** Image tokens inside `input` and inside `output`. */
  readonly imageInput?: number;
  readonly imageOutput?: number;
  readonly audioInput?: number;
  readonly audioOutput?: number;
  /** Images that were made, for models with a price per image. */
  readonly images?: number;
  /**
   * Work besides the main generation (messages compaction and advisor passes, images of the image tool, orchestration), billed in
   * addition (spec rule 9).
   */
  readonly extra?: readonly UsageIteration[];
  /** Calls of metered server tools by price key, for example `web_search`. */
  readonly meters?: ReadonlyMap<string, number>;
  /** The tier, the speed and the region that the upstream says it used. */
  readonly serviceTier?: string;
  readonly speed?: string;
  readonly geo?: string;
  /** The model that answered in place of the one that was asked, as the upstream names it (messages `fallback_message`). */
  readonly servedModel?: string;
  /**
   * Flags for the charge: what changed the upstream's own price and is no count (`fallback_credit`), passes of an unknown kind.
   */
  readonly flags?: readonly string[];
  /** True when the gateway counted because the upstream reported nothing. */
  readonly estimated?: boolean;
  /** Usage members of the upstream that have no canonical reading, for the same dialect. */
  readonly native?: JsonObject;
}

/** How an answer is served, as far as its price depends on it. */
export type Served = Pick<Usage, 'serviceTier' | 'speed' | 'geo'>;

export interface UsageIteration {
  readonly type: string;
  /** The model that made it, where the upstream names one. */
  readonly model?: string;
  readonly input: number;
  readonly cacheRead: number;
  /** Cache writes whose lifetime the upstream did not report. */
  readonly cacheWrite: number;
  readonly cacheWrite5m?: number;
  readonly cacheWrite1h?: number;
  readonly output: number;
  /** Image tokens inside `input` and inside `output`. */
  readonly imageInput?: number;
  readonly imageOutput?: number;
}

/** No request has more of anything: a larger count is an error, or an attack on the arithmetic. */
const LARGEST_COUNT = 1_000_000_000;

/**
 * A counter of any wire: a number or numeric string that is an integer from 0 to a billion. Undefined for everything else, which
 * then counts as not reported and is estimated: invalid usage does not make a request free.
 */
export function countOf(value: JsonValue | undefined): number | undefined {
  const count = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 && count <= LARGEST_COUNT ? count : undefined;
}

/** All output tokens of a report. Where reasoning exceeds output, the upstream counts it separately (known failure U14). */
export function wholeOutput(output: number, reasoning: number): number {
  return reasoning > output ? output + reasoning : output;
}

/**
 * The whole output, with reasoning as a part of it. Some vendors count reasoning separately from the completion. The total shows
 * which is meant; without one, reasoning that exceeds the completion is separate. Where the total is prompt plus completion and
 * reasoning still exceeds the completion, reasoning was only estimated, and the completion is the whole output.
 */
export function outputWith(
  reasoning: number | undefined,
  { prompt, completion, total }: Readonly<Record<'prompt' | 'completion' | 'total', number | undefined>>,
): Pick<Usage, 'output' | 'reasoning'> {
  if (completion === undefined) return reasoning === undefined ? {} : { reasoning };
  if (!reasoning) return { output: completion, ...(reasoning === undefined ? {} : { reasoning }) };
  const sum = completion + reasoning;
  const beyondPrompt = prompt === undefined || total === undefined ? undefined : total - prompt;
  if (beyondPrompt === sum) return { output: sum, reasoning };
  const isEstimate = reasoning > completion && completion > 0 && beyondPrompt === completion;
  return isEstimate ? { output: completion, reasoning: completion } : { output: wholeOutput(completion, reasoning), reasoning };
}

/** The later report wins field by field; absent fields keep their earlier value. */
export function mergeUsage(known: Usage | undefined, report: Usage): Usage {
  return known === undefined ? report : { ...known, ...report };
}

/** All input tokens: uncached, read from a cache and written to one. */
export function totalInput(usage: Usage): number {
  return (usage.input ?? 0) + (usage.cacheRead ?? 0) + totalCacheWrite(usage);
}

/** Cache writes by lifetime; `cacheWrite` is what has none. */
export type CacheWrites = Pick<Usage, 'cacheWrite' | 'cacheWrite5m' | 'cacheWrite30m' | 'cacheWrite1h' | 'cacheWrite12h'>;

export function totalCacheWrite({
  cacheWrite = 0,
  cacheWrite5m = 0,
  cacheWrite30m = 0,
  cacheWrite1h = 0,
  cacheWrite12h = 0,
}: CacheWrites): number {
  return cacheWrite + cacheWrite5m + cacheWrite30m + cacheWrite1h + cacheWrite12h;
}

/**
 * A flag for the charge of a report that has more cached tokens, read or written, than input: each count is billed as it was
 * reported.
 */
export function contradiction(prompt: number | undefined, cached: number): Pick<Usage, 'flags'> {
  return prompt !== undefined && cached > prompt ? { flags: ['contradictory_usage'] } : {};
}

/** The members of {@link Served} that a usage names; undefined where it names none. */
export function servedOf({ serviceTier, speed, geo }: Usage): Served | undefined {
  if (serviceTier === undefined && speed === undefined && geo === undefined) return undefined;
  return defined({ serviceTier, speed, geo });
}

/** True when no count is positive: zeros are placeholders, not usage. */
export function isPlaceholder(usage: Usage): boolean {
  return countsNoTokens(usage) && (usage.images ?? 0) === 0 && (usage.meters?.size ?? 0) === 0;
}

function countsNoTokens(usage: Usage): boolean {
  const { output = 0, reasoning = 0, extra = [] } = usage;
  return totalInput(usage) + output + reasoning === 0 && extra.length === 0;
}

/**
 * What of a usage is shown to clients that read counts of tokens: undefined where no count is positive. Calls of server tools and
 * images that were counted for the charge are no report, and zeros beside them would look like one.
 */
export function shownUsage(usage: Usage | undefined): Usage | undefined {
  return usage === undefined || countsNoTokens(usage) ? undefined : usage;
}

/** True for usage members that hold a router's price (`cost`, `cost_details`, `cost_in_usd_ticks`). */
export function isPrice(key: string): boolean {
  return key === 'cost' || key.startsWith('cost_');
}
