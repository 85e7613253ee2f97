/**
 * What the first requests of a process cost beside warm ones: compiled code and filled caches are made by the first thousands.
 * Two ways to meet a fresh process: at once when `/readyz` says yes, with what its warm-up costs meanwhile counted, and after the
 * line that tells the warm-up's end.
 */
import { startGateway } from '../harness/gateway.ts';
import { Load, processorMicros, startHarness } from '../harness/processes.ts';
import { ratioRow, type Row } from '../harness/statistics.ts';
import { mizuSubject, type Pair } from '../harness/subjects.ts';

const FIRST = 1_000;
const LAP = 100;
const CONCURRENCY = 8;
const WARM = 12_000;
const PAIRS: readonly Pair[] = [
  { client: 'messages', upstream: 'chat' },
  { client: 'chat', upstream: 'chat' },
];
const SHAPES = ['full-flow', 'whole'] as const;
const GOALS = { 'at once': 2, 'after the warm-up': 1.3 } as const;
/** The longest warm-up that is waited for. */
const WARM_UP_MS = 30_000;

export async function cold(rounds: number, nodeArgs: readonly string[]): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const load = await Load.start();
  try {
    const rows: Row[] = [];
    for (const when of ['at once', 'after the warm-up'] as const) {
      const [firsts, warms]: [number[], number[]] = [[], []];
      for (let round = 0; round < rounds; round++) {
        const { first, warm } = await oneProcess(`http://127.0.0.1:${upstream.port}`, load, when, nodeArgs);
        firsts.push(first);
        warms.push(warm);
      }
      rows.push(
        ratioRow(
          {
            suite: 'cold',
            name: `requests 1 to ${FIRST} of a fresh process, ${when}; floor: warm ones`,
            unit: 'µs of processor time a request',
            goal: GOALS[when],
          },
          warms,
          firsts,
        ),
      );
    }
    return rows;
  } finally {
    await Promise.all([load.stop(), upstream.stop()]);
  }
}

async function oneProcess(url: string, load: Load, when: keyof typeof GOALS, nodeArgs: readonly string[]) {
  const gateway = await startGateway(url, [], nodeArgs);
  const mizu = mizuSubject(gateway);
  const jobs = PAIRS.flatMap((pair) => SHAPES.flatMap((shape) => mizu.ask(pair, shape) ?? []));
  let turn = 0;
  const micros = async (requests: number): Promise<number> => {
    const before = processorMicros(gateway.pid);
    for (let sent = 0; sent < requests; sent += LAP) {
      const job = jobs[turn++ % jobs.length];
      if (job === undefined) throw new Error('every pair is served');
      await load.run({ ...job, count: LAP, concurrency: CONCURRENCY });
    }
    return (processorMicros(gateway.pid) - before) / requests;
  };
  try {
    if (when !== 'at once') await gateway.logged('warm-up', WARM_UP_MS);
    const first = await micros(FIRST);
    await micros(WARM);
    return { first, warm: await micros(2 * FIRST) };
  } finally {
    await gateway.stop();
  }
}
