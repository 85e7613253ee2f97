/**
 * How the time of a piece of work grows with its input, as a ratio in one process: processor time of the process for `TIMES` times the input beside
 * that for the input, each the least of several runs, since other processes and collections only ever add.
 */
import assert from 'node:assert/strict';

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
/** What takes longer is measured once a round, or not again: milliseconds. */
const SLOW_MS = 100;
const HOPELESS_MS = 500;

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

/** A case is measured anew before it fails: what runs beside it on a busy machine differs from time to time, a square stays. */
const TRIES = 3;

export function growthOfCase(one: Case, count = COUNT): Growth {
  let best = measured(one, count);
  for (let tried = 1; tried < TRIES && best.ratio > best.limit && best.largeMs <= HOPELESS_MS; tried += 1) {
    const again = measured(one, count);
    if (again.ratio / again.limit < best.ratio / best.limit) best = again;
  }
  return best;
}

function measured({ work }: Case, count: number): Growth {
  const first = growthOf(work(count), work(count * TIMES));
  if (first.ratio <= first.limit || first.largeMs > HOPELESS_MS) return first;
  // Caches and collections may weigh more on the larger size; a square shows more, the larger it is.
  const second = growthOf(work(count * TIMES), work(count * TIMES * TIMES));
  return second.ratio / second.limit < first.ratio / first.limit ? second : first;
}

export function growthOf(small: Work, large: Work): Growth {
  const parse = ({ json }: Work) => new Stopwatch(() => json.forEach((text) => void JSON.parse(text)));
  const [less, more, lessParse, moreParse] = [new Stopwatch(small.run), new Stopwatch(large.run), parse(small), parse(large)];
  const isLinear = (): boolean => more.least / less.least <= LIMIT;
  for (let round = 0; round === 0 || (round < ROUNDS && !isLinear() && more.least < HOPELESS_MS); round += 1) {
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
    ratio: more.least / less.least,
    limit,
    smallMs: less.least,
    largeMs: more.least,
    overParse: more.least / moreParse.least,
  };
}

export function assertLinear({ ratio, limit, smallMs, largeMs }: Growth): void {
  const times = `${smallMs.toFixed(2)} ms, then ${largeMs.toFixed(2)} ms`;
  assert.ok(ratio <= limit, `${TIMES} times as much took ${ratio.toFixed(1)} times as long: ${times}`);
}
