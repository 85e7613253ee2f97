/**
 * Compaction for upstreams that have none: the model of the conversation is asked for a summary, which goes to the client as a
 * `compaction` item in an envelope of the gateway. When the item comes back, it is read as a message, so that any upstream can go
 * on with it.
 */
import { havingUsed, notConvertible, refusedOutput } from '../canonical/error.ts';
import type { Step } from '../canonical/event.ts';
import type { Whole } from '../canonical/fold.ts';
import type { Item, OutputItem } from '../canonical/item.ts';
import { isObject, type JsonObject } from '../canonical/json.ts';
import { isEnvelope, type Opaque, type Owner } from '../canonical/opaque.ts';
import type { CanonicalRequest } from '../canonical/request.ts';
import { totalCacheWrite, totalInput, type Usage } from '../canonical/usage.ts';
import type { ResponseContext } from '../codec.ts';
import { editJson, type JsonEdit } from '../json/edit.ts';
import { parseInSteps } from '../json/parse-in-steps.ts';
import { sliceElementsInSteps, sliceJson } from '../json/text.ts';
import { endsStep, type Steps } from '../steps.ts';
import type { Compaction } from './answer/compact.ts';
import { isPart, isTrigger } from './request/decode-input.ts';

/** The form of an envelope that holds a summary. */
const SUMMARY = 'summary';

const INSTRUCTION =
  'Write a summary of this conversation for the model that will continue it and will see nothing else of it but the messages of the user. ' +
  'It will not see an earlier summary either: take over what of that is still needed. Keep what was asked for and decided, what was done ' +
  'and found, names, paths, numbers and code that are still needed, and what is to be done next. Call no tool. Answer with the summary alone.';

const HEADING = 'Summary of the conversation so far:';

/** Members that belong to the answers of the conversation and not to a summary of it. */
const LEFT_OUT = [
  'tools',
  'tool_choice',
  'parallel_tool_calls',
  'text',
  'stream',
  'stream_options',
  'include',
  'max_output_tokens',
  'top_logprobs',
  'store',
];

/** A body: its exact text and its value. */
interface Body {
  readonly text: string;
  readonly json: JsonObject;
}

/** A body in which the summaries of earlier compactions stand as messages. */
interface Conversation extends Body {
  /** Their places in `input`. */
  readonly summaries?: ReadonlySet<number>;
}

/** The body that asks for the summary: the conversation, and the instruction as the last message of the user. */
export function* summaryRequest(text: string, json: JsonObject): Steps<Body> {
  const { input } = json;
  const last = JSON.stringify(userMessage(INSTRUCTION));
  const before =
    typeof input === 'string' ? [JSON.stringify(userMessage(input))] : ((yield* sliceElementsInSteps(text, ['input'])) ?? []);
  yield;
  const items = [...(endsInTrigger(json) ? before.slice(0, -1) : before), last];
  yield;
  const asking = editJson(text, [
    { path: ['input'], value: `[${items.join(',')}]` },
    { path: ['store'], value: 'false' },
    ...LEFT_OUT.filter((name) => name !== 'store').map((name) => ({ path: [name], value: undefined })),
  ]);
  yield;
  const asked = yield* parseInSteps(asking);
  if (!isObject(asked)) throw new Error('a request body is an object');
  return { text: asking, json: asked };
}

