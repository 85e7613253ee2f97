/**
 * What a messages client reads last, and gets back as thinking: signatures of texts, reasoning that nobody signed, altered
 * envelopes.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RawAnswer } from '../../src/simulator/script.ts';
import { type TestGateway, testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';

const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const FORMS = upstreamForms(import.meta.filename);
const CHATS = FORMS.filter(({ type }) => type === 'chat_completion');
const MESSAGES = FORMS.filter(({ type }) => type === 'messages');
const CONFIG = formsConfig(FORMS, simulator.url, ({ type }) =>
  type === 'chat_completion' ? { replay_reasoning_content: true } : {},
);

interface Block {
  readonly type: string;
  readonly thinking?: string;
  readonly signature?: string;
  readonly text?: string;
}

/** The blocks of a whole answer, or those that a stream builds. */
async function blocksOf(gateway: TestGateway, body: object, stream: boolean): Promise<Block[]> {
  const answer = await gateway.post('/v1/messages', { max_tokens: 500, ...body, stream });
  const text = await answer.text();
  assert.equal(answer.status, 200, text);
  if (!stream) return JSON.parse(text).content;
  const blocks: Record<string, string>[] = [];
  for (const [, data] of text.matchAll(/^data: (.*)$/gm)) {
    const event = JSON.parse(data ?? '');
    if (event.type === 'content_block_start') blocks[event.index] = { ...event.content_block };
    const block = blocks[event.index];
    if (event.type !== 'content_block_delta' || block === undefined) continue;
    for (const [member, value] of Object.entries(event.delta)) {
      if (member !== 'type') block[member] = (block[member] ?? '') + String(value);
    }
  }
  return JSON.parse(JSON.stringify(blocks));
}

const CHUNK = { id: 'c', created: 1, model: 'm' };
const SEALED = [{ type: 'reasoning.encrypted', id: 'r', data: 'secret', format: 'google-gemini-v1', index: 0 }];
const TURN = { role: 'assistant', content: 'Blue.', reasoning_details: SEALED };
const json = (body: object): RawAnswer => ({ headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) });

/** A chat answer that brings the encrypted value of its thought behind the words. */
function sealedLast(stream: boolean): RawAnswer {
  if (!stream) return json({ ...CHUNK, choices: [{ index: 0, message: TURN, finish_reason: 'stop' }] });
  const deltas: readonly (readonly [object, string | null])[] = [
    [{ role: 'assistant', content: 'Blue.' }, null],
    [{ reasoning_details: SEALED }, null],
    [{}, 'stop'],
  ];
  const chunks = deltas.map(([delta, finish]) => ({ ...CHUNK, choices: [{ index: 0, delta, finish_reason: finish }] }));
  const lines = [...chunks.map((chunk) => JSON.stringify(chunk)), '[DONE]'];
  return { headers: { 'content-type': 'text/event-stream' }, body: lines.map((line) => `data: ${line}\n\n`).join('') };
}

const SAID = { role: 'user', content: 'hi' };
const ask = { messages: [{ role: 'user', content: 'what colour?' }] };

for (const stream of [false, true]) {
  const how = stream ? 'stream' : 'whole';
  test(`an answer that ends in a text ends in its block, whatever its upstream signs (${how})`, async () => {
    await using gateway = await testGateway(CONFIG);
    for (const { name: model } of FORMS) {
      const pieces = [
        { type: 'reasoning' as const, summary: ['hm'], opaque: true as const },
        { type: 'text' as const, text: 'Blue.', opaque: true as const },
      ];
      simulator.enqueue({ reply: { pieces } });
      const blocks = await blocksOf(gateway, { model, ...ask }, stream);
      assert.deepEqual([blocks.at(-1)?.type, blocks.at(-1)?.text], ['text', 'Blue.'], model);
    }
  });

  test(`so does one whose upstream sends an encrypted thought behind its content (${how})`, async () => {
    await using gateway = await testGateway(CONFIG);
    for (const { name: model } of CHATS) {
      simulator.enqueue({ raw: sealedLast(stream) });
      const blocks = await blocksOf(gateway, { model, ...ask }, stream);
      assert.deepEqual([blocks.at(-1)?.type, blocks.at(-1)?.text], ['text', 'Blue.'], model);
      assert.doesNotMatch(JSON.stringify(blocks), /secret/, model);
    }
  });

  test(`reasoning that nobody signed comes back to a chat upstream, also from a client that drops its text (${how})`, async () => {
    await using gateway = await testGateway(CONFIG);
    const pieces = [
      { type: 'reasoning' as const, raw: 'The sky is meant.' },
      { type: 'text' as const, text: 'Blue.' },
    ];
    for (const { name: chat } of CHATS) {
      simulator.enqueue({ reply: { pieces } });
      const blocks = await blocksOf(gateway, { model: chat, ...ask }, stream);
      assert.deepEqual([blocks[0]?.type, blocks[0]?.thinking], ['thinking', 'The sky is meant.']);
      assert.match(blocks[0]?.signature ?? '', /^mz2\./);
      for (const thinking of ['The sky is meant.', '']) {
        const content = [{ ...blocks[0], thinking }, ...blocks.slice(1)];
        const messages = [...ask.messages, { role: 'assistant', content }, { role: 'user', content: 'sure?' }];
        await blocksOf(gateway, { model: chat, messages }, stream);
        assert.match(simulator.requests.at(-1)?.text ?? '', /"reasoning_content":"The sky is meant\."/);
        // No vendor but that one is sent it as its own.
        for (const { name } of MESSAGES) {
          await blocksOf(gateway, { model: name, messages }, stream);
          assert.doesNotMatch(simulator.requests.at(-1)?.text ?? '', /mz2\.|"thinking":"/);
        }
      }
      for (const altered of [` ${blocks[0]?.signature}`, `MZ2.${blocks[0]?.signature?.slice(4)}`]) {
        const content = [{ ...blocks[0], signature: altered }, ...blocks.slice(1)];
        const messages = [...ask.messages, { role: 'assistant', content }, { role: 'user', content: 'sure?' }];
        for (const { name: model } of FORMS) {
          await blocksOf(gateway, { model, messages }, stream);
          assert.doesNotMatch(simulator.requests.at(-1)?.text ?? '', /mz2\./i, model);
        }
      }
    }
  });
}

test('an envelope whose prefix was altered reaches no responses or chat upstream raw, either', async () => {
  await using gateway = await testGateway(CONFIG);
  for (const altered of ['MZ2.AAAA', ' mz2.AAAA', '\u200bmz2.AAAA']) {
    const reasoning = { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: altered };
    const answer = await gateway.post('/v1/responses', { model: 'responses', input: [SAID, reasoning, SAID], store: false });
    assert.equal(answer.status, 200, await answer.text());
    assert.doesNotMatch(simulator.requests.at(-1)?.text ?? '', /mz2\./i);
    const details = [{ type: 'reasoning.encrypted', data: altered, id: 'a', format: 'x', index: 0 }];
    const messages = [
      ...ask.messages,
      { role: 'assistant', content: 'a', reasoning_details: details },
      { role: 'user', content: 'b' },
    ];
    const chat = await gateway.post('/v1/chat/completions', { model: 'chat_completion', messages });
    assert.equal(chat.status, 200, await chat.text());
    assert.doesNotMatch(simulator.requests.at(-1)?.text ?? '', /mz2\./i);
  }
});
