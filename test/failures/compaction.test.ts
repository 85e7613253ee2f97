/**
 * A compaction stands for all that was said before it: towards another protocol it is said where it can be read, else refused.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { need } from '../rules/requests.ts';
import { sent } from './through.ts';

const opaque = (type: string) => ({ type, encrypted_content: 'gAAAA==' });
const user = { role: 'user', content: 'go on' };

test('what a responses upstream compacted is refused elsewhere, at its path, and so is the order to compact', () => {
  for (const item of [opaque('compaction'), opaque('compaction_summary'), { type: 'compaction_trigger' }]) {
    for (const upstream of ['chat', 'messages', 'gemini'] as const) {
      assert.throws(
        () => sent('responses', upstream, { input: [user, item] }),
        need({ status: 400, code: 'unsupported_conversion', param: /^input\[1\]/ }),
        `${item.type} to ${upstream}`,
      );
    }
    const same = sent('responses', 'responses', { input: [user, item] }).body;
    assert.ok(same.includes(JSON.stringify(item)), 'its own kind reads it');
  }
});

test('a readable summary of a messages upstream is said; one that failed is nothing; one that nobody else reads is refused', () => {
  const history = (block: object) => ({
    max_tokens: 9,
    messages: [user, { role: 'assistant', content: [block, { type: 'text', text: 'ok' }] }, user],
  });
  for (const upstream of ['chat', 'responses', 'gemini'] as const) {
    const said = sent('messages', upstream, history({ type: 'compaction', content: 'They spoke of cats.' })).body;
    assert.match(said, /They spoke of cats\.(\\n\\nok|[\s\S]*"ok")/, `${upstream}: the words behind it are others`);
    assert.doesNotMatch(sent('messages', upstream, history({ type: 'compaction', content: null })).body, /compaction/);
    assert.throws(
      () => sent('messages', upstream, history({ ...opaque('compaction'), content: null })),
      need({ code: 'unsupported_conversion', param: /^messages\[1\]\.content\[0\]/ }),
    );
  }
});
