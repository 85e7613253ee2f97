/**
 * One process of each gateway serves everything: whole answers and full flow of all pairs, then 32 streams that speak each 2 ms.
 * That is what a gateway in use is like, and harder than one pair alone: its code has met many shapes, and its caches hold all of
 * them.
 */
import type { BenchDialect } from '../fixtures.ts';
import { type Client, type Contestant, contest, type Laps } from '../harness/contest.ts';
import { firstTokens } from '../harness/first-token.ts';
import { startGateway } from '../harness/gateway.ts';
import type { LoadJob, LoadResult } from '../harness/load.ts';
import { family, Load, residentBytes, startHarness } from '../harness/processes.ts';
import { addedRow, ratioRow, type Row } from '../harness/statistics.ts';
import { floorSubject, mizuSubject, type Pair, startRival, type Subject } from '../harness/subjects.ts';

export interface MixedOptions {
  /** {@link startRival}: each is measured beside this gateway and the pass-through. */
  readonly rivals: readonly string[];
  /** For the gateway's Node. */
  readonly nodeArgs: readonly string[];
  /** Where the upstream listens, for rivals that have to be told before; 0: anywhere. */
  readonly upstreamPort: number;
}

const DIALECTS: readonly BenchDialect[] = ['chat', 'responses', 'messages'];
const PAIRS: readonly Pair[] = DIALECTS.flatMap((client) => DIALECTS.map((upstream) => ({ client, upstream })));

const SHAPES = ['whole', 'full-flow', 'paced-2ms'] as const;
type Shape = (typeof SHAPES)[number];

const LAPS: Readonly<Record<Shape, { readonly count: number; readonly concurrency: number }>> = {
  whole: { count: 400, concurrency: 8 },
  'full-flow': { count: 300, concurrency: 8 },
  'paced-2ms': { count: 96, concurrency: 32 },
};

/** Ratios to the pass-through: a converted answer, and one that stays in its dialect. */
const GOALS: Readonly<Record<Shape, readonly [converted: number, same: number]>> = {
  whole: [3, 3],
  'full-flow': [3, 2.4],
  'paced-2ms': [1.4, 1.4],
};

/** Requests of each subject before anything is measured, and the longest that they may take: some rivals are slow. */
const WARM = 12_000;
const WARM_MS = 60_000;
const WARM_LAP = 50;
/** What is resident is looked at after so many requests. */
const RESIDENT_AFTER = 20_000;
const RESIDENT_GOAL_MIB = 160;
const MIB = 2 ** 20;

/** Where the first token is looked for. */
const FIRST_TOKEN: readonly { readonly pair: Pair; readonly shape: string; readonly name: string }[] = [
  { name: 'converted, full flow', pair: { client: 'messages', upstream: 'chat' }, shape: 'full-flow' },
  { name: 'converted, paced', pair: { client: 'messages', upstream: 'chat' }, shape: 'short' },
  { name: 'chat to chat, paced', pair: { client: 'chat', upstream: 'chat' }, shape: 'short' },
];
const FIRST_TOKEN_GOALS = { p50: 0.2, p99: 0.6 } as const;

/**
 * Counts the answers of one subject, right and broken: broken answers are fast, so whoever gave one in a case has no figure
 * there.
 */
class Tally implements Client {
  readonly #load: Load;
  answers = 0;
  broken = 0;
  why = '';

  constructor(load: Load) {
    this.#load = load;
  }

  async run(job: LoadJob): Promise<LoadResult> {
    const result = await this.#load.try(job);
    this.answers += job.count;
    this.broken += result.failed;
    this.why ||= result.firstFailure ?? '';
    return result;
  }

  /** Broken answers since the last look, in words; undefined for none. */
  complaint(): string | undefined {
    const said = this.broken === 0 ? undefined : `${this.broken} broken answers: ${this.why.slice(0, 120)}`;
    this.broken = 0;
    this.why = '';
    return said;
  }
}

interface Entrant {
  readonly subject: Subject;
  readonly tally: Tally;
}

