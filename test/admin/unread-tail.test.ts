/** Live tails that nobody reads. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import type { LiveBatch } from '../../src/http/admin/routes.ts';
import { writeEvents } from '../../src/http/admin/write-events.ts';
import { createFakeClock } from '../support/fake-clock.ts';

const ROWS = Array.from({ length: 1000 }, (_, n) => ({ exchangeId: `ex_${n}`, model: 'm'.repeat(1000) }));

test('a live tail that is not read for a minute is cut: its token may be gone, and others want its place', async (t) => {
  const clock = createFakeClock();
  let batches = 0;
  async function* rows(): AsyncGenerator<LiveBatch> {
    for (;;) {
      batches += 1;
      yield { rows: ROWS, cursor: batches, skipped: 0 };
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const ended = Promise.withResolvers<void>();
  const server = createServer((_request, response) => {
    const gone = new AbortController();
    response.on('close', () => gone.abort());
    const lasts = () => Promise.resolve(true);
    void writeEvents(response, rows(), { clock, gone: gone.signal, lasts }).then(ended.resolve, ended.reject);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const address = server.address();
  const socket = connect(typeof address === 'object' ? (address?.port ?? 0) : 0, '127.0.0.1');
  t.after(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.pause();
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  for (let seen = -1; batches === 0 || seen !== batches; await new Promise((resolve) => setTimeout(resolve, 200))) seen = batches;
  assert.equal(clock.pending, 1, 'it waits for its reader');
  clock.advance(60_000);
  await ended.promise;
  assert.equal(clock.pending, 0);
  socket.resume();
  await once(socket, 'close');
});
