import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { CLIENT_PATHS, requestBody, tokens } from '../../bench/fixtures.ts';
import { startHarness } from '../../bench/harness/processes.ts';

interface Sent {
  readonly type: string;
  readonly delta?: { readonly text?: string };
  readonly usage?: object;
}

test('the least gateway says every word of the upstream in the order of a messages stream, and its usage', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-least-'));
  const upstream = await startHarness('upstream.ts');
  const least = await startHarness('least-gateway.ts', [`http://127.0.0.1:${upstream.port}`, 'ledger', folder]);
  try {
    const answer = await fetch(`http://127.0.0.1:${least.port}${CLIENT_PATHS.messages}`, {
      method: 'POST',
      headers: { authorization: 'Bearer key' },
      body: requestBody('messages', 'chat-full-flow', true),
    });
    const frames = (await answer.text()).trimEnd().split('\n\n');
    const events = frames.map((frame): Sent => JSON.parse(frame.slice(frame.indexOf('data: ') + 'data: '.length)));
    const deltas = events.filter(({ type }) => type === 'content_block_delta').map(({ delta }) => delta?.text);
    assert.deepEqual(deltas, tokens(deltas.length));
    assert.ok(deltas.length > 90);
    const others = events.filter(({ type }) => type !== 'content_block_delta').map(({ type }) => type);
    assert.deepEqual(others, ['message_start', 'content_block_start', 'content_block_stop', 'message_delta', 'message_stop']);
    assert.deepEqual(events.at(-2)?.usage, { input_tokens: 321, output_tokens: 100 });
    for (const frame of frames) assert.match(frame, /^event: (\w+)\ndata: \{"type":"\1"/);
  } finally {
    await Promise.all([least.stop(), upstream.stop()]);
    rmSync(folder, { recursive: true, force: true });
  }
});
