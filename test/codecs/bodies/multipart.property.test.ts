import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { bodyBytes } from '../../../src/codecs/bodies/pieces.ts';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { createMultipartReader, type FormPart, formBoundary } from '../../../src/codecs/bodies/multipart-reader.ts';
import { type FormEntry, writeForm } from '../../../src/codecs/bodies/multipart-writer.ts';

const BOUNDARY = 'mizu-form-0123456789abcdef';

function read(bytes: Uint8Array, cuts: readonly number[] = []): readonly FormPart[] {
  const reader = createMultipartReader(BOUNDARY, { maxBytes: 1 << 20 });
  const points = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const point of [...points, bytes.length]) {
    reader.push(bytes.subarray(from, point));
    from = point;
  }
  return reader.end();
}

const name = fc.stringMatching(/^[a-z[\]_]{1,12}$/);
const entry: fc.Arbitrary<FormEntry> = fc.oneof(
  fc.tuple(name, fc.string()),
  fc.tuple(
    name,
    fc.record({
      filename: fc.stringMatching(/^[a-zA-Z0-9 ._-]{1,12}$/),
      mime: fc.constantFrom('image/png', 'image/webp', 'text/plain'),
      content: fc.uint8Array({ maxLength: 6000 }).map((bytes) => [bytes]),
    }),
  ),
);

test('what is written is read back, wherever the bytes are cut', () => {
  fc.assert(
    fc.property(fc.array(entry, { maxLength: 6 }), fc.array(fc.nat()), (entries, cuts) => {
      const parts = read(Buffer.concat([...bodyBytes(writeForm(entries, BOUNDARY))]), cuts);
      assert.equal(parts.length, entries.length);
      for (const [index, [wanted, value]] of entries.entries()) {
        const part = parts[index];
        const content = Buffer.concat(part?.chunks ?? []);
        assert.equal(part?.name, wanted);
        assert.equal(part?.size, content.length);
        if (typeof value === 'string') assert.equal(content.toString(), value);
        else assert.ok(content.equals(Buffer.concat([...bodyBytes(value.content)])));
        if (typeof value !== 'string')
          assert.deepEqual([part?.filename?.trim(), part?.mime], [value.filename.trim(), value.mime]);
      }
    }),
  );
});

test('every true prefix is a body that was cut off', () => {
  const whole = Buffer.concat([
    ...bodyBytes(
      writeForm(
        [
          ['a', 'x'],
          ['f', { filename: 'n', mime: 'image/png', content: ['yz'] }],
        ],
        BOUNDARY,
      ),
    ),
  ]);
  const end = whole.length - '\r\n'.length;
  for (let length = 0; length < end; length++) {
    assert.throws(
      () => read(whole.subarray(0, length)),
      (error) => error instanceof GatewayError && error.status === 400 && error.param === 'body',
    );
  }
  assert.equal(read(whole).length, 2);
});

test('arbitrary bytes are a form or a 400 that names the body', () => {
  const noisy = fc.array(
    fc.oneof(
      fc.uint8Array({ maxLength: 20 }),
      fc
        .constantFrom(`--${BOUNDARY}`, '\r\n', '\r\n\r\n', '--', 'content-disposition: form-data; name="a"')
        .map((text) => Buffer.from(text)),
    ),
  );
  fc.assert(
    fc.property(noisy, fc.array(fc.nat()), (pieces, cuts) => {
      try {
        read(Buffer.concat(pieces), cuts);
      } catch (error) {
        assert.ok(error instanceof GatewayError);
        assert.deepEqual([error.status, error.param], [400, 'body']);
      }
    }),
  );
});

test('a preamble is passed over, wherever the body is cut', () => {
  const form = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="a"\r\n\r\nx\r\n--${BOUNDARY}--`;
  // Chunks this long are not gathered, so the cut is the parser's too.
  const long = `--${BOUNDARY}\r\n`.padStart(7000, 'not the boundary\r\n').slice(0, -4);
  for (const preamble of ['\r\n', 'for readers without MIME\r\n', `x--${BOUNDARY}\r\n`, `${long}\r\n`]) {
    const body = Buffer.from(preamble + form);
    const around = preamble.length;
    for (let cut = Math.max(0, around - 3); cut <= around + BOUNDARY.length + 5; cut++) {
      const [part] = read(body, [cut]);
      assert.deepEqual([part?.name, part?.size], ['a', 1], `${preamble.slice(-30)} cut at ${cut}`);
    }
  }
  for (const preamble of ['x'.repeat(9000), `${'x'.repeat(9000)}\r\n`]) {
    assert.throws(() => read(Buffer.from(preamble + form)), GatewayError);
  }
});

test('an epilogue is passed over, in the same chunk or a later one', () => {
  const form = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="a"\r\n\r\nx\r\n--${BOUNDARY}--`;
  for (const tail of ['', '\r\n', '\r\n\r\nanything at all']) {
    assert.equal(read(Buffer.from(form + tail)).length, 1);
    assert.equal(read(Buffer.from(form + 'x'.repeat(5000) + tail), [form.length]).length, 1);
  }
});

