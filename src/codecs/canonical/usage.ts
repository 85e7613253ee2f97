/** Token usage, said once: nothing overlaps except `reasoning` (inside `output`) and the image shares. Dialects convert at the edges. */
import type { JsonObject, JsonValue } from './json.ts';

export interface Usage {
  /** Input tokens that were neither read from nor written to a cache. */
  readonly input?: number;
  readonly cacheRead?: number;
  readonly cacheWrite5m?: number;
  readonly cacheWrite1h?: number;
  /** Cache writes whose lifetime the upstream did not say. Never split by guessing. */
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
  /** Pictures that were made, where a model is priced by the piece. */
  readonly images?: number;
  /** Work on top of the main generation (messages compaction and advisor passes, pictures of the image tool, orchestration): billed in addition (spec rule 9). */
  readonly extra?: readonly UsageIteration[];
  /** Calls of metered server tools by price key, for example `web_search`. */
  readonly meters?: ReadonlyMap<string, number>;
  /** The tier that the upstream says it used. */
  readonly serviceTier?: string;
  /** True when the gateway counted because the upstream reported nothing. */
  readonly estimated?: boolean;
  /** Usage members of the upstream that have no canonical reading, for the same dialect. */
  readonly native?: JsonObject;
}

export interface UsageIteration {
  readonly type: string;
  readonly input: number;
  readonly cacheRead: number;
  /** Cache writes whose lifetime the upstream did not say; the others beside it. */
  readonly cacheWrite: number;
  readonly cacheWrite5m?: number;
  readonly cacheWrite1h?: number;
  readonly output: number;
  /** Image tokens inside `input` and inside `output`. */
  readonly imageInput?: number;
  readonly imageOutput?: number;
}

/** No request has more of anything: above this a count is a mistake, or an attack on the arithmetic. */
const LARGEST_COUNT = 1_000_000_000;

/**
 * A counter of any wire: a number or a numeric string that is whole, never negative and at most a billion. Undefined for everything else,
 * which is then counted as what was not reported is: nothing is free because an upstream writes nonsense.
 */
export function countOf(value: JsonValue | undefined): number | undefined {
  const count = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof count === 'number' && Number.isSafeInteger(count) && count >= 0 && count <= LARGEST_COUNT ? count : undefined;
}

/** All output tokens of a report: more reasoning than output was counted beside it, not in it (known failure U14). */
export function wholeOutput(output: number, reasoning: number): number {
  return reasoning > output ? output + reasoning : output;
}

/**
 * The whole output, and reasoning as a part of it. Some vendors count reasoning beside the completion: their total shows it or, where none
 * decides, a reasoning that is the greater. A total that is made of prompt and completion says that reasoning was only estimated, and
 * the completion is all there was.
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

/** The later report wins field by field; an absent field keeps what was known. */
export function mergeUsage(known: Usage | undefined, report: Usage): Usage {
  return known === undefined ? report : { ...known, ...report };
}

/** The whole prompt: uncached, read and written. */
export function totalInput(usage: Usage): number {
  return (usage.input ?? 0) + (usage.cacheRead ?? 0) + totalCacheWrite(usage);
}

export function totalCacheWrite(usage: Pick<Usage, 'cacheWrite' | 'cacheWrite5m' | 'cacheWrite1h'>): number {
  return (usage.cacheWrite ?? 0) + (usage.cacheWrite5m ?? 0) + (usage.cacheWrite1h ?? 0);
}

/** True when the report holds no positive figure: placeholder zeros are not usage. */
export function isPlaceholder(usage: Usage): boolean {
  const { output = 0, reasoning = 0, extra = [], images = 0, meters } = usage;
  return totalInput(usage) + output + reasoning === 0 && extra.length === 0 && images === 0 && (meters?.size ?? 0) === 0;
}

/** Usage members in which routers tell their price to us (`cost`, `cost_details`, `cost_in_usd_ticks`). */
export function isPrice(key: string): boolean {
  return key === 'cost' || key.startsWith('cost_');
}
