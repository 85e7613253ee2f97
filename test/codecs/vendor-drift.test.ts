/**
 * What vendors add to their protocols: each literal name of an event, item, part, reason or member in the types of their SDKs is
 * read by the codec, or listed with the reason why it is not. Whether one is read, the codec is asked itself.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CanonicalEvent } from '../../src/codecs/canonical/event.ts';
import { fold } from '../../src/codecs/canonical/fold.ts';
import type { Dialect } from '../../src/codecs/canonical/dialect.ts';
import type { JsonValue } from '../../src/codecs/canonical/json.ts';
import { outcomeOf as chatOutcome } from '../../src/codecs/chat/answer/outcome.ts';
import { hasContent } from '../../src/codecs/chat/lifecycle.ts';
import { readTokenUsage } from '../../src/codecs/answers/token-usage.ts';
import { UsageReports } from '../../src/codecs/gemini/answer/usage.ts';
import { outcomeOf as geminiOutcome } from '../../src/codecs/gemini/answer/outcome.ts';
import { decodeStop } from '../../src/codecs/messages/answer/outcome.ts';
import { UsageReader } from '../../src/codecs/messages/answer/usage.ts';
import { blockKind, deltaKind } from '../../src/codecs/messages/lifecycle.ts';
import { readPart } from '../../src/codecs/responses/answer/decode-items.ts';
import { readOutcome, readUsage } from '../../src/codecs/responses/answer/outcome.ts';
import { readAnnotation } from '../../src/codecs/responses/annotations.ts';
import { specOf } from '../../src/codecs/responses/lifecycle.ts';
import { isKnownItem } from '../../src/codecs/responses/wire.ts';
import { CLIENTS, UPSTREAMS } from '../../src/codecs/registry.ts';
import { compareNames, literals, members, type Reads } from '../support/vendor-drift.ts';
import { ANTHROPIC, GOOGLE, OPENAI } from '../support/vendor-names.ts';
import { VendorTypes } from '../support/vendor-types.ts';
import { decodeContext, ownerOf, requestOf, responseContext } from '../support/wire.ts';

const types = new VendorTypes();
test.after(() => types[Symbol.dispose]());

const same = (left: unknown, right: unknown): boolean => JSON.stringify(left) === JSON.stringify(right);
const eventsOf = (dialect: Dialect, body: object): readonly CanonicalEvent[] => {
  const codec = UPSTREAMS.find((one) => one.dialect === dialect) ?? assert.fail(dialect);
  const request = requestOf('chat', { logprobs: { top: 1 } });
  return codec.decodeResponse(JSON.stringify(body), decodeContext(ownerOf(codec), { request })).events;
};
/** What a body of our own has for a client whose upstream speaks another dialect. */
const bodyFor = (dialect: Dialect): object => {
  const client = CLIENTS.find((one) => one.dialect === dialect) ?? assert.fail(dialect);
  const owner = ownerOf(UPSTREAMS.find((one) => one.dialect !== dialect) ?? assert.fail(dialect));
  const context = responseContext(client, owner, { request: requestOf(dialect, { json: { model: 'm', user: 'u' } }) });
  const said = fold([
    { type: 'response.start' },
    { type: 'usage.report', usage: { input: 1, output: 1, meters: new Map([['web_search', 1]]) } },
    { type: 'response.end', outcome: { status: 'completed', stop: 'end' } },
  ]);
  return JSON.parse(client.encodeResponse(said, undefined, context));
};

const COUNTS = { input_tokens: 9, output_tokens: 5, total_tokens: 14 };
const responsesUsage = (usage: object): unknown => readUsage({ usage: { ...COUNTS, ...usage }, output: [] }, []);
const SAMPLE_PART = { text: 'x', refusal: 'x', data: 'AAAA', annotations: [] };
const ANNOTATION = { url: 'https://a.test', start_index: 0, end_index: 1, title: 'a', file_id: 'f', filename: 'f', index: 0 };
const SOCKET_EVENTS = new Set(['response.steer.failed']);

