import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Sealed, seal, sealed } from '../../src/streams/seal.ts';
import type { SealingStage } from '../../src/streams/stage.ts';
import { batchSource, collect, settled } from '../support/batches.ts';
import { scripted } from '../support/scripted-stage.ts';

const message = (reason: unknown): string => (reason instanceof Error ? reason.message : String(reason));

test('a failure above becomes words after everything that had arrived, and the stream ends well', async () => {
  const got = await collect(
    batchSource([['a'], ['b']], new Error('died')).readable.pipeThrough(seal(scripted('s', []), message)),
  );
  assert.deepEqual(got, { values: ['s(a)#0', 's(b)#0', 's.FAIL(died)'], batches: 3, failure: undefined });
});

test('a premature end becomes words; what end had half-said is cut off', async () => {
  const stage = scripted('s', [
    { words: 1, next: 'go on' },
    { words: 2, next: 'throw' },
  ]);
  const got = await collect(batchSource([['a']]).readable.pipeThrough(seal(stage, message)));
  assert.deepEqual(got.values, ['s(a)#0', 's.FAIL(s refuses eof)']);
  assert.equal(got.failure, undefined);
});

test("the encoder's own refusal: its half-written output is cut off, events before it stay, the source is cancelled", async () => {
  const source = batchSource([['a', 'b', 'c'], ['d']]);
  const stage = scripted('s', [
    { words: 2, next: 'go on' },
    { words: 2, next: 'throw' },
  ]);
  const got = await collect(source.readable.pipeThrough(seal(stage, message)));
  assert.deepEqual(got, { values: ['s(a)#0', 's(a)#1', 's.FAIL(s refuses b)'], batches: 1, failure: undefined });
  await settled();
  assert.equal(source.cancelled().length, 1);
});

test('a failure after the terminal says nothing', async () => {
  const stage = scripted('s', [{ words: 1, next: 'end' }]);
  const step = sealed(stage, message);
  const out: string[] = [];
  step.push(['a'], out);
  assert.equal(step.over, true);
  step.abort(new Error('late'), out);
  step.end(out);
  step.push(['b'], out);
  assert.deepEqual(out, ['s(a)#0', 's.END']);
  assert.deepEqual(stage.calls, ['push']);
});

test('a stage that has ended is asked nothing more, neither in the same batch nor at the end', () => {
  const stage = scripted('s', [{ words: 1, next: 'end' }]);
  const out: string[] = [];
  sealed(stage, message).push(['a', 'b'], out);
  assert.deepEqual(stage.calls, ['push']);
  sealed(stage, message).end(out);
  assert.deepEqual(stage.calls, ['push']);
  assert.deepEqual(out, ['s(a)#0', 's.END']);
});

test('an end and a failure are over at once, whatever the stage says of itself, and nothing is said after them', () => {
  const ways = [
    ['end', (step: Sealed<string, string>, out: string[]) => step.end(out)],
    ['fail', (step: Sealed<string, string>, out: string[]) => step.abort(new Error('died'), out)],
  ] as const;
  for (const [called, finish] of ways) {
    const calls: string[] = [];
    const never = (name: string) => () => {
      calls.push(name);
    };
    const step = sealed({ ended: false, push: never('push'), end: never('end'), fail: never('fail') }, message);
    finish(step, []);
    assert.equal(step.over, true);
    step.push(['a'], []);
    step.end([]);
    step.abort(new Error('late'), []);
    assert.deepEqual(calls, [called]);
  }
});

test('an abort while the reader is stalled: what was written is delivered first, then the failure', async () => {
  const { readable, writable } = seal(scripted('s', []), message);
  const writer = writable.getWriter();
  const first = writer.write(['a']);
  await settled();
  const aborted = writer.abort(new Error('died'));
  const got = await collect(readable);
  await Promise.all([first, aborted]);
  assert.deepEqual(got, { values: ['s(a)#0', 's.FAIL(died)'], batches: 2, failure: undefined });
});

test('a cancel while a write waits for the reader errors the writable; nothing is said', async () => {
  const stage = scripted('s', []);
  const { readable, writable } = seal(stage, message);
  const writer = writable.getWriter();
  const write = assert.rejects(writer.write(['a']), /left/);
  const closed = assert.rejects(writer.closed, /left/);
  await settled();
  await readable.cancel(new Error('left'));
  await Promise.all([write, closed]);
  assert.deepEqual(stage.calls, []);
});

test('a fail that throws: the last words, then a broken stream, never a good end', async () => {
  const broken: SealingStage<string, string, string> = {
    ended: false,
    push(input, out) {
      out.push(input);
      if (input === 'b') throw new Error('refused');
    },
    end() {
      throw new Error('premature');
    },
    fail(_reason, out) {
      out.push('half a fra');
      throw new Error('broken');
    },
  };
  for (const input of [[['a']], [['a', 'b'], ['c']]]) {
    const source = batchSource(input);
    const got = await collect(source.readable.pipeThrough(seal(broken, message, ['constant error'])));
    assert.deepEqual(got.values, ['a', 'constant error']);
    assert.equal(message(got.failure), 'broken');
    await settled();
    assert.deepEqual(source.cancelled().map(message), input.length > 1 ? ['broken'] : [], 'what is left of the source');
  }
});
