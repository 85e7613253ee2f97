/** Reads `usageMetadata`: every chunk of a stream repeats the totals so far, without the counters that are not known yet. */
import { isObject, type JsonObject } from '../../canonical/json.ts';
import { contradiction, countOf, isPlaceholder, type Served, servedOf, type Usage } from '../../canonical/usage.ts';
import { arrayOrEmpty, optionalString } from './decode-chunk.ts';

const COUNTERS = [
  'promptTokenCount',
  'candidatesTokenCount',
  'thoughtsTokenCount',
  'toolUsePromptTokenCount',
  'cachedContentTokenCount',
  'totalTokenCount',
] as const;
type Counter = (typeof COUNTERS)[number];

/** Shares of the totals by modality: the wire's list, its name of the modality, and the canonical name. */
const SHARES = [
  ['promptTokensDetails', 'IMAGE', 'imageInput'],
  ['candidatesTokensDetails', 'IMAGE', 'imageOutput'],
  ['promptTokensDetails', 'AUDIO', 'audioInput'],
  ['candidatesTokensDetails', 'AUDIO', 'audioOutput'],
] as const;
type Share = (typeof SHARES)[number][2];

/** Of the shares of the prompt: what was read from a cache, which is billed as such. */
const CACHED_SHARES = [
  ['cacheTokensDetails', 'IMAGE', 'cachedImageInput', 'imageInput'],
  ['cacheTokensDetails', 'AUDIO', 'cachedAudioInput', 'audioInput'],
] as const;
type Known = Counter | Share | (typeof CACHED_SHARES)[number][2];

/** Google Cloud names what it billed as a traffic type. */
const ON_DEMAND = /^ON_DEMAND_?/;

function tierOf(metadata: JsonObject): string | undefined {
  const traffic = optionalString(metadata, 'trafficType');
  if (traffic === undefined || traffic === 'TRAFFIC_TYPE_UNSPECIFIED') return undefined;
  return traffic.replace(ON_DEMAND, '').toLowerCase() || undefined;
}

/** Merges the reports of one answer: the last value of each counter is kept. */
export class UsageReports {
  readonly #counts = new Map<Known, number>();
  #serviceTier: string | undefined;
  #isChanged = false;
  #isOutputOlder = false;

  /** The latest report counts no output itself. */
  get isOutputOlder(): boolean {
    return this.#isOutputOlder;
  }

  /** What is named while there are only placeholders. */
  get servedBeforeCounts(): Served | undefined {
    const usage = this.#usage();
    return isPlaceholder(usage) ? servedOf(usage) : undefined;
  }

  /** A counter that is no count says nothing. */
  read(metadata: JsonObject): void {
    // Where nothing has counted the candidates, the output is what the total or the thoughts say.
    this.#isOutputOlder = this.#counts.has('candidatesTokenCount') && !countOf(metadata['candidatesTokenCount']);
    for (const name of COUNTERS) this.#set(name, countOf(metadata[name]));
    for (const [list, modality, name] of [...SHARES, ...CACHED_SHARES]) this.#set(name, shareOf(metadata, list, modality));
    this.#serviceTier = optionalString(metadata, 'serviceTier') ?? tierOf(metadata) ?? this.#serviceTier;
  }

  #set(name: Known, count: number | undefined): void {
    const known = this.#counts.get(name);
    // Counters only grow, so a zero after a count is a missing value.
    if (count === undefined || count === known || (count === 0 && known !== undefined)) return;
    this.#counts.set(name, count);
    this.#isChanged = true;
  }

  /** The usage so far, if it changed since it was last taken and is more than placeholders. */
  take(): Usage | undefined {
    if (!this.#isChanged) return undefined;
    this.#isChanged = false;
    const usage = this.#usage();
    return isPlaceholder(usage) ? undefined : usage;
  }

  /** Lets the next `take` give the usage again, changed or not. */
  reportAgain(): void {
    this.#isChanged = true;
  }

  #usage(): Usage {
    const count = (name: Counter) => this.#counts.get(name);
    const prompt = count('promptTokenCount');
    const toolPrompt = count('toolUsePromptTokenCount');
    const cached = count('cachedContentTokenCount');
    const thoughts = count('thoughtsTokenCount');
    const output = this.#output(prompt ?? 0, toolPrompt ?? 0, thoughts);
    const isInputKnown = prompt !== undefined || toolPrompt !== undefined;
    return {
      ...(isInputKnown ? { input: Math.max(0, (prompt ?? 0) + (toolPrompt ?? 0) - (cached ?? 0)) } : {}),
      ...(cached === undefined ? {} : { cacheRead: cached }),
      ...(output === undefined ? {} : { output }),
      ...(thoughts === undefined ? {} : { reasoning: thoughts }),
      ...this.#shares(),
      ...(this.#serviceTier === undefined ? {} : { serviceTier: this.#serviceTier }),
      ...contradiction(isInputKnown ? (prompt ?? 0) + (toolPrompt ?? 0) : undefined, cached ?? 0),
    };
  }

  #shares(): Usage {
    const shares: { -readonly [Name in Share]?: number } = {};
    for (const [, , name] of SHARES) {
      const count = this.#counts.get(name);
      if (count !== undefined) shares[name] = count;
    }
    // The wire's shares are of the whole prompt; the canonical ones of what came from no cache.
    const cached = this.#counts.get('cachedContentTokenCount') ?? 0;
    for (const [, , part, name] of CACHED_SHARES) {
      const share = shares[name];
      if (share !== undefined) shares[name] = Math.max(0, share - Math.min(cached, this.#counts.get(part) ?? 0));
    }
    return shares;
  }

  /** The wire counts candidates without thoughts. Where it leaves candidates out, the total minus the prompt is the output. */
  #output(prompt: number, toolPrompt: number, thoughts: number | undefined): number | undefined {
    const candidates = this.#counts.get('candidatesTokenCount');
    if (candidates !== undefined) return candidates + (thoughts ?? 0);
    const total = this.#counts.get('totalTokenCount');
    const rest = total === undefined ? 0 : total - prompt - toolPrompt;
    return rest > 0 || thoughts !== undefined ? Math.max(rest, thoughts ?? 0) : undefined;
  }
}

function shareOf(metadata: JsonObject, list: string, modality: string): number | undefined {
  for (const detail of arrayOrEmpty(metadata, list)) {
    if (isObject(detail) && detail['modality'] === modality) return countOf(detail['tokenCount']);
  }
  return undefined;
}
