/** Ledger section 3: chat and messages clients over a responses upstream. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callItem, created, doneCall, type Json, messageItem, terminal, through, wholeThrough } from './through.ts';

const last = (events: readonly Json[]): Json => events.at(-1);
const reasoning = (index: number, parts: readonly string[], early: string, final: string): object[] => {
  const id = 'rs_1';
  const added = { id, type: 'reasoning', summary: [], encrypted_content: early };
  const said = parts.flatMap((text, part) => [
    {
      type: 'response.reasoning_summary_part.added',
      item_id: id,
      output_index: index,
      summary_index: part,
      part: { type: 'summary_text', text: '' },
    },
    { type: 'response.reasoning_summary_text.delta', item_id: id, output_index: index, summary_index: part, delta: text },
    { type: 'response.reasoning_summary_text.done', item_id: id, output_index: index, summary_index: part, text },
    {
      type: 'response.reasoning_summary_part.done',
      item_id: id,
      output_index: index,
      summary_index: part,
      part: { type: 'summary_text', text },
    },
  ]);
  const summary = parts.map((text) => ({ type: 'summary_text', text }));
  return [
    { type: 'response.output_item.added', output_index: index, item: added },
    ...said,
    {
      type: 'response.output_item.done',
      output_index: index,
      item: { id, type: 'reasoning', summary, encrypted_content: final },
    },
  ];
};

describe('clients over a responses upstream', () => {
  test('P1 P2: a failure in the stream is an error for every client, never an end of turn', () => {
    const failed = terminal('failed', [], { error: { code: 'rate_limit_exceeded', message: 'slow down' } });
    const error = { type: 'error', code: 'server_error', message: 'x', param: null };
    for (const end of [failed, error, '']) {
      const events = [created(), ...messageItem(0, 'msg_1', 'partial'), end];
      const messages = through('responses', 'messages', events);
      assert.equal(messages.names.at(-1), 'error');
      assert.doesNotMatch(messages.text, /message_stop|end_turn/);
      const chat = through('responses', 'chat', events);
      assert.ok(last(chat.events).error !== undefined);
      assert.doesNotMatch(chat.text, /\[DONE\]|finish_reason":"/);
      const responses = through('responses', 'responses', events);
      assert.equal(responses.names.at(-1), 'response.failed');
      assert.match(JSON.stringify(last(responses.events).response.output), /partial/);
    }
  });

  test('P3: incomplete is a terminal, with its usage', () => {
    const end = terminal('incomplete', [], { incomplete_details: { reason: 'max_output_tokens' } });
    const { body, failure } = through('responses', 'messages', [created(), ...messageItem(0, 'msg_1', 'x'), end]);
    assert.equal(failure, undefined);
    assert.deepEqual([body.stop_reason, body.usage.output_tokens], ['max_tokens', 5]);
  });

  test('P4 P6: one reasoning item with several summary parts is one thinking block with the final signature', () => {
    const events = [
      created(),
      ...reasoning(0, ['one', 'two'], 'EARLY', 'FINAL'),
      ...messageItem(1, 'msg_1', 'x'),
      terminal('completed', []),
    ];
    const { body, events: said } = through('responses', 'messages', events);
    const thinking = body.content.filter(({ type }: Json) => type === 'thinking');
    assert.equal(thinking.length, 1);
    assert.equal(thinking[0].thinking, 'one\n\ntwo');
    const inside = Buffer.from(thinking[0].signature.slice(4), 'base64url').toString();
    assert.match(inside, /FINAL/);
    assert.equal(said.filter(({ delta }) => delta?.type === 'signature_delta').length, 1);
    assert.doesNotMatch(Buffer.from(JSON.stringify(said)).toString(), /EARLY/);
  });

  test('P5: where no signature is known it is never empty, but an envelope of the gateway that holds the text', () => {
    const events = [created(), ...reasoning(0, ['one'], '', ''), ...messageItem(1, 'msg_1', 'x'), terminal('completed', [])];
    const { events: said } = through('responses', 'messages', events);
    const [signature, ...more] = said.filter(({ delta }) => delta?.type === 'signature_delta');
    assert.deepEqual(more, []);
    const inside = Buffer.from(signature.delta.signature.slice('mz2.'.length), 'base64url').toString();
    assert.match(inside, /\{\\"summary\\":\[\\"one\\"\]\}/);
  });

  test('P7: a search that the upstream ran does not change how the turn ended', () => {
    const item = { id: 'ws_1', type: 'web_search_call', status: 'completed', action: { type: 'search', query: 'q' } };
    const events = [
      created(),
      { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress' } },
      { type: 'response.output_item.done', output_index: 0, item },
      ...messageItem(1, 'msg_1', 'x'),
      terminal('completed', []),
    ];
    const { body } = through('responses', 'messages', events);
    assert.equal(body.stop_reason, 'end_turn');
    assert.deepEqual(
      body.content.map(({ type }: Json) => type),
      ['text'],
    );
  });

  test('P8: calls finish as tool_calls for a chat client, stream and body', () => {
    const whole = (terminal('completed', [doneCall('fc_1', 'a', '{}')]) as Json).response;
    assert.equal(wholeThrough('responses', 'chat', whole).choices[0].finish_reason, 'tool_calls');
    const { events } = through('responses', 'chat', [created(), ...callItem(0, 'fc_1', 'a', '{}'), terminal('completed', [])]);
    assert.ok(events.some(({ choices }) => choices[0]?.finish_reason === 'tool_calls'));
  });

  test('P11: a context that is too long keeps its code in the stream', () => {
    const error = { code: 'context_length_exceeded', message: 'Your input exceeds the context window of this model.' };
    const { events } = through('responses', 'chat', [created(), terminal('failed', [], { error })]);
    assert.equal(last(events).error.code, 'context_length_exceeded');
  });
});
