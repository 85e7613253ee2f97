/**
 * Cache breakpoints: where a prefix of the prompt ends that the upstream is to cache. Messages and routers of chat have
 * `cache_control`, OpenAI has `prompt_cache_breakpoint` on a part and `prompt_cache_options` for the whole request.
 */
import type { CacheBreakpoint, Item } from '../canonical/item.ts';
import type { JsonObject } from '../canonical/json.ts';
import type { CacheOptions, CanonicalRequest } from '../canonical/request.ts';
import type { Target } from '../codec.ts';
import { isOfModel } from '../tools/call-pairs.ts';
import { memberPath, optionalObject, optionalString, wrongType } from './members.ts';
import type { Losses } from './losses.ts';

/** Anthropic refuses more; OpenAI writes no more in one request. */
export const MOST_BREAKPOINTS = 4;

/** `cache_control` of the object at `path`. Throws where it is half made. */
export function readCacheControl(body: JsonObject, path = ''): CacheBreakpoint | undefined {
  return readBreakpoint(body, 'cache_control', ['type', 'ephemeral'], path);
}

/** `prompt_cache_breakpoint` of the part at `path`. Throws where it is half made. */
export function readPromptBreakpoint(body: JsonObject, path: string): CacheBreakpoint | undefined {
  return readBreakpoint(body, 'prompt_cache_breakpoint', ['mode', 'explicit'], path);
}

function readBreakpoint(
  body: JsonObject,
  member: string,
  [key, word]: readonly [string, string],
  path: string,
): CacheBreakpoint | undefined {
  const found = optionalObject(body, member, path);
  if (found === undefined) return undefined;
  const at = memberPath(path, member);
  if (found[key] !== word) throw wrongType(`${at}.${key}`, `"${word}"`);
  const ttl = optionalString(found, 'ttl', at);
  return ttl === undefined ? {} : { ttl };
}

/** `prompt_cache_options`; a request without the member leaves everything to the vendor. */
export function readPromptOptions(json: JsonObject): CacheOptions | undefined {
  const at = 'prompt_cache_options';
  const options = optionalObject(json, at);
  if (options === undefined) return undefined;
  const mode = optionalString(options, 'mode', at) ?? 'implicit';
  if (mode !== 'implicit' && mode !== 'explicit') throw wrongType(`${at}.mode`, '"implicit" or "explicit"');
  const ttl = optionalString(options, 'ttl', at);
  return { isAutomatic: mode === 'implicit', ...(ttl === undefined ? {} : { ttl }) };
}

/** A `cache_control` at the top of a body, whose position the vendor chooses. */
export function readAutomatic(json: JsonObject): CacheOptions | undefined {
  const found = readCacheControl(json);
  return found === undefined ? undefined : { isAutomatic: true, ...found };
}

/** OpenAI's breakpoints live as long as the options say where they say nothing themselves. */
export function inheritLifetime(items: readonly Item[], ttl: string | undefined): readonly Item[] {
  if (ttl === undefined || !items.some(isMarked)) return items;
  return items.map((item) => (item.breakpoint === undefined ? item : { ...item, breakpoint: { ttl, ...item.breakpoint } }));
}

const MINUTES: Readonly<Record<string, number>> = { m: 1, h: 60 };

function minutesOf(ttl: string): number | undefined {
  const [, count, unit] = /^(\d{1,6})([mh])$/.exec(ttl) ?? [];
  return count === undefined || unit === undefined ? undefined : Number(count) * (MINUTES[unit] ?? 1);
}

/**
 * The shortest of a vendor's lifetimes that is as long as `ttl`, else the longest; undefined where `ttl` is none. `known`:
 * ascending.
 */
function lifetime(ttl: string | undefined, known: readonly string[]): string | undefined {
  const wanted = ttl === undefined ? undefined : minutesOf(ttl);
  if (wanted === undefined) return undefined;
  return known.find((each) => (minutesOf(each) ?? 0) >= wanted) ?? known.at(-1);
}

/** As a messages upstream and routers of chat take it. */
export function cacheControlOf(breakpoint: CacheBreakpoint): JsonObject {
  const ttl = lifetime(breakpoint.ttl, ['5m', '1h']);
  return { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) };
}

const OPENAI_LIFETIMES = ['30m', '12h'] as const;

/** As OpenAI takes it on a part. */
export function promptBreakpointOf(breakpoint: CacheBreakpoint): JsonObject {
  const ttl = lifetime(breakpoint.ttl, OPENAI_LIFETIMES);
  return { mode: 'explicit', ...(ttl === undefined ? {} : { ttl }) };
}

