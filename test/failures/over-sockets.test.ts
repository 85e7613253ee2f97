/** Ledger section 11 over real sockets: what one client does touches nobody else, and nothing waits for the whole of a stream. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endMessage, fakeUpstream, openStream, startMessage } from '../support/fake-upstream.ts';
import { ask, channel, eventually, MODELS, testGateway } from '../support/test-gateway.ts';

type Stream = ReturnType<typeof openStream>;

function say(stream: Stream, text: string): void {
  stream.event('content_block_delta', { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text } });
}

/** An upstream whose streams say `first` and then wait for the test. */
async function waitingUpstream() {
  const streams: Stream[] = [];
  const upstream = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    streams.push(stream);
    startMessage(stream);
    say(stream, 'first');
  });
  return { upstream, streams };
}

async function readUntil(reader: ReadableStreamDefaultReader<Uint8Array>, wanted: string): Promise<string> {
  const decoder = new TextDecoder();
  for (let text = ''; ; ) {
    const { value, done } = await reader.read();
    text += decoder.decode(value, { stream: true });
    if (text.includes(wanted) || done) return text;
  }
}

test('X8: one client that leaves in the middle cancels its own upstream stream and nobody else’s', async (t) => {
  const { upstream, streams } = await waitingUpstream();
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const leaving = new AbortController();
  const [left, stays] = await Promise.all([
    gateway.post('/v1/messages', ask({ stream: true }), { signal: leaving.signal }),
    gateway.post('/v1/messages', ask({ stream: true })),
  ]);
  const reader = stays.body?.getReader();
  assert.ok(reader !== undefined && left.body !== null);
  await readUntil(left.body.getReader(), 'first');
  await readUntil(reader, 'first');
  leaving.abort();
  await eventually(() => upstream.sockets.size === 1, 'one upstream stream is let go');
  for (const stream of streams) {
    say(stream, 'second');
    endMessage(stream);
  }
  assert.match(await readUntil(reader, 'message_stop'), /second/);
  await eventually(() => gateway.store.settled.length === 2, 'both rows');
  assert.deepEqual(gateway.store.settled.map(({ clientGone }) => clientGone === true).sort(), [false, true]);
});

test('X8: a client that leaves after the terminal event changes nothing: the answer was whole', async (t) => {
  const upstream = await fakeUpstream(({ socket }) => {
    const stream = openStream(socket);
    startMessage(stream);
    endMessage(stream);
  });
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS });
  const leaving = new AbortController();
  const answer = await gateway.post('/v1/messages', ask({ stream: true }), { signal: leaving.signal });
  assert.ok(answer.body !== null);
  await readUntil(answer.body.getReader(), 'message_stop');
  leaving.abort();
  await eventually(() => gateway.store.settled.length === 1, 'the row');
  assert.equal(gateway.store.settled[0]?.status, 'success');
  assert.equal(gateway.store.settled[0]?.charge?.total, 7n * 1000n + 5n * 2000n);
});

test('X9: the first words arrive while the upstream still holds back the rest, with every log on', async (t) => {
  const { upstream, streams } = await waitingUpstream();
  t.after(() => upstream.close());
  await using gateway = await testGateway({ channels: [channel(upstream.url)], models: MODELS }, { level: 'trace' });
  for (const path of ['/v1/messages', '/v1/chat/completions', '/v1/responses']) {
    const body = path === '/v1/responses' ? { model: 'm', input: 'hi', stream: true } : ask({ stream: true });
    const answer = await gateway.post(path, body);
    const reader = answer.body?.getReader();
    assert.ok(reader !== undefined);
    // The upstream says nothing more until this was read.
    assert.match(await readUntil(reader, 'first'), /first/, path);
    const stream = streams.at(-1);
    assert.ok(stream !== undefined);
    say(stream, 'second');
    endMessage(stream);
    assert.match(await readUntil(reader, 'second'), /second/);
    await reader.cancel();
  }
});
