/** The WebSocket of an upstream that does not keep to the protocol when it is closed. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { UpstreamSocket } from '../../../src/http/dispatch/upstream-socket.ts';
import { createFakeClock, type FakeClock } from '../../support/fake-clock.ts';
import { eventually } from '../../support/test-gateway.ts';

/** Both ends of a connection; that of the upstream stays open when the other end is closed. */
async function pair(t: TestContext): Promise<{ ours: Socket; theirs: Socket; socket: UpstreamSocket; clock: FakeClock }> {
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
  const socket = new UpstreamSocket({ kind: 'open', socket: ours, headers: {} }, 1000, clock);
  socket.listen({ onMessage: () => undefined, onClosed: () => assert.fail('it was closed from here') });
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
