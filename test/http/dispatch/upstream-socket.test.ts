/** The WebSocket of an upstream that does not keep to the protocol when it is closed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { type SocketListener, UpstreamSocket } from '../../../src/http/dispatch/upstream-socket.ts';
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts';
import { eventually } from '../../support/test-gateway.ts';

const SILENT: SocketListener = { onMessage: () => undefined, onClosed: () => assert.fail('it was closed from here') };

interface Pair {
  readonly ours: Socket;
  readonly theirs: Socket;
  readonly socket: UpstreamSocket;
  readonly clock: FakeClock;
}

/** Both ends of a connection; that of the upstream stays open when the other end is closed. */
async function pair(t: TestContext, listener: SocketListener = SILENT, maxBytes = 1000): Promise<Pair> {
  const server = createServer({ allowHalfOpen: true }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const accepted = once(server, 'connection');
  const ours = connect({ port: typeof address === 'object' && address !== null ? address.port : 0, host: '127.0.0.1' });
  const [theirs] = (await accepted) as [Socket];
  theirs.on('error', () => undefined);
  t.after(() => {
    ours.destroy();
    theirs.destroy();
    server.close();
  });
  const clock = createFakeClock();
  const socket = new UpstreamSocket({ kind: 'open', socket: ours, headers: {} }, maxBytes, clock);
  socket.listen(listener);
  return { ours, theirs, socket, clock };
}

for (const reads of [true, false]) {
  test(`an upstream that never closes its side ${reads ? 'and goes on sending' : 'and reads nothing'} is cut off`, async (t) => {
    const { ours, theirs, socket, clock } = await pair(t);
    if (reads) theirs.resume();
    else socket.send('a'.repeat(20_000_000));
    socket.close();
    if (reads) theirs.write(Buffer.from([0x81, 2, 0x7b, 0x7d]));
    await new Promise((resolve) => setTimeout(resolve, 50));
    assert.equal(ours.destroyed, false, 'it has time to close in good order');
    clock.advance(5_000);
    assert.equal(ours.destroyed, true);
    await eventually(() => clock.pending === 0);
  });
}

test('one that closes its side in time leaves no timer', async (t) => {
  const { ours, theirs, socket, clock } = await pair(t);
  theirs.on('end', () => theirs.end()).resume();
  socket.close();
  await eventually(() => ours.destroyed && clock.pending === 0);
});

/** A text frame of a server. */
const message = (text: string): Buffer => Buffer.concat([Buffer.from([0x81, text.length]), Buffer.from(text)]);
const CLOSE = Buffer.from([0x88, 2, 0x03, 0xe8]);

test('what comes behind a message that takes time to read waits for it, the end as well', async (t) => {
  const told: string[] = [];
  const reads: (() => void)[] = [];
  const { theirs } = await pair(t, {
    onMessage(bytes) {
      told.push(bytes.toString());
      return bytes.toString() === 'small' ? undefined : new Promise<void>((resolve) => reads.push(resolve));
    },
    onClosed: (error) => told.push(error.message),
  });
  theirs.write(Buffer.concat([message('large'), message('small'), message('large, too'), message('last'), CLOSE]));
  await eventually(() => reads.length === 1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepEqual(told, ['large']);
  reads[0]?.();
  await eventually(() => reads.length === 2);
  assert.deepEqual(told, ['large', 'small', 'large, too']);
  reads[1]?.();
  await eventually(() => reads.length === 3);
  reads[2]?.();
  await eventually(() => told.length === 5);
  assert.deepEqual(told.slice(3), ['last', 'the upstream closed the connection']);
});

test('a message that cannot be read is the end of its connection', async (t) => {
  const told: string[] = [];
  const { theirs, ours } = await pair(t, {
    onMessage: () => Promise.reject(new Error('unreadable')),
    onClosed: (error) => told.push(error.message),
  });
  theirs.write(Buffer.concat([message('one'), message('two')]));
  await eventually(() => told.length > 0);
  assert.deepEqual(told, ['unreadable']);
  assert.equal(ours.destroyed, true);
});

test('an upstream that pings and reads nothing has one answer waiting, the last, and gets it when it reads', async (t) => {
  const { ours, theirs } = await pair(t, { onMessage: () => undefined, onClosed: () => undefined });
  // More than the buffers of both systems take.
  const pings = Buffer.concat(
    Array.from({ length: 100_000 }, () => Buffer.concat([Buffer.from([0x89, 125]), Buffer.alloc(125)])),
  );
  theirs.write(Buffer.concat([pings, Buffer.from([0x89, 4]), Buffer.from('last')]));
  await eventually(() => ours.bytesRead === pings.length + 6);
  assert.ok(ours.writableLength <= 2 * ours.writableHighWaterMark, `${ours.writableLength} bytes wait`);
  let read = Buffer.alloc(0);
  theirs.on('data', (chunk: Buffer) => {
    read = Buffer.concat([read, chunk]).subarray(-10);
  });
  // A pong of four bytes: the head, the mask, and what it masks.
  const last = (): string => Buffer.from(read.subarray(6, 10).map((byte, at) => byte ^ (read[2 + at] ?? 0))).toString();
  await eventually(() => last() === 'last');
  assert.equal(read[0], 0x8a);
});

test('a message of an upstream in frames of a byte, by the ten thousand, is the end of its connection', async (t) => {
  const told: string[] = [];
  const { theirs, ours } = await pair(t, { onMessage: () => undefined, onClosed: (error) => told.push(error.message) }, 1 << 20);
  theirs.write(Buffer.concat([Buffer.from([0x01, 1, 0x7b]), ...Array.from({ length: 60_000 }, () => Buffer.from([0, 1, 0x20]))]));
  await eventually(() => ours.bytesRead === 3 * 60_001);
  assert.deepEqual(told, [], 'so many are taken');
  theirs.write(Buffer.concat(Array.from({ length: 10_000 }, () => Buffer.from([0, 1, 0x20]))));
  await eventually(() => told.length > 0);
  assert.deepEqual(told, ['Too many message fragments']);
  assert.equal(ours.destroyed, true);
});
