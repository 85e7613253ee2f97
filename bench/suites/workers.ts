/**
 * Two workers beside one process. Client and upstream run on the same cores, so requests a second cannot double on two of them.
 * What says how workers scale is the processor time of all of their processes a request: two cores with nothing else to do give
 * two workers `2 × cost of one / cost of two` of what one process does on one. What they lose to each other (the shared store,
 * the primary that hands out connections) is in the cost of two. Each worker is kept on a core of its own where `taskset` exists.
 */
import { execFileSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { answerHolds, CLIENT_PATHS, requestBody } from '../fixtures.ts';
import { type Contestant, contest, type Laps } from '../harness/contest.ts';
import { type Gateway, modelOf, startGateway } from '../harness/gateway.ts';
import { family, Load, startHarness } from '../harness/processes.ts';
import { median, ratioRow, type Row, spread } from '../harness/statistics.ts';

const WORKERS = 2;
const GOAL = 1.8;
const SHAPES = ['full-flow', 'whole'] as const;
/**
 * Requests in flight for each worker: the one process gets so many too, so that all gather what they write in batches of like
 * size.
 */
const IN_FLIGHT = 16;
const LAP = { count: 2_000, concurrency: IN_FLIGHT, warmAtMost: 40_000 } as const;

export async function workers(rounds: number, nodeArgs: readonly string[]): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`;
  const one = await startGateway(upstreamUrl, [], nodeArgs);
  const two = await startGateway(upstreamUrl, ['--workers', String(WORKERS)], nodeArgs);
  const load = await Load.start();
  try {
    const all = family(two.pid);
    keepApart([one.pid]);
    keepApart(all.filter((pid) => pid !== two.pid));
    const rows: Row[] = [];
    for (const shape of SHAPES) {
      const contestants = {
        one: { pids: [one.pid], job: jobOf(one, shape) },
        two: { pids: all, job: jobOf(two, shape), concurrency: IN_FLIGHT * WORKERS },
      };
      const laps = await contest(load, contestants, { rounds, ...LAP });
      rows.push(...compared(`${WORKERS} workers, ${shape}`, laps));
    }
    return rows;
  } finally {
    await Promise.all([load.stop(), two.stop(), one.stop(), upstream.stop()]);
  }
}

function compared(name: string, { one, two }: Record<'one' | 'two', Laps>): Row[] {
  const suite = 'workers';
  const factors = one.micros.map((cost, round) => (WORKERS * cost) / (two.micros[round] ?? Number.NaN));
  return [
    {
      suite,
      name: `${name}: capacity by processor time`,
      unit: '× one process (more is better)',
      subject: median(factors),
      spread: spread(factors),
      goal: GOAL,
      goalIs: 'subject',
      atLeast: true,
    },
    ratioRow(
      { suite, name: `${name}; floor: one process`, unit: 'µs of processor time a request, all processes' },
      one.micros,
      two.micros,
    ),
    ratioRow(
      {
        suite,
        name: `${name}: requests, client and upstream on the same cores; floor: one process`,
        unit: 'requests a second (more is better)',
        atLeast: true,
      },
      one.perSecond,
      two.perSecond,
    ),
  ];
}

function jobOf(gateway: Gateway, shape: (typeof SHAPES)[number]): Contestant['job'] {
  const stream = shape !== 'whole';
  return {
    url: `${gateway.url}${CLIENT_PATHS.messages}`,
    headers: { authorization: `Bearer ${gateway.key}` },
    body: requestBody('messages', modelOf('chat', shape), stream),
    mustHold: answerHolds('messages', stream),
  };
}

/** Each on a core of its own, all of its threads. Without `taskset` the scheduler keeps them apart as well as it can. */
function keepApart(pids: readonly number[]): void {
  if (pids.length > availableParallelism()) throw new Error(`${pids.length} workers need as many cores`);
  for (const [core, pid] of pids.entries()) {
    try {
      execFileSync('taskset', ['-a', '-p', '-c', String(core), String(pid)], { stdio: 'ignore' });
    } catch {
      return;
    }
  }
}
