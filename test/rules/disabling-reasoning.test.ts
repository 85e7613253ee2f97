/** "Disabling reasoning": effort none on its way to every upstream. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convert, type Json } from '../failures/through.ts';

const user = { role: 'user', content: 'x' };
const chat = { messages: [user], reasoning_effort: 'none' };
const responses = { input: 'x', reasoning: { effort: 'none' } };
const messages = { max_tokens: 9, messages: [user], thinking: { type: 'disabled' } };

test('disabling reasoning 1 and 2: an explicit none is kept for OpenAI-compatible upstreams', () => {
  for (const [client, body] of [
    ['chat', chat],
    ['responses', responses],
    ['messages', messages],
  ] as const) {
    assert.equal(convert(client, 'chat', body).reasoning_effort, 'none', client);
    assert.equal(convert(client, 'responses', body).reasoning.effort, 'none', client);
  }
});

test('disabling reasoning 2: in a native reasoning object none is written there, and the shorthand is not sent', () => {
  for (const effort of [{ reasoning_effort: 'none' }, {}]) {
    const reasoning = Object.keys(effort).length === 0 ? { effort: 'none', exclude: true } : { exclude: true };
    const body = convert('chat', 'chat', { messages: [user], reasoning, ...effort });
    assert.deepEqual(body.reasoning, { ...body.reasoning, effort: 'none', exclude: true });
    assert.equal(body.reasoning_effort, undefined);
  }
});

test('disabling reasoning 2: every other effort stays as it was said, in the native object and beside it', () => {
  const native = { effort: 'high', max_tokens: 5, exclude: true };
  assert.deepEqual(convert('chat', 'chat', { messages: [user], reasoning: native }).reasoning, native);
  const beside = convert('chat', 'chat', { messages: [user], reasoning: { exclude: true }, reasoning_effort: 'high' });
  assert.deepEqual([beside.reasoning, beside.reasoning_effort], [{ exclude: true }, 'high']);
});

test('disabling reasoning 3: a messages upstream gets disabled thinking; an explicit control of messages stays', () => {
  for (const [client, body] of [
    ['chat', chat],
    ['responses', responses],
  ] as const) {
    assert.deepEqual(convert(client, 'messages', body).thinking, { type: 'disabled' }, client);
  }
  assert.deepEqual(convert('messages', 'messages', messages).thinking, { type: 'disabled' });
  const explicit = { type: 'enabled', budget_tokens: 2048, future: 1 };
  assert.deepEqual(convert('messages', 'messages', { ...messages, max_tokens: 4096, thinking: explicit }).thinking, explicit);
});

test('disabling reasoning 4: a generative-content upstream gets a thinking budget of 0', () => {
  for (const [client, body] of [
    ['chat', chat],
    ['responses', responses],
    ['messages', messages],
  ] as const) {
    assert.equal(convert(client, 'gemini', body).generationConfig.thinkingConfig.thinkingBudget, 0, client);
  }
});

test('disabling reasoning 5: on chat the effort is the same word, and no thinking control is made', () => {
  for (const effort of ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max']) {
    const asked = [
      convert('chat', 'chat', { messages: [user], reasoning_effort: effort }),
      convert('responses', 'chat', { input: 'x', reasoning: { effort } }),
    ];
    for (const body of asked) {
      assert.equal(body.reasoning_effort, effort);
      assert.equal(body.thinking, undefined);
    }
  }
});

test('disabling reasoning 6: without an effort nothing is said, include and summary are never added', () => {
  const plain: readonly Json[] = [
    convert('chat', 'chat', { messages: [user] }),
    convert('chat', 'responses', { messages: [user] }),
    convert('chat', 'messages', { messages: [user] }),
    convert('chat', 'gemini', { messages: [user] }),
    convert('responses', 'responses', { input: 'x' }),
  ];
  for (const body of plain) assert.doesNotMatch(JSON.stringify(body), /reasoning|thinking|include|summary/);
  const low = convert('chat', 'responses', { messages: [user], reasoning_effort: 'low' });
  assert.deepEqual([low.reasoning, low.include], [{ effort: 'low' }, undefined]);
  const explicit = { input: 'x', include: ['reasoning.encrypted_content'], reasoning: { summary: 'auto' } };
  const kept = convert('responses', 'responses', explicit);
  assert.deepEqual([kept.include, kept.reasoning], [explicit.include, explicit.reasoning]);
});
