import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { base64Size, type BodyPiece, bodyBytes, bodyLength } from '../../../src/codecs/bodies/pieces.ts';

const chunks = fc.array(fc.uint8Array({ maxLength: 12 }), { maxLength: 8 });
const piece: fc.Arbitrary<{ readonly piece: BodyPiece; readonly bytes: Buffer }> = fc.oneof(
  fc.string({ unit: 'binary' }).map((text) => ({ piece: text, bytes: Buffer.from(text) })),
  fc.uint8Array().map((bytes) => ({ piece: bytes, bytes: Buffer.from(bytes) })),
  fc.uint8Array().map((bytes) => ({ piece: { decode: Buffer.from(bytes).toString('base64') }, bytes: Buffer.from(bytes) })),
  fc.uint8Array().map((bytes) => {
    const unpadded = Buffer.from(bytes).toString('base64').replaceAll('=', '');
    return { piece: { decode: unpadded }, bytes: Buffer.from(bytes) };
  }),
  chunks.map((list) => ({ piece: { encode: list }, bytes: Buffer.from(Buffer.concat(list).toString('base64')) })),
);

test('pieces become exactly their bytes, and their length is known before', () => {
  fc.assert(
    fc.property(fc.array(piece), (list) => {
      const pieces = list.map((entry) => entry.piece);
      const expected = Buffer.concat(list.map(({ bytes }) => bytes));
      assert.ok(Buffer.concat([...bodyBytes(pieces)]).equals(expected));
      assert.equal(bodyLength(pieces), expected.length);
    }),
  );
});

test('long pieces come in small buffers: base64 both ways, and text with pairs at every border', () => {
  const bytes = Buffer.from(Array.from({ length: 200_000 }, (_, index) => (index * 31) & 0xff));
  const base64 = bytes.toString('base64');
  const split = [bytes.subarray(0, 1), bytes.subarray(1, 70_000), bytes.subarray(70_000, 70_001), bytes.subarray(70_001)];
  const text = `a${'😀'.repeat(60_000)}`;
  for (const [pieces, expected] of [
    [[{ decode: base64 }], bytes],
    [[{ encode: split }], Buffer.from(base64)],
    [[text], Buffer.from(text)],
  ] as const) {
    const parts = [...bodyBytes(pieces)];
    assert.ok(Buffer.concat(parts).equals(expected));
    assert.ok(parts.length > 2 && parts.every(({ length }) => length <= 200_000));
  }
  assert.equal(base64Size(base64), bytes.length);
});
