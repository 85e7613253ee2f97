import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { peerOf, peerSubject, startRival } from '../../bench/harness/subjects.ts';
import { callsOf } from '../../bench/harness/system-calls.ts';

test('a peer is asked only for what it serves, under its own names', () => {
  const peer = peerSubject(
    peerOf(
      JSON.stringify({
        name: 'other',
        url: 'http://127.0.0.1:4000/',
        pid: 7,
        headers: { 'x-api-key': 'k' },
        models: { chat: 'up/{shape}' },
        clients: ['chat', 'messages'],
        paths: { messages: '/anthropic/v1/messages' },
      }),
    ),
  );
  assert.equal(peer.pid, 7);
  const whole = peer.ask({ client: 'messages', upstream: 'chat' }, 'whole');
  assert.equal(whole?.url, 'http://127.0.0.1:4000/anthropic/v1/messages');
  assert.deepEqual(whole?.headers, { 'x-api-key': 'k' });
  assert.match(whole?.body ?? '', /"model":"up\/whole"/);
  assert.equal(peer.ask({ client: 'chat', upstream: 'chat' }, 'full-flow')?.url, 'http://127.0.0.1:4000/v1/chat/completions');
  assert.equal(peer.ask({ client: 'responses', upstream: 'chat' }, 'whole'), undefined);
  assert.equal(peer.ask({ client: 'chat', upstream: 'messages' }, 'whole'), undefined);
});

test('a rival is named by a file or an address, and what is neither is told', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-bench-peer-'));
  try {
    const file = join(folder, 'peer.json');
    writeFileSync(file, JSON.stringify({ name: 'filed', url: 'http://127.0.0.1:1', models: { messages: 'm' } }));
    assert.equal((await startRival(file, '')).name, 'filed');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const addressed = await startRival('addressed=http://sk-key@127.0.0.1:4000/v1#12', '');
  assert.equal(addressed.pid, 12);
  const asked = addressed.ask({ client: 'chat', upstream: 'chat' }, 'whole');
  assert.equal(asked?.url, 'http://127.0.0.1:4000/v1/chat/completions');
  assert.deepEqual(asked?.headers, { authorization: 'Bearer sk-key' });
  await assert.rejects(startRival('nothing', ''), /a rival is FILE\.json/);
  assert.throws(() => peerOf('{"name":"x","url":"http://h"}'), /name, url and models/);
  assert.throws(() => peerOf('{"name":"x","url":"http://h","models":{"grpc":"m"}}'), /not grpc/);
});

test('the table of strace gives each call and no sum', () => {
  const table = `syscall             calls\n---------------- ---------\nfutex                 123\nepoll_pwait            45\n---------------- ---------\ntotal                 168\n`;
  assert.deepEqual(
    [...callsOf(table)],
    [
      ['futex', 123],
      ['epoll_pwait', 45],
    ],
  );
});
