/** Signed reasoning goes back to the upstream that made it as it came, whatever protocol the client between them speaks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Step } from '../../src/codecs/canonical/event.ts';
import { fold } from '../../src/codecs/canonical/fold.ts';
import type { JsonObject } from '../../src/codecs/canonical/json.ts';
import type { Owner } from '../../src/codecs/canonical/opaque.ts';
import type { CanonicalRequest } from '../../src/codecs/canonical/request.ts';
import type { ClientCodec } from '../../src/codecs/codec.ts';
import { CLIENTS } from '../../src/codecs/registry.ts';
import { chatUpstream } from '../../src/codecs/chat/index.ts';
import { responsesUpstream } from '../../src/codecs/responses/index.ts';
import {
  bytesOf,
  decodeBytes,
  decodeContext,
  encodeSteps,
  openForTests,
  ownerOf,
  responseContext,
  sseText,
  targetOf,
} from '../support/wire.ts';

const owner = ownerOf(responsesUpstream);
const user = { role: 'user', content: 'hi' };
const raw = [{ type: 'reasoning_text', text: 'hm' }];

const THOUGHTS: readonly JsonObject[] = [
  { type: 'reasoning', id: 'rs_1', summary: [], content: raw, signature: 'SIG', format: 'anthropic-claude-v1' },
  { type: 'reasoning', id: 'rs_1', summary: [], content: raw, signature: 'SIG' },
  { type: 'reasoning', id: 'rs_1', summary: [], content: raw, encrypted_content: 'ENC' },
  { type: 'reasoning', id: 'rs_1', summary: [], content: raw, encrypted_content: 'ENC', format: 'xai-responses-v1' },
  {
    type: 'reasoning',
    id: 'rs_1',
    summary: [{ type: 'summary_text', text: 's' }],
    encrypted_content: 'ENC',
    format: 'openai-responses-v1',
  },
  { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'ENC' },
  { type: 'reasoning', id: 'rs_1', summary: [], signature: 'SIG' },
];

/** What a client of each protocol sends of the answer that it got. */
const HISTORIES: Readonly<Record<string, (answer: JsonObject & { choices: { message: JsonObject }[] }) => JsonObject>> = {
  chat: ({ choices }) => ({ messages: [user, choices[0]?.message ?? null, user] }),
  messages: ({ content }) => ({ max_tokens: 100, messages: [user, { role: 'assistant', content: content ?? null }, user] }),
  responses: ({ output }) => ({ input: [user, ...(Array.isArray(output) ? output : []), user] }),
};

/** The turn that follows an answer, as the client sends it and the gateway reads it. Nothing signed is in the answer by itself. */
function nextTurn(dialect: string, { native, events }: Step, owner: Owner): CanonicalRequest {
  const client = CLIENTS.find((codec) => codec.dialect === dialect) as ClientCodec;
  const own = native?.dialect === dialect ? native : undefined;
  const answer = client.encodeResponse(fold(events), own, responseContext(client, owner));
  assert.doesNotMatch(answer, /"(SIG2?|ENC|RED)"/);
  const body = { model: 'm', ...HISTORIES[dialect]?.(JSON.parse(answer)) };
  return client.decodeRequest(JSON.stringify(body), body, { open: openForTests });
}

for (const dialect of Object.keys(HISTORIES)) {
  test(`a ${dialect} client brings the thoughts of a responses upstream back as they came`, () => {
    for (const thought of THOUGHTS) {
      const said = {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'a', annotations: [] }],
      };
      const whole = responsesUpstream.decodeResponse(
        JSON.stringify({ id: 'r', status: 'completed', output: [thought, said] }),
        decodeContext(owner),
      );
      const request = nextTurn(dialect, whole, owner);
      const { input } = JSON.parse(responsesUpstream.encodeRequest(request, targetOf(owner)).body);
      assert.deepEqual(
        input.find(({ type }: JsonObject) => type === 'reasoning'),
        thought,
      );
    }
  });
}

/** LiteLLM sends these to Anthropic, which refuses a turn that called a tool and comes back without its thinking. */
const BLOCKS: readonly (readonly JsonObject[])[] = [
  [{ type: 'thinking', thinking: 'hm', signature: 'SIG' }],
  [
    { type: 'redacted_thinking', data: 'RED' },
    { type: 'thinking', thinking: 'hm', signature: 'SIG' },
    { type: 'thinking', thinking: 'so', signature: 'SIG2' },
  ],
  [{ type: 'thinking', thinking: '', signature: 'SIG' }],
];

for (const dialect of Object.keys(HISTORIES)) {
  test(`a ${dialect} client brings the blocks of thinking of LiteLLM back as they came`, () => {
    const litellm = ownerOf(chatUpstream);
    for (const blocks of BLOCKS) {
      const text = blocks.map(({ thinking }) => thinking ?? '').join('');
      const message = {
        role: 'assistant',
        content: 'a',
        reasoning_content: text,
        thinking_blocks: blocks,
        provider_specific_fields: { thinking_blocks: blocks },
      };
      const whole = chatUpstream.decodeResponse(
        JSON.stringify({ id: 'c', object: 'chat.completion', choices: [{ index: 0, message, finish_reason: 'stop' }] }),
        decodeContext(litellm),
      );
      const { items } = fold(whole.events);
      assert.equal(items.map(({ item }) => (item.kind === 'reasoning' ? (item.raw ?? '') : '')).join(''), text);
      const request = nextTurn(dialect, whole, litellm);
      const { messages } = JSON.parse(chatUpstream.encodeRequest(request, targetOf(litellm)).body);
      assert.deepEqual(messages[1].thinking_blocks, blocks);
      assert.equal(messages[1].reasoning_details, undefined);
      const elsewhere = targetOf({ ...litellm, scope: 'https://other.example' });
      assert.doesNotMatch(chatUpstream.encodeRequest(request, elsewhere).body, /SIG|RED|mz2/);
    }
  });
}

test('no client of a stream reads the signature of a block of LiteLLM itself', () => {
  const thought = { type: 'thinking', thinking: 'hm', signature: '' };
  const signed = { type: 'thinking', thinking: '', signature: 'SIG' };
  const deltas = [
    { role: 'assistant', content: '', reasoning_content: 'hm', thinking_blocks: [thought] },
    { content: '', reasoning_content: '', thinking_blocks: [signed], provider_specific_fields: { thinking_blocks: [signed] } },
    { content: 'a' },
  ];
  const chunks = deltas.map((delta) => ({ id: 'c', choices: [{ index: 0, delta, finish_reason: null }] }));
  const sse = [...chunks, { id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }]
    .map((chunk) => `data: ${JSON.stringify(chunk)}\n\n`)
    .join('');
  for (const client of CLIENTS) {
    const { steps, failure } = decodeBytes(chatUpstream, [bytesOf(`${sse}data: [DONE]\n\n`)]);
    const written = sseText(encodeSteps(client, steps, responseContext(client, ownerOf(chatUpstream)), failure));
    assert.doesNotMatch(written, /"SIG"/);
    if (client.dialect !== 'completions') assert.match(written, /hm[\s\S]*mz2\./);
  }
});
