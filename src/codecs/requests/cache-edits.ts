/**
 * Edits of cache breakpoints in a body that stays in its dialect: the Channel sets them, or its upstream has just refused them.
 */
import type { Item } from '../canonical/item.ts';
import { isObject, type JsonObject, type JsonValue } from '../canonical/json.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import type { Target } from '../codec.ts';
import type { JsonEdit } from '../json/edit.ts';
import type { JsonPath } from '../json/text.ts';
import { asksForCaching, automaticPlaces } from './cache-breakpoints.ts';
import type { Losses } from './losses.ts';

export interface CacheMembers {
  /** The member of a part, and what an automatic one holds. */
  readonly member: string;
  readonly value: JsonObject;
  /** The type of a text part of this item. */
  readonly textType: string;
  readonly holds: (item: Item) => boolean;
}

export function cacheEdits(request: CanonicalRequest, target: Target, members: CacheMembers, losses: Losses): JsonEdit[] {
  const isRefused = target.without.has('breakpoints');
  if (target.options.cacheBreakpoints !== 'auto' && !isRefused) return [];
  if (isRefused) {
    const edits = removals(request.json);
    if (edits.length > 0) losses.add('cache breakpoint');
    return edits;
  }
  if (asksForCaching(request)) return [];
  return automaticPlaces(request.items, members.holds).flatMap(([index]) => {
    const at = request.items[index]?.at;
    return at === undefined ? [] : mark(request.json, pathOf(at), members);
  });
}

/** `messages[3].content[0]` as a path. */
function pathOf(at: string): JsonPath {
  return (at.match(/[^.[\]]+/g) ?? []).map((step) => (/^\d+$/.test(step) ? Number(step) : step));
}

function valueAt(json: JsonObject, path: JsonPath): JsonValue | undefined {
  let value: JsonValue | undefined = json;
  for (const step of path) {
    if (typeof step === 'number') value = Array.isArray(value) ? value[step] : undefined;
    else value = isObject(value) ? value[step] : undefined;
  }
  return value;
}

/** Where results hold their parts. */
const CONTENTS = ['content', 'output'] as const;

function mark(json: JsonObject, path: JsonPath, members: CacheMembers): JsonEdit[] {
  const { member, value, textType } = members;
  const node = valueAt(json, path);
  if (typeof node === 'string') {
    return node === '' ? [] : [{ path, value: JSON.stringify([{ type: textType, text: node, [member]: value }]) }];
  }
  if (Array.isArray(node)) return node.length === 0 ? [] : mark(json, [...path, node.length - 1], members);
  if (!isObject(node)) return [];
  const content = holdsParts(node) ? CONTENTS.find((key) => node[key] !== undefined) : undefined;
  if (content !== undefined) return mark(json, [...path, content], members);
  return [{ path: [...path, member], value: JSON.stringify(value) }];
}

/** A message, or the result of a call that is an item. */
function holdsParts({ role, type }: JsonObject): boolean {
  return typeof role === 'string' || (typeof type === 'string' && type.endsWith('_output'));
}

const WHOLE = ['prompt_cache_options', 'cache_control'] as const;
const ON_PARTS = ['prompt_cache_breakpoint', 'cache_control'] as const;

function removals(json: JsonObject): JsonEdit[] {
  const edits: JsonEdit[] = [];
  for (const member of WHOLE) if (json[member] !== undefined) edits.push({ path: [member], value: undefined });
  for (const root of ['system', 'messages', 'input', 'tools']) collect(json[root], [root], edits);
  return edits;
}

function collect(node: JsonValue | undefined, path: JsonPath, edits: JsonEdit[]): void {
  if (Array.isArray(node)) {
    for (const [index, each] of node.entries()) collect(each, [...path, index], edits);
    return;
  }
  if (!isObject(node)) return;
  for (const member of ON_PARTS) if (node[member] !== undefined) edits.push({ path: [...path, member], value: undefined });
  for (const content of CONTENTS) collect(node[content], [...path, content], edits);
}
