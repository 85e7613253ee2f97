/**
 * `npm run mutation -- ROOM [--count N] [--seed N] [--again] [--fresh]`: small changes of a room's code, drawn by a seed, each
 * against the test files that run its place, until the first failure. What nobody notices is printed and wants a test, or the
 * reason why it makes no difference (`equivalent` in its line of `results/ROOM.jsonl`). A run that was stopped goes on where it
 * was; `--again` runs anew what survived, against every test file that runs its place, `--fresh` looks anew which test file runs
 * what.
 */
import { dirname } from 'node:path';
import { writeContributing } from '../support/print-docs.ts';
import { misused, numberOption, scriptOptions } from '../support/script-options.ts';
import { type Coverage, collectAll, covering, testFiles } from './coverage.ts';
import { append, figuresOf, ROOMS, type Row, readResults, rowOf, SAMPLE, settle } from './results.ts';
import { runMutant } from './run-test.ts';
import { compiling, drawn, type Mutant, mutated } from './sample.ts';

const USAGE = `npm run mutation -- ${Object.keys(ROOMS).join('|')} [--count N] [--seed N] [--again] [--fresh]`;
/** Children at a time. */
const HANDS = 2;
/** Test files of other folders that a mutant is run against at first, those that take the least time. */
const MOST_OTHERS = 10;
/** A test file that takes longer runs for no mutant. Milliseconds. */
const LONGEST = 60_000;

const { values, positionals } = scriptOptions(USAGE, {
  options: {
    count: { type: 'string', default: String(SAMPLE) },
    seed: { type: 'string', default: '1' },
    again: { type: 'boolean', default: false },
    fresh: { type: 'boolean', default: false },
  },
  allowPositionals: true,
});
const [room = '', ...more] = positionals;
const patterns = ROOMS[room];
if (patterns === undefined || more.length > 0) misused(USAGE, `a room is one of ${Object.keys(ROOMS).join(', ')}`);
const count = numberOption(USAGE, 'count', values.count);
const seed = numberOption(USAGE, 'seed', values.seed, 0);

// What it has started ends with it, and what it has found stands already.
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(1));

const coverage = await collectAll(testFiles(), HANDS, values.fresh);
const known = readResults(room);
/** How many mutants of a source file a test file has killed: those that did come first for the next. */
const kills = new Map<string, number>();
/** The least time that a test file took, in milliseconds. */
const times = new Map<string, number>();
const timeOf = ({ test, ms }: Pick<Coverage, 'test' | 'ms'>): number => times.get(test) ?? ms;
const taken = new Set<string>();
const next = waiting(patterns);
await Promise.all(Array.from({ length: HANDS }, work));
settle(room, taken);
writeContributing();

const rows = readResults(room);
const { ran, equivalent, killed, survived } = figuresOf(rows.values());
console.log(`${room}: ${ran} mutants, ${equivalent} equivalent, ${killed} killed, ${survived} survived`);

/** The mutants of the sample that still have to be run: the first so many that compile. */
function* waiting(patterns: readonly string[]): Generator<Mutant> {
  const all = drawn(patterns, seed);
  let valid = 0;
  while (valid < count && all.length > 0) {
    const some = all.splice(0, 2 * (count - valid));
    const compile = compiling(some.filter(({ id }) => !known.has(id)));
    for (const mutant of some) {
      if (valid === count) return;
      taken.add(mutant.id);
      const row = known.get(mutant.id);
      const isMutant = row === undefined ? compile.has(mutant) : row.verdict !== 'does not compile';
      if (isMutant) valid++;
      else if (row === undefined) append(room, rowOf(mutant, 'does not compile'));
      if (isMutant && (row === undefined || (values.again && row.verdict === 'survived' && row.equivalent === undefined)))
        yield mutant;
    }
  }
}

async function work(): Promise<void> {
  for (const mutant of next) {
    const row = await judge(mutant);
    append(room, row);
    if (row.verdict === 'survived')
      console.log(`survived: ${mutant.file}:${mutant.line} ${mutant.original} → ${mutant.text} (${row.id})`);
  }
}

async function judge(mutant: Mutant): Promise<Row> {
  for (const { test, ms } of testsFor(mutant)) {
    const { passed, isTimeout, failure, ms: took } = await runMutant(mutant.file, mutated(mutant), test, timeOf({ test, ms }));
    if (passed) {
      times.set(test, Math.min(took, timeOf({ test, ms })));
      continue;
    }
    const key = `${mutant.file} ${test}`;
    kills.set(key, (kills.get(key) ?? 0) + 1);
    return rowOf(mutant, isTimeout ? 'killed by time' : 'killed', isTimeout ? test : `${test}: ${failure ?? ''}`.slice(0, 160));
  }
  return rowOf(mutant, 'survived');
}

/**
 * All of its own folder, and then some others; first those that run much of the source in little time, and those that killed
 * others of it.
 */
function testsFor({ file, runsAt }: Mutant): Coverage[] {
  const all = covering(coverage, file, runsAt).filter((one) => timeOf(one) <= LONGEST);
  const own = ownFolder(file);
  const others = all.filter(({ test }) => dirname(test) !== own).slice(0, values.again ? all.length : MOST_OTHERS);
  const worth = ({ test, sources }: Coverage): number =>
    (sources[file]?.spans.length ?? 0) * (1 + 4 * (kills.get(`${file} ${test}`) ?? 0));
  const price = (one: Coverage): number => timeOf(one) / worth(one);
  const byPrice = (some: Coverage[]): Coverage[] => some.sort((a, b) => price(a) - price(b));
  return [...byPrice(all.filter(({ test }) => dirname(test) === own)), ...byPrice(others)];
}

/** The folder of tests that is nearest to a source file's. */
function ownFolder(file: string): string {
  const folders = new Set(coverage.map(({ test }) => dirname(test)));
  let folder = dirname(file).replace(/^src/, 'test');
  while (!folders.has(folder) && folder !== 'test') folder = dirname(folder);
  return folder;
}