const CHAT_VALUES: Readonly<Record<string, JsonValue>> = {
  annotations: [{ type: 'url_citation', url_citation: { ...ANNOTATION } }],
  audio: { id: 'a', data: 'AAAA', transcript: 'x', expires_at: 1 },
  content: 'x',
  refusal: 'x',
  role: 'assistant',
  function_call: { name: 'f', arguments: '{}' },
  tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
};
const chatMessage = (message: object): unknown => eventsOf('chat', { choices: [{ index: 0, message, finish_reason: 'stop' }] });
const chatUsage = (usage: object): unknown => {
  const { native: _native, ...read } =
    readTokenUsage({ prompt_tokens: 90, completion_tokens: 50, total_tokens: 140, ...usage }) ?? {};
  return read;
};
const COUNTERS = new Set(['prompt_tokens', 'completion_tokens', 'total_tokens', 'input_tokens', 'output_tokens']);

compareNames('openai', OPENAI, {
  'responses: events': literals(types, (name) => specOf(name).stream !== 'other', ['responses', 'ResponseStreamEvent', 'type']),
  'responses: output items': literals(types, (name) => isKnownItem(name), ['responses', 'ResponseOutputItem', 'type']),
  'responses: output parts': literals(types, (name) => readPart({ type: name, ...SAMPLE_PART }, {}).kind !== 'native', [
    'responses',
    'ResponseOutputMessage',
    'content',
    'type',
  ]),
  'responses: annotations': literals(types, (name) => readAnnotation({ type: name, ...ANNOTATION }).kind === 'url', [
    'responses',
    'ResponseOutputText',
    'annotations',
    'type',
  ]),
  'responses: reasons': literals(
    types,
    (reason) => {
      const outcome = readOutcome('incomplete', { incomplete_details: { reason } }, false, '');
      return outcome.status === 'incomplete' && outcome.reason !== 'other';
    },
    ['responses', 'Response', 'incomplete_details', 'reason'],
  ),
  'responses: usage': members(
    types,
    (name) =>
      COUNTERS.has(name) ||
      (name.endsWith('_details') &&
        !same(responsesUsage({ [name]: { reasoning_tokens: 3, cached_tokens: 3 } }), responsesUsage({}))),
    ['responses', 'ResponseUsage'],
  ),
  'responses: input token details': members(
    types,
    (name) => {
      const value = name.endsWith('_details') ? { ttl_30m_tokens: 3, ttl_12h_tokens: 0 } : 3;
      return !same(responsesUsage({ input_tokens_details: { [name]: value } }), responsesUsage({}));
    },
    ['responses', 'ResponseUsage', 'input_tokens_details'],
  ),
  'responses: output token details': members(
    types,
    (name) => !same(responsesUsage({ output_tokens_details: { [name]: 3 } }), responsesUsage({})),
    ['responses', 'ResponseUsage', 'output_tokens_details'],
  ),
  'responses: response members': members(types, (name) => Object.hasOwn(bodyFor('responses'), name), ['responses', 'Response']),
  'responses: events of sockets': {
    names: new Set(
      [...literals(types, () => false, ['responses', 'ResponsesServerEvent', 'type']).names].filter(
        (name) => !literals(types, () => false, ['responses', 'ResponseStreamEvent', 'type']).names.has(name),
      ),
    ),
    reads: (name) => SOCKET_EVENTS.has(name),
  },
  'chat: delta': members(types, (name) => name === 'role' || hasContent({ [name]: CHAT_VALUES[name] ?? 'x' }), [
    'chat',
    'ChatCompletionChunk',
    'choices',
    'delta',
  ]),
  'chat: message': members(
    types,
    (name) =>
      name === 'role' ||
      !same(chatMessage({ role: 'assistant', [name]: CHAT_VALUES[name] ?? 'x' }), chatMessage({ role: 'assistant' })),
    ['chat', 'ChatCompletionMessage'],
  ),
  'chat: finish reasons': literals(
    types,
    (reason) => {
      const outcome = chatOutcome(reason, false);
      return outcome.status === 'completed' || outcome.reason !== 'other';
    },
    ['chat', 'ChatCompletion', 'choices', 'finish_reason'],
  ),
  'chat: usage': members(
    types,
    (name) =>
      COUNTERS.has(name) ||
      (name.endsWith('_details') && !same(chatUsage({ [name]: { cached_tokens: 3, reasoning_tokens: 3 } }), chatUsage({}))),
    ['completions', 'CompletionUsage'],
  ),
  'chat: prompt token details': members(
    types,
    (name) => !same(chatUsage({ prompt_tokens_details: { [name]: 3 } }), chatUsage({})),
    ['completions', 'CompletionUsage', 'prompt_tokens_details'],
  ),
  'chat: completion token details': members(
    types,
    (name) => !same(chatUsage({ completion_tokens_details: { [name]: 3 } }), chatUsage({})),
    ['completions', 'CompletionUsage', 'completion_tokens_details'],
  ),
});

