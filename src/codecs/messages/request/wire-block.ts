/** A content block or a tool of an upstream request. It is rendered once, with the exact text of its arguments or schema. */
import type { RequestFeature } from '../../canonical/features.ts';
import type { JsonObject } from '../../canonical/json.ts';
import { MAX_CACHE_BREAKPOINTS } from '../wire.ts';

export interface WireBlock {
  json: JsonObject;
  /** JSON text of `input`, in place of a member: arguments are never re-serialised. */
  readonly input?: string;
  /** JSON text of `input_schema`, in place of a member. */
  readonly schema?: string | undefined;
  cacheControl?: JsonObject | undefined;
}

function render(block: WireBlock): string {
  const members = JSON.stringify(block.json);
  const input = block.input === undefined ? '' : `,"input":${block.input}`;
  const schema = block.schema === undefined ? '' : `,"input_schema":${block.schema}`;
  const cache = block.cacheControl === undefined ? '' : `,"cache_control":${JSON.stringify(block.cacheControl)}`;
  return `${members.slice(0, -1)}${input}${schema}${cache}}`;
}

export function renderAll(blocks: readonly WireBlock[]): string {
  return `[${blocks.map(render).join(',')}]`;
}

/** Removes all but the latest breakpoints, in wire order (semantics 6.6.1). `elsewhere`: how many are not on a block. */
export function limitBreakpoints(blocks: readonly WireBlock[], elsewhere: number, losses: Set<RequestFeature>): void {
  const marked = blocks.filter((block) => block.cacheControl !== undefined);
  const surplus = marked.slice(0, Math.max(0, marked.length + elsewhere - MAX_CACHE_BREAKPOINTS));
  for (const block of surplus) block.cacheControl = undefined;
  if (surplus.length > 0) losses.add('cache breakpoint');
}
