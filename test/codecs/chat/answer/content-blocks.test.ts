/** What the blocks of a chat answer's content say, in each member that some server uses for it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { summaryOf, thoughtOf } from '../../../../src/codecs/chat/answer/content-blocks.ts';

test('a thought is a text or a list of parts, in the member that the server has for it', () => {
  const parts = [
    { type: 'text', text: 'a' },
    { type: 'text', text: 'b' },
  ];
  assert.equal(thoughtOf({ type: 'thinking', thinking: 'a' }), 'a');
  assert.equal(thoughtOf({ type: 'thinking', thinking: parts }), 'ab');
  assert.equal(thoughtOf({ type: 'thinking', text: 'a' }), 'a');
  assert.equal(thoughtOf({ type: 'reasoning', reasoning: 'a' }), 'a');
  assert.equal(thoughtOf({ type: 'thinking', thinking: 'a', text: 'b' }), 'a');
  assert.equal(thoughtOf({ type: 'thinking' }), '');
  assert.throws(() => thoughtOf({ type: 'thinking', thinking: 5 }), /malformed chunk \(thinking\)/);
});

test('a summary is what its parts say', () => {
  assert.equal(
    summaryOf({
      type: 'reasoning',
      summary: [
        { type: 'summary_text', text: 'a' },
        { type: 'summary_text', text: 'b' },
      ],
    }),
    'ab',
  );
  assert.equal(summaryOf({ type: 'reasoning' }), '');
});