/** An event of an unknown name, alone, is a native event; one that the order knows is out of order there, or begins a message. */
const knowsMessagesEvent: Reads = (type) => {
  const codec = UPSTREAMS.find(({ dialect }) => dialect === 'messages') ?? assert.fail();
  const steps: { readonly events: readonly CanonicalEvent[] }[] = [];
  try {
    const message = { id: 'm', type: 'message', role: 'assistant', content: [], usage: {} };
    codec
      .decodeEvents(decodeContext(ownerOf(codec)))
      .push({ event: type, data: JSON.stringify({ type, message, index: 0 }) }, steps as never);
  } catch {
    return true; // out of order: known
  }
  return steps[0]?.events[0]?.type !== 'native.event';
};
const MESSAGES_USAGE: Readonly<Record<string, JsonValue>> = {
  cache_creation: { ephemeral_5m_input_tokens: 3, ephemeral_1h_input_tokens: 0 },
  output_tokens_details: { thinking_tokens: 3 },
  server_tool_use: { web_search_requests: 1 },
  iterations: [{ type: 'compaction', input_tokens: 1, output_tokens: 1 }],
  service_tier: 'priority',
  inference_geo: 'us',
  speed: 'fast',
};
const messagesUsage = (usage: object): unknown => {
  const { native: _native, ...read } = new UsageReader().read({ input_tokens: 9, output_tokens: 5, ...usage }) ?? {};
  return { ...read, meters: [...(read.meters ?? [])] };
};

compareNames('anthropic', ANTHROPIC, {
  events: literals(
    types,
    knowsMessagesEvent,
    ['messages', 'RawMessageStreamEvent', 'type'],
    ['betaMessages', 'BetaRawMessageStreamEvent', 'type'],
  ),
  blocks: literals(
    types,
    (type) => blockKind(type) !== 'native',
    ['messages', 'ContentBlock', 'type'],
    ['betaMessages', 'BetaContentBlock', 'type'],
  ),
  deltas: literals(
    types,
    (type) => deltaKind(type) !== 'unknown',
    ['messages', 'RawContentBlockDelta', 'type'],
    ['betaMessages', 'BetaRawContentBlockDelta', 'type'],
  ),
  'stop reasons': literals(
    types,
    (reason) => {
      const outcome = decodeStop({ reason }, false);
      return outcome.status === 'completed' || (outcome.status === 'incomplete' && outcome.reason !== 'other');
    },
    ['messages', 'StopReason'],
    ['betaMessages', 'BetaStopReason'],
  ),
  usage: members(
    types,
    (name) => COUNTERS.has(name) || !same(messagesUsage({ [name]: MESSAGES_USAGE[name] ?? 3 }), messagesUsage({})),
    ['messages', 'Usage'],
    ['betaMessages', 'BetaUsage'],
  ),
  iterations: literals(
    types,
    (type) => !same(messagesUsage({ iterations: [{ type, input_tokens: 1, output_tokens: 1 }] }), messagesUsage({})),
    ['betaMessages', 'BetaUsage', 'iterations', 'type'],
  ),
  'message members': members(
    types,
    (name) => Object.hasOwn(bodyFor('messages'), name),
    ['messages', 'Message'],
    ['betaMessages', 'BetaMessage'],
  ),
  citations: literals(types, () => false, ['messages', 'TextCitation', 'type'], ['betaMessages', 'BetaTextCitation', 'type']),
});

