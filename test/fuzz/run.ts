/**
 * `npm run fuzz -- [--minutes N | --each N] [--seed S] [--only NAME]`: fast-check at depth over everything that comes from
 * outside. A finding is printed with its seed and path, its shrunk input is written to `test/fuzz/corpus/` (commit it with the
 * fix), and the exit code is 1. `corpus.test.ts` replays the corpus with every `npm test`.
 *
 * `--each` gives every target so many minutes in all, in slices that are appended to `runs.jsonl` as they end: a run that was
 * stopped goes on where it was, and one that begins anew starts with an empty file.
 */
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs';
import fc from 'fast-check';
import { writeReliability } from '../support/print-docs.ts';
import { misused, numberOption, scriptOptions } from '../support/script-options.ts';
import { keepLongRun, LONG_RUN, longRun } from './long-run.ts';
import type { Target } from './mutations.ts';
import { TARGETS } from './targets.ts';

const USAGE = 'npm run fuzz -- [--minutes N | --each N] [--seed S] [--only NAME]';
const { values } = scriptOptions(USAGE, {
  options: { minutes: { type: 'string' }, each: { type: 'string' }, seed: { type: 'string' }, only: { type: 'string' } },
});
const minutes = numberOption(USAGE, 'minutes', values.minutes ?? '1', 0);
const each = values.each === undefined ? undefined : numberOption(USAGE, 'each', values.each, 0);
let seed = numberOption(USAGE, 'seed', values.seed ?? String(Date.now() % 2 ** 31), 0);
const targets = TARGETS.filter(({ name }) => values.only === undefined || name.includes(values.only));
if (targets.length === 0)
  misused(USAGE, `there is no target ${values.only}; there are ${TARGETS.map(({ name }) => name).join(', ')}`);
const MINUTE_MS = 60_000;
/** One turn of a target: what a run that is stopped loses at most. */
const SLICE_MS = each === undefined ? 1_000 : MINUTE_MS;
const broken = new Set<string>();
const inputs = new Map<string, number>();

mkdirSync(new URL('./corpus/', import.meta.url), { recursive: true });

/** Checks inputs until the time is over or one breaks the law, which is written to the corpus. Returns how many it checked. */
async function fuzz(target: Target, ms: number): Promise<number> {
  const until = Date.now() + ms;
  let count = 0;
  do {
    seed += 1;
    const result = await fc.check(
      fc.asyncProperty(target.input, async (input) => {
        await target.check(input);
      }),
      { seed, numRuns: target.runs, interruptAfterTimeLimit: Math.max(1000, until - Date.now()), markInterruptAsFailure: false },
    );
    count += result.numRuns;
    // A busy machine may end a turn before its first input: that is no finding.
    if (!result.failed || result.counterexample === null) continue;
    broken.add(target.name);
    const [input] = result.counterexample;
    const file = new URL(`./corpus/${target.name}-${seed}.json`, import.meta.url);
    const found = { target: target.name, seed, path: result.counterexamplePath, error: String(result.errorInstance), input };
    writeFileSync(file, `${JSON.stringify(found, null, 2)}\n`);
    const where = `seed ${seed}, path ${result.counterexamplePath ?? ''}, written to ${file.pathname}`;
    console.error(`${target.name}: ${String(result.errorInstance)}\n  ${where}`);
  } while (Date.now() < until && !broken.has(target.name));
  return count;
}

const until = Date.now() + minutes * MINUTE_MS;
const isDue = (name: string): boolean =>
  !broken.has(name) && (each === undefined ? Date.now() < until : (longRun().get(name)?.minutes ?? 0) < each);

for (let due = targets; due.length > 0; due = due.filter(({ name }) => isDue(name))) {
  for (const target of due.filter(({ name }) => isDue(name))) {
    const count = await fuzz(target, SLICE_MS);
    inputs.set(target.name, (inputs.get(target.name) ?? 0) + count);
    if (each === undefined) continue;
    const slice = {
      target: target.name,
      minutes: SLICE_MS / MINUTE_MS,
      inputs: count,
      findings: broken.has(target.name) ? 1 : 0,
    };
    appendFileSync(LONG_RUN, `${JSON.stringify(slice)}\n`);
  }
}
for (const [name, count] of inputs) console.log(`${name.padEnd(24)} ${count} inputs`);
console.log(`${broken.size} findings`);
if (each !== undefined) {
  keepLongRun();
  writeReliability();
}
process.exitCode = broken.size === 0 ? 0 : 1;
