import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Stage } from '../../src/streams/stage.ts';
import { StreamError } from '../../src/streams/stream-error.ts';
import { toTransform } from '../../src/streams/to-transform.ts';
import { batchSource, collect, settled } from '../support/batches.ts';
import { scripted } from '../support/scripted-stage.ts';

/** Says every input, throws at `!`, and ends after `.`. */
function speak(): Stage<string, string> {
  let ended = false;
  return {
    get ended() {
      return ended;
    },
    push(input, out) {
      if (input === '!') throw new Error('refused');
      out.push(input);
      ended = input === '.';
    },
    end(out) {
      out.push('eof');
    },
  };
}

test('one batch in is one batch out, and the end is said', async () => {
  const got = await collect(batchSource([['a', 'b'], ['c']]).readable.pipeThrough(toTransform(speak())));
  assert.deepEqual(got, { values: ['a', 'b', 'c', 'eof'], batches: 3, failure: undefined });
});

test('a throw in mid-batch: the good prefix once, then the failure, and the source is cancelled', async () => {
  const source = batchSource([['a'], ['b', '!', 'c'], ['d']]);
  const got = await collect(source.readable.pipeThrough(toTransform(speak())));
  assert.deepEqual(got.values, ['a', 'b']);
  assert.equal(got.failure instanceof Error && got.failure.message, 'refused');
  await settled();
  assert.deepEqual(source.cancelled(), [got.failure]);
});

test('what an end says before it throws is delivered, even to a reader that was not waiting', async () => {
  const carried = toTransform(scripted('1', [{ words: 2, next: 'throw' }]));
  const writer = carried.writable.getWriter();
  await assert.rejects(writer.close(), /refuses eof/);
  const got = await collect(carried.readable);
  assert.deepEqual(got.values, ['1(eof)#0', '1(eof)#1']);
  assert.match(String(got.failure), /refuses eof/);
});

test('a stage that has ended closes its readable and cancels its source; later input is ignored', async () => {
  const source = batchSource([['a', '.', 'b'], ['c'], ['d']]);
  const got = await collect(source.readable.pipeThrough(toTransform(speak())));
  assert.deepEqual(got, { values: ['a', '.'], batches: 1, failure: undefined });
  await settled();
  const [reason] = source.cancelled();
  assert.ok(reason instanceof StreamError && reason.reason === 'ended');
});

test('a stage that has ended already says nothing more at the end of its input', async () => {
  const stage: Stage<string, string> = { ended: true, push: () => assert.fail(), end: () => assert.fail('called twice') };
  assert.deepEqual(await collect(batchSource([]).readable.pipeThrough(toTransform(stage))), {
    ...{ values: [], batches: 0, failure: undefined },
  });
});

test('a failure of the source passes after everything before it', async () => {
  const died = new Error('died');
  const got = await collect(
    batchSource([['a'], ['b']], died)
      .readable.pipeThrough(toTransform(speak()))
      .pipeThrough(toTransform(speak())),
  );
  assert.deepEqual(got.values, ['a', 'b']);
  assert.equal(got.failure, died);
});

test('a reader that cancels cancels the source with its reason, also while it is stalled', async () => {
  const source = batchSource(Array.from({ length: 100 }, (_, i) => [String(i)]));
  const reader = source.readable.pipeThrough(toTransform(speak())).pipeThrough(toTransform(speak())).getReader();
  await reader.read();
  await settled();
  const why = new Error('left');
  await reader.cancel(why);
  await settled();
  assert.deepEqual(source.cancelled(), [why]);
});

test('back-pressure: what is in flight is bounded by the hops', async () => {
  const source = batchSource(Array.from({ length: 100 }, (_, i) => [String(i)]));
  const reader = source.readable.pipeThrough(toTransform(speak())).pipeThrough(toTransform(speak())).getReader();
  for (let i = 0; i < 5; i++) await settled();
  // Each writable holds one batch, and one more may be in its step.
  assert.ok(source.pulled() <= 4, `${source.pulled()} batches in flight for nobody`);
  for (let read = 1; read <= 10; read++) {
    await reader.read();
    for (let i = 0; i < 5; i++) await settled();
    assert.ok(source.pulled() <= read + 4);
  }
  await reader.cancel();
});
