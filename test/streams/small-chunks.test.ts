/** What is handed on of the chunks of a body: its bytes in their order, in memory that fits them, however they came. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { SmallChunks } from '../../src/streams/small-chunks.ts';

/** What an object takes, beside its bytes. */
const OBJECT_BYTES = 200;

function handedOn(sizes: Iterable<number>): { readonly taken: readonly Uint8Array[]; readonly sent: Buffer } {
  const taken: Uint8Array[] = [];
  const sent: Buffer[] = [];
  const chunks = new SmallChunks((chunk) => void taken.push(chunk));
  let next = 0;
  for (const size of sizes) {
    // As a socket gives them: not of the pool, whose blocks would count as theirs.
    const chunk = Buffer.allocUnsafeSlow(size);
    for (let at = 0; at < size; at++) chunk[at] = next++ % 251;
    sent.push(chunk);
    chunks.add(chunk);
  }
  chunks.flush();
  return { taken, sent: Buffer.concat(sent) };
}

const sizes = fc.array(fc.oneof(fc.nat(3), fc.nat(1_100), fc.nat(40_000)), { maxLength: 200 });

test('all bytes are handed on in their order', () => {
  fc.assert(
    fc.property(sizes, (chosen) => {
      const { taken, sent } = handedOn(chosen);
      assert.ok(sent.equals(Buffer.concat(taken)));
    }),
  );
});

const WORST: readonly (readonly [string, readonly number[]])[] = [
  ['a byte each', [1]],
  ['a byte between two larger ones', [1, 1_025]],
  ['the largest of the small ones', [1_024]],
  ['just more than half a block, then a larger one', [...Array.from({ length: 17 }, () => 1_000), 1_025]],
  ['just less than half a block, then a larger one', [...Array.from({ length: 16 }, () => 1_000), 1_025]],
];

for (const [what, pattern] of WORST) {
  test(`chunks of ${what} take little more than their bytes`, () => {
    const rounds = Math.ceil(20_000 / pattern.length);
    const { taken, sent } = handedOn(Array.from({ length: rounds }, () => pattern).flat());
    const behind = taken.slice(64);
    const memory = new Set(behind.map(({ buffer }) => buffer));
    const kept = [...memory].reduce((sum, { byteLength }) => sum + byteLength, 0) + behind.length * OBJECT_BYTES;
    assert.ok(kept < 2 * sent.length + 64 * 1024, `${kept} bytes for ${sent.length}`);
  });
}
