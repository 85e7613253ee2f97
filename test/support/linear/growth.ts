/**
 * How the time of a piece of work grows with its input, as a ratio in one process: processor time of the process for `TIMES`
 * times the input beside that for the input, each the least of several runs, since other processes and collections only ever add.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

/**
 * How much larger the larger input of a sample is, and its limit: between the 4 of a cost that grows as its input and the 16 of a
 * square.
 */
const SAMPLE = { times: 4, limit: 6 };
/**
 * What a case that failed its sample is held to, in processes of its own. Sixteen times as much tells 16 from 256: the limit is
 * the geometric middle, so noise would have to make one side four times as slow in every try, and one step of the engine (objects
 * of 1,020 members and more become dictionaries) does not look like a square.
 */
const VERDICT = { times: 16, limit: 64 };
/** The smaller input of a verdict: some 100 KB, past the steps of the engine. */
const COUNT = 2000;
/**
 * What took less than this for the larger input of a failed verdict is held to the same bound once more, sixteen times as large,
 * in milliseconds: from 256 KiB the gateway reads a body in steps, which costs a small body's work many times over once, and
 * never again. A square shows there, too.
 */
const STEP_MS = 20;
/** How many processes measure a verdict. The least time of each size over all of them counts. */
const TRIES = 4;
/**
 * `JSON.parse` itself takes more than linear time for objects of ever new shapes. Work on these may grow so much faster than it.
 */
const OVER_ENGINE = 1.5;
/** The most rounds. Each adds a run to both minima, so noise goes away and a fault stays. */
const ROUNDS = 24;
/** The most rounds of a cost that is over its limit: some 100 runs. */
const WARM_ROUNDS = 36;
/** Short work is repeated until a run takes about this long, in milliseconds: the clock and a switch of process weigh less. */
const LEAST_RUN_MS = 1.5;
/** What takes longer is measured once a round: milliseconds. */
const SLOW_MS = 100;
/** What takes longer, and grows twice as fast as it may, is not measured again in this process: milliseconds. */
const HUGE_MS = 500;

/** The least time of one call of `run`, over its own repetitions. */
class Stopwatch {
  least = Number.POSITIVE_INFINITY;
  readonly #run: Work['run'];
  #repeats = 1;

  constructor(run: Work['run']) {
    this.#run = run;
  }

  async measure(runs: number): Promise<void> {
    for (let count = 0; count < runs && (count === 0 || this.least < SLOW_MS); count += 1) await this.#measure();
  }

  async #measure(): Promise<void> {
    const before = process.cpuUsage();
    for (let count = 0; count < this.#repeats; count += 1) {
      const running = this.#run();
      if (running !== undefined) await running;
    }
    const { user, system } = process.cpuUsage(before);
    const ms = Math.max(1, user + system) / 1000;
    this.least = Math.min(this.least, ms / this.#repeats);
    this.#repeats = Math.min(200, Math.max(1, Math.ceil(LEAST_RUN_MS / this.least)));
  }
}

/** Least times of the smaller and the larger work, in milliseconds, and how much longer parsing their JSON takes the engine. */
export interface Times {
  readonly small: number;
  readonly large: number;
  readonly engine: number;
}

/** A piece of work, and the JSON texts that it cannot do without parsing. */
export interface Work {
  readonly run: () => void | Promise<void>;
  readonly json: readonly string[];
  /** Lets go of what the work needs. */
  readonly close?: () => Promise<void>;
}

/** One row of the law: how to make its work for a size. */
export interface Case {
  readonly name: string;
  readonly work: (count: number) => Work | Promise<Work>;
  /** Of what a limit bounds, or what does not grow with its input: sizes and limit of its own, in every measurement. */
  readonly own?: OwnBound;
}

export interface OwnBound extends Bound {
  /** The smaller input. */
  readonly count: number;
}

interface Bound {
  readonly times: number;
  readonly limit: number;
}

/** What parsing costs: a body of small objects, as conversations and schemas are, in bytes. */
const PLAIN = JSON.stringify(Array.from({ length: 8_000 }, (_, at) => ({ role: 'user', content: `word ${at}` })));
/**
 * What a request may cost beside `JSON.parse` of as many bytes of small objects. Not of its own bytes: a long string is copied
 * when it is parsed, and nothing is cheap beside that. A keyword of a schema is read, weighed, lowered for an upstream, perhaps
 * more than once, and written.
 */
const COST = { conversation: 40, schema: 120 };

const costLimitOf = ({ name }: Case): number => (/tool: |format: /.test(name) ? COST.schema : COST.conversation);

const ALONE = fileURLToPath(new URL('./alone.ts', import.meta.url));

/**
 * Throws where a case is worse than linear: its sample in this process says so, and then every process that measures it alone.
 */
