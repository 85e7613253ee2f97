/**
 * Which members of requests and of reports of usage change a price, against the types of the vendors' SDKs: whatever a new version
 * of one adds fails here until somebody has said what becomes of it. What the gateway asks of requests is its own table; what the
 * decoders of usage (`answer/usage.ts` of a dialect, `codecs/answers/token-usage.ts`) do with a report is written down here.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { REQUEST_MEMBERS } from '../../../src/http/money/price-members.ts';

/**
 * What becomes of a member of a report of usage.
 * - a name of a price: its count is charged at that price. `total`: a sum of others, or a part that is charged within its whole.
 * - `container`: its members have entries of their own. `modifier`: it names the price that was served.
 * - `pass`: passes with counts of their own. `flagged`: it is told in the flags of the charge. `none`: no price.
 */
type UsageRule =
  | 'input'
  | 'cached_input'
  | 'cache_write_5m'
  | 'cache_write_30m'
  | 'cache_write_1h'
  | 'cache_write_12h'
  | 'cache_write_unsplit'
  | 'output'
  | 'reasoning'
  | 'image_input'
  | 'image_output'
  | 'audio_input'
  | 'audio_output'
  | 'web_search'
  | 'web_fetch'
  | 'total'
  | 'container'
  | 'modifier'
  | 'pass'
  | 'flagged'
  | 'none';

/** By the SDK's name of the type, then by member. */
const USAGE_MEMBERS: Readonly<Record<string, Readonly<Record<string, UsageRule>>>> = {
  CompletionUsage: {
    prompt_tokens: 'input',
    completion_tokens: 'output',
    total_tokens: 'total',
    prompt_tokens_details: 'container',
    completion_tokens_details: 'container',
  },
  'CompletionUsage.PromptTokensDetails': {
    audio_tokens: 'audio_input',
    cache_write_tokens: 'cache_write_unsplit',
    cached_tokens: 'cached_input',
    image_tokens: 'image_input',
    text_tokens: 'total',
  },
  'CompletionUsage.CompletionTokensDetails': {
    accepted_prediction_tokens: 'total',
    audio_tokens: 'audio_output',
    reasoning_tokens: 'reasoning',
    rejected_prediction_tokens: 'total',
    text_tokens: 'total',
  },
  ResponseUsage: {
    input_tokens: 'input',
    input_tokens_details: 'container',
    output_tokens: 'output',
    output_tokens_details: 'container',
    total_tokens: 'total',
  },
  'ResponseUsage.InputTokensDetails': {
    cache_write_tokens: 'cache_write_unsplit',
    cached_tokens: 'cached_input',
    cache_write_tokens_details: 'container',
  },
  'ResponseUsage.InputTokensDetails.CacheWriteTokensDetails': {
    ttl_12h_tokens: 'cache_write_12h',
    ttl_30m_tokens: 'cache_write_30m',
  },
  'ResponseUsage.OutputTokensDetails': { reasoning_tokens: 'reasoning' },
  'Response.ToolUsage': { image_gen: 'pass', web_search: 'container' },
  'Response.ToolUsage.ImageGen': {
    input_tokens: 'input',
    input_tokens_details: 'container',
    output_tokens: 'output',
    total_tokens: 'total',
    cached_tokens: 'cached_input',
    cached_tokens_details: 'container',
    output_tokens_details: 'container',
  },
  'Response.ToolUsage.WebSearch': { num_requests: 'web_search' },
  BetaUsage: {
    cache_creation: 'container',
    cache_creation_input_tokens: 'cache_write_unsplit',
    cache_read_input_tokens: 'cached_input',
    fallback_credit: 'flagged',
    inference_geo: 'modifier',
    input_tokens: 'input',
    iterations: 'pass',
    output_tokens: 'output',
    output_tokens_details: 'container',
    server_tool_use: 'container',
    service_tier: 'modifier',
    speed: 'modifier',
  },
  BetaCacheCreation: { ephemeral_1h_input_tokens: 'cache_write_1h', ephemeral_5m_input_tokens: 'cache_write_5m' },
  BetaOutputTokensDetails: { thinking_tokens: 'reasoning' },
  BetaServerToolUsage: { web_fetch_requests: 'web_fetch', web_search_requests: 'web_search' },
  GenerateContentResponseUsageMetadata: {
    cacheTokensDetails: 'container',
    cachedContentTokenCount: 'cached_input',
    candidatesTokenCount: 'output',
    candidatesTokensDetails: 'container',
    promptTokenCount: 'input',
    promptTokensDetails: 'container',
    thoughtsTokenCount: 'reasoning',
    toolUsePromptTokenCount: 'input',
    toolUsePromptTokensDetails: 'total',
    totalTokenCount: 'total',
    initialPromptTokenCount: 'total',
    trafficType: 'modifier',
    serviceTier: 'modifier',
  },
};

/**
 * The passes that an answer of a messages upstream lists. `total`: the totals of the answer hold it. `pass`: it is charged on
 * top, at the price of its model where it names one. `modifier`: it names the model whose price the totals have.
 */
const ITERATIONS: Readonly<Record<string, 'total' | 'pass' | 'modifier'>> = {
  message: 'total',
  compaction: 'pass',
  advisor_message: 'pass',
  fallback_message: 'modifier',
};

