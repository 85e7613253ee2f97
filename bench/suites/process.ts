/** The process as a whole: how long it takes to start, and how long large histories hold its event loop. */
import { startGateway } from '../harness/gateway.ts';
import { Load, startHarness } from '../harness/processes.ts';
import { CLIENT_PATHS } from '../fixtures.ts';
import { ratioRow, type Row } from '../harness/statistics.ts';
import { modelOf } from '../harness/gateway.ts';
import { historyBody } from '../shapes.ts';

/** From the spawn to the first 200 of `/readyz`, beside the floor's start. The gateway finds what an earlier start compiled; the floor has one small file. */
export async function startUp(rounds: number): Promise<Row[]> {
  const floors: number[] = [];
  const subjects: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    const floor = await startHarness('pass-through.ts', ['http://127.0.0.1:9']);
    floors.push(performance.now() - started);
    await floor.stop();
    const gateway = await startGateway('http://127.0.0.1:9');
    subjects.push(gateway.startMs);
    await gateway.stop();
  }
  return [ratioRow({ suite: 'start-up', name: 'spawn to ready', unit: 'ms' }, floors, subjects)];
}

/** What the monitor counts is the whole interval between two looks: so much of it is no delay. */
const MONITOR_MS = 20;

/** The longest delay that the gateway's own monitor saw while converted 1 MB histories arrived, and under paced streams. */
export async function eventLoop(): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const gateway = await startGateway(`http://127.0.0.1:${upstream.port}`);
  const load = await Load.start();
  try {
    const body = historyBody(200, 1_000_000).replace('"model":"m"', `"model":"${modelOf('messages', 'full-flow')}"`);
    const job = { url: `${gateway.url}${CLIENT_PATHS.chat}`, headers: { authorization: `Bearer ${gateway.key}` }, body };
    await load.run({ ...job, count: 40, concurrency: 2, mustHold: '[DONE]' });
    await gateway.metrics();
    await load.run({ ...job, count: 60, concurrency: 2, mustHold: '[DONE]' });
    const text = await gateway.metrics();
    const seconds = (name: string): number => Number(new RegExp(`^${name} (\\S+)`, 'm').exec(text)?.[1] ?? Number.NaN);
    const row = (name: string, metric: string, goal?: number): Row => ({
      suite: 'event-loop',
      name,
      unit: 'ms',
      subject: Math.max(0, seconds(metric) * 1000 - MONITOR_MS),
      ...(goal === undefined ? {} : { goal, goalIs: 'subject' as const }),
    });
    return [
      row('1 MB histories, converted: longest delay', 'nodejs_eventloop_lag_max_seconds', 10),
      row('1 MB histories, converted: p50', 'nodejs_eventloop_lag_p50_seconds'),
    ];
  } finally {
    await Promise.all([load.stop(), gateway.stop(), upstream.stop()]);
  }
}
