/** A canonical request as the body of a messages upstream. Pure: the same request and target give the same bytes. */
import { notConvertible } from '../../canonical/error.ts';
import type { Item } from '../../canonical/item.ts';
import { isObject, type JsonValue } from '../../canonical/json.ts';
import type { CanonicalRequest } from '../../canonical/request.ts';
import { cacheControlOf, placeBreakpoints } from '../../requests/cache-breakpoints.ts';
import { fittingId } from '../../requests/short-id.ts';
import { schemaTexts } from '../../schemas/text.ts';
import { endsStep, type Steps } from '../../steps.ts';
import { PLAIN_NAMES } from '../../tools/names.ts';
import { encodeControls, encodeSampling } from './encode-controls.ts';
import { type Conversation, encodeConversation, holdsBreakpoint, isThinking, type Turn } from './encode-conversation.ts';
import { encodeFormat } from './encode-format.ts';
import { encodeToolChoice, encodeTools, NO_CALLS, openTools } from './encode-tools.ts';
import { requestLosses } from '../losses.ts';
import { spliceRequest } from './splice.ts';
import { defaultMaxTokens, DEFAULT_VERSION, FILES_BETA, isBlank, limitBreakpoints, renderAll, type WireBlock } from '../wire.ts';
import type { Losses } from '../../requests/losses.ts';
import { type EncodeContext, requestEncoder } from '../../requests/request-encoder.ts';

/** The vendor refuses a longer `user_id`. */
const MAX_USER_CHARS = 256;

export const encodeInSteps = requestEncoder({
  dialect: 'messages',
  losses: requestLosses,
  nameRule: PLAIN_NAMES,
  mostStops: Number.POSITIVE_INFINITY,
  takesStop: (sequence) => !isBlank(sequence),
  path: () => '/messages',
  headers: headersOf,
  splice: spliceRequest,
  write: writeBody,
});

function* writeBody(request: CanonicalRequest, context: EncodeContext): Steps<string> {
  const { target, names, stops, losses } = context;
  const schemas = yield* schemaTexts(request);
  yield;
  const declared = yield* encodeTools(request, schemas, context);
  const choice = encodeToolChoice(request, names, declared.length > 0);
  const items = placeBreakpoints(request, { target, holds: holdsBreakpoint, onTools: true, losses });
  yield;
  const conversation = yield* encodeConversation(items, request.tools, context);
  const format = yield* encodeFormat(request.format, schemas.format);
  if (format.instruction !== undefined) conversation.system.push({ json: { type: 'text', text: format.instruction } });
  const { system, turns } = withFirstTurn(conversation, request, losses);
  const called = declared.length === 0 ? calledTools(turns) : [];
  if (called.length > 0) losses.note('call of an undeclared tool');
  const tools = called.length > 0 ? called : declared;
  const toolChoice = called.length > 0 ? NO_CALLS : choice;
  const isCached = request.cache?.isAutomatic === true && !target.without.has('breakpoints');
  const cacheControl = isCached ? cacheControlOf(request.cache) : undefined;
  yield;
  limitBreakpoints([...tools, ...system, ...turns.flatMap(blocksOf)], cacheControl, losses);
  const maxTokens = request.maxOutputTokens ?? defaultMaxTokens(target);
  const { thinking, effort } = encodeControls(request, target.facts, maxTokens, losses);
  const isAllowed = thinking?.['type'] !== 'enabled' || mayThink(turns);
  if (!isAllowed) losses.note('reasoning effort');
  const thinks = isAllowed && thinking !== undefined && thinking['type'] !== 'disabled';
  const sampling = encodeSampling(request, thinks, target, losses);
  yield;
  const written = yield* writeTurns(turns);
  const members: string[] = [];
  const add = (key: string, text: string | undefined) => {
    if (text !== undefined) members.push(`"${key}":${text}`);
  };
  const value = (json: JsonValue | undefined) => (json === undefined ? undefined : JSON.stringify(json));
  add('model', JSON.stringify(target.owner.model));
  add('max_tokens', String(maxTokens));
  if (system.length > 0) add('system', yield* renderAll(system));
  add('messages', `[${written.join(',')}]`);
  yield;
  if (tools.length > 0) add('tools', yield* renderAll(tools));
  add('tool_choice', value(toolChoice));
  for (const [key, number] of Object.entries(sampling)) add(key, value(number));
  if (stops.sent !== undefined) add('stop_sequences', JSON.stringify(stops.sent));
  add('thinking', value(isAllowed ? thinking : { type: 'disabled' }));
  const { schema } = format;
  const formatText = schema === undefined ? '' : `"format":{"type":"json_schema","schema":${schema}}`;
  const effortText = effort === undefined ? '' : `"effort":${JSON.stringify(effort)}`;
  const config = [effortText, formatText].filter((text) => text !== '');
  if (config.length > 0) add('output_config', `{${config.join(',')}}`);
  if (request.user !== undefined) add('metadata', JSON.stringify({ user_id: fittingId(request.user, MAX_USER_CHARS) }));
  add('cache_control', value(cacheControl));
  if (request.stream) add('stream', 'true');
  return `{${members.join(',')}}`;
}

