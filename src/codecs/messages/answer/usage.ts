/**
 * Usage between the messages wire and the canonical model. On both sides `input_tokens` excludes the cache and `output_tokens`
 * includes thinking. A report in message_delta replaces that of message_start member by member, except by null, and by zeros
 * where all counts of the input are zero (`UsageReader.read` says when those count).
 */
import { isObject, type JsonObject, type JsonValue } from '../../canonical/json.ts';
import { MergedMembers } from '../../answers/merged-members.ts';
import { defined } from '../../defined.ts';
import {
  type CacheWrites,
  countOf,
  isPlaceholder,
  type Served,
  servedOf,
  totalCacheWrite,
  totalInput,
  type Usage,
  type UsageIteration,
  wholeOutput,
} from '../../canonical/usage.ts';

/** Iterations that the top level does not hold: they are billed in addition (spec rule 9; verified in recordings). */
const EXTRA_ITERATIONS: ReadonlySet<string> = new Set(['compaction', 'advisor_message']);
/** Those that it holds. Of any other kind nobody here knows whether it is billed. */
const WITHIN_TOTALS: ReadonlySet<string> = new Set(['message', 'fallback_message']);
/** Names come from the upstream and are written to the log. */
const MOST_UNKNOWN = 4;
const MAX_KIND = 64;

/** Server tools that are paid by the call. */
const METERED: ReadonlySet<string> = new Set(['web_search', 'web_fetch']);

/** More members than any vendor has are not copied for every report: all usages of the answer share them, which grow. */
const MOST_COPIED = 50;

/** The members of a report that count the input. */
const INPUT_COUNTS = ['input_tokens', 'cache_read_input_tokens', 'cache_creation_input_tokens'] as const;
const INPUT_MEMBERS: ReadonlySet<string> = new Set([...INPUT_COUNTS, 'cache_creation']);

/** Accumulates the wire's usage objects of one answer. */
export class UsageReader {
  readonly #known = new Map<string, JsonValue>();
  /** What has no canonical reading. */
  readonly #native = new MergedMembers();
  /** The latest iterations that are billed in addition, and the latest report of metered calls. */
  #extra: readonly UsageIteration[] = [];
  #servedModel: string | undefined;
  #unknownPasses: readonly string[] = [];
  #meters: ReadonlyMap<string, number> | undefined;
  /** The latest report of a total came without a split by lifetime. */
  #isSplitOlder = false;
  #isOutputOlder = false;
  /** The output is that of message_start: a placeholder, which may turn out to be nothing. */
  #isOutputGuessed = false;
  /** Calls of metered server tools since a report counted them. */
  readonly #calls = new Map<string, number>();
  #hasUnreadCalls = false;

  /** Calls that no usage tells yet. */
  get hasUnreadCalls(): boolean {
    return this.#hasUnreadCalls;
  }

  /** The latest report counts no output itself. */
  get isOutputOlder(): boolean {
    return this.#isOutputOlder;
  }

  /**
   * The usage with `report` included; undefined while there were only placeholders. `isStart`: it is that of message_start.
   */
  read(report: JsonObject, isStart = false): Usage | undefined {
    this.#hasUnreadCalls = false;
    const counted = countOf(report['output_tokens']);
    const isOutputKept = counted === 0 && !this.#isOutputGuessed && isPositive(this.#known.get('output_tokens'));
    this.#isOutputOlder = counted === undefined || isOutputKept;
    if (!this.#isOutputOlder) this.#isOutputGuessed = isStart;
    // There is always input, so such zeros are placeholders of a server that now reports the output alone, unless the report
    // lists every pass and none is the answer's own: then message_start reported one of those.
    const isInputKept = this.#hasInput() && !reportsInput(report) && !isWithoutMainPass(report['iterations']);
    for (const [key, value] of Object.entries(report)) {
      if (value === null || value === undefined || (isInputKept && INPUT_MEMBERS.has(key))) continue;
      if (!(isOutputKept && key === 'output_tokens')) this.#set(key, value);
    }
    if (isInputKept) return this.#read();
    if (isObject(report['cache_creation'])) this.#isSplitOlder = false;
    else if (countOf(report['cache_creation_input_tokens']) !== undefined) this.#isSplitOlder = true;
    return this.#read();
  }

  #set(key: string, value: JsonValue): void {
    this.#known.set(key, value);
    if (key === 'iterations') {
      this.#extra = extraIterations(value);
      this.#servedModel = fallbackModel(value);
      this.#unknownPasses = unknownPasses(value);
    }
    if (key === 'server_tool_use') this.#meters = isObject(value) ? metersOf(value) : undefined;
    if (!READ_MEMBERS.has(key)) this.#native.set(key, value);
  }

