/** Every finding of the fuzzer, shrunk and committed, stays fixed. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { test } from 'node:test';
import fc from 'fast-check';
import { TARGETS } from './targets.ts';

const folder = new URL('./corpus/', import.meta.url);

for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  test(`corpus: ${file}`, async () => {
    const { target, input } = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as { target: string; input: unknown };
    const found = TARGETS.find(({ name }) => name === target);
    assert.ok(found !== undefined, `no target ${target}`);
    await found.check(input);
  });
}

for (const { name, input, check } of TARGETS) {
  test(`F11, F12, F22, F24, F45: fuzz, a little: ${name}`, async () => {
    await fc.assert(
      fc.asyncProperty(input, async (value) => {
        await check(value);
      }),
      { numRuns: 25 },
    );
  });
}