export async function assertLinear(one: Case, count = COUNT, tries = TRIES): Promise<void> {
  const { own } = one;
  const sample = own ?? SAMPLE;
  const verdict = own ?? VERDICT;
  if (isLinear(await timesOf(one, own?.count ?? count, sample), sample)) return;
  let times: Times = { small: Number.POSITIVE_INFINITY, large: Number.POSITIVE_INFINITY, engine: 0 };
  for (let tried = 0; tried < tries; tried += 1) {
    const { stdout } = await promisify(execFile)(process.execPath, [ALONE, one.name]);
    const { small, large, engine }: Times = JSON.parse(stdout);
    times = {
      small: Math.min(times.small, small),
      large: Math.min(times.large, large),
      engine: Math.max(times.engine, engine),
    };
    if (isLinear(times, verdict)) return;
  }
  if (own === undefined && times.large < STEP_MS) {
    const { stdout } = await promisify(execFile)(process.execPath, [ALONE, one.name, 'past']);
    times = JSON.parse(stdout);
    if (isLinear(times, verdict)) return;
  }
  const { small, large } = times;
  const took = `${(large / small).toFixed(1)} times as long: ${small.toFixed(2)} ms, then ${large.toFixed(2)} ms`;
  assert.fail(`${one.name}: ${verdict.times} times as much took ${took}`);
}

/** Throws where a request costs more than it may, in this process and then in every one that measures it alone. */
export async function assertAffordable(one: Case): Promise<void> {
  const limit = costLimitOf(one);
  let cost = await costOf(one);
  for (let tried = 0; tried < TRIES && cost > limit; tried += 1) {
    const { stdout } = await promisify(execFile)(process.execPath, [ALONE, one.name, 'cost']);
    cost = Math.min(cost, Number(stdout));
  }
  assert.ok(cost <= limit, `${one.name}: ${cost.toFixed(0)} times what parsing as many bytes takes; ${limit} are allowed`);
}

/**
 * How many times as long the work takes as `JSON.parse` of as many bytes of small objects. What costs more than it may is measured
 * again until its code is compiled: the engine's own parser always is.
 */
export async function costOf(one: Case): Promise<number> {
  const { run, json } = await one.work(COUNT);
  const watch = new Stopwatch(run);
  const bytes = json.reduce((sum, text) => sum + text.length, 0);
  const cost = (): number => watch.least / (plainParse.least * (bytes / PLAIN.length));
  // A first run is dear: where even that is cheap enough, nothing is gained by another.
  for (let round = 0; round === 0 || (round < WARM_ROUNDS && cost() > costLimitOf(one)); round += 1) {
    await watch.measure(round === 0 ? 1 : 3);
    await plainParse.measure(3);
  }
  return cost();
}

/** One for all: the more cases there were, the surer is its least time, and the stricter the law. */
const plainParse = new Stopwatch(() => void JSON.parse(PLAIN));

/** The times of a verdict; `past`: with the larger input of another as the smaller. */
export const verdictOf = (one: Case, past = false): Promise<Times> =>
  timesOf(one, one.own?.count ?? (past ? COUNT * VERDICT.times : COUNT), one.own ?? VERDICT);

/** Over its limit a case is linear only where the engine's own parsing of the same bytes grows as fast. */
const isLinear = ({ small, large, engine }: Times, { limit }: Bound): boolean =>
  large / small <= Math.max(limit, OVER_ENGINE * engine);

async function timesOf({ work }: Case, count: number, bound: Bound): Promise<Times> {
  const [small, large] = [await work(count), await work(count * bound.times)];
  try {
    return await growthOf(small, large, bound);
  } finally {
    await small.close?.();
    await large.close?.();
  }
}

async function growthOf(small: Work, large: Work, bound: Bound): Promise<Times> {
  const parse = ({ json }: Work) => new Stopwatch(() => json.forEach((text) => void JSON.parse(text)));
  const [less, more, lessParse, moreParse] = [new Stopwatch(small.run), new Stopwatch(large.run), parse(small), parse(large)];
  const ratio = (): number => more.least / less.least;
  const isPlain = (): boolean => ratio() <= bound.limit || (ratio() >= 2 * bound.limit && more.least > HUGE_MS);
  // The smaller one first, which compiles what both need. Where the ratio is small though the larger one ran but once or twice,
  // more runs of it would tell nothing else.
  await less.measure(1);
  await more.measure(1);
  await less.measure(2);
  for (let round = 0; round < ROUNDS && !isPlain(); round += 1) {
    await more.measure(1);
    await less.measure(1);
  }
  if (ratio() <= bound.limit) return { small: less.least, large: more.least, engine: 1 };
  await lessParse.measure(5);
  await moreParse.measure(5);
  return { small: less.least, large: more.least, engine: moreParse.least / lessParse.least };
}
