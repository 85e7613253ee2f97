/**
 * Rule 5: generative-content conversion keeps sampling, citations, signatures and usage; fields of one protocol go only to it.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { convert, type Json, through } from '../failures/through.ts';

test('rule 5: sampling parameters that the protocol has are kept', () => {
  const { generationConfig } = convert('chat', 'gemini', {
    messages: [{ role: 'user', content: 'x' }],
    temperature: 0.5,
    top_p: 0.9,
    top_k: 40,
    seed: 7,
    presence_penalty: 0.1,
    frequency_penalty: 0.2,
    stop: ['a', 'b'],
    max_completion_tokens: 99,
    logprobs: true,
    top_logprobs: 5,
  });
  assert.deepEqual(generationConfig, {
    ...generationConfig,
    temperature: 0.5,
    topP: 0.9,
    topK: 40,
    seed: 7,
    presencePenalty: 0.1,
    frequencyPenalty: 0.2,
    stopSequences: ['a', 'b'],
    maxOutputTokens: 99,
    responseLogprobs: true,
    logprobs: 5,
  });
});

const SUPPORTED = 'Größe: 5';
const chunk = {
  candidates: [
    {
      content: {
        role: 'model',
        parts: [{ text: SUPPORTED }, { functionCall: { name: 'f', args: {} }, thoughtSignature: 'SIG' }],
      },
      finishReason: 'STOP',
      groundingMetadata: {
        groundingChunks: [{ web: { uri: 'https://example.com/a', title: 'A' } }],
        groundingSupports: [{ segment: { startIndex: 0, endIndex: Buffer.byteLength('Größe') }, groundingChunkIndices: [0] }],
      },
    },
  ],
  usageMetadata: {
    promptTokenCount: 10,
    cachedContentTokenCount: 4,
    toolUsePromptTokenCount: 3,
    candidatesTokenCount: 5,
    thoughtsTokenCount: 2,
    totalTokenCount: 20,
  },
};

test('rule 5: citations arrive in characters of the answer, counted from bytes', () => {
  const [annotation] = through('gemini', 'chat', [chunk]).body.choices[0].message.annotations;
  assert.deepEqual(annotation.url_citation, { url: 'https://example.com/a', title: 'A', start_index: 0, end_index: 5 });
  const part = through('gemini', 'responses', [chunk]).body.output.find(({ type }: Json) => type === 'message').content[0];
  assert.deepEqual(
    [part.annotations[0].start_index, part.annotations[0].end_index, part.annotations[0].url],
    [0, 5, 'https://example.com/a'],
  );
});

test('rule 5: the signature of a call comes back on that call, through every client dialect', () => {
  const chat = through('gemini', 'chat', [chunk]).body.choices[0].message;
  const responses = through('gemini', 'responses', [chunk]).body.output;
  const messages = through('gemini', 'messages', [chunk]).body.content;
  const id = chat.tool_calls[0].id;
  const [answered, output] = [
    (call: string) => ({ role: 'tool', tool_call_id: call, content: 'r' }),
    { output: 'r', type: 'function_call_output' },
  ];
  const use = messages.find(({ type }: Json) => type === 'tool_use').id;
  const bodies = [
    convert('chat', 'gemini', { messages: [{ role: 'user', content: 'x' }, chat, answered(id)] }),
    convert('responses', 'gemini', {
      input: [
        { role: 'user', content: 'x' },
        ...responses,
        { ...output, call_id: responses.find(({ call_id }: Json) => call_id).call_id },
      ],
    }),
    convert('messages', 'gemini', {
      max_tokens: 9,
      messages: [
        { role: 'user', content: 'x' },
        { role: 'assistant', content: messages },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: use, content: 'r' }] },
      ],
    }),
  ];
  for (const body of bodies) {
    const parts = body.contents[1].parts as Json[];
    assert.deepEqual(
      parts.filter((part) => part.thoughtSignature === 'SIG').map((part) => part.functionCall.name),
      ['f'],
    );
    assert.doesNotMatch(JSON.stringify(body), /mz2\./);
  }
});

test('rule 5: usage details are kept: tool prompts in the input, thoughts in the output', () => {
  const { usage } = through('gemini', 'responses', [chunk]).body;
  assert.deepEqual(
    [
      usage.input_tokens,
      usage.input_tokens_details.cached_tokens,
      usage.output_tokens,
      usage.output_tokens_details.reasoning_tokens,
    ],
    [13, 4, 7, 2],
  );
});

test('rule 5: fields of one protocol are not sent to another', () => {
  const body = {
    messages: [{ role: 'user', content: 'x' }],
    safetySettings: [],
    provider: { only: ['a'] },
    prediction: { type: 'content', content: 'x' },
  };
  for (const upstream of ['responses', 'messages', 'gemini'] as const) {
    assert.doesNotMatch(JSON.stringify(convert('chat', upstream, body)), /safetySettings|provider|prediction/);
  }
  assert.deepEqual(convert('chat', 'chat', body).provider, { only: ['a'] });
});
