/** "Generative-content upstream behavior", sentence by sentence (conversion both ways is in the matrix and in rule 5). */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { need } from './requests.ts';
import { convert, type Json, sent, through } from '../failures/through.ts';

const CLIENTS = ['chat', 'responses', 'messages'] as const;
const chunk = (parts: readonly object[], finishReason?: string, index = 0): object => ({
  candidates: [{ index, content: { role: 'model', parts }, ...(finishReason === undefined ? {} : { finishReason }) }],
});

test('generative content 1: whole and streamed operations have their own path', () => {
  const body = { messages: [{ role: 'user', content: 'x' }] };
  assert.match(sent('chat', 'gemini', body).path, /^\/models\/up-model:generateContent$/);
  assert.match(sent('chat', 'gemini', { ...body, stream: true }).path, /^\/models\/up-model:streamGenerateContent\?alt=sse$/);
});

test('generative content 2: text, thought, calls and media keep their order and identity', () => {
  const parts = [
    { text: 'think', thought: true },
    { text: 'say' },
    { functionCall: { id: 'x1', name: 'f', args: { a: 1 } } },
    { functionCall: { name: 'f', args: { a: 2 } } },
    { inlineData: { mimeType: 'image/png', data: 'iVBORw0KGgo=' } },
  ];
  const { output } = through('gemini', 'responses', [chunk(parts, 'STOP')]).body;
  assert.deepEqual(
    output.map(({ type }: Json) => type),
    ['reasoning', 'message', 'function_call', 'function_call', 'image_generation_call'],
  );
  assert.equal(output[2].call_id, 'x1');
  assert.notEqual(output[3].call_id, 'x1');
});

test('generative content 2: a signature on a text, an empty part or a thought goes back on that very part', () => {
  const shapes = [
    [{ text: 'say', thoughtSignature: 'SIG' }],
    [{ text: 'say' }, { text: '', thoughtSignature: 'SIG' }],
    [{ text: 'think', thought: true, thoughtSignature: 'SIG' }, { text: 'say' }],
  ];
  for (const parts of shapes) {
    const events = [...parts.slice(0, -1).map((part) => chunk([part])), chunk(parts.slice(-1), 'STOP')];
    const replies = {
      chat: (said: Json) => ({
        messages: [{ role: 'user', content: 'x' }, said.choices[0].message, { role: 'user', content: 'y' }],
      }),
      responses: (said: Json) => ({ input: [{ role: 'user', content: 'x' }, ...said.output, { role: 'user', content: 'y' }] }),
      messages: (said: Json) => ({
        max_tokens: 9,
        messages: [
          { role: 'user', content: 'x' },
          { role: 'assistant', content: said.content },
          { role: 'user', content: 'y' },
        ],
      }),
    };
    for (const client of CLIENTS) {
      const { contents } = convert(client, 'gemini', replies[client](through('gemini', client, events).body));
      // Messages clients take the last block as the answer, so that the signature of a text at the end is a listed loss.
      const isLost = client === 'messages' && parts.at(-1)?.thoughtSignature !== undefined;
      const expected = isLost ? [{ text: 'say' }] : parts;
      assert.deepEqual(contents[1].parts, expected, `${client}: ${JSON.stringify(parts)}`);
    }
  }
});

test('generative content 3: more than 20 top logprobs are a 400', () => {
  const ask = (top_logprobs: number): Json =>
    convert('chat', 'gemini', { messages: [{ role: 'user', content: 'x' }], logprobs: true, top_logprobs });
  assert.equal(ask(20).generationConfig.logprobs, 20);
  assert.throws(() => ask(21), need({ status: 400, param: /top_logprobs/ }));
});

test('generative content 4: text streams before the end; a failed or truncated stream is an error', () => {
  for (const client of CLIENTS) {
    const cut = through('gemini', client, [chunk([{ text: 'partial' }])]);
    assert.equal(cut.failure?.details.reason, 'truncated');
    assert.match(cut.text, /partial/);
    assert.doesNotMatch(cut.text, /\[DONE\]|message_stop|response\.completed/);
    const failed = through('gemini', client, [
      chunk([{ text: 'partial' }]),
      { error: { code: 503, message: 'x', status: 'UNAVAILABLE' } },
    ]);
    assert.equal(failed.body, undefined);
    assert.doesNotMatch(failed.text, /\[DONE\]|message_stop|response\.completed/);
    assert.equal(through('gemini', client, [chunk([], 'MALFORMED_FUNCTION_CALL')]).body, undefined);
  }
});

test('generative content 5: candidate 0 is the answer, else the first; they are never merged', () => {
  const of = (...candidates: readonly (readonly [number, string])[]): string =>
    through('gemini', 'chat', [
      { candidates: candidates.map(([index, text]) => ({ index, content: { parts: [{ text }] }, finishReason: 'STOP' })) },
    ]).body.choices[0].message.content;
  assert.equal(of([1, 'one'], [0, 'zero']), 'zero');
  assert.equal(of([2, 'two'], [1, 'one']), 'two');
});

test('generative content 6: code that the provider ran and its tools stay within the protocol', () => {
  const parts = [
    { executableCode: { language: 'PYTHON', code: 'print(1)' } },
    { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } },
    { text: 'one' },
  ];
  for (const client of CLIENTS)
    assert.doesNotMatch(through('gemini', client, [chunk(parts, 'STOP')]).text, /print\(1\)|OUTCOME_OK/);
  const tools = [{ type: 'web_search' }, { type: 'function', name: 'f', parameters: { type: 'object', properties: {} } }];
  const out = sent('responses', 'gemini', { input: 'x', tools });
  assert.doesNotMatch(out.body, /web_search|googleSearch/);
  assert.ok(out.losses.includes('native tool'));
});

test('generative content: a thinking budget of messages keeps its number, an effort beside it wins', () => {
  const user = { role: 'user', content: 'x' };
  const thinking = { type: 'enabled', budget_tokens: 4096 };
  const budgetOf = (more: object): number =>
    convert('messages', 'gemini', { max_tokens: 6000, messages: [user], thinking, ...more }).generationConfig.thinkingConfig
      .thinkingBudget;
  assert.equal(budgetOf({}), 4096);
  assert.equal(budgetOf({ output_config: { effort: 'low' } }), 1024);
  assert.equal(convert('messages', 'chat', { max_tokens: 6000, messages: [user], thinking }).reasoning_effort, 'medium');
  assert.equal(convert('messages', 'responses', { max_tokens: 6000, messages: [user], thinking }).reasoning.effort, 'medium');
});
