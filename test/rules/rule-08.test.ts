/** Rules 8 and 9: failed terminals, errors, stop reasons that stay, and what compaction costs. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { block, created, type Json, messageEnd, messageItem, messageStart, say, terminal, through } from '../failures/through.ts';

const failed = terminal('failed', [], { error: { code: 'server_error', message: 'boom' } });

test('rule 8: a failed response keeps partial output, usage and error details', () => {
  const { events, names } = through('responses', 'responses', [created(), ...messageItem(0, 'msg_1', 'partial'), failed]);
  const { response } = events.at(-1) as Json;
  assert.equal(names.at(-1), 'response.failed');
  assert.deepEqual([response.status, response.output[0].content[0].text, response.usage.output_tokens], ['failed', 'partial', 5]);
  assert.equal(response.error.code, 'server_error');
});

test('rule 8: a failed terminal that lists nothing keeps the item that was still open', () => {
  const cut = messageItem(0, 'msg_1', 'partial').slice(0, 3);
  const said = [created(), ...cut, failed].map((event, index) => ({ ...event, sequence_number: index }));
  const { events, names } = through('responses', 'responses', said);
  const { response } = events.at(-1) as Json;
  assert.deepEqual(names.slice(-4), [
    'response.output_text.done',
    'response.content_part.done',
    'response.output_item.done',
    'response.failed',
  ]);
  assert.deepEqual(response.output, [(events.at(-2) as Json).item]);
  assert.deepEqual([response.output[0].status, response.output[0].content[0].text], ['incomplete', 'partial']);
  assert.deepEqual(
    events.map((event) => (event as Json).sequence_number),
    events.map((_event, index) => index),
  );
});

test('rule 8: a failure of any upstream keeps what was said for a responses client', () => {
  const { events } = through('messages', 'responses', [
    messageStart(),
    ...block(0, { type: 'text', text: '' }, say('partial')).slice(0, 2),
    { type: 'error', error: { type: 'api_error', message: 'x' } },
  ]);
  const { type, response } = events.at(-1) as Json;
  assert.deepEqual(
    [type, response.output[0].status, response.output[0].content[0].text],
    ['response.failed', 'incomplete', 'partial'],
  );
  assert.equal(response.usage.input_tokens, 3);
});

test('rule 8: failed and cancelled are errors on chat and messages', () => {
  const cancelled = { ...(terminal('completed', []) as Json), type: 'response.cancelled' };
  cancelled.response.status = 'cancelled';
  for (const end of [failed, cancelled]) {
    for (const client of ['chat', 'messages'] as const) {
      const { events, text, body } = through('responses', client, [created(), ...messageItem(0, 'msg_1', 'x'), end]);
      assert.ok((events.at(-1) as Json).error !== undefined);
      assert.doesNotMatch(text, /\[DONE\]|message_stop/);
      assert.equal(body, undefined);
    }
  }
});

test('rule 8: messages keeps pause, compaction and context limit; others say them as documented', () => {
  for (const [reason, chat] of [
    ['pause_turn', 'stop'],
    ['compaction', 'stop'],
    ['model_context_window_exceeded', 'length'],
  ] as const) {
    const events = [messageStart(), ...block(0, { type: 'text', text: '' }, say('x')), ...messageEnd(reason)];
    assert.equal(through('messages', 'messages', events).body.stop_reason, reason);
    const choice = through('messages', 'chat', events).body.choices[0];
    assert.deepEqual([choice.finish_reason, choice.native_finish_reason], [chat, reason]);
    const { body } = through('messages', 'responses', events);
    // Its protocol has a closed set of reasons; the word of messages stands beside the one that fits.
    assert.equal(body.status, 'incomplete');
    assert.deepEqual(body.incomplete_details, { reason: 'max_output_tokens', native_reason: reason });
  }
});

test('rule 9: every compaction iteration counts on top of the main generation, which counts once', () => {
  const iterations = [
    { type: 'compaction', input_tokens: 100, output_tokens: 10, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
    { type: 'compaction', input_tokens: 50, output_tokens: 5, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
    { type: 'message', input_tokens: 20, output_tokens: 7, cache_read_input_tokens: 0, cache_creation_input_tokens: 0 },
  ];
  const { whole } = through('messages', 'messages', [
    messageStart('m', { input_tokens: 20, output_tokens: 1 }),
    ...block(0, { type: 'text', text: '' }, say('x')),
    ...messageEnd('end_turn', { input_tokens: 20, output_tokens: 7, iterations }),
  ]);
  assert.deepEqual([whole?.usage?.input, whole?.usage?.output], [20, 7]);
  assert.deepEqual(
    whole?.usage?.extra?.map(({ input, output }) => [input, output]),
    [
      [100, 10],
      [50, 5],
    ],
  );
});
