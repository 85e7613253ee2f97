/** The AI SDK validates what it reads: our streams and bodies must pass its schemas. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAnthropic } from '@ai-sdk/anthropic';
import { generateText, streamText } from 'ai';
import type { CanonicalEvent } from '../../../src/codecs/canonical/event.ts';
import { fold } from '../../../src/codecs/canonical/fold.ts';
import { messagesClient } from '../../../src/codecs/messages/index.ts';
import { encodeSteps, responseContext } from './support.ts';

const gemini = { channelType: 'gemini', scope: 'g', model: 'm' } as const;
const head = { kind: 'toolCall', toolType: 'function', callId: 'c', tool: { name: 'f' } } as const;
const events: CanonicalEvent[] = [
  { type: 'response.start' },
  { type: 'item.start', index: 0, head: { kind: 'reasoning' } },
  { type: 'item.end', index: 0, item: { kind: 'reasoning', summary: ['hm'] }, status: 'completed' },
  { type: 'item.start', index: 1, head: { kind: 'text', role: 'assistant' } },
  { type: 'item.end', index: 1, item: { kind: 'text', role: 'assistant', text: 'hi', citations: [] }, status: 'completed' },
  { type: 'item.start', index: 2, head },
  {
    type: 'item.end',
    index: 2,
    item: { ...head, input: '{"a":1}', opaque: { owner: gemini, value: 'sig' } },
    status: 'completed',
  },
  { type: 'usage.report', usage: { input: 3, output: 4 } },
  { type: 'response.end', outcome: { status: 'completed', stop: 'toolUse' } },
];

function model(body: string, type: string) {
  const answer = async () => new Response(body, { headers: { 'content-type': type } });
  return createAnthropic({ apiKey: 'key', baseURL: 'http://test.invalid', fetch: answer })('m');
}

test('the AI SDK reads our stream and our body alike', async () => {
  const frames = encodeSteps(events.map((event) => ({ events: [event] })));
  const sse = frames.map(({ event, data }) => `event: ${event}\ndata: ${data}\n\n`).join('');
  const streamed = streamText({ model: model(sse, 'text/event-stream'), prompt: 'x', maxRetries: 0 });
  const body = messagesClient.encodeResponse(fold(events), undefined, responseContext());
  const whole = await generateText({ model: model(body, 'application/json'), prompt: 'x', maxRetries: 0 });
  for (const answer of [{ text: await streamed.text, finishReason: await streamed.finishReason }, whole]) {
    assert.equal(answer.text, 'hi');
    assert.equal(answer.finishReason, 'tool-calls');
  }
  assert.equal(whole.reasoningText?.startsWith('hm'), true);
});