/**
 * A model that thinks by budget does not continue an answer (semantics 6.7.5), and refuses tool results without thinking before
 * the calls, as after a change of upstream (semantics 9.3.3).
 */
function mayThink(turns: readonly Turn[]): boolean {
  const last = turns.at(-1);
  if (last?.role === 'assistant') return false;
  if (last?.results.length === 0) return true;
  return isThinking(turns.at(-2)?.blocks[0]);
}

function* writeTurns(turns: readonly Turn[]): Steps<string[]> {
  const written: string[] = [];
  for (const [index, turn] of turns.entries()) {
    if (endsStep(index)) yield;
    written.push(`{"role":"${turn.role}","content":${yield* renderAll(blocksOf(turn))}}`);
  }
  return written;
}

function blocksOf(turn: Turn) {
  return [...turn.results, ...turn.blocks];
}

/** Stands before an answer that begins the conversation, since the vendor wants the first turn to be the user's. */
const FIRST_TURN: Turn = { role: 'user', results: [], blocks: [{ json: { type: 'text', text: '(The assistant begins.)' } }] };

/** The tools that a history calls. */
function calledTools(turns: readonly Turn[]): WireBlock[] {
  const names = new Set<JsonValue | undefined>();
  for (const { blocks } of turns) for (const { json } of blocks) if (json['type'] === 'tool_use') names.add(json['name']);
  return openTools(names).map((json) => ({ json }));
}

/** Makes the system text the user's where there is nothing else, since the vendor refuses a request without a message. */
function withFirstTurn(conversation: Conversation, { items, dialect }: CanonicalRequest, losses: Losses): Conversation {
  const [first] = conversation.turns;
  if (first?.role === 'user') return conversation;
  if (first !== undefined) {
    losses.note('assistant turn first');
    return { ...conversation, turns: [FIRST_TURN, ...conversation.turns] };
  }
  if (conversation.system.length === 0) {
    const at = items[0]?.at ?? (dialect === 'responses' ? 'input' : 'messages');
    throw notConvertible(at, 'The request holds nothing that a messages upstream can be asked.');
  }
  const turn: Turn = { role: 'user', results: [], blocks: conversation.system };
  return { system: [], turns: [turn] };
}

function headersOf({ dialect, json, items }: CanonicalRequest): Record<string, string> {
  const hasFiles = dialect === 'messages' ? holdsFile(json['messages']) : items.some(refersToFile);
  return { 'anthropic-version': DEFAULT_VERSION, ...(hasFiles ? { 'anthropic-beta': FILES_BETA } : {}) };
}

function refersToFile(item: Item): boolean {
  if (item.kind === 'media') return item.media.source.from === 'reference';
  if (item.kind !== 'toolResult') return false;
  return item.content.some((part) => part.kind === 'media' && part.media.source.from === 'reference');
}

/** True for a block with a file source, or a container upload, at any depth of the conversation's blocks. */
function holdsFile(value: JsonValue | undefined): boolean {
  if (Array.isArray(value)) return value.some(holdsFile);
  if (!isObject(value)) return false;
  if (value['type'] === 'container_upload') return true;
  const { source } = value;
  if (isObject(source) && source['type'] === 'file') return true;
  return holdsFile(value['content']) || (isObject(source) && holdsFile(source['content']));
}
