import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { limitBytes } from '../../src/streams/limit-bytes.ts';
import { tap } from '../../src/streams/tap.ts';

test('the first n bytes pass at any cut, and the one after them is thrown', () => {
  fc.assert(
    fc.property(fc.array(fc.uint8Array({ maxLength: 8 })), fc.nat({ max: 30 }), (pieces, max) => {
      const all = Buffer.concat(pieces);
      const out: Uint8Array[] = [];
      const stage = limitBytes(max);
      const run = () => {
        for (const piece of pieces) stage.push(piece, out);
        stage.end(out);
      };
      if (all.length > max) assert.throws(run, { reason: 'too_many_bytes' });
      else run();
      assert.deepEqual(Buffer.concat(out), all.subarray(0, max));
    }),
  );
});

test('a tap sees every value and the end, and changes nothing', () => {
  const seen: number[] = [];
  let ends = 0;
  const stage = tap<number>(
    (value) => seen.push(value),
    () => ends++,
  );
  const out: number[] = [];
  for (const value of [1, 2, 3]) stage.push(value, out);
  stage.end(out);
  assert.deepEqual([out, seen, ends], [[1, 2, 3], [1, 2, 3], 1]);
});
