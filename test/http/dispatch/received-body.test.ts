/** What an upstream's connection brings until it is taken, without a connection. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ReceivedBody } from '../../../src/http/dispatch/received-body.ts';
import { BATCH_BYTES } from '../../../src/streams/body-source.ts';
import { StreamError } from '../../../src/streams/stream-error.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const SAID = new StreamError('ended', 'everything was said');

function setUp() {
  const clock = createFakeClock();
  const flow: string[] = [];
  const reasons: Error[] = [];
  const body = new ReceivedBody(
    {
      pause: () => flow.push('pause'),
      resume: () => flow.push('resume'),
      abort: (reason) => {
        flow.push('abort');
        reasons.push(reason);
      },
    },
    clock,
  );
  return { clock, flow, reasons, body };
}

const bytes = (size: number): Uint8Array => new Uint8Array(size);
const sizes = (batch: readonly Uint8Array[] | null | undefined) => batch?.map(({ length }) => length);

test('what has arrived is one batch, then nothing, then the end', () => {
  const { flow, body } = setUp();
  assert.equal(body.take(), undefined);
  body.feed(bytes(1));
  body.feed(bytes(2));
  assert.deepEqual(sizes(body.take()), [1, 2]);
  assert.equal(body.take(), undefined);
  body.feed(bytes(3));
  body.end();
  body.feed(bytes(4));
  assert.deepEqual(sizes(body.take()), [3]);
  assert.equal(body.take(), null);
  assert.deepEqual(flow, []);
});

test('at 64 KiB the connection is held back, until all of it is taken', () => {
  const { flow, body } = setUp();
  body.feed(bytes(BATCH_BYTES - 1));
  assert.deepEqual(flow, []);
  body.feed(bytes(1));
  assert.deepEqual(flow, ['pause']);
  body.take();
  assert.deepEqual(flow, ['pause', 'resume']);
  body.feed(bytes(BATCH_BYTES - 1));
  body.take();
  assert.deepEqual(flow, ['pause', 'resume'], 'counted anew');
});

test('the first failure is told once what came before it is taken, and none after the end', () => {
  const { body } = setUp();
  body.feed(bytes(1));
  body.fail(new Error('first'));
  body.fail(new Error('second'));
  assert.deepEqual(sizes(body.take()), [1]);
  assert.throws(() => body.take(), /first/);
  const ended = setUp().body;
  ended.end();
  ended.fail(new Error('late'));
  assert.equal(ended.take(), null);
});

test('a reader is woken once for each time that it asks, never before the call has returned', async () => {
  const causes = [
    (body: ReceivedBody) => body.feed(bytes(1)),
    (body: ReceivedBody) => body.end(),
    (body: ReceivedBody) => body.fail(new Error('died')),
    (body: ReceivedBody) => body.cancel(),
    (body: ReceivedBody) => body.finish(),
  ];
  for (const cause of causes) {
    for (const early of [true, false]) {
      const { body } = setUp();
      let woken = 0;
      if (early) cause(body);
      body.ready(() => woken++);
      if (!early) cause(body);
      assert.equal(woken, 0);
      await Promise.resolve();
      assert.equal(woken, 1);
      body.feed(bytes(1));
      await Promise.resolve();
      assert.equal(woken, 1);
    }
  }
});

test('a reader that asks while nothing is there is left to wait', async () => {
  const { body } = setUp();
  let woken = 0;
  body.ready(() => woken++);
  for (let turn = 0; turn < 5; turn++) await Promise.resolve();
  assert.equal(woken, 0);
  body.feed(bytes(1));
  await Promise.resolve();
  assert.equal(woken, 1);
});

test('everything was said: a short rest may come in, and the connection is kept', () => {
  const { clock, flow, body } = setUp();
  body.feed(bytes(10));
  body.cancel(SAID);
  body.cancel(new Error('again'));
  assert.deepEqual(flow, ['resume']);
  assert.equal(body.take(), null);
  body.feed(bytes(BATCH_BYTES));
  body.end();
  assert.equal(clock.pending, 0);
  assert.deepEqual(flow, ['resume']);
});

test('everything was said: a rest that is long, or does not end, is cut', () => {
  const long = setUp();
  long.body.feed(bytes(10));
  long.body.cancel(SAID);
  long.body.feed(bytes(BATCH_BYTES));
  assert.deepEqual(long.flow, ['resume'], 'what was there before does not count');
  long.body.feed(bytes(1));
  assert.deepEqual(long.flow, ['resume', 'abort']);
  assert.equal(long.clock.pending, 0);
  const slow = setUp();
  slow.body.cancel(SAID);
  slow.clock.advance(249);
  assert.deepEqual(slow.flow, ['resume']);
  slow.clock.advance(1);
  assert.deepEqual(slow.flow, ['resume', 'abort']);
  const broken = setUp();
  broken.body.cancel(SAID);
  broken.body.fail(new Error('died'));
  assert.equal(broken.clock.pending, 0);
  assert.equal(broken.body.take(), null, 'nobody is told');
});

test('any other reason cuts the connection at once, and is what it is told', () => {
  const left = new Error('left');
  const gone = new StreamError('client_gone', 'the client left');
  for (const [reason, told] of [
    [left, left],
    [gone, gone],
    ['left', undefined],
    [undefined, undefined],
  ] as const) {
    const { flow, reasons, body } = setUp();
    body.cancel(reason);
    assert.deepEqual(flow, ['abort']);
    if (told !== undefined) assert.equal(reasons[0], told);
    else assert.ok(reasons[0] instanceof StreamError && reasons[0].reason === 'cancelled');
  }
});

test('a body that is over needs no cut', () => {
  for (const over of [(body: ReceivedBody) => body.end(), (body: ReceivedBody) => body.fail(new Error('died'))]) {
    for (const leave of [(body: ReceivedBody) => body.cancel(new Error('left')), (body: ReceivedBody) => body.finish()]) {
      const { flow, clock, body } = setUp();
      over(body);
      leave(body);
      assert.deepEqual(flow, []);
      assert.equal(clock.pending, 0);
    }
  }
});

test('finish: what has arrived is all there is', () => {
  const { flow, body } = setUp();
  body.feed(bytes(1));
  body.finish();
  body.feed(bytes(2));
  assert.deepEqual(sizes(body.take()), [1]);
  assert.equal(body.take(), null);
  assert.deepEqual(flow, ['abort']);
});