function userMessage(text: string): JsonObject {
  return { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
}

/** What of the context a compaction needs. */
export type CompactionContext = Pick<ResponseContext, 'responseId' | 'createdAt'> & SealingContext;

/** What makes the item. */
export type SealingContext = Pick<ResponseContext, 'seal' | 'mint'> & { readonly owner: Owner };

/** The `compaction` item that holds what the model wrote. Throws where it wrote no whole summary. */
function summaryItem({ outcome, items, usage }: Whole, context: SealingContext): JsonObject {
  if (outcome.status === 'failed' || outcome.status === 'cancelled') throw havingUsed(outcome.error, usage);
  const summary = items.flatMap(({ item }) => (item.kind === 'text' ? [item.text] : [])).join('\n\n');
  if (outcome.status === 'incomplete' || summary.trim() === '')
    throw havingUsed(refusedOutput('empty', 'The upstream wrote no whole summary.'), usage);
  return {
    type: 'compaction',
    id: context.mint('cmp_'),
    encrypted_content: context.seal({ owner: context.owner, value: summary, form: SUMMARY }),
  };
}

/** True for a request whose `compaction_trigger` asks for a compaction in place of an answer. */
export function asksForCompaction({ dialect, items }: CanonicalRequest): boolean {
  return dialect === 'responses' && items.some(asks);
}

/** True for a body that asks for a compaction in place of an answer. */
export function endsInTrigger({ input }: JsonObject): boolean {
  return Array.isArray(input) && isTrigger(input.at(-1));
}

function asks(item: Item): boolean {
  return item.kind === 'native' && isTrigger(item.body);
}

/** The request for the summary that answers a `compaction_trigger`. */
export function* summaryRequestOf(request: CanonicalRequest): Steps<CanonicalRequest> {
  const { text, json } = yield* summaryRequest(request.text, request.json);
  const { toolChoice: _c, parallelToolCalls: _p, format: _f, verbosity: _v, include: _i, ...rest } = request;
  const { maxOutputTokens: _m, logprobs: _l, ...asked } = rest;
  const input = json['input'];
  const last = Array.isArray(input) ? input.length - 1 : 0;
  const instruction: Item = {
    kind: 'text',
    role: 'user',
    text: INSTRUCTION,
    citations: [],
    at: `input[${last}]`,
    turn: last + 1,
  };
  const items = [...request.items.filter((item) => !asks(item)), instruction];
  return { ...asked, text, json, items, tools: [], stream: false, store: false };
}

/** The answer to a `compaction_trigger`: exactly one `compaction` item, with the usage of the summary. */
export function compactionStep(whole: Whole, context: SealingContext): Step {
  const body = summaryItem(whole, context);
  const id = typeof body['id'] === 'string' ? { id: body['id'] } : {};
  const item: OutputItem = { kind: 'native', dialect: 'responses', body, ...id };
  return {
    events: [
      { type: 'response.start', ...(whole.served === undefined ? {} : { served: whole.served }) },
      { type: 'item.start', index: 0, head: { kind: 'native', dialect: 'responses', ...id } },
      { type: 'item.end', index: 0, item, status: 'completed' },
      ...(whole.usage === undefined ? [] : [{ type: 'usage.report' as const, usage: whole.usage }]),
      { type: 'response.end', outcome: { status: 'completed', stop: 'end' } },
    ],
  };
}

/**
 * The `response.compaction` of a summary: the user's messages as they were, then the summary, which stands for those of earlier
 * compactions, too. Throws where the model wrote none.
 */
export function* compactionOf(whole: Whole, asked: Conversation, context: CompactionContext): Steps<Compaction> {
  const { usage } = whole;
  const item = summaryItem(whole, context);
  const { input } = asked.json;
  const kept = typeof input === 'string' ? [JSON.stringify(userMessage(input))] : yield* userMessages(asked);
  const own: string[] = [];
  for (const [index, message] of kept.entries()) {
    if (endsStep(index)) yield;
    own.push(withId(message, context));
  }
  const body = { id: context.responseId, object: 'response.compaction', created_at: context.createdAt, output: [] };
  const output = `[${[...own, JSON.stringify(item)].join(',')}]`;
  const edits: JsonEdit[] = [
    { path: ['output'], value: output },
    { path: ['usage'], value: JSON.stringify(usageOf(usage)) },
  ];
  return { body: editJson(JSON.stringify(body), edits), generated: whole, usage, served: whole.served };
}

/** The messages of the user in their exact texts. A text or a part that stands in the input by itself is one, too. */
function userMessages(asked: Conversation): Steps<readonly string[]> {
  return textsOf(asked, (item) => isMessage(item) && item['role'] === 'user');
}

/** What a summary does not stand for, in the exact texts: what the user and the developer wrote and set. */
export function textsBeside(asked: Conversation): Steps<readonly string[]> {
  return textsOf(asked, (item) => (isMessage(item) ? item['role'] !== 'assistant' : SETTINGS.has(String(item['type']))));
}

/** Items that are no part of what was said, and hold from their place on. */
const SETTINGS = new Set(['additional_tools', 'configuration_update']);

const isMessage = ({ type }: JsonObject): boolean => (type ?? 'message') === 'message';

function* textsOf({ text, json, summaries }: Conversation, isKept: (item: JsonObject) => boolean): Steps<readonly string[]> {
  const { input } = json;
  if (!Array.isArray(input)) return [];
  const texts = (yield* sliceElementsInSteps(text, ['input'])) ?? [];
  return texts.flatMap((exact, at) => {
    const item = input[at];
    if (summaries?.has(at) === true || item === undefined) return [];
    if (typeof item === 'string') return [JSON.stringify(userMessage(item))];
    if (!isObject(item)) return [];
    if (isPart(item)) return [editJson(JSON.stringify(userMessage('')), [{ path: ['content'], value: `[${exact}]` }])];
    return isKept(item) ? [exact] : [];
  });
}

/** Output items have members that input may leave out: an id, a type, a status, and parts in place of a text. */
function withId(message: string, { mint }: CompactionContext): string {
  const edits: JsonEdit[] = [];
  for (const [name, value] of [
    ['type', '"message"'],
    ['id', JSON.stringify(mint('msg_'))],
    ['status', '"completed"'],
  ] as const)
    if ((sliceJson(message, [name]) ?? 'null') === 'null') edits.push({ path: [name], value });
  const content = sliceJson(message, ['content']);
  if (content?.startsWith('"') === true) edits.push({ path: ['content'], value: `[{"type":"input_text","text":${content}}]` });
  return editJson(message, edits);
}

function usageOf(usage: Usage | undefined): JsonObject {
  const input = usage === undefined ? 0 : totalInput(usage);
  const output = usage?.output ?? 0;
  return {
    input_tokens: input,
    input_tokens_details: { cached_tokens: usage?.cacheRead ?? 0, cache_write_tokens: totalCacheWrite(usage ?? {}) },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: usage?.reasoning ?? 0 },
    total_tokens: input + output,
  };
}