export async function mixed(rounds: number, options: MixedOptions, suite = 'mixed'): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts', [String(options.upstreamPort)]);
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`;
  const load = await Load.start();
  const subjects = [
    floorSubject(await startHarness('pass-through.ts', [upstreamUrl])),
    mizuSubject(await startGateway(upstreamUrl, [], options.nodeArgs)),
  ];
  try {
    for (const description of options.rivals) subjects.push(await startRival(description, upstreamUrl));
    const entrants = subjects.map((subject) => ({ subject, tally: new Tally(load) }));
    for (const entrant of entrants) await warm(entrant);
    const rows: Row[] = [];
    for (const shape of SHAPES) for (const pair of PAIRS) rows.push(...(await costs(suite, pair, shape, entrants, load, rounds)));
    for (const each of FIRST_TOKEN) rows.push(...(await firstTokenRows(suite, each, subjects, load, rounds)));
    for (const entrant of entrants.slice(0, 2)) await reach(entrant, RESIDENT_AFTER);
    rows.push(...residents(suite, entrants));
    return rows;
  } finally {
    await Promise.all([load, upstream, ...subjects].map((each) => each.stop()));
  }
}

function asks({ subject }: Entrant, shapes: readonly string[]): Contestant['job'][] {
  return shapes.flatMap((shape) => PAIRS.flatMap((pair) => subject.ask(pair, shape) ?? []));
}

/** All pairs by turns, so that compilers see what will come. */
async function warm(entrant: Entrant): Promise<void> {
  const all = asks(entrant, ['whole', 'full-flow']);
  const from = performance.now();
  for (let at = 0; entrant.tally.answers < WARM && performance.now() - from < WARM_MS; at++) {
    const job = all[at % all.length];
    if (job === undefined) return;
    await entrant.tally.run({ ...job, count: WARM_LAP, concurrency: 8 });
  }
  for (const job of asks(entrant, ['paced-2ms'])) await entrant.tally.run({ ...job, count: 32, concurrency: 32 });
  entrant.tally.complaint();
}

async function reach(entrant: Entrant, answers: number): Promise<void> {
  const all = asks(entrant, ['full-flow']);
  for (let at = 0; entrant.tally.answers < answers; at++) {
    const job = all[at % all.length];
    if (job === undefined) return;
    await entrant.tally.run({ ...job, count: 200, concurrency: 8 });
  }
}

async function costs(
  suite: string,
  pair: Pair,
  shape: Shape,
  entrants: readonly Entrant[],
  load: Load,
  rounds: number,
): Promise<Row[]> {
  const contestants: Record<string, Contestant> = {};
  for (const { subject, tally } of entrants) {
    const job = subject.ask(pair, shape);
    if (job !== undefined) contestants[subject.name] = { pids: treeOf(subject), job, load: tally };
  }
  const laps: Readonly<Record<string, Laps>> = await contest(load, contestants, { rounds, ...LAPS[shape], warmAtMost: 0 });
  const [floor, ...others] = entrants;
  const bare = laps[floor?.subject.name ?? '']?.micros ?? [];
  const name = `${shape}, ${pair.upstream} upstream to ${pair.client}`;
  const unit = 'µs of processor time a request';
  return others.flatMap(({ subject, tally }) => {
    const own = laps[subject.name];
    const complaint = tally.complaint();
    if (own === undefined) return [];
    const of = subject.name;
    if (complaint !== undefined) return [{ suite, name: `${name}; ${of}`, unit: complaint, subject: Number.NaN, of, work: name }];
    if (own.micros.length === 0) return [];
    const goal = of === 'Mizu' ? { goal: GOALS[shape][pair.client === pair.upstream ? 1 : 0] } : {};
    return [{ ...ratioRow({ suite, name: `${name}; ${of}`, unit, ...goal }, bare, own.micros), of, work: name }];
  });
}

async function firstTokenRows(
  suite: string,
  { pair, shape, name }: (typeof FIRST_TOKEN)[number],
  subjects: readonly Subject[],
  load: Load,
  rounds: number,
): Promise<Row[]> {
  const contestants: Record<string, Contestant> = {};
  for (const subject of subjects) {
    const job = subject.ask(pair, shape);
    if (job !== undefined) contestants[subject.name] = { pids: [], job };
  }
  const found = await firstTokens(load, contestants, rounds);
  const floor = found[subjects[0]?.name ?? ''];
  return subjects.slice(1).flatMap(({ name: of }) => {
    const own = found[of];
    if (own === undefined || floor === undefined) return [];
    return (['p50', 'p99'] as const).map((share) => {
      const work = `first token, concurrency 1, ${share}: ${name}`;
      const goal = of === 'Mizu' ? { goal: FIRST_TOKEN_GOALS[share] } : {};
      return { ...addedRow({ suite, name: `${work}; ${of}`, unit: 'ms', ...goal }, floor[share], own[share]), of, work };
    });
  });
}

function residents(suite: string, entrants: readonly Entrant[]): Row[] {
  const [floor, ...others] = entrants;
  const bare = floor === undefined ? Number.NaN : residentOf(floor.subject);
  return others.flatMap(({ subject, tally }) => {
    const own = residentOf(subject);
    if (Number.isNaN(own)) return [];
    const work = 'resident at the end';
    const name = `${work}, after ${tally.answers} requests; ${subject.name}`;
    const goal = subject.name === 'Mizu' ? { goal: Math.max(RESIDENT_GOAL_MIB, 1.25 * bare), goalIs: 'subject' as const } : {};
    return [{ suite, name, unit: 'MiB', floor: bare, subject: own, ratio: own / bare, of: subject.name, work, ...goal }];
  });
}

function treeOf({ pid }: Subject): number[] {
  return pid === undefined ? [] : family(pid);
}

function residentOf(subject: Subject): number {
  const tree = treeOf(subject);
  return tree.length === 0 ? Number.NaN : tree.reduce((sum, pid) => sum + residentBytes(pid), 0) / MIB;
}
