/** Names and members of the messages wire that several files of this codec use. */
import { refusedOutput, upstreamFault } from '../canonical/error.ts';
import { isObject, type JsonObject, tryJson } from '../canonical/json.ts';
import { LOWER_CAPS } from '../canonical/request.ts';
import type { Target } from '../codec.ts';
import { writeInSteps } from '../json/write-in-steps.ts';
import { MOST_BREAKPOINTS } from '../requests/cache-breakpoints.ts';
import type { Losses } from '../requests/losses.ts';
import { endsStep, type Steps } from '../steps.ts';

const DEFAULT_MAX_TOKENS = 128_000;
export const DEFAULT_VERSION = '2023-06-01';
/** Needed when any block refers to a private file (semantics 5.6). */
export const FILES_BETA = 'files-api-2025-04-14';
/** The longest lifetime of a cache breakpoint. */
const LONGEST = '1h';

/** The cap for a request without one: less where the upstream has refused that. */
export function defaultMaxTokens({ without }: Pick<Target, 'without'>): number {
  return LOWER_CAPS.findLast((cap) => without.has(`cap_${cap}`)) ?? DEFAULT_MAX_TOKENS;
}

/**
 * In place of a last turn of the user that holds nothing but white space: without it the model would go on with its own answer.
 */
export const NO_CONTENT = '(no content)';

/** The vendor refuses a text of nothing but white space wherever it stands. */
export function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** The stop reasons of a limit, which may cut an answer anywhere: a block may be left open, or its JSON unfinished. */
export const CUTTING_STOPS: ReadonlySet<string> = new Set(['max_tokens', 'model_context_window_exceeded']);

/** A required object member of an upstream event. Throws GatewayError blaming the upstream. */
export function needObject(parent: JsonObject, key: string, where: string): JsonObject {
  const value = parent[key];
  if (!isObject(value)) throw malformed(`${where}: ${key} is not an object`);
  return value;
}

/** A required string member of an upstream event. Throws GatewayError blaming the upstream. */
export function needString(parent: JsonObject, key: string, where: string): string {
  const value = parent[key];
  if (typeof value !== 'string') throw malformed(`${where}: ${key} is not a string`);
  return value;
}

/** An optional string member: absent and null count as none. Throws GatewayError blaming the upstream for another type. */
export function nullableString(parent: JsonObject, key: string, where: string): string | undefined {
  const value = parent[key];
  if (value === undefined || value === null) return undefined;
  return needString(parent, key, where);
}

export function malformed(what: string): Error {
  return upstreamFault('malformed_event', `The upstream sent a malformed event (${what}).`);
}

/** The input of a call that has ended must be an object (spec rule 11). */
export function inputRefused(): Error {
  return refusedOutput('malformed_event', 'The upstream sent a malformed event (the input of a tool call is not a JSON object).');
}

/** The object that the JSON text holds; undefined for any other text. */
export function parseObject(text: string): JsonObject | undefined {
  const value = tryJson(text);
  return isObject(value) ? value : undefined;
}

export interface WireBlock {
  json: JsonObject;
  /** JSON text of `input`, in place of a member: arguments are never re-serialised. */
  readonly input?: string;
  /** JSON text of `input_schema`, in place of a member. */
  readonly schema?: string | undefined;
  cacheControl?: JsonObject | undefined;
}

function* render(block: WireBlock): Steps<string> {
  const members = yield* writeInSteps(block.json);
  const input = block.input === undefined ? '' : `,"input":${block.input}`;
  const schema = block.schema === undefined ? '' : `,"input_schema":${block.schema}`;
  const cache = block.cacheControl === undefined ? '' : `,"cache_control":${JSON.stringify(block.cacheControl)}`;
  return `${members.slice(0, -1)}${input}${schema}${cache}}`;
}

export function* renderAll(blocks: readonly WireBlock[]): Steps<string> {
  const written: string[] = [];
  for (const [index, block] of blocks.entries()) {
    if (endsStep(index)) yield;
    written.push(yield* render(block));
  }
  return `[${written.join(',')}]`;
}

/**
 * Removes all but the latest breakpoints, in wire order (semantics 6.6.1), and makes none live shorter than one behind it, which
 * the vendor refuses. `whole`: the breakpoint that is on no block, whose place is behind them all.
 */
export function limitBreakpoints(blocks: readonly WireBlock[], whole: JsonObject | undefined, losses: Losses): void {
  const marked = blocks.filter((block) => block.cacheControl !== undefined);
  const surplus = marked.slice(0, Math.max(0, marked.length + (whole === undefined ? 0 : 1) - MOST_BREAKPOINTS));
  for (const block of surplus) block.cacheControl = undefined;
  if (surplus.length > 0) losses.note('cache breakpoint');
  let longest = whole?.['ttl'];
  for (const block of marked.slice(surplus.length).toReversed()) {
    if (longest === LONGEST && block.cacheControl?.['ttl'] !== LONGEST) {
      block.cacheControl = { ...block.cacheControl, ttl: LONGEST };
      losses.note('cache breakpoint');
    }
    longest = block.cacheControl?.['ttl'];
  }
}
