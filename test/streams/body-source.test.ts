import assert from 'node:assert/strict';
import { once } from 'node:events';
import { PassThrough, Readable } from 'node:stream';
import { test } from 'node:test';
import { BATCH_BYTES, readBody } from '../../src/streams/body-source.ts';
import { bodyStream } from '../support/streams/body-stream.ts';
import { systemClock } from '../../src/streams/clock.ts';
import { StreamError } from '../../src/streams/stream-error.ts';
import { collect, settled } from '../support/batches.ts';
import { createFakeClock } from '../support/fake-clock.ts';
import { serve, until } from '../support/loopback.ts';

const SAID = new StreamError('ended', 'everything was said');

const text = (values: readonly Uint8Array[]): string => Buffer.concat(values).toString();

test('an upstream that dies while the reader is slow: everything that had arrived is delivered, then the failure', async () => {
  await using upstream = await serve((_request, response) => {
    for (let i = 0; i < 6; i++) setTimeout(() => response.write(`event ${i};`), i * 5);
    setTimeout(() => response.socket?.destroy(), 40);
  });
  const { body } = await upstream.ask();
  const source = bodyStream(body);
  const reader = source.getReader();
  const first = await reader.read();
  await until(() => body.destroyed, 'the body notices the dead upstream');
  reader.releaseLock();
  const rest = await collect(source);
  assert.equal(text([...(first.value ?? []), ...rest.values]), 'event 0;event 1;event 2;event 3;event 4;event 5;');
  assert.ok(rest.failure instanceof Error);
});

test('a regular end closes the stream', async () => {
  await using upstream = await serve((_request, response) => response.end('whole'));
  const got = await collect(bodyStream((await upstream.ask()).body));
  assert.deepEqual([text(got.values), got.failure], ['whole', undefined]);
});

test('a hundred chunks of one network read are few batches', async () => {
  const body = new PassThrough();
  for (let i = 0; i < 100; i++) body.write(`${i};`);
  body.end();
  const got = await collect(bodyStream(body));
  assert.equal(text(got.values), Array.from({ length: 100 }, (_, i) => `${i};`).join(''));
  assert.ok(got.batches <= 2, `${got.batches} batches`);
});

test('a batch ends at 64 KiB, give or take what a body may buffer', async () => {
  const piece = Buffer.alloc(10_000, 'x');
  const highWaterMark = 65_536;
  const pieces = Array.from({ length: 40 }, () => piece);
  // Before Node 26 one read gives all that is buffered.
  const body = Readable.from(pieces, { objectMode: false, highWaterMark });
  const reader = bodyStream(body).getReader();
  let total = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const size = Buffer.concat(value).length;
    assert.ok(size < BATCH_BYTES + highWaterMark + piece.length);
    total += size;
  }
  assert.equal(total, 400_000);
});

