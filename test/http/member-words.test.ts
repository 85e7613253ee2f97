/** What an upstream of another dialect says of a member, in the word that the client wrote. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { testGateway } from '../support/test-gateway.ts';
import { formsConfig, startVendors, type TextType, upstreamForms } from '../support/upstream-forms.ts';

const simulator = await startVendors({ pace: { cut: 'packet' } });
test.after(() => simulator.close());
test.beforeEach(() => simulator.reset());

const CONFIG = formsConfig(upstreamForms(import.meta.filename), simulator.url);

const user = { role: 'user', content: 'x' };
const CHAT = { path: '/v1/chat/completions', messages: [user] };
const RESPONSES = { path: '/v1/responses', input: 'x' };
const MESSAGES = { path: '/v1/messages', max_tokens: 999, messages: [user] };

interface Refusal {
  readonly message: string;
  readonly param?: string;
}

/** The client's request, the upstream, what it says, and what the client reads. */
const ROWS: readonly (readonly [{ readonly path: string; readonly [member: string]: unknown }, TextType, Refusal, Refusal])[] = [
  [
    { ...CHAT, max_completion_tokens: 999_999 },
    'messages',
    { message: 'max_tokens: 999999 > 64000, which is the maximum allowed number of output tokens for model' },
    {
      message: 'max_completion_tokens: 999999 > 64000, which is the maximum allowed number of output tokens for model',
      param: 'max_completion_tokens',
    },
  ],
  [
    { ...CHAT, max_tokens: 999_999 },
    'responses',
    { message: "Invalid 'max_output_tokens': integer above maximum value.", param: 'max_output_tokens' },
    { message: "Invalid 'max_tokens': integer above maximum value.", param: 'max_tokens' },
  ],
  [
    { ...RESPONSES, max_output_tokens: 999_999 },
    'chat_completion',
    { message: "Invalid 'max_completion_tokens': integer above maximum value.", param: 'max_completion_tokens' },
    { message: "Invalid 'max_output_tokens': integer above maximum value.", param: 'max_output_tokens' },
  ],
  [
    { ...RESPONSES, max_output_tokens: 999_999 },
    'gemini',
    { message: '* GenerateContentRequest.generation_config.max_output_tokens: must be at most 65536' },
    { message: '* max_output_tokens: must be at most 65536', param: 'max_output_tokens' },
  ],
  [
    { ...MESSAGES, stop_sequences: ['a'] },
    'chat_completion',
    { message: "Unsupported parameter: 'stop' is not supported with this model.", param: 'stop' },
    { message: "Unsupported parameter: 'stop_sequences' is not supported with this model.", param: 'stop_sequences' },
  ],
  [
    { ...MESSAGES, thinking: { type: 'enabled', budget_tokens: 2_000 }, max_tokens: 4_000 },
    'responses',
    { message: "Unsupported parameter: 'reasoning.effort' is not supported with this model.", param: 'reasoning.effort' },
    {
      message: "Unsupported parameter: 'thinking.budget_tokens' is not supported with this model.",
      param: 'thinking.budget_tokens',
    },
  ],
  [
    { ...RESPONSES, text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object', properties: {} } } } },
    'messages',
    { message: 'output_config.format.schema: the schema is too complex' },
    { message: 'text.format.schema: the schema is too complex', param: 'text.format.schema' },
  ],
  // The type of an item is a value, and no member.
  [
    { ...MESSAGES, thinking: { type: 'enabled', budget_tokens: 2_000 }, max_tokens: 4_000 },
    'responses',
    { message: "Item 'rs_1' of type 'reasoning' was provided without its required following item.", param: 'input' },
    { message: "Item 'rs_1' of type 'reasoning' was provided without its required following item." },
  ],
  // What the client did not write keeps the upstream's word; a place in a conversation is the upstream's own.
  [{ ...CHAT }, 'messages', { message: 'max_tokens: too many' }, { message: 'max_tokens: too many' }],
  [
    { ...RESPONSES, max_output_tokens: 20 },
    'chat_completion',
    { message: 'Please stop. Bad messages.', param: 'messages[3].content' },
    { message: 'Please stop. Bad messages.' },
  ],
];

for (const [body, model, said, read] of ROWS) {
  test(`${body.path} over ${model}: ${said.message}`, async () => {
    await using gateway = await testGateway(CONFIG);
    const openAi = { message: said.message, type: 'invalid_request_error', param: said.param ?? null, code: null };
    const vendor =
      model === 'messages'
        ? { type: 'error', error: { type: 'invalid_request_error', message: said.message } }
        : model === 'gemini'
          ? { error: { code: 400, message: said.message, status: 'INVALID_ARGUMENT' } }
          : { error: openAi };
    simulator.enqueue({ strict: false, reply: { pieces: [] }, faults: [{ type: 'status', status: 400, body: vendor }] });
    const { path, ...request } = body;
    const answer = await gateway.post(path, { ...request, model });
    const { error }: { error: Refusal } = JSON.parse(await answer.text());
    assert.equal(answer.status, 400);
    assert.equal(error.message, read.message);
    if (path !== '/v1/messages') assert.equal(error.param ?? undefined, read.param);
  });
}