const typesOf = (path: string): string => readFileSync(new URL(`../../../node_modules/${path}`, import.meta.url), 'utf8');
const OPENAI = 'openai/resources';
const ANTHROPIC = '@anthropic-ai/sdk/resources';

/** The block in braces that follows `head` in `text`. */
function block(text: string, head: RegExp): string {
  const found = head.exec(text);
  assert.ok(found, `no ${head}`);
  const from = text.indexOf('{', found.index);
  let depth = 0;
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') depth++;
    if (text[at] === '}' && --depth === 0) return text.slice(from + 1, at);
  }
  return assert.fail(`${head} has no end`);
}

/** The members of an interface; `A.B.C` is the interface C within the namespaces A and B. */
function membersOf(text: string, path: string): string[] {
  const names = path.split('.');
  const name = names.pop();
  let scope = text;
  for (const space of names) scope = block(scope, new RegExp(`namespace ${space} \\{`));
  const body = block(scope, new RegExp(`(?:interface|class) ${name} (?:extends [^{]+)?\\{`)).replace(/\/\*.*?\*\//gs, '');
  let depth = 0;
  const members: string[] = [];
  for (const line of body.split('\n')) {
    const [, member] = /^\s+([A-Za-z0-9_]+)\??:/.exec(line) ?? [];
    if (depth === 0 && member !== undefined) members.push(member);
    depth += (line.match(/[{[(]/g)?.length ?? 0) - (line.match(/[}\])]/g)?.length ?? 0);
  }
  assert.ok(members.length > 0, `${path} has no members`);
  return members;
}

const missing = (members: readonly string[], table: object | undefined): string[] =>
  members.filter((member) => table === undefined || !Object.hasOwn(table, member));

test('every member of a request has an entry', () => {
  const requests = [
    ['chat', `${OPENAI}/chat/completions/completions.d.ts`, 'ChatCompletionCreateParamsBase'],
    ['responses', `${OPENAI}/responses/responses.d.ts`, 'ResponseCreateParamsBase'],
    ['responses', `${OPENAI}/beta/responses/responses.d.ts`, 'ResponseCreateParamsBase'],
    ['messages', `${ANTHROPIC}/messages/messages.d.ts`, 'MessageCreateParamsBase'],
    ['messages', `${ANTHROPIC}/beta/messages/messages.d.ts`, 'MessageCreateParamsBase'],
  ] as const;
  for (const [dialect, file, name] of requests)
    assert.deepEqual(missing(membersOf(typesOf(file), name), REQUEST_MEMBERS[dialect]), [], `${file} ${name}`);
});

const USAGES = [
  ...[`${OPENAI}/completions.d.ts`].flatMap((file) =>
    ['CompletionUsage', 'CompletionUsage.PromptTokensDetails', 'CompletionUsage.CompletionTokensDetails'].map((name) => [
      file,
      name,
      name,
    ]),
  ),
  ...[
    'ResponseUsage',
    'ResponseUsage.InputTokensDetails',
    'ResponseUsage.InputTokensDetails.CacheWriteTokensDetails',
    'ResponseUsage.OutputTokensDetails',
    'Response.ToolUsage',
    'Response.ToolUsage.ImageGen',
    'Response.ToolUsage.WebSearch',
  ].flatMap((name) => [
    [`${OPENAI}/responses/responses.d.ts`, name, name],
    [`${OPENAI}/beta/responses/responses.d.ts`, `Beta${name}`, name],
  ]),
  [`${ANTHROPIC}/messages/messages.d.ts`, 'Usage', 'BetaUsage'],
  [`${ANTHROPIC}/messages/messages.d.ts`, 'MessageDeltaUsage', 'BetaUsage'],
  ...['BetaUsage', 'BetaCacheCreation', 'BetaOutputTokensDetails', 'BetaServerToolUsage'].map((name) => [
    `${ANTHROPIC}/beta/messages/messages.d.ts`,
    name,
    name,
  ]),
  [`${ANTHROPIC}/beta/messages/messages.d.ts`, 'BetaMessageDeltaUsage', 'BetaUsage'],
  ['@google/genai/dist/genai.d.ts', 'GenerateContentResponseUsageMetadata', 'GenerateContentResponseUsageMetadata'],
];

test('every member of a report of usage has an entry', () => {
  for (const [file = '', name = '', entry = ''] of USAGES)
    assert.deepEqual(missing(membersOf(typesOf(file), name), USAGE_MEMBERS[entry]), [], `${file} ${name}`);
});

test('every pass that an answer may list has an entry', () => {
  const text = typesOf(`${ANTHROPIC}/beta/messages/messages.d.ts`);
  const [, union = ''] = /export type BetaIterationsUsage = Array<([^>]+)>/.exec(text) ?? [];
  const passes = union
    .split(' | ')
    .map((name) => /type: '([a-z_]+)'/.exec(block(text, new RegExp(`interface ${name} \\{`)))?.[1] ?? name);
  assert.ok(passes.length >= 4);
  assert.deepEqual(missing(passes, ITERATIONS), []);
});

test('a member that the tables do not have is found', () => {
  const text =
    'export interface Usage {\n    input_tokens: number;\n    /** new: { x: 1 } */\n    moon_phase?: {\n        inner: string;\n    };\n}\n';
  assert.deepEqual(missing(membersOf(text, 'Usage'), USAGE_MEMBERS['BetaUsage']), ['moon_phase']);
});