test('back-pressure: a reader that does not ask holds the upstream back', async () => {
  let sent = 0;
  await using upstream = await serve((_request, response) => {
    const more = () => {
      while (sent < 64_000_000 && response.write(Buffer.alloc(64_000))) sent += 64_000;
      if (sent < 64_000_000) response.once('drain', more);
    };
    more();
  });
  const { body } = await upstream.ask();
  const reader = bodyStream(body).getReader();
  await reader.read();
  let before = -1;
  // The kernel takes some megabytes; then it stands still.
  while (before !== sent) {
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.ok(sent < 32_000_000, `${sent} bytes for a reader that read once`);
  assert.ok(body.readableLength < 1_000_000);
  await reader.cancel();
});

test('cancel destroys the body and closes the upstream connection, also while a read waits', async () => {
  for (const stalled of [true, false]) {
    let closed = false;
    await using upstream = await serve((_request, response) => {
      response.write('a');
      response.on('close', () => {
        closed = true;
      });
    });
    const { body } = await upstream.ask();
    const reader = bodyStream(body).getReader();
    await reader.read();
    const pending = stalled ? undefined : reader.read();
    await reader.cancel(new Error('left'));
    await until(() => closed, 'the upstream sees the connection closed');
    assert.equal(body.destroyed, true);
    assert.equal((await pending)?.done ?? true, true);
  }
});

test('an abort of the request is the failure that the reader gets', async () => {
  await using upstream = await serve((_request, response) => response.write('a'));
  const abort = new AbortController();
  const { body } = await upstream.ask({ signal: abort.signal });
  const reader = bodyStream(body).getReader();
  await reader.read();
  const read = assert.rejects(reader.read(), /gone/);
  abort.abort(new Error('gone'));
  await read;
});

test('a body that closes without an end and without an error is a failure', async () => {
  const body = new PassThrough();
  body.write('a');
  const source = bodyStream(body);
  body.destroy();
  const got = await collect(source);
  assert.equal(text(got.values), 'a');
  assert.ok(got.failure instanceof StreamError && got.failure.reason === 'source_closed');
});

test('a body that was over before anybody read it', async () => {
  const ended = Readable.from([]);
  ended.resume();
  await once(ended, 'end');
  assert.deepEqual(await collect(bodyStream(ended)), { values: [], batches: 0, failure: undefined });
  const failed = new PassThrough();
  failed.on('error', () => undefined);
  failed.destroy(new Error('early'));
  await settled();
  assert.match(String((await collect(bodyStream(failed))).failure), /early/);
});

test('a reader is woken once, by whatever there is to take: bytes, an end, a failure, a close without either', async () => {
  const broken = new Error('broken');
  const endings: readonly [(body: PassThrough) => unknown, unknown][] = [
    [(body) => body.write('a'), 'a'],
    [(body) => body.end(), null],
    [(body) => body.destroy(broken), broken],
    [(body) => body.destroy(), 'source_closed'],
  ];
  for (const [end, taken] of endings) {
    const body = new PassThrough();
    const reader = readBody(body);
    assert.equal(reader.take(), undefined);
    let woken = 0;
    const awake = new Promise<void>((resolve) =>
      reader.ready(() => {
        woken += 1;
        resolve();
      }),
    );
    assert.equal(woken, 0, 'not before the call has returned');
    end(body);
    await awake;
    const take = (): unknown => {
      const batch = reader.take();
      return Array.isArray(batch) ? text(batch) : batch;
    };
    // That no bytes will come is known before the end.
    if (taken === null && take() === undefined) await reader.wait();
    if (taken instanceof Error) assert.throws(take, taken);
    else if (taken === 'source_closed') assert.throws(take, { reason: taken });
    else assert.equal(take(), taken);
    body.destroy();
    await until(() => body.closed, 'the close');
    assert.equal(woken, 1);
  }
});

test('who let go of a body takes nothing any more, is not kept waiting, and leaves no timer', async () => {
  const clock = createFakeClock();
  const drain = { clock, ms: 100 };
  const body = new PassThrough();
  const reader = readBody(body, drain);
  const waiting = reader.wait();
  body.write('unread');
  reader.cancel(SAID);
  reader.cancel(new Error('again'));
  await waiting;
  assert.equal(reader.take(), null);
  assert.equal(body.destroyed, false, 'it may end by itself');
  body.end();
  await until(() => body.closed, 'the end of the body');
  assert.equal(clock.pending, 0);
  for (const over of [Readable.from([]).resume(), new PassThrough().destroy()]) {
    const ended = readBody(over, drain);
    await until(() => over.closed, 'the end of the body');
    ended.cancel(SAID);
    assert.equal(clock.pending, 0);
  }
});

test('finish: what has arrived is delivered, the body ends well, and the upstream is let go', async () => {
  let closed = false;
  await using upstream = await serve((_request, response) => {
    response.write('finish');
    response.on('close', () => {
      closed = true;
    });
  });
  const reader = readBody((await upstream.ask()).body);
  let first = reader.take();
  for (; first === undefined; first = reader.take()) await reader.wait();
  const waiting = reader.wait();
  assert.equal(reader.take(), undefined);
  reader.finish();
  await waiting;
  assert.equal(text(first ?? []), 'finish');
  assert.equal(reader.take(), null);
  await until(() => closed, 'the upstream is let go');
});

test('a body that ends, or is finished, tells it at once, though it is long in closing or never does', async () => {
  const kept = new PassThrough({ autoDestroy: false });
  const reader = readBody(kept);
  kept.end();
  while (reader.take() === undefined) await reader.wait();
  const clock = createFakeClock();
  readBody(kept, { clock, ms: 100 }).cancel(SAID);
  assert.equal(clock.pending, 0, 'nothing is left to be drained');

  const slow = new Readable({ read: () => undefined, destroy: () => undefined });
  const finished = readBody(slow);
  const waiting = finished.wait();
  finished.finish();
  await waiting;
  assert.equal(finished.take(), null);
  assert.equal(slow.closed, false);
});

test('a cancel destroys the body with its reason, where that is an error', async () => {
  const [why, failed] = [new Error('why'), new PassThrough()];
  readBody(failed).cancel(why);
  assert.equal(failed.errored, why);
  const left = new PassThrough();
  readBody(left).cancel('no error');
  assert.equal(left.destroyed, true);
  assert.equal(left.errored, null);
  await until(() => failed.closed && left.closed, 'both are closed');
});

test('finish: what nobody took yet is taken first', () => {
  const body = new PassThrough();
  const reader = readBody(body);
  body.write('finish');
  reader.finish();
  assert.equal(text(reader.take() ?? []), 'finish');
  assert.equal(reader.take(), null);
});

test('once everything was said, a body that ends by itself keeps its connection for the next request', async () => {
  const sockets = new Set<unknown>();
  await using upstream = await serve((request, response) => {
    sockets.add(request.socket);
    response.write('[DONE]');
    setTimeout(() => response.end('ignored'), 5);
  });
  for (let i = 0; i < 3; i++) {
    const { body } = await upstream.ask();
    const reader = bodyStream(body, { clock: systemClock, ms: 5000 }).getReader();
    await reader.read();
    await reader.cancel(SAID);
    await until(() => body.closed, 'the end of the body');
  }
  assert.equal(sockets.size, 1);
});

test('a body that does not end by itself, or goes on talking, is destroyed', async () => {
  const clock = createFakeClock();
  const silent = new PassThrough();
  silent.write('a');
  await bodyStream(silent, { clock, ms: 100 }).cancel(SAID);
  clock.advance(99);
  assert.equal(silent.destroyed, false);
  clock.advance(1);
  assert.equal(silent.destroyed, true);

  const talking = new PassThrough();
  await bodyStream(talking, { clock, ms: 100 }).cancel(SAID);
  talking.write(Buffer.alloc(BATCH_BYTES));
  await until(() => talking.readableLength === 0, 'as much as it may say is read');
  assert.equal(talking.destroyed, false);
  talking.write('.');
  await until(() => talking.closed && clock.pending === 0, 'the body is destroyed');
});

test('a client that leaves is no end: nothing is drained', async () => {
  const body = new PassThrough();
  body.on('error', () => undefined);
  await bodyStream(body, { clock: systemClock, ms: 5000 }).cancel(new StreamError('client_gone', 'left'));
  assert.equal(body.destroyed, true);
});
