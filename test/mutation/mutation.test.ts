/**
 * The mutation tool: a change that matters is noticed, one that does not survives, and the figures are those of the committed
 * lines.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CONTRIBUTING, withMutation } from '../support/print-docs.ts';
import { covered, ROOT } from './coverage.ts';
import { figuresOf, ROOMS, readResults, SAMPLE } from './results.ts';
import { runMutant } from './run-test.ts';
import { compiling, mutantsOf, mutated } from './sample.ts';

const FILE = 'test/mutation/example/larger.ts';

test('a known mutant is killed, a known equivalent survives, and what does not compile is no mutant', async () => {
  const verdicts: Record<string, string> = {};
  const mutants = mutantsOf([FILE]);
  const compile = compiling(mutants);
  for (const mutant of mutants) {
    const ran = compile.has(mutant)
      ? await runMutant(FILE, mutated(mutant), 'test/mutation/example/larger.check.ts', 1000)
      : undefined;
    verdicts[`${mutant.original} → ${mutant.text}`] = ran === undefined ? 'does not compile' : ran.passed ? 'survived' : 'killed';
  }
  const block = readFileSync(join(ROOT, FILE), 'utf8').match(/\{\n.*\n\}/)?.[0];
  assert.deepEqual(verdicts, {
    [`${block} → {}`]: 'does not compile',
    'return → void ': 'does not compile',
    'a >= b → true': 'killed',
    'a >= b → false': 'killed',
    '>= → >': 'survived',
    '>= → <': 'killed',
  });
});

test('a place ran where the innermost range around it was counted', () => {
  const range = (startOffset: number, endOffset: number, count: number) => ({ startOffset, endOffset, count });
  const functions = [
    { ranges: [range(0, 100, 1), range(90, 95, 0)] },
    { ranges: [range(10, 50, 0)] },
    { ranges: [range(20, 30, 2)] },
  ];
  assert.deepEqual(covered(functions), [
    [0, 10],
    [20, 30],
    [50, 90],
    [95, 100],
  ]);
});

test('the figures of CONTRIBUTING.md are those of the committed lines, and nine of ten mutants of a whole sample are killed', () => {
  const text = readFileSync(CONTRIBUTING, 'utf8');
  assert.equal(text, withMutation(text));
  for (const room of Object.keys(ROOMS)) {
    const { ran, killed, survived } = figuresOf(readResults(room).values());
    assert.ok(ran < SAMPLE || killed >= 9 * survived, `${room}: ${killed} killed, ${survived} survived`);
  }
});
