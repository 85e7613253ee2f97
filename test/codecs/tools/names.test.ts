import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { nameTools } from '../../../src/codecs/tools/names.ts';

const RULE = { illegal: /[^a-zA-Z0-9_-]/g, maxLength: 64 };

test('T3 T4: one name in two namespaces becomes two wire names, restored with their namespace', () => {
  const a = { name: 'search', namespace: 'files' };
  const b = { name: 'search', namespace: 'web' };
  const names = nameTools([a, b, { name: 'run' }], RULE);
  assert.deepEqual([names.toWire(a), names.toWire(b)], ['files__search', 'web__search']);
  assert.deepEqual(names.fromWire('web__search'), b);
  assert.deepEqual(names.fromWire('run'), { name: 'run' });
});

test('a unique namespaced tool keeps its inner name', () => {
  const names = nameTools([{ name: 'search', namespace: 'files' }], RULE);
  assert.equal(names.toWire({ name: 'search', namespace: 'files' }), 'search');
});

test('G8: characters that the target refuses are replaced and restored', () => {
  const tool = { name: 'mcp/files@read file' };
  const names = nameTools([tool], RULE);
  assert.match(names.toWire(tool), /^[a-zA-Z0-9_-]{1,64}$/);
  assert.deepEqual(names.fromWire(names.toWire(tool)), tool);
});

test('a qualified name that is taken, and a name that is nothing or begins with a digit, are still names of their own', () => {
  const plain = { name: 'a__b' };
  const inner = { name: 'b', namespace: 'a' };
  const names = nameTools([inner, { name: 'b', namespace: 'c' }, plain], RULE);
  assert.equal(names.toWire(plain), 'a__b');
  assert.match(names.toWire(inner), /^a__b_[0-9a-f]{8}$/);
  assert.deepEqual(names.fromWire(names.toWire(inner)), inner);
  // A history may hold a call that its model gave no name.
  for (const rule of [RULE, { ...RULE, startsWithLetter: true }]) assert.equal(nameTools([], rule).toWire({ name: '' }), '_');
  assert.equal(nameTools([], { ...RULE, startsWithLetter: true }).toWire({ name: '1st' }), '_1st');
});

test('property: a bijection onto legal names, the same for equal requests', () => {
  const toolName = fc.record(
    {
      name: fc.string({ minLength: 1, maxLength: 90, unit: fc.constantFrom('a', 'b', '/', '_', '.', '1', 'é') }),
      namespace: fc.constantFrom('x', 'y', 'x__a'),
    },
    { requiredKeys: ['name'] },
  );
  const rule = { illegal: /[^a-zA-Z0-9_.:-]/g, maxLength: 24, startsWithLetter: true };
  fc.assert(
    fc.property(fc.uniqueArray(toolName, { selector: (tool) => `${tool.namespace}\n${tool.name}`, maxLength: 30 }), (tools) => {
      const names = nameTools(tools, rule);
      const wires = tools.map((tool) => names.toWire(tool));
      assert.equal(new Set(wires).size, tools.length);
      for (const wire of wires) assert.match(wire, /^[a-zA-Z_][a-zA-Z0-9_.:-]{0,23}$/);
      assert.deepEqual(
        wires.map((wire) => names.fromWire(wire)),
        tools,
      );
      const again = nameTools(tools, rule);
      assert.deepEqual(
        tools.map((tool) => again.toWire(tool)),
        wires,
      );
    }),
  );
});

test('a name of megabytes is made legal no further than it is kept, whatever its characters', () => {
  const LONG = 8_000_000;
  for (const character of [' ', 'é', '😀'.slice(0, 1)]) {
    const name = character.repeat(LONG);
    const before = process.threadCpuUsage();
    const wire = nameTools([{ name }], RULE).toWire({ name });
    const { user, system } = process.threadCpuUsage(before);
    assert.match(wire, /^_{55}_[0-9a-f]{8}$/);
    // Made legal as a whole it takes a second.
    assert.ok((user + system) / 1000 < 400, `took ${Math.round((user + system) / 1000)} ms`);
  }
  const pairs = '😀'.repeat(64);
  assert.equal(nameTools([], { illegal: /[^a-z]/gu, maxLength: 64 }).toWire({ name: pairs }), '_'.repeat(64));
});