test('a body that drips byte by byte is held in few buffers', () => {
  const reader = createMultipartReader(BOUNDARY, { maxBytes: 1 << 20 });
  const body = Buffer.concat([
    ...bodyBytes(writeForm([['f', { filename: 'n', mime: 'image/png', content: [Buffer.alloc(100_000, 7)] }]], BOUNDARY)),
  ]);
  for (let at = 0; at < body.length; at++) reader.push(body.subarray(at, at + 1));
  const [part] = reader.end();
  assert.equal(part?.size, 100_000);
  assert.ok((part?.chunks.length ?? 0) < 30);
});

test('a form that cannot be read is refused with the first thing that is wrong with it', () => {
  const form = (...headers: readonly string[]) =>
    Buffer.from(`${headers.map((header) => `--${BOUNDARY}\r\n${header}\r\n\r\nx\r\n`).join('')}--${BOUNDARY}--\r\n`);
  const named = 'content-disposition: form-data; name="a"';
  const parts = (count: number) => form(...Array.from({ length: count }, () => named));
  assert.equal(read(parts(100)).length, 100);
  for (const [body, message] of [
    [parts(101), /more than 100 parts/],
    [form(named, `x-long: ${'a'.repeat(9000)}\r\n${named}`), /headers over 8192 bytes/],
    [form(named, 'content-disposition: form-data'), /Part 2 of the form has no name/],
    [form('content-disposition: form-data; name=""'), /Part 1 of the form has no name/],
    [Buffer.from(`--${BOUNDARY}x\r\n`), /cannot be read|does not begin|cut off/],
    [Buffer.from('x'.repeat(9000)), /does not begin with the boundary/],
    [Buffer.from('x'), /does not begin with the boundary/],
    [form(named).subarray(0, -6), /cut off/],
    [Buffer.alloc(0), /The body is empty/],
  ] as const) {
    for (const cuts of [[], [1], [BOUNDARY.length + 20]])
      assert.throws(
        () => read(body, cuts),
        (error) => error instanceof GatewayError && error.param === 'body' && message.test(error.message),
      );
  }
});

test('a file name in a character set that nobody knows is refused, and nothing is written of it past the log', (t) => {
  const { mock } = t.mock.method(console, 'warn', () => undefined);
  const form = (name: string) =>
    Buffer.from(`--${BOUNDARY}\r\ncontent-disposition: form-data; name="a"; ${name}\r\n\r\nx\r\n--${BOUNDARY}--\r\n`);
  for (const name of ["utf-8''%e2%82%ac", "ISO-8859-15'en'%a4", '"utf-8\'\'%e2%82%ac"'])
    assert.equal(read(form(`filename=x; filename*=${name}`))[0]?.filename, '€');
  for (const name of ["filename*=rot13''x", 'filename* = "\\a\\b\'\'x"', `filename*=utf-8''x; filename*=${'a'.repeat(4000)}''x`])
    assert.throws(() => read(form(name)), /Part 1 of the form has a name in an unknown character set/);
  assert.equal(mock.callCount(), 0);
});

test('boundaries', () => {
  assert.equal(formBoundary('multipart/form-data; boundary=abc'), 'abc');
  assert.equal(formBoundary('Multipart/Form-Data; charset=utf-8; Boundary="a b:c"'), 'a b:c');
  assert.equal(formBoundary('application/json'), undefined);
  assert.equal(formBoundary(undefined), undefined);
  for (const wrong of [
    'multipart/form-data',
    'multipart/form-data; boundary=',
    `multipart/form-data; boundary=${'b'.repeat(71)}`,
    'multipart/form-data; boundary="a\u00e9"',
  ]) {
    assert.throws(() => formBoundary(wrong), GatewayError);
  }
});

test('names and file names cannot break out of their header', () => {
  const hostile = 'a"\r\nx-evil: 1\r\n\r\n';
  const parts = read(
    Buffer.concat([...bodyBytes(writeForm([[hostile, { filename: hostile, mime: 'image/png', content: ['x'] }]], BOUNDARY))]),
  );
  assert.equal(parts.length, 1);
  assert.equal(Buffer.concat(parts[0]?.chunks ?? []).toString(), 'x');
});
