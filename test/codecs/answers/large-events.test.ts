/** A large event is read in steps of some milliseconds each, and is decoded when it was read. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LargeEvents } from '../../../src/codecs/answers/large-events.ts';
import { readUtf8 } from '../../../src/codecs/bodies/utf8.ts';
import type { Frame } from '../../../src/codecs/codec.ts';
import type { Steps } from '../../../src/codecs/steps.ts';

function stepsIn(steps: Steps<unknown>): number {
  let count = 0;
  while (steps.next().done !== true) count += 1;
  return count;
}

const MEGABYTE = 1024 * 1024;

test('bytes become text two megabytes in a step, however they came', () => {
  const bytes = Buffer.from('é'.repeat(4 * MEGABYTE));
  const chunks = Array.from({ length: 128 }, (_, at) =>
    bytes.subarray((at * bytes.length) / 128, ((at + 1) * bytes.length) / 128),
  );
  for (const pieces of [[bytes], chunks]) assert.equal(stepsIn(readUtf8(pieces, new TextDecoder())), 4);
});

test('a large event that is bytes yet is decoded in as many steps, and is what it says', () => {
  const pushed: Frame[] = [];
  const decoder = { ended: false, push: (frame: Frame) => void pushed.push(frame), end: () => undefined };
  const large = new LargeEvents(decoder);
  const data = JSON.stringify({ text: 'é'.repeat(4 * MEGABYTE) });
  const small: Frame = { event: 'small', data: '{}' };
  large.push(small, []);
  large.push({ event: 'large', data: Buffer.from(data).toString('latin1'), isUndecoded: true }, []);
  large.push(small, []);
  assert.deepEqual([large.isWaiting, pushed], [true, [small]]);
  const steps = stepsIn(large.read());
  assert.ok(steps >= 4 && steps < 200, `${steps} steps`);
  large.goOn([]);
  assert.deepEqual(
    pushed.map((frame) => frame.event),
    ['small', 'large', 'small'],
  );
  assert.ok(pushed[1]?.data === data);
  assert.ok(JSON.stringify(pushed[1]?.json) === data);
});
