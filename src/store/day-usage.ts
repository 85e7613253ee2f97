/** What a request adds to its key's day. Pure; shared by every engine. */
import { type BillableUsage, LARGEST_COUNT } from './charge.ts';
import type { DayUsage } from './spend-windows.ts';

export type DayCounts = Omit<DayUsage, 'day'>;

export const NO_USAGE: DayCounts = {
  requests: 0,
  inputTokens: 0,
  cachedInputTokens: 0,
  cacheWriteTokens: 0,
  outputTokens: 0,
  reasoningTokens: 0,
  images: 0,
  videos: 0,
  chargedNanos: 0n,
};

export function addCounts(counts: DayCounts, more: Partial<DayCounts>): DayCounts {
  return {
    requests: counts.requests + (more.requests ?? 0),
    inputTokens: counts.inputTokens + (more.inputTokens ?? 0),
    cachedInputTokens: counts.cachedInputTokens + (more.cachedInputTokens ?? 0),
    cacheWriteTokens: counts.cacheWriteTokens + (more.cacheWriteTokens ?? 0),
    outputTokens: counts.outputTokens + (more.outputTokens ?? 0),
    reasoningTokens: counts.reasoningTokens + (more.reasoningTokens ?? 0),
    images: counts.images + (more.images ?? 0),
    videos: counts.videos + (more.videos ?? 0),
    chargedNanos: counts.chargedNanos + (more.chargedNanos ?? 0n),
  };
}

/**
 * As an owner reads them: reasoning is a part of the output (known failure U14), caches stand beside the input. None where there
 * is no usage.
 */
export function countsOf(usage: BillableUsage | undefined): Partial<DayCounts> {
  if (usage === undefined) return {};
  const { reasoning = 0, passes = NO_PASSES } = usage;
  let input = inputOf(usage);
  let cachedInput = usage.cachedInput ?? 0;
  let cacheWrites = cacheWritesOf(usage);
  let output = outputOf(usage) + reasoning;
  for (const pass of passes) {
    input += inputOf(pass);
    cachedInput += pass.cachedInput ?? 0;
    cacheWrites += cacheWritesOf(pass);
    output += outputOf(pass);
  }
  return {
    inputTokens: sane(input),
    cachedInputTokens: sane(cachedInput),
    cacheWriteTokens: sane(cacheWrites),
    outputTokens: sane(output),
    reasoningTokens: sane(reasoning),
    images: sane(usage.images ?? 0),
  };
}

const NO_PASSES: NonNullable<BillableUsage['passes']> = [];

function inputOf({ input = 0, imageInput = 0, audioInput = 0 }: BillableUsage): number {
  return input + imageInput + audioInput;
}

function outputOf({ output = 0, imageOutput = 0, audioOutput = 0 }: BillableUsage): number {
  return output + imageOutput + audioOutput;
}

/** All cache writes, whatever their lifetime. */
export function cacheWritesOf(usage: BillableUsage): number {
  const { cacheWrite5m = 0, cacheWrite30m = 0, cacheWrite1h = 0, cacheWrite12h = 0, cacheWriteUnsplit = 0 } = usage;
  return cacheWrite5m + cacheWrite30m + cacheWrite1h + cacheWrite12h + cacheWriteUnsplit;
}

/** Counts come from upstreams: what is not billed for its size is not added up either. The row of the log keeps it. */
function sane(count: number): number {
  return Number.isSafeInteger(count) && count > 0 && count <= LARGEST_COUNT ? count : 0;
}
