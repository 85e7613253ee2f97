/** A request longer than the context: whatever words the upstream has for it, each client finds its own vendor's sign. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UPSTREAMS } from '../../../src/codecs/registry.ts';
import { DIALECTS } from '../../support/dialects.ts';

const openAi = (message: string, more: object = {}) =>
  JSON.stringify({ error: { message, type: 'invalid_request_error', ...more } });
const google = (message: string) => JSON.stringify({ error: { code: 400, message, status: 'INVALID_ARGUMENT' } });

/** As vendors answer with status 400. */
const OVERFLOWS: readonly (readonly [upstream: string, text: string])[] = [
  [
    'messages',
    JSON.stringify({
      type: 'error',
      error: { type: 'invalid_request_error', message: 'prompt is too long: 3333404 tokens > 200000 maximum' },
    }),
  ],
  ['messages', JSON.stringify({ message: 'Input is too long for requested model.' })],
  [
    'chat',
    openAi("This model's maximum context length is 128000 tokens.", { code: 'context_length_exceeded', param: 'messages' }),
  ],
  ['chat', openAi("This model's maximum context length is 1048565 tokens. However, you requested 1250025 tokens.")],
  ['chat', openAi('prompt too long; exceeded max context length by 1119046 tokens', { param: null, code: null })],
  [
    'chat',
    openAi("This endpoint's maximum context length is 200000 tokens. However, you requested about 2500021.", { code: 400 }),
  ],
  ['chat', JSON.stringify({ error: { message: 'The total is too long.', type: 'too_many_prompt_tokens', code: 400 } })],
  ['chat', openAi('the request exceeds the available context size, try increasing it', { type: 'exceed_context_size_error' })],
  ['chat', openAi("This model's maximum prompt length is 131072 but the request contains 537812 tokens.")],
  ['responses', openAi('Your input exceeds the context window of this model.', { code: 'context_length_exceeded' })],
  ['gemini', google('The input token count (1250074) exceeds the maximum number of tokens allowed (1048576).')],
];

for (const [dialect, text] of OVERFLOWS) {
  const upstream = UPSTREAMS.find((codec) => codec.dialect === dialect);
  assert.ok(upstream !== undefined);
  test(`${dialect}: ${text.slice(0, 90)}`, () => {
    const error = upstream.decodeError({ status: 400, headers: {}, text });
    for (const { client } of DIALECTS) {
      const body = JSON.parse(client.encodeError(error, 'req_1')).error;
      assert.equal(body.code, 'context_length_exceeded', client.dialect);
      if (client.dialect === 'messages') assert.match(body.message, /^prompt is too long: /i);
      else assert.equal(body.message, error.message);
    }
  });
}

test('the code alone says it, in words that nobody knows and under a status of the server’s', () => {
  for (const status of [400, 500]) {
    for (const dialect of ['chat', 'responses', 'messages'] as const) {
      const { decodeError } = UPSTREAMS.find((codec) => codec.dialect === dialect) ?? assert.fail();
      const { shownCode } = decodeError({ status, headers: {}, text: openAi('Zu lang.', { code: 'context_length_exceeded' }) });
      assert.equal(shownCode, 'context_length_exceeded', `${dialect} ${status}`);
    }
  }
});

test('an upstream of another status, and words about something else, are no overflow', () => {
  const others: readonly (readonly [number, string])[] = [
    [400, "Invalid 'messages[3].name': string too long. Expected a string with maximum length 64."],
    [400, 'max_tokens: 300000 > 64000, which is the maximum allowed number of output tokens'],
    [429, "This model's maximum context length is 128000 tokens."],
    [500, 'prompt is too long'],
    [400, `${'x'.repeat(600)} prompt is too long`],
  ];
  for (const [status, message] of others) {
    for (const { decodeError, dialect } of UPSTREAMS) {
      const { shownCode } = decodeError({ status, headers: {}, text: openAi(message) });
      assert.notEqual(shownCode, 'context_length_exceeded', `${dialect} ${status} ${message.slice(0, 50)}`);
    }
  }
});