/** The whole request's at OpenAI. An automatic breakpoint without a lifetime is what OpenAI does anyway. */
export function promptOptionsOf(cache: CacheOptions | undefined): JsonObject | undefined {
  if (cache === undefined || (cache.isAutomatic && cache.ttl === undefined)) return undefined;
  const ttl = lifetime(cache.ttl, OPENAI_LIFETIMES);
  return { mode: cache.isAutomatic ? 'implicit' : 'explicit', ...(ttl === undefined ? {} : { ttl }) };
}

export function isMarked({ breakpoint }: { readonly breakpoint?: CacheBreakpoint }): boolean {
  return breakpoint !== undefined;
}

/** True where the client set breakpoints anywhere, or left them to the vendor. */
export function asksForCaching({ items, tools, cache }: Pick<CanonicalRequest, 'items' | 'tools' | 'cache'>): boolean {
  return cache !== undefined || items.some(isMarked) || tools.some((tool) => tool.kind === 'function' && isMarked(tool));
}

export interface Places {
  readonly target: Target;
  /** True where the wire has a place for the breakpoint behind this item. */
  readonly holds: (item: Item) => boolean;
  /** Whether a tool may have one. */
  readonly onTools: boolean;
  readonly losses: Losses;
}

/**
 * The items with the breakpoints that this upstream gets. One that the wire has no place for stands behind the nearest item
 * before it that has one, and that of a tool behind the system text. Only the latest four stay. None stay for an upstream that
 * has just refused them.
 */
export function placeBreakpoints(request: CanonicalRequest, places: Places): readonly Item[] {
  const { target, losses } = places;
  const { items } = request;
  if (!asksForCaching(request)) {
    if (target.options.cacheBreakpoints !== 'auto' || target.without.has('breakpoints')) return items;
    return markedAt(items, automaticPlaces(items, places.holds));
  }
  losses.note('cache breakpoint');
  const moved = new Map<number, CacheBreakpoint>();
  let nearest = -1;
  for (const [index, item] of items.entries()) {
    if (places.holds(item)) nearest = index;
    if (item.breakpoint !== undefined && nearest >= 0) moved.set(nearest, item.breakpoint);
  }
  if (!places.onTools) addOfTools(request, places.holds, moved);
  const kept = target.without.has('breakpoints') ? [] : [...moved].sort(([a], [b]) => a - b).slice(-MOST_BREAKPOINTS);
  return markedAt(items.some(isMarked) ? items.map(withoutBreakpoint) : items, kept);
}

function addOfTools({ items, tools }: CanonicalRequest, holds: Places['holds'], moved: Map<number, CacheBreakpoint>): void {
  const ofTools = tools.findLast((tool) => tool.kind === 'function' && isMarked(tool));
  const behind = lastInstruction(items, holds);
  if (ofTools?.kind !== 'function' || ofTools.breakpoint === undefined || behind === -1 || moved.has(behind)) return;
  moved.set(behind, ofTools.breakpoint);
}

function markedAt(items: readonly Item[], places: readonly (readonly [number, CacheBreakpoint])[]): readonly Item[] {
  if (places.length === 0) return items;
  const marked = [...items];
  for (const [index, breakpoint] of places) {
    const item = items[index];
    if (item !== undefined) marked[index] = { ...item, breakpoint };
  }
  return marked;
}

function withoutBreakpoint(item: Item): Item {
  if (item.breakpoint === undefined) return item;
  const { breakpoint: _, ...rest } = item;
  return rest;
}

/** The last of the system's and the developer's texts in front of the conversation; -1 for none. */
function lastInstruction(items: readonly Item[], holds: Places['holds']): number {
  const first = items.findIndex((item) => item.kind !== 'text' || (item.role !== 'system' && item.role !== 'developer'));
  const end = first === -1 ? items.length : first;
  return items.slice(0, end).findLastIndex(holds);
}

/**
 * Where `cache_breakpoints: "auto"` sets them: behind the instructions (which begin with the tools), and behind the last two
 * turns that are not the model's: the next request finds what this one wrote, also where its end was changed.
 */
export function automaticPlaces(items: readonly Item[], holds: Places['holds']): (readonly [number, CacheBreakpoint])[] {
  const instruction = lastInstruction(items, holds);
  const places = instruction === -1 ? [] : [instruction];
  let left = 2;
  let isNewTurn = true;
  for (let index = items.length - 1; index > instruction && left > 0; index -= 1) {
    const item = items[index];
    if (item === undefined) continue;
    if (isOfModel(item)) isNewTurn = true;
    else if (isNewTurn && holds(item)) {
      places.push(index);
      left -= 1;
      isNewTurn = false;
    }
  }
  return places.sort((a, b) => a - b).map((index) => [index, {}]);
}