const GEMINI_PARTS: Readonly<Record<string, JsonValue>> = {
  text: 'x',
  inlineData: { mimeType: 'image/png', data: 'AAAA' },
  fileData: { fileUri: 'https://a.test/x.png' },
  functionCall: { name: 'f', args: {} },
  thought: true,
  thoughtSignature: 'AAAA',
};
const geminiEvents = (part: object): readonly CanonicalEvent[] =>
  eventsOf('gemini', { candidates: [{ content: { parts: [part] }, finishReason: 'STOP' }] });
const geminiCandidate = (candidate: object): unknown => {
  try {
    return eventsOf('gemini', { candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: 'STOP', ...candidate }] });
  } catch {
    return 'refused'; // read, and of another type
  }
};
const geminiUsage = (usage: object): unknown => {
  const reports = new UsageReports();
  reports.read({ promptTokenCount: 9, candidatesTokenCount: 5, ...usage });
  return reports.take();
};
const modality = [{ modality: 'AUDIO', tokenCount: 3 }];

compareNames('google', GOOGLE, {
  // A part with a modifier alone is no item.
  parts: members(
    types,
    (name) =>
      !geminiEvents({ [name]: GEMINI_PARTS[name] ?? {} }).some(
        (event) => event.type === 'item.end' && event.item.kind === 'native',
      ),
    ['gemini', 'Part'],
  ),
  'finish reasons': literals(
    types,
    (reason) => {
      const outcome = geminiOutcome({ reason, message: undefined }, false);
      return outcome.status !== 'incomplete' || outcome.reason !== 'other';
    },
    ['gemini', 'FinishReason'],
  ),
  candidate: members(
    types,
    (name) => [{ x: [1] }, 'MAX_TOKENS', 1].some((value) => !same(geminiCandidate({ [name]: value }), geminiCandidate({}))),
    ['gemini', 'Candidate'],
  ),
  usage: members(
    types,
    (name) => name === 'totalTokenCount' || [3, modality].some((value) => !same(tryUsage({ [name]: value }), geminiUsage({}))),
    ['gemini', 'GenerateContentResponseUsageMetadata'],
  ),
  call: members(types, (name) => ['id', 'name', 'args', 'partialArgs', 'willContinue'].includes(name), [
    'gemini',
    'FunctionCall',
  ]),
  'partial arguments': members(
    types,
    (name) => ['jsonPath', 'stringValue', 'numberValue', 'boolValue', 'nullValue', 'willContinue'].includes(name),
    ['gemini', 'PartialArg'],
  ),
  'grounding chunks': members(
    types,
    (name) => {
      const groundingMetadata = {
        groundingChunks: [{ [name]: { uri: 'https://a.test', title: 'a' } }],
        groundingSupports: [{ segment: { startIndex: 0, endIndex: 1 }, groundingChunkIndices: [0] }],
      };
      const events = geminiCandidate({ groundingMetadata }) as readonly CanonicalEvent[];
      return events.some((event) => event.type === 'item.delta' && event.delta.kind === 'citation');
    },
    ['gemini', 'GroundingChunk'],
  ),
});

function tryUsage(usage: object): unknown {
  try {
    return geminiUsage(usage);
  } catch {
    return geminiUsage({}); // a value of another type than this member has
  }
}
