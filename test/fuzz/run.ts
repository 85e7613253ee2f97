/**
 * `npm run fuzz -- --minutes N [--seed S] [--only NAME] [--record]`: fast-check at depth over everything that comes from outside. A finding is
 * printed with its seed and path, its shrunk input is written to `test/fuzz/corpus/` (commit it with the fix), and the exit code is 1.
 * `corpus.test.ts` replays the corpus with every `npm test`.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { keepFigures } from '../support/figures.ts';
import { writeReliability } from '../support/print-docs.ts';
import { misused, numberOption, scriptOptions } from '../support/script-options.ts';
import { TARGETS } from './targets.ts';

const USAGE = 'npm run fuzz -- [--minutes N] [--seed S] [--only NAME] [--record]';
const { values } = scriptOptions(USAGE, {
  options: { minutes: { type: 'string' }, seed: { type: 'string' }, only: { type: 'string' }, record: { type: 'boolean' } },
});
const minutes = numberOption(USAGE, 'minutes', values.minutes ?? '1', 0);
const until = Date.now() + minutes * 60_000;
let seed = numberOption(USAGE, 'seed', values.seed ?? String(Date.now() % 2 ** 31), 0);
const targets = TARGETS.filter(({ name }) => values.only === undefined || name.includes(values.only));
if (targets.length === 0)
  misused(USAGE, `there is no target ${values.only}; there are ${TARGETS.map(({ name }) => name).join(', ')}`);
const runs = new Map<string, number>();
let failures = 0;

mkdirSync(new URL('./corpus/', import.meta.url), { recursive: true });
const broken = new Set<string>();
while (Date.now() < until && broken.size < targets.length) {
  for (const target of targets) {
    if (Date.now() >= until || broken.has(target.name)) continue;
    seed += 1;
    const result = await fc.check(
      fc.asyncProperty(target.input, async (input) => {
        await target.check(input);
      }),
      { seed, numRuns: target.runs, interruptAfterTimeLimit: Math.max(1000, until - Date.now()), markInterruptAsFailure: false },
    );
    runs.set(target.name, (runs.get(target.name) ?? 0) + result.numRuns);
    if (!result.failed) continue;
    failures += 1;
    broken.add(target.name);
    const [input] = result.counterexample ?? [];
    const file = new URL(`./corpus/${target.name}-${seed}.json`, import.meta.url);
    const found = { target: target.name, seed, path: result.counterexamplePath, error: String(result.errorInstance), input };
    writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`);
    console.error(
      `${target.name}: ${String(result.errorInstance)}\n  seed ${seed}, path ${result.counterexamplePath ?? ''}, written to ${file.pathname}`,
    );
  }
}
for (const [name, count] of runs) console.log(`${name.padEnd(24)} ${count} inputs`);
console.log(`${failures} findings`);
if (values.record === true) {
  const inputs = [...runs.values()].reduce((sum, count) => sum + count, 0);
  const figure = `${inputs} over ${runs.size} targets in ${minutes} minutes, ${failures} findings`;
  keepFigures([{ suite: 'fuzz', claim: 'inputs of one long run', figure }]);
  writeReliability();
}
process.exitCode = failures === 0 ? 0 : 1;
