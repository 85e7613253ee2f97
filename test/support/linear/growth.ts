/**
 * How the time of a piece of work grows with its input, as a ratio in one process: processor time of the process for `TIMES` times the input beside
 * that for the input, each the least of several runs, since other processes and collections only ever add.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/** How much larger the larger input is. */
export const TIMES = 4;
/** Between the 4 of a cost that grows as its input and the 16 of one that grows as its square. */
export const LIMIT = 6;
/** `JSON.parse` itself takes more than linear time for objects of ever new shapes. Work on these may grow so much faster than it. */
const OVER_ENGINE = 1.5;
/** The most rounds. Each adds runs to the same minimum, so noise goes away and a fault stays. */
const ROUNDS = 6;
/** Short work is repeated until a run takes about this long, in milliseconds: the clock and a switch of process weigh less. */
const LEAST_RUN_MS = 1.5;
/** What takes longer is measured once a round, and not in a size that is larger still: milliseconds. */
const SLOW_MS = 100;
const HUGE_MS = 500;
/** So much more than linear that further rounds cannot make it so, where it is long enough to be no noise. */
const SQUARE = 12;

/** The least time of one call of `run`, over its own repetitions. */
class Stopwatch {
  least = Number.POSITIVE_INFINITY;
  readonly #run: () => void;
  #repeats = 1;

  constructor(run: () => void) {
    this.#run = run;
  }

  measure(runs: number): void {
    for (let count = 0; count < runs && (count === 0 || this.least < SLOW_MS); count += 1) this.#measure();
  }

  #measure(): void {
    const before = process.cpuUsage();
    for (let count = 0; count < this.#repeats; count += 1) this.#run();
    const { user, system } = process.cpuUsage(before);
    const ms = Math.max(1, user + system) / 1000;
    this.least = Math.min(this.least, ms / this.#repeats);
    this.#repeats = Math.min(200, Math.max(1, Math.ceil(LEAST_RUN_MS / this.least)));
  }
}

export interface Growth {
  readonly ratio: number;
  readonly smallMs: number;
  readonly largeMs: number;
  /** What the ratio may be: more than `LIMIT` only where the engine's own `JSON.parse` of the same bytes grows as fast. */
  readonly limit: number;
  /** The time of the larger work beside that of parsing its bytes. */
  readonly overParse: number;
}

/** A piece of work, and the JSON texts that it cannot do without parsing. */
export interface Work {
  readonly run: () => void;
  readonly json: readonly string[];
}

/** One row of the law: how to make its work for a size. */
export interface Case {
  readonly name: string;
  readonly work: (count: number) => Work;
}

/** The smaller size: some 100 KB, so that a hidden square shows. */
const COUNT = 2000;

/**
 * How often a case is measured in a process of its own before it fails: where many tests share one, its compiler, its heap and what runs beside it
 * weigh on the sizes unlike. A square stays, and shows more, the larger it is: so these are larger than what found it.
 */
const TRIES = 4;
const ALONE = fileURLToPath(new URL('./alone.ts', import.meta.url));
/** What takes longer is no noise, and would take minutes in larger sizes: milliseconds. */
const ENDLESS_MS = 5_000;

export async function assertLinear(one: Case, count = COUNT): Promise<void> {
  let growth = growthOfCase(one, count);
  for (let tried = 0; tried < TRIES && growth.ratio > growth.limit && growth.largeMs < ENDLESS_MS; tried += 1) {
    const larger = String(Math.max(COUNT, tried % 2 === 0 ? count : count * TIMES));
    const { stdout } = await promisify(execFile)(process.execPath, [ALONE, one.name, larger]);
    growth = JSON.parse(stdout);
  }
  const { ratio, limit, smallMs, largeMs } = growth;
  const times = `${smallMs.toFixed(2)} ms, then ${largeMs.toFixed(2)} ms`;
  assert.ok(ratio <= limit, `${TIMES} times as much took ${ratio.toFixed(1)} times as long: ${times}`);
}

export function growthOfCase({ work }: Case, count = COUNT): Growth {
  const first = growthOf(work(count), work(count * TIMES));
  if (first.ratio <= first.limit || first.largeMs > HUGE_MS) return first;
  // Caches and collections may weigh more on the larger size; a square shows more, the larger it is.
  const second = growthOf(work(count * TIMES), work(count * TIMES * TIMES));
  return second.ratio / second.limit < first.ratio / first.limit ? second : first;
}

export function growthOf(small: Work, large: Work): Growth {
  const parse = ({ json }: Work) => new Stopwatch(() => json.forEach((text) => void JSON.parse(text)));
  const [less, more, lessParse, moreParse] = [new Stopwatch(small.run), new Stopwatch(large.run), parse(small), parse(large)];
  const ratio = (): number => more.least / less.least;
  const isLinear = (): boolean => ratio() <= LIMIT;
  const isPlain = (): boolean => isLinear() || (ratio() >= SQUARE && more.least > HUGE_MS);
  for (let round = 0; round === 0 || (round < ROUNDS && !isPlain()); round += 1) {
    for (const [watch, runs] of [
      [less, 5],
      [more, 2],
      [moreParse, 2],
    ] as const)
      watch.measure(runs);
  }
  if (!isLinear()) lessParse.measure(5);
  const limit = isLinear() ? LIMIT : Math.max(LIMIT, (OVER_ENGINE * moreParse.least) / lessParse.least);
  return {
    ratio: ratio(),
    limit,
    smallMs: less.least,
    largeMs: more.least,
    overParse: more.least / moreParse.least,
  };
}
