/**
 * The tables of price-relevant members against the types of the vendors' SDKs: whatever a new version of one adds to a request or
 * to a report of usage fails here until it has an entry.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { ITERATIONS, REQUEST_MEMBERS, USAGE_MEMBERS } from '../../../src/http/money/price-members.ts';

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
