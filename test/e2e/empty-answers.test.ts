/**
 * An answer that said nothing, nothing but white space, or nothing but its thoughts stays in the history of the client's own SDK.
 * The conversation goes on all the same, at every upstream: what vendors refuse of it must not end an agent's day.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { Piece } from '../../src/simulator/reply.ts';
import { KEY, testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, upstreamForms } from '../support/upstream-forms.ts';
import { drawn } from '../support/sampled.ts';

const FORMS = upstreamForms(import.meta.filename);
const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());

const ANSWERS: Readonly<Record<string, readonly Piece[]>> = {
  nothing: [],
  'white space': [{ type: 'text', text: ' \n' }],
  thoughts: [{ type: 'reasoning', summary: ['It is blue.'], raw: 'The sky is meant.', opaque: true }],
};
const USER = { role: 'user' as const, content: 'what colour?' };

for (const { name: model } of FORMS) {
  test(`what says nothing over ${model} comes back to any upstream, streamed and whole`, async () => {
    await using gateway = await testGateway(formsConfig(FORMS, simulator.url));
    const openai = new OpenAI({ apiKey: KEY, baseURL: `${gateway.url}/v1`, maxRetries: 0 });
    const anthropic = new Anthropic({ apiKey: KEY, baseURL: gateway.url, maxRetries: 0 });
    const { completions } = openai.chat;
    const chat = { model, messages: [USER] };
    const responses = { model, input: [USER], store: false };
    const messages = { ...chat, max_tokens: 99 };
    for (const [kind, pieces] of Object.entries(ANSWERS)) {
      for (const streamed of [false, true]) {
        simulator.reset();
        simulator.enqueue({ times: 3, reply: { pieces, usage: { input: 1, output: 2 } } });
        const said = streamed ? await completions.stream(chat).finalChatCompletion() : await completions.create(chat);
        const output = streamed
          ? await openai.responses.stream(responses).finalResponse()
          : await openai.responses.create(responses);
        const message = streamed
          ? await anthropic.messages.stream(messages).finalMessage()
          : await anthropic.messages.create(messages);
        for (const { name: next } of drawn(FORMS, 2, `${model} ${kind} ${streamed}`)) {
          const answer = { role: 'assistant', content: message.content };
          for (const [path, body] of [
            ['/v1/chat/completions', { messages: [USER, said.choices[0]?.message, USER] }],
            ['/v1/responses', { input: [USER, ...output.output, USER], store: false }],
            ['/v1/messages', { messages: [USER, answer, USER], max_tokens: 99 }],
          ] as const) {
            const went = await gateway.post(path, { model: next, ...body });
            assert.equal(went.status, 200, `${kind} to ${path} of ${next}: ${await went.text()}`);
          }
        }
      }
    }
  });
}
