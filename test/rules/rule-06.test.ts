/** Rule 6: configuration updates of the router, MIME of file data URIs, citations_delta, content filter as incomplete. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  block,
  convert,
  created,
  delta,
  DONE,
  finish,
  type Json,
  messageEnd,
  messageItem,
  messageStart,
  say,
  terminal,
  through,
} from '../failures/through.ts';

test('rule 6: configuration_update messages stay in place on chat routes, empty ones too', () => {
  const messages = [
    { role: 'user', content: 'a' },
    { role: 'assistant', content: 'b' },
    { role: 'system', content: '', configuration_update: { reasoning: { effort: 'low' } } },
    { role: 'configuration_update', content: '' },
    { role: 'user', content: 'c' },
  ];
  assert.deepEqual(convert('chat', 'chat', { messages }).messages, messages);
});

test('rule 6: a file data URI keeps its MIME type in a messages document', () => {
  for (const mime of ['application/pdf', 'text/plain']) {
    const file = { filename: 'a', file_data: `data:${mime};base64,${Buffer.from('hello').toString('base64')}` };
    const { messages } = convert('chat', 'messages', { messages: [{ role: 'user', content: [{ type: 'file', file }] }] });
    assert.equal(messages[0].content[0].source.media_type, mime);
    const input = [{ role: 'user', content: [{ type: 'input_file', ...file }] }];
    assert.equal(convert('responses', 'messages', { input }).messages[0].content[0].source.media_type, mime);
  }
});

test('rule 6: messages streams keep citations_delta', () => {
  const citation = {
    type: 'char_location',
    cited_text: 'x',
    document_index: 0,
    document_title: null,
    start_char_index: 0,
    end_char_index: 1,
  };
  const { events, body } = through('messages', 'messages', [
    messageStart(),
    ...block(0, { type: 'text', text: '', citations: [] }, { type: 'citations_delta', citation }, say('x')),
    ...messageEnd('end_turn'),
  ]);
  assert.deepEqual(
    events.flatMap(({ delta: piece }) => (piece?.type === 'citations_delta' ? [piece.citation] : [])),
    [citation],
  );
  assert.deepEqual(body.content[0].citations, [citation]);
});

test('rule 6: a content filter stays incomplete and is never a length limit', () => {
  const end = terminal('incomplete', [], { incomplete_details: { reason: 'content_filter' } });
  const from = [created(), ...messageItem(0, 'msg_1', 'x'), end];
  assert.equal(through('responses', 'chat', from).body.choices[0].finish_reason, 'content_filter');
  assert.equal(through('responses', 'messages', from).body.stop_reason, 'refusal');
  const own = through('responses', 'responses', from);
  assert.equal((own.events.at(-1) as Json).response.incomplete_details.reason, 'content_filter');
  assert.equal(own.names.at(-1), 'response.incomplete');
  const chat = through('chat', 'responses', [delta({ content: 'x' }), finish('content_filter'), DONE]);
  assert.deepEqual([chat.body.status, chat.body.incomplete_details.reason], ['incomplete', 'content_filter']);
  const gemini = through('gemini', 'responses', [
    { candidates: [{ content: { parts: [{ text: 'x' }] }, finishReason: 'SAFETY' }] },
  ]);
  assert.deepEqual([gemini.body.status, gemini.body.incomplete_details.reason], ['incomplete', 'content_filter']);
});
