/** The figures of a JSON text, against what a parser finds. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { isObject, type JsonValue } from '../../../src/codecs/canonical/json.ts';
import { MAX_BARE, scanJson } from '../../../src/codecs/json/scan.ts';

const ANY = { depth: Infinity, values: Infinity, members: Infinity };

function valuesIn(value: JsonValue | undefined): number {
  if (Array.isArray(value)) return value.reduce<number>((sum, entry) => sum + valuesIn(entry), 1);
  if (isObject(value)) return Object.values(value).reduce<number>((sum, entry) => sum + valuesIn(entry), 1);
  return 1;
}

test('as many values and members as a parser finds, however the text is spelt', () => {
  const piece = fc.constantFrom('"', '\\', ',', ':', '[', ']', '{', '}', ' ', 'a', 'é', '字', '\n', 'x'.repeat(20));
  const text = fc.array(piece, { maxLength: 30 }).map((pieces) => pieces.join(''));
  const value = fc.jsonValue({ maxDepth: 4 }).map((json) => JSON.parse(JSON.stringify(json)) as JsonValue);
  const { tree } = fc.letrec<{ tree: JsonValue }>((tie) => ({
    tree: fc.oneof(
      { maxDepth: 5 },
      text,
      fc.integer(),
      fc.constantFrom(null, true),
      fc.array(tie('tree'), { maxLength: 5 }),
      fc.dictionary(text, tie('tree'), { maxKeys: 5 }),
    ),
  }));
  fc.assert(
    fc.property(fc.oneof(tree, value), fc.constantFrom('', ' ', '\n  '), (json, indent) => {
      const spelt = JSON.stringify(json, null, indent);
      const members = isObject(json) ? Object.keys(json).length : 0;
      assert.deepEqual(scanJson(spelt, ANY), { values: valuesIn(json), members });
    }),
  );
});

test('empty containers with space in them, escapes at every place of a string, and repeated names', () => {
  assert.deepEqual(scanJson(' [ { } , [\n] , {"a" : 1 , "a": [ ] } ] ', ANY), { values: 6, members: 0 });
  for (let pad = 0; pad < 40; pad++) {
    const text = JSON.stringify({ ['k'.repeat(pad)]: `${'x'.repeat(pad)}\\"${'y'.repeat(pad)}\\`, z: ['",{['] });
    assert.deepEqual(scanJson(text, ANY), { values: 4, members: 2 });
  }
  assert.deepEqual(scanJson('{"a":1,"a":2}', ANY), { values: 3, members: 2 });
});

test('it stops at the first bound, and reads what is no JSON to its end', () => {
  assert.equal(scanJson(`[${'{},'.repeat(20)}{}]`, { ...ANY, values: 20 }), 'values');
  assert.equal(scanJson('['.repeat(30), { ...ANY, depth: 20 }), 'depth');
  const [most, over] = ['1'.repeat(MAX_BARE), ' '.repeat(MAX_BARE + 1)];
  assert.deepEqual(scanJson(`[${most},${most}]`, ANY), { values: 3, members: 0 });
  for (const bare of [`[${over}]`, `{${over}"a":1}`, `[0${over}]`, `{"a"${over}:1}`, `[1${most}`, `[]${over}`, over])
    assert.equal(scanJson(bare, ANY), 'bare', bare.trim());
  assert.deepEqual(scanJson('[1,2]', { ...ANY, depth: 1, values: 3 }), { values: 3, members: 0 });
  const pair = '{"a":{"b":1,"b":2},"c":{"d":[{"e":1},{"e":1},{"e":1}]}}';
  assert.deepEqual(scanJson(pair, { ...ANY, members: 2 }), { values: 12, members: 2 });
  assert.equal(scanJson(pair, { ...ANY, members: 1 }), 'members');
  for (const broken of ['', '"', '"\\', '{"a', '[[', ']]]', '{"a":"\\"']) assert.equal(typeof scanJson(broken, ANY), 'object');
});

test('no shape of text makes it slow: four times the text takes at most about four times as long', () => {
  const shapes = ['\\\\', '\\"', '" "', '[ ', '{},', ' ', '"a":1,', 'x', '""'];
  for (const shape of shapes) {
    const timed = (times: number): number => {
      const text = Buffer.from(`["${shape.repeat(times)}`).toString();
      const runs = [1, 2, 3, 4, 5].map(() => {
        // Processor time: on a busy machine the clock counts what others do. That of a thread comes in ticks.
        const before = process.cpuUsage();
        scanJson(text, ANY);
        const { user, system } = process.cpuUsage(before);
        return user + system;
      });
      return Math.min(...runs);
    };
    const ratio = (): number => timed(400_000) / Math.max(timed(100_000), 1);
    assert.ok(
      [1, 2, 3, 4, 5, 6].some(() => ratio() < 8),
      `${JSON.stringify(shape)} is worse than linear`,
    );
  }
});

test('strings that are longer than a step are looked at in several, whatever stands in them', () => {
  const [quotes, commas] = ['"'.repeat(3 * MAX_BARE), '[,'.repeat(3 * MAX_BARE)];
  const json = { [quotes]: [commas, quotes, 1, { a: quotes, b: 2 }], c: null, d: commas };
  const text = JSON.stringify(json);
  assert.deepEqual(scanJson(text, ANY), { values: valuesIn(json), members: 3 });
  assert.equal(scanJson(text, { ...ANY, values: 5 }), 'values');
  assert.equal(typeof scanJson(text.slice(0, 5 * MAX_BARE), ANY), 'object', 'one that ends within a string');
  assert.equal(scanJson(`["${quotes.replaceAll('"', '\\"')}"${' '.repeat(MAX_BARE + 1)}]`, ANY), 'bare');
});
