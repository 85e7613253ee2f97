/** What is followed piece by piece, and what is looked up in an index, says what a search of everything would say. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { MergedMembers } from '../../src/codecs/answers/merged-members.ts';
import { isObjectText, type JsonObject } from '../../src/codecs/canonical/json.ts';
import { DeclaredNames } from '../../src/codecs/chat/answer/declared-names.ts';
import { ObjectScan } from '../../src/codecs/chat/answer/object-scan.ts';
import { Queue } from '../../src/codecs/queue.ts';
import { matchOutput } from '../../src/codecs/responses/answer/match-output.ts';
import type { Slot } from '../../src/codecs/responses/answer/slot.ts';
import { newTrack } from '../../src/codecs/responses/lifecycle.ts';
import { declaredTool, toolKey } from '../../src/codecs/tools/names.ts';

const piece = fc.oneof(
  fc.constantFrom('{', '}', '"', '\\', '"a":1', ',', '[', ']', ' ', '\n', '{}', 'x', '{"a":"{}"}'),
  fc.dictionary(fc.string({ maxLength: 3 }), fc.jsonValue({ maxDepth: 1 })).map((value) => JSON.stringify(value)),
);

test('property: arguments in pieces are a whole object exactly where all of them are', () => {
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 8 }), (pieces) => {
      const scan = new ObjectScan();
      let text = '';
      for (const part of pieces) {
        scan.push(part);
        text += part;
        assert.equal(scan.isWhole(text), isObjectText(text), text);
      }
    }),
    { numRuns: 2000 },
  );
});

test('property: a name is declared, or begins a longer one, as a search says', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', '_', '\u{1F600}'), maxLength: 4 });
  fc.assert(
    fc.property(fc.array(name), name, (names, asked) => {
      const declared = new DeclaredNames(names);
      assert.equal(declared.has(asked), names.includes(asked));
      assert.equal(
        declared.hasLonger(asked),
        names.some((one) => one !== asked && one.startsWith(asked)),
      );
    }),
  );
});

test('property: a queue gives its entries in their order', () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(fc.nat(), fc.constant(undefined))), (steps) => {
      const queue = new Queue<number>();
      const list: number[] = [];
      for (const step of steps) {
        if (step === undefined) assert.equal(queue.take(), list.shift());
        else {
          queue.add(step);
          list.push(step);
        }
        assert.deepEqual([queue.first, queue.size, ...queue], [list[0], list.length, ...list]);
      }
    }),
  );
});

test('a declared tool is found among few and among many', () => {
  const tools = Array.from({ length: 20 }, (_, at) => {
    const tool = { name: `f${at % 10}`, ...(at < 10 ? {} : { namespace: 'n' }) };
    return { kind: 'function' as const, tool, at: `tools[${at}]` };
  });
  for (const list of [tools.slice(0, 5), tools]) {
    for (const { tool } of tools) {
      const found = list.find((one) => toolKey(one.tool) === toolKey(tool));
      assert.equal(declaredTool(list, tool), found);
    }
  }
});

test('merged members: null and zero replace nothing, objects are merged, and a snapshot of few is a copy', () => {
  const merged = new MergedMembers();
  assert.equal(merged.snapshot(), undefined);
  const first = { a: 1, b: { c: 1, d: { e: 1, f: { g: 1 } } }, ['__proto__']: 3 };
  merged.merge(first, 2);
  const early = merged.snapshot();
  merged.merge({ a: 0, b: { c: null, d: { e: 2, f: { h: 1 } } }, z: 0 }, 2);
  assert.equal(JSON.stringify(early?.['a']), '1');
  assert.equal(early?.['z'], undefined);
  assert.equal(Object.entries(merged.members).find(([name]) => name === '__proto__')?.[1], 3);
  assert.equal(JSON.stringify([merged.members['a'], merged.members['b']]), '[1,{"c":1,"d":{"e":2,"f":{"h":1}}}]');
  merged.delete('z');
  assert.equal(merged.snapshot()?.['z'], undefined);
  assert.equal(first.b.d.e, 1, 'what was merged is not changed');
});

const word = fc.constantFrom('', 'x', 'y', 'z');
const item = fc.record({ type: fc.constantFrom('message', 'function_call'), id: word, call_id: word, name: word, content: word });

function slotOf(outputIndex: number, one: JsonObject): Slot {
  const type = String(one['type']);
  const track = newTrack(outputIndex, type);
  const streamed = { open: undefined, parts: [], doneParts: [], raw: [], held: '' };
  return { outputIndex, type, track, item: one, ...streamed, closed: false, ranByVendor: false, isDisplaced: false };
}

/** The rules as they read, each tried for every pair. */
function searched(output: readonly JsonObject[], slots: readonly Slot[]): (number | undefined)[] {
  const differ = (a: JsonObject, b: JsonObject): boolean => !!a['call_id'] && !!b['call_id'] && a['call_id'] !== b['call_id'];
  const same = (a: JsonObject, b: JsonObject, key: string): boolean => !!a[key] && a[key] === b[key];
  const rules: ((entry: JsonObject, at: number, slot: Slot) => boolean)[] = [
    (entry, _, slot) => same(entry, slot.item, 'call_id') || (same(entry, slot.item, 'id') && !differ(entry, slot.item)),
    (entry, at, slot) => at === slot.outputIndex && !differ(entry, slot.item),
    (entry, _, slot) => !differ(entry, slot.item) && entry['content'] === slot.item['content'],
    (entry, at, slot) =>
      at === slot.outputIndex &&
      differ(entry, slot.item) &&
      entry['id'] !== slot.item['id'] &&
      entry['name'] === slot.item['name'] &&
      entry['content'] === slot.item['content'],
  ];
  const free = new Set([...slots].sort((a, b) => a.outputIndex - b.outputIndex));
  const taken: (number | undefined)[] = output.map(() => undefined);
  for (const rule of rules)
    for (const [at, entry] of output.entries()) {
      if (taken[at] !== undefined) continue;
      const found = [...free].find((slot) => slot.type === entry['type'] && rule(entry, at, slot));
      if (found === undefined) continue;
      taken[at] = found.outputIndex;
      free.delete(found);
    }
  return taken;
}

test('property: the items of a terminal are matched as trying every pair would match them', () => {
  fc.assert(
    fc.property(
      fc.array(item, { maxLength: 7 }),
      fc.uniqueArray(fc.tuple(fc.nat(8), item), { selector: ([at]) => at, maxLength: 7 }),
      (output, streamed) => {
        const slots = streamed.map(([outputIndex, one]) => slotOf(outputIndex, one));
        const { found } = matchOutput(output, new Map(slots.map((slot) => [slot.outputIndex, slot])));
        assert.deepEqual(
          found.map((entry) => entry.streamed?.outputIndex),
          searched(output, slots),
        );
      },
    ),
    { numRuns: 3000 },
  );
});
