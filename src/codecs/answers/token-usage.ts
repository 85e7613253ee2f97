/** Usage in the `prompt_tokens` form of chat, completions and embeddings, both ways, with the deviations of their vendors. */
import { upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import {
  type CacheWrites,
  contradiction,
  countOf,
  isPlaceholder,
  isPrice,
  outputWith,
  totalCacheWrite,
  totalInput,
  type Usage,
  type UsageIteration,
} from '../canonical/usage.ts';
import { defined } from '../defined.ts';
import type { JsonEdit } from '../json/edit.ts';
import type { JsonPath } from '../json/text.ts';
import { MergedMembers } from './merged-members.ts';

const KNOWN = new Set([
  'prompt_tokens',
  'completion_tokens',
  'total_tokens',
  'prompt_tokens_details',
  'completion_tokens_details',
  'prompt_cache_hit_tokens',
  'prompt_cache_miss_tokens',
  'cached_tokens',
  'reasoning_tokens',
  'server_tool_use',
  'server_tool_use_details',
  'service_tier',
]);

/** Reads a usage object; undefined for null, absent and placeholder zeros. Throws `malformed_event` when it is no object. */
export function readTokenUsage(value: JsonValue | undefined): Usage | undefined {
  const counts = readTokenCounts(value);
  if (counts === undefined || !isObject(value)) return undefined;
  const native = Object.entries(value).filter(([key, member]) => !KNOWN.has(key) && member !== null);
  return { ...counts, ...(native.length === 0 ? {} : { native: Object.fromEntries(native) }) };
}

/** {@link readTokenUsage} without the members that have no canonical reading. */
function readTokenCounts(value: JsonValue | undefined): Usage | undefined {
  if (value === undefined || value === null) return undefined;
  if (!isObject(value)) throw upstreamFault('malformed_event', 'The upstream sent malformed usage.');
  const input = members(value['prompt_tokens_details'] ?? value['input_tokens_details']);
  const output = members(value['completion_tokens_details'] ?? value['output_tokens_details']);
  // No prompt has zero tokens: a zero is a placeholder.
  const prompt = (countOf(value['prompt_tokens']) ?? countOf(value['input_tokens'])) || undefined;
  const cacheRead =
    countOf(input['cached_tokens']) ?? countOf(value['prompt_cache_hit_tokens']) ?? countOf(value['cached_tokens']);
  const written = cacheWrites(input);
  const completion = countOf(value['completion_tokens']) ?? countOf(value['output_tokens']);
  const total = countOf(value['total_tokens']);
  const hasDetails = input !== NO_MEMBERS || output !== NO_MEMBERS;
  const reasoning =
    countOf(output['reasoning_tokens']) ??
    countOf(value['reasoning_tokens']) ??
    (hasDetails || cacheRead !== undefined ? undefined : onlyInTotal(prompt, completion, total));
  const meters = metersOf(value);
  const orchestration = orchestrationOf(input, output);
  // Mistral puts it here, others beside the usage.
  const tier = value['service_tier'];
  const usage: Usage = {
    ...defined({
      input: prompt === undefined ? undefined : Math.max(0, prompt - (cacheRead ?? 0) - totalCacheWrite(written)),
      cacheRead,
    }),
    ...written,
    ...outputWith(reasoning, { prompt, completion, total }),
    ...defined({
      imageInput: countOf(input['image_tokens']),
      audioInput: countOf(input['audio_tokens']),
      imageOutput: countOf(output['image_tokens']),
      audioOutput: countOf(output['audio_tokens']),
    }),
    ...(meters.size === 0 ? {} : { meters }),
    ...(orchestration === undefined ? {} : { extra: [orchestration] }),
    ...(typeof tier === 'string' ? { serviceTier: tier } : {}),
    ...contradiction(prompt, (cacheRead ?? 0) + totalCacheWrite(written)),
  };
  return isPlaceholder(usage) ? undefined : usage;
}

/**
 * What the total has beyond prompt and completion: the thoughts of Gemini behind its compatible endpoint, which reports them
 * nowhere else and details of nothing. Undefined where there is none.
 */
function onlyInTotal(prompt?: number, completion?: number, total?: number): number | undefined {
  if (prompt === undefined || completion === undefined || total === undefined) return undefined;
  return total > prompt + completion ? total - prompt - completion : undefined;
}

/** How deep the objects of a later report are merged into those of an earlier one. */
const MERGED_LEVELS = 2;

/**
 * The usage reports of one stream, merged as vendor objects: a later report may leave out details of its totals, so totals are
 * split only after the merge. Null and zero replace nothing. A report costs what it holds, however much the earlier ones have
 * brought.
 */
export class TokenUsageReports {
  readonly #merged = new MergedMembers();
  /** The merged members without a canonical reading. */
  readonly #native = new MergedMembers();
  #isFirst = true;
  #isOutputOlder = false;

  /** The latest report counts no output itself. */
  get isOutputOlder(): boolean {
    return this.#isOutputOlder;
  }

  /**
   * The usage with `report` included; undefined for placeholder zeros, which are not merged. Throws `malformed_event` when it is
   * no object.
   */
  read(report: JsonValue | undefined): Usage | undefined {
    const alone = readTokenCounts(report);
    if (alone === undefined || !isObject(report)) return undefined;
    this.#isOutputOlder = !alone.output;
    this.#merged.merge(report, MERGED_LEVELS);
    for (const key of Object.keys(report)) {
      const value = this.#merged.members[key];
      if (!KNOWN.has(key) && value !== undefined && value !== null) this.#native.set(key, value);
    }
    const counts = this.#isFirst ? alone : (readTokenCounts(this.#merged.members) ?? alone);
    this.#isFirst = false;
    const native = this.#native.snapshot();
    return native === undefined ? counts : { ...counts, native };
  }
}

/** Where vendors report the lifetimes of cache writes: Alibaba and routers of messages models, then OpenAI. */
const LIFETIMES = [
  ['cache_creation', 'ephemeral_5m_input_tokens', 'cacheWrite5m'],
  ['cache_creation', 'ephemeral_1h_input_tokens', 'cacheWrite1h'],
  ['cache_write_tokens_details', 'ttl_30m_tokens', 'cacheWrite30m'],
  ['cache_write_tokens_details', 'ttl_12h_tokens', 'cacheWrite12h'],
] as const;

/** Cache writes inside the prompt, by lifetime where the vendor reports it. A split that exceeds its total is none. */
export function cacheWrites(input: JsonObject): CacheWrites {
  const total =
    countOf(input['cache_write_tokens']) ??
    countOf(input['cache_creation_tokens']) ??
    countOf(input['cache_creation_input_tokens']);
  const splits: Readonly<Record<(typeof LIFETIMES)[number][0], JsonObject>> = {
    cache_creation: members(input['cache_creation'] ?? input['cache_creation_token_details']),
    cache_write_tokens_details: members(input['cache_write_tokens_details']),
  };
  const written: { -readonly [Lifetime in keyof CacheWrites]: CacheWrites[Lifetime] } = {};
  for (const [split, member, lifetime] of LIFETIMES) {
    const count = countOf(splits[split][member]);
    if (count !== undefined) written[lifetime] = count;
  }
  const known = totalCacheWrite(written);
  if (Object.keys(written).length === 0 || known > (total ?? known)) return defined({ cacheWrite: total });
  const isMessages = written.cacheWrite5m !== undefined || written.cacheWrite1h !== undefined;
  return { cacheWrite: (total ?? known) - known, ...(isMessages ? { cacheWrite5m: 0, cacheWrite1h: 0 } : {}), ...written };
}

/**
 * Image generation input: the cached tokens, and the image tokens among the rest. OpenAI reports the former beside the details,
 * others in them.
 */
export function pictureInput(
  value: JsonObject,
  details: JsonObject,
  input: number,
): { readonly cacheRead: number; readonly imageInput: number | undefined } {
  const cacheRead = Math.min(countOf(details['cached_tokens']) ?? countOf(value['cached_tokens']) ?? 0, input);
  const cachedImages = countOf(members(value['cached_tokens_details'])['cached_image_tokens']) ?? 0;
  const images = countOf(details['image_tokens']);
  if (images === undefined) return { cacheRead, imageInput: undefined };
  return { cacheRead, imageInput: Math.max(0, Math.min(images - cachedImages, input - cacheRead)) };
}

/** Work of an orchestrating model (Sakana): reported among the details, part of no total, and billed like the rest. */
export function orchestrationOf(input: JsonObject, output: JsonObject): UsageIteration | undefined {
  const read = countOf(input['orchestration_input_tokens']) ?? 0;
  const written = countOf(output['orchestration_output_tokens']) ?? 0;
  if (read + written === 0) return undefined;
  const cacheRead = Math.min(countOf(input['orchestration_input_cached_tokens']) ?? 0, read);
  return { type: 'orchestration', input: read - cacheRead, cacheRead, cacheWrite: 0, output: written };
}

function metersOf(value: JsonObject): ReadonlyMap<string, number> {
  const details = members(value['server_tool_use_details'] ?? value['server_tool_use']);
  const searches = countOf(details['web_search_requests']);
  return new Map(searches === undefined || searches === 0 ? [] : [['web_search', searches]]);
}

function members(value: JsonValue | undefined): JsonObject {
  return isObject(value) ? value : NO_MEMBERS;
}

const NO_MEMBERS: JsonObject = Object.freeze({});

/** The usage object for a client: totals that include caches and reasoning, with the details that SDKs require. */
export function writeTokenUsage(usage: Usage): JsonObject {
  const prompt = totalInput(usage);
  const completion = usage.output ?? 0;
  const written = totalCacheWrite(usage);
  const searches = usage.meters?.get('web_search');
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    total_tokens: prompt + completion,
    prompt_tokens_details: {
      cached_tokens: usage.cacheRead ?? 0,
      ...(written > 0 ? { cache_write_tokens: written } : {}),
      ...writtenFor(usage),
      ...(usage.imageInput === undefined ? {} : { image_tokens: usage.imageInput }),
      audio_tokens: usage.audioInput ?? 0,
    },
    completion_tokens_details: {
      reasoning_tokens: usage.reasoning ?? 0,
      ...(usage.imageOutput === undefined ? {} : { image_tokens: usage.imageOutput }),
      audio_tokens: usage.audioOutput ?? 0,
    },
    ...(searches === undefined ? {} : { server_tool_use: { web_search_requests: searches } }),
  };
}

/**
 * Cache writes by lifetime, where that is known, in the member that reports such lifetimes: each lifetime has a price of its own.
 */
export function writtenFor(usage: CacheWrites): JsonObject {
  const { cacheWrite5m = 0, cacheWrite30m = 0, cacheWrite1h = 0, cacheWrite12h = 0 } = usage;
  return {
    ...(cacheWrite5m + cacheWrite1h === 0
      ? {}
      : { cache_creation: { ephemeral_5m_input_tokens: cacheWrite5m, ephemeral_1h_input_tokens: cacheWrite1h } }),
    ...(cacheWrite30m + cacheWrite12h === 0
      ? {}
      : { cache_write_tokens_details: { ttl_12h_tokens: cacheWrite12h, ttl_30m_tokens: cacheWrite30m } }),
  };
}

/** Adds the edits that remove a router's prices from `usage` at `path`: clients do not get to see them (semantics 7.2.5). */
export function leaveOutPrices(usage: JsonObject, path: JsonPath, edits: JsonEdit[]): void {
  for (const key of Object.keys(usage)) if (isPrice(key)) edits.push({ path: [...path, key], value: undefined });
}
