/** What counts as content of a streamed answer: behind its finish it would be lost on clients that stopped reading. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasContent } from '../../../../src/codecs/chat/lifecycle.ts';
import { chatUpstream } from '../../../../src/codecs/chat/index.ts';
import { bytesOf, decodeBytes } from '../../../support/wire.ts';

const SAID = {
  content: 'b',
  refusal: 'no',
  reasoning_content: 'hm',
  reasoning: 'hm',
  reasoning_text: 'hm',
  reasoning_opaque: 'x',
  reasoning_details: [{ type: 'reasoning.text', text: 'hm' }],
  tool_calls: [{ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }],
  function_call: { name: 'f', arguments: '{}' },
  images: [{ type: 'image_url', image_url: { url: 'https://a.test/x.png' } }],
  audio: { data: 'AAAA' },
} as const;

test('each member of a delta that says something is content, and behind a finish it is an error', () => {
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...{ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason }] },
  });
  for (const [member, said] of Object.entries(SAID)) {
    assert.equal(hasContent({ role: 'assistant', [member]: said }), true, member);
    for (const nothing of [null, '', [null]]) assert.equal(hasContent({ role: 'assistant', [member]: nothing }), false, member);
    const events = [chunk({ content: 'a' }), chunk({}, 'stop'), chunk({ [member]: said })];
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join('');
    const { failure } = decodeBytes(chatUpstream, [bytesOf(`${text}data: [DONE]\n\n`)]);
    assert.equal(failure?.details.reason, 'illegal_lifecycle', member);
  }
});
