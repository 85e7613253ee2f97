/** The bytes of a JSON body as text and object; how they arrive is in `bad-input.test.ts` and `server.test.ts`. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../src/codecs/canonical/error.ts';
import { parseJsonBody } from '../../../src/http/request/body.ts';

const parse = (text: string) => parseJsonBody(Buffer.from(text));

function assertRefused(body: string | Uint8Array, words: RegExp): void {
  assert.throws(
    () => parseJsonBody(Buffer.from(body)),
    (error) => {
      assert.ok(error instanceof GatewayError, String(error));
      assert.equal(error.code, 'invalid_request');
      assert.match(error.message, words);
      return true;
    },
  );
}

/** An object around `levels - 1` lists. */
const nested = (levels: number, inner = ''): string => `{"a":${'['.repeat(levels - 1)}${inner}${']'.repeat(levels - 1)}}`;

test('the text is kept to the byte beside what it says', () => {
  const text = ' {"a" : 1.0, "b":"\\u00e9"}\n';
  assert.deepEqual(parse(text), { text, json: { a: 1, b: 'é' } });
});

test('of members of one name the text keeps the one that is read, the last; within a member nothing changes', () => {
  for (const [text, kept] of [
    ['{"a":1,"b":{"c":1,"c":2},"a":[{"a":1}] }', '{"b":{"c":1,"c":2},"a":[{"a":1}]}'],
    ['{"a":"x\\"","\\u0061" : "}" , "__proto__":1,"__proto__":{}}', '{"\\u0061" : "}","__proto__":{}}'],
    ['{"a":{"a":"a"},"b":["a:",":"]}', '{"a":{"a":"a"},"b":["a:",":"]}'],
  ] as const) {
    assert.equal(parse(text).text, kept);
    assert.deepEqual(JSON.parse(kept), parse(text).json);
  }
});

test('five hundred levels are read, one more is refused, before it is parsed', () => {
  assert.ok(parse(nested(500)));
  assertRefused(nested(501), /nested deeper than 500/);
  assertRefused('['.repeat(100_000), /nested deeper than 500/);
  const wide = `{"a":[${Array(2000).fill('[{}]').join()}]}`;
  assert.ok(parse(wide), 'what was closed counts no more');
});

test('brackets in texts are no levels, whatever is escaped before the quote', () => {
  const brackets = '[{'.repeat(400);
  for (const text of [brackets, `\\"${brackets}`, `${brackets}\\\\`, `\\\\\\"${brackets}`])
    assert.ok(parse(nested(499, `"${text}","${text}"`)), text.slice(0, 8));
  assertRefused(nested(501, `"\\\\"`), /nested deeper/);
  assertRefused(`{"a":"${brackets}`, /not valid JSON/);
  assertRefused(`{"a":"${brackets}\\"`, /not valid JSON/);
});

test('anything but one object in UTF-8 is refused, by name', () => {
  for (const empty of ['', ' ', '\n\t']) assertRefused(empty, /is empty/);
  for (const other of ['[]', 'null', '7', '"a"', 'true']) assertRefused(other, /must be a JSON object/);
  for (const broken of ['{', '{"a":}', '{} {}', 'a']) assertRefused(broken, /not valid JSON/);
  assertRefused(Uint8Array.of(0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d), /not valid UTF-8/);
  assertRefused(Uint8Array.of(0x7b, 0xe4), /not valid UTF-8/);
});