  /** A call of a server tool: counted here until a report counts it, since compatible servers have no `server_tool_use`. */
  called(name: string): void {
    if (!METERED.has(name)) return;
    this.#hasUnreadCalls = true;
    for (const [tool, calls] of this.#meters ?? []) this.#calls.set(tool, calls);
    this.#meters = undefined;
    this.#known.delete('server_tool_use');
    this.#native.delete('server_tool_use');
    this.#calls.set(name, (this.#calls.get(name) ?? 0) + 1);
  }

  #hasInput(): boolean {
    return INPUT_COUNTS.some((key) => isPositive(this.#known.get(key)));
  }

  #read(): Usage | undefined {
    const usage = this.#usage();
    return isPlaceholder(usage) ? undefined : usage;
  }

  #usage(): Usage {
    const known = this.#known;
    const usage: { -readonly [K in keyof Usage]: Usage[K] } = {};
    const set = (key: 'input' | 'cacheRead' | 'output' | 'reasoning', value: number | undefined) => {
      if (value !== undefined) usage[key] = value;
    };
    set('input', countOf(known.get('input_tokens')));
    set('cacheRead', countOf(known.get('cache_read_input_tokens')));
    const details = known.get('output_tokens_details');
    const reasoning = isObject(details) ? countOf(details['thinking_tokens']) : undefined;
    const output = countOf(known.get('output_tokens'));
    set('output', output === undefined ? undefined : wholeOutput(output, reasoning ?? 0));
    set('reasoning', reasoning);
    Object.assign(
      usage,
      cacheWritesOf(known.get('cache_creation_input_tokens'), known.get('cache_creation'), this.#isSplitOlder),
    );
    if (this.#extra.length > 0) usage.extra = this.#extra;
    const meters = this.#meters ?? (this.#calls.size > MOST_COPIED ? this.#calls : new Map(this.#calls));
    if (meters.size > 0) usage.meters = meters;
    const served = servedIn((name) => known.get(name));
    Object.assign(usage, served);
    if (this.#servedModel !== undefined) usage.servedModel = this.#servedModel;
    const flags = [...(isRedeemed(known.get('fallback_credit')) ? ['fallback_credit'] : []), ...this.#unknownPasses];
    if (flags.length > 0) usage.flags = flags;
    const native = this.#native.snapshot();
    if (native !== undefined) usage.native = native;
    return usage;
  }
}

/** What a message names beside counts that are placeholders, in its start. */
export function servedBeforeCounts(report: JsonObject): Served | undefined {
  if ([...INPUT_COUNTS, 'output_tokens'].some((key) => isPositive(report[key]))) return undefined;
  return servedOf(servedIn((name) => report[name]));
}

function servedIn(member: (name: string) => JsonValue | undefined): Served {
  const text = (name: string): string | undefined => {
    const value = member(name);
    return typeof value === 'string' ? value : undefined;
  };
  return defined({ serviceTier: text('service_tier'), speed: text('speed'), geo: text('inference_geo') });
}

function reportsInput(report: JsonObject): boolean {
  const split = report['cache_creation'];
  return INPUT_COUNTS.some((key) => isPositive(report[key])) || (isObject(split) && Object.values(split).some(isPositive));
}

/** All that was generated is listed, and billed, beside the totals: an answer that is a compaction alone. */
function isWithoutMainPass(iterations: JsonValue | undefined): boolean {
  if (!Array.isArray(iterations) || iterations.length === 0) return false;
  return iterations.every((one) => isObject(one) && EXTRA_ITERATIONS.has(String(one['type'])));
}

function isPositive(count: JsonValue | undefined): boolean {
  return (countOf(count) ?? 0) > 0;
}

/**
 * Cache writes by lifetime. A split that is older than the total and larger is stale (compaction replaces totals): then no
 * lifetime is known.
 */
function cacheWritesOf(wireTotal: JsonValue | undefined, split: JsonValue | undefined, isSplitOlder: boolean): CacheWrites {
  const total = countOf(wireTotal);
  if (!isObject(split)) return total === undefined ? {} : { cacheWrite: total };
  const cacheWrite5m = countOf(split['ephemeral_5m_input_tokens']) ?? 0;
  const cacheWrite1h = countOf(split['ephemeral_1h_input_tokens']) ?? 0;
  const rest = (total ?? 0) - cacheWrite5m - cacheWrite1h;
  if (isSplitOlder && rest < 0) return { cacheWrite5m: 0, cacheWrite1h: 0, cacheWrite: total ?? 0 };
  return { cacheWrite5m, cacheWrite1h, cacheWrite: Math.max(0, rest) };
}

const READ_MEMBERS: ReadonlySet<string> = new Set([
  'input_tokens',
  'output_tokens',
  'cache_read_input_tokens',
  'cache_creation_input_tokens',
  'cache_creation',
  'output_tokens_details',
  'service_tier',
  'speed',
  'inference_geo',
]);

function extraIterations(value: JsonValue): readonly UsageIteration[] {
  const listed = Array.isArray(value) ? value.filter(isObject) : [];
  return listed.filter((one) => EXTRA_ITERATIONS.has(String(one['type']))).map(iteration);
}

/** A model of the upstream's own answered in place of the one that was asked: the totals are those of its pass. */
function fallbackModel(value: JsonValue): string | undefined {
  const listed = Array.isArray(value) ? value.filter(isObject) : [];
  const model = listed.findLast((one) => one['type'] === 'fallback_message')?.['model'];
  return typeof model === 'string' && model !== '' ? model : undefined;
}

/** Passes of a kind that was not there when this was written. */
function unknownPasses(value: JsonValue): readonly string[] {
  const kinds = (Array.isArray(value) ? value.filter(isObject) : []).map((one) => String(one['type']).slice(0, MAX_KIND));
  const unknown = kinds.filter((kind) => !EXTRA_ITERATIONS.has(kind) && !WITHIN_TOTALS.has(kind));
  return [...new Set(unknown)].slice(0, MOST_UNKNOWN).map((kind) => `unpriced_pass:${kind}`);
}

/** The answer is billed as if its model had been asked all along. */
function isRedeemed(credit: JsonValue | undefined): boolean {
  const status = isObject(credit) ? credit['status'] : undefined;
  return isObject(status) && status['type'] === 'redeemed';
}

function iteration(one: JsonObject): UsageIteration {
  const model = one['model'];
  return {
    type: String(one['type']),
    ...(typeof model === 'string' && model !== '' ? { model } : {}),
    input: countOf(one['input_tokens']) ?? 0,
    cacheRead: countOf(one['cache_read_input_tokens']) ?? 0,
    cacheWrite: 0,
    ...cacheWritesOf(one['cache_creation_input_tokens'], one['cache_creation'], false),
    output: countOf(one['output_tokens']) ?? 0,
  };
}

/** `{web_search_requests: 2}` as the price key `web_search` with two calls. */
function metersOf(serverTools: JsonObject): Map<string, number> {
  const meters = new Map<string, number>();
  for (const [key, value] of Object.entries(serverTools)) {
    const calls = countOf(value);
    if (key.endsWith('_requests') && calls !== undefined && calls > 0) meters.set(key.slice(0, -'_requests'.length), calls);
  }
  return meters;
}

/**
 * The wire's usage object. Counters that nobody reported are zero, but the input, which is `inputEstimate` where that is known;
 * splits and details that nobody reported are null, since the protocol requires the members.
 */
export function encodeUsage(usage: Usage | undefined, inputEstimate = 0): JsonObject {
  const known: Usage = usage ?? {};
  const isInputKnown = known.input !== undefined || totalInput(known) > 0;
  // Clients refuse a usage object with iterations of any other type.
  const passes = known.extra?.filter(({ type }) => EXTRA_ITERATIONS.has(type)) ?? [];
  return {
    input_tokens: known.input ?? (isInputKnown ? 0 : inputEstimate),
    cache_creation_input_tokens: totalCacheWrite(known),
    cache_read_input_tokens: known.cacheRead ?? 0,
    cache_creation: encodeSplit(known),
    output_tokens: known.output ?? 0,
    output_tokens_details: known.reasoning === undefined ? null : { thinking_tokens: known.reasoning },
    server_tool_use: encodeServerTools(known.meters),
    ...(passes.length === 0 ? {} : { iterations: passes.map(encodeIteration) }),
    service_tier: TIERS.get(known.serviceTier ?? '') ?? null,
    inference_geo: known.geo ?? null,
    speed: known.speed ?? null,
  };
}

/** Service tiers and their names on this wire; typed clients refuse any other. */
const TIERS: ReadonlyMap<string, string> = new Map([
  ['standard', 'standard'],
  ['priority', 'priority'],
  ['batch', 'batch'],
  ['default', 'standard'],
]);

/** Both counters or none, since typed clients need both. */
function encodeServerTools(meters: Usage['meters']): JsonObject | null {
  const searches = meters?.get('web_search');
  const fetches = meters?.get('web_fetch');
  if (searches === undefined && fetches === undefined) return null;
  return { web_search_requests: searches ?? 0, web_fetch_requests: fetches ?? 0 };
}

function encodeSplit({ cacheWrite5m, cacheWrite1h }: CacheWrites): JsonObject | null {
  if (cacheWrite5m === undefined && cacheWrite1h === undefined) return null;
  return { ephemeral_5m_input_tokens: cacheWrite5m ?? 0, ephemeral_1h_input_tokens: cacheWrite1h ?? 0 };
}

function encodeIteration(one: UsageIteration): JsonObject {
  return {
    type: one.type,
    ...(one.model === undefined ? {} : { model: one.model }),
    input_tokens: one.input,
    cache_creation_input_tokens: totalCacheWrite(one),
    cache_read_input_tokens: one.cacheRead,
    cache_creation: encodeSplit(one),
    output_tokens: one.output,
  };
}
