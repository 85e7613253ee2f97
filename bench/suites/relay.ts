/**
 * The whole gateway through loopback beside the floors, by turns in one run: processor time a request of the subject's process,
 * requests a second, and what is added to the time to the first token at concurrency 1.
 */
import { answerHolds, type BenchDialect, CLIENT_PATHS, requestBody } from '../fixtures.ts';
import { type Contestant, contest, type Laps } from '../harness/contest.ts';
import { firstTokens } from '../harness/first-token.ts';
import { modelOf, startGateway } from '../harness/gateway.ts';
import { startNginx } from '../harness/nginx.ts';
import { Load, startHarness } from '../harness/processes.ts';
import { addedRow, ratioRow, type Row } from '../harness/statistics.ts';

interface Two<T> {
  readonly floor: T;
  readonly mizu: T;
}
interface Beside<T> extends Two<T> {
  nginx?: T;
}

interface Case {
  readonly name: string;
  readonly client: BenchDialect;
  readonly upstream: BenchDialect;
  readonly shape: 'full-flow' | 'many-chunks' | 'paced' | 'whole';
  /** The most that the ratio to the floor should be. */
  readonly goal?: number;
}

const CASES: readonly Case[] = [
  { name: 'converted stream, full flow', client: 'messages', upstream: 'chat', shape: 'full-flow', goal: 1.6 },
  { name: 'converted stream, 100 HTTP chunks a packet', client: 'messages', upstream: 'chat', shape: 'many-chunks' },
  { name: 'converted stream, paced', client: 'messages', upstream: 'chat', shape: 'paced', goal: 1.4 },
  { name: 'same dialect, full flow', client: 'chat', upstream: 'chat', shape: 'full-flow', goal: 1.4 },
  { name: 'same dialect, paced', client: 'chat', upstream: 'chat', shape: 'paced', goal: 1.35 },
  { name: 'converted whole answer', client: 'messages', upstream: 'chat', shape: 'whole', goal: 3 },
];

/** A paced answer takes a tenth of a second and a hundred writes: fewer of them say as much. */
const LAPS = {
  'full-flow': { count: 1_000, concurrency: 8, warmAtMost: 20_000 },
  'many-chunks': { count: 1_000, concurrency: 8, warmAtMost: 20_000 },
  paced: { count: 300, concurrency: 64, warmAtMost: 3_000 },
  whole: { count: 1_500, concurrency: 8, warmAtMost: 21_000 },
} as const;

/** The first token of a paced stream is as far away when little comes after it. */
const FIRST_TOKEN_SHAPES = { 'full-flow': 'full-flow', 'many-chunks': undefined, paced: 'short', whole: undefined } as const;
const FIRST_TOKEN_GOALS = { p50: 0.1, p99: 1 } as const;

/** `nodeArgs` are for the gateway's Node. */
export async function relay(rounds: number, nodeArgs: readonly string[]): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`;
  const floor = await startHarness('pass-through.ts', [upstreamUrl]);
  const nginx = await startNginx(upstream.port);
  const gateway = await startGateway(upstreamUrl, [], nodeArgs);
  const load = await Load.start();
  const contestants = ({ client, upstream: dialect }: Case, shape: string): Two<Contestant> => ({
    floor: { pids: [floor.pid], job: unchanged(`http://127.0.0.1:${floor.port}`, dialect, shape) },
    mizu: {
      pids: [gateway.pid],
      job: {
        url: `${gateway.url}${CLIENT_PATHS[client]}`,
        headers: { authorization: `Bearer ${gateway.key}` },
        body: requestBody(client, modelOf(dialect, shape), shape !== 'whole'),
        mustHold: answerHolds(client, shape !== 'whole'),
      },
    },
  });
  try {
    const rows: Row[] = [];
    for (const each of CASES) {
      const all: Beside<Contestant> = contestants(each, each.shape);
      if (nginx) all.nginx = { pids: nginx.pids, job: unchanged(nginx.url, each.upstream, each.shape) };
      const laps = await contest(load, all, { rounds, ...LAPS[each.shape] });
      rows.push(...costs(each, laps));
      const shape = FIRST_TOKEN_SHAPES[each.shape];
      if (shape !== undefined) rows.push(...(await firstTokenRows(each, load, contestants(each, shape), rounds)));
    }
    return rows;
  } finally {
    await Promise.all([load.stop(), gateway.stop(), nginx?.stop(), floor.stop(), upstream.stop()]);
  }
}

/** What a floor is asked: it passes on what the upstream takes and says. */
function unchanged(url: string, dialect: BenchDialect, shape: string): Contestant['job'] {
  const stream = shape !== 'whole';
  return {
    url: `${url}${CLIENT_PATHS[dialect]}`,
    headers: {},
    body: requestBody(dialect, shape, stream),
    mustHold: answerHolds(dialect, stream),
  };
}

function costs({ name, shape, goal }: Case, { floor, mizu, nginx }: Beside<Laps>): Row[] {
  const time = { suite: 'relay', unit: 'µs of processor time a request' };
  // How many paced answers there are in a second is the upstream's affair.
  const rate =
    shape === 'paced' ? undefined : { suite: 'relay', unit: 'requests a second (more is better)', atLeast: true as const };
  const rows = [ratioRow({ ...time, name, ...(goal === undefined ? {} : { goal }) }, floor.micros, mizu.micros)];
  if (rate) rows.push(ratioRow({ ...rate, name: `${name}: requests` }, floor.perSecond, mizu.perSecond));
  if (nginx === undefined) return rows;
  rows.push(ratioRow({ ...time, name: `${name}; floor: nginx` }, nginx.micros, mizu.micros));
  if (rate) rows.push(ratioRow({ ...rate, name: `${name}: requests; floor: nginx` }, nginx.perSecond, mizu.perSecond));
  return rows;
}

async function firstTokenRows({ name }: Case, load: Load, contestants: Two<Contestant>, rounds: number): Promise<Row[]> {
  const { floor, mizu } = await firstTokens(load, contestants, rounds);
  return (['p50', 'p99'] as const).map((share) =>
    addedRow(
      {
        suite: 'relay',
        name: `${name}: first token, concurrency 1, ${share}`,
        unit: `ms (${share})`,
        goal: FIRST_TOKEN_GOALS[share],
      },
      floor[share],
      mizu[share],
    ),
  );
}
