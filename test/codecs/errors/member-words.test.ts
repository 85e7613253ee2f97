/** An upstream's name of a member, in each of its spellings, is said in the client's own word where the client wrote one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Dialect } from '../../../src/codecs/canonical/dialect.ts';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import type { JsonObject } from '../../../src/codecs/canonical/json.ts';
import { namingMembers } from '../../../src/codecs/errors/member-words.ts';

/** By subject: what a client of chat, responses or messages writes for it, and how it is named then. */
const WRITTEN: Readonly<Record<string, readonly (readonly [client: Dialect, json: JsonObject, own: string])[]>> = {
  cap: [
    ['chat', { max_completion_tokens: 9 }, 'max_completion_tokens'],
    ['chat', { max_tokens: 9 }, 'max_tokens'],
    ['responses', { max_output_tokens: 9 }, 'max_output_tokens'],
    ['messages', { max_tokens: 9 }, 'max_tokens'],
    ['completions', { max_tokens: 9 }, 'max_tokens'],
  ],
  topP: [
    ['chat', { top_p: 2 }, 'top_p'],
    ['messages', { top_p: 2 }, 'top_p'],
  ],
  topK: [['messages', { top_k: 2 }, 'top_k']],
  stop: [
    ['chat', { stop: 'x' }, 'stop'],
    ['messages', { stop_sequences: ['x'] }, 'stop_sequences'],
  ],
  format: [
    ['chat', { response_format: {} }, 'response_format'],
    ['responses', { text: { format: {} } }, 'text.format'],
    ['messages', { output_config: { format: {} } }, 'output_config.format'],
  ],
  reasoning: [
    ['chat', { reasoning_effort: 'low' }, 'reasoning_effort'],
    ['responses', { reasoning: { effort: 'low' } }, 'reasoning.effort'],
    ['messages', { thinking: { budget_tokens: 9 } }, 'thinking.budget_tokens'],
  ],
  user: [
    ['chat', { user: 'u' }, 'user'],
    ['messages', { metadata: { user_id: 'u' } }, 'metadata.user_id'],
  ],
  logprobs: [['responses', { top_logprobs: 2 }, 'top_logprobs']],
};

/** How Gemini names members: as its interface has them, as clients of either case write them, and within the whole request. */
const within = (...names: readonly string[]): string[] =>
  names.flatMap((name) => [
    ...['GenerateContentRequest.generation_config.', 'generation_config.', 'generationConfig.', ''].map((path) => path + name),
  ]);

const NAMES: Readonly<Partial<Record<Dialect, Readonly<Record<string, readonly string[]>>>>> = {
  chat: {
    cap: ['max_completion_tokens', 'max_tokens'],
    topP: ['top_p'],
    stop: ["'stop'"],
    format: ['response_format'],
    reasoning: ['reasoning_effort', "'reasoning'", "'thinking'"],
    user: ["'user'"],
    logprobs: ['top_logprobs', "'logprobs'"],
  },
  responses: {
    cap: ['max_output_tokens'],
    topP: ['top_p'],
    format: ['text.format'],
    reasoning: ['reasoning.effort', "'reasoning'"],
    user: ["'user'"],
    logprobs: ['top_logprobs'],
  },
  messages: {
    cap: ['max_tokens'],
    topP: ['top_p'],
    topK: ['top_k'],
    stop: ['stop_sequences'],
    format: ['output_config.format'],
    reasoning: ['thinking.enabled.budget_tokens', 'thinking.budget_tokens', 'output_config.effort', "'thinking'"],
    user: ['metadata.user_id'],
  },
  gemini: {
    cap: within('max_output_tokens', 'maxOutputTokens'),
    topP: within('top_p', 'topP'),
    topK: within('top_k', 'topK'),
    stop: within('stop_sequences', 'stopSequences'),
    format: within('response_json_schema', 'responseJsonSchema', 'response_schema', 'responseSchema'),
    reasoning: within('thinking_config.thinking_budget', 'thinking_config.thinking_level', 'thinking_config', 'thinkingConfig'),
  },
};

const bare = (name: string): string => name.replaceAll("'", '');

for (const [upstream, subjects] of Object.entries(NAMES) as [Dialect, Readonly<Record<string, readonly string[]>>][])
  test(`${upstream}: each name of a member is the client's own word, in the message and as the field`, () => {
    for (const [subject, names] of Object.entries(subjects)) {
      for (const [client, json, own] of WRITTEN[subject] ?? []) {
        if (client === upstream) continue;
        for (const name of names) {
          const details = { reason: 'http_status', upstream: { status: 400, text: '' } } as const;
          const said = new GatewayError('upstream_error', `The value of ${name} is too large.`, details);
          const { message, param } = namingMembers(said, { dialect: client, json }, upstream);
          const words = `The value of ${name.replace(bare(name), own)} is too large.`;
          assert.deepEqual([message, param], [words, own], `${name}, which a ${client} client wrote as ${own}`);
          assert.equal(namingMembers(said, { dialect: client, json: {} }, upstream), said, 'nothing of the client’s');
        }
      }
    }
  });