/** What came before the item is gone with it: going on would be another conversation. */
function unreadable(at: number): Error {
  return notConvertible(`input[${at}]`, 'This compaction was altered, cut off, or made for another account.');
}

/** The envelope of a compaction item. */
function sealedIn({ type, encrypted_content: sealed }: JsonObject): string | undefined {
  const isCompaction = type === 'compaction' || type === 'compaction_summary';
  return isCompaction && typeof sealed === 'string' && isEnvelope(sealed) ? sealed : undefined;
}

function messageOf({ value }: Opaque): JsonObject {
  return userMessage(`${HEADING}\n\n${value}`);
}

type Open = (sealed: string) => Opaque | undefined;

/** The summary in an item; undefined for any other item, and for the compaction of an upstream. */
function summaryIn(item: JsonObject, open: Open): Opaque | undefined {
  const sealed = sealedIn(item);
  const opaque = sealed === undefined ? undefined : open(sealed);
  return opaque?.form === SUMMARY ? opaque : undefined;
}

/** True for a `compaction` item that the gateway made of a summary. */
export function isSummary(item: JsonObject, open: Open): boolean {
  return summaryIn(item, open) !== undefined;
}

/** An item that a request only named: a summary as a message, any other as it is. */
export function namedSummary(item: JsonObject, open: Open): JsonObject {
  const summary = summaryIn(item, open);
  return summary === undefined ? item : messageOf(summary);
}

/**
 * The request with the summaries in it as messages. All other compaction items are their upstream's. Throws for an envelope that
 * cannot be opened.
 */
export function* withSummaries(request: Body, open: Open): Steps<Conversation> {
  const { input } = request.json;
  if (!Array.isArray(input)) return request;
  const edits: JsonEdit[] = [];
  const summaries = new Set<number>();
  for (const [at, item] of input.entries()) {
    if (endsStep(at)) yield;
    const sealed = isObject(item) ? sealedIn(item) : undefined;
    if (sealed === undefined) continue;
    const opaque = open(sealed);
    if (opaque === undefined) throw unreadable(at);
    if (opaque.form !== SUMMARY) continue;
    summaries.add(at);
    edits.push({ path: ['input', at], value: JSON.stringify(messageOf(opaque)) });
  }
  if (edits.length === 0) return request;
  const text = editJson(request.text, edits);
  yield;
  const json = yield* parseInSteps(text);
  if (!isObject(json)) throw new Error('a request body is an object');
  return { text, json, summaries };
}
