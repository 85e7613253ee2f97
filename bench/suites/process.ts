/** The process as a whole: how long it takes to start, and how long large histories hold its event loop. */
import { startGateway } from '../harness/gateway.ts';
import { Load, startHarness } from '../harness/processes.ts';
import { CLIENT_PATHS } from '../fixtures.ts';
import { median, ratioRow, type Row, spread } from '../harness/statistics.ts';
import { modelOf } from '../harness/gateway.ts';
import { historyBody } from '../shapes.ts';

/**
 * From the spawn to the first 200 of `/readyz`, beside the floor's start. The gateway finds what an earlier start compiled; the
 * floor has one small file.
 */
export async function startUp(rounds: number, nodeArgs: readonly string[]): Promise<Row[]> {
  const floors: number[] = [];
  const subjects: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const started = performance.now();
    const floor = await startHarness('pass-through.ts', ['http://127.0.0.1:9']);
    floors.push(performance.now() - started);
    await floor.stop();
    const gateway = await startGateway('http://127.0.0.1:9', [], nodeArgs);
    subjects.push(gateway.startMs);
    await gateway.stop();
  }
  return [ratioRow({ suite: 'start-up', name: 'spawn to ready', unit: 'ms' }, floors, subjects)];
}

/** What the monitor counts is the whole interval between two looks: so much of it is no delay. */
const MONITOR_MS = 20;

const HISTORIES = 60;

/**
 * The longest delay that the gateway's own monitor saw in a round of converted 1 MB histories: the median round, since the clock
 * sees neighbours too.
 */
export async function eventLoop(rounds: number, nodeArgs: readonly string[]): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const gateway = await startGateway(`http://127.0.0.1:${upstream.port}`, [], nodeArgs);
  const load = await Load.start();
  try {
    const body = historyBody(200, 1_000_000).replace('"model":"m"', `"model":"${modelOf('messages', 'full-flow')}"`);
    const url = `${gateway.url}${CLIENT_PATHS.chat}`;
    const headers = { authorization: `Bearer ${gateway.key}` };
    const job = { url, headers, body, mustHold: '[DONE]', count: HISTORIES, concurrency: 2 };
    await load.run(job);
    const delays = { longest: [] as number[], p50: [] as number[] };
    for (let round = 0; round < rounds; round++) {
      await gateway.metrics(); // each look begins anew
      await load.run(job);
      const text = await gateway.metrics();
      delays.longest.push(delayMs(text, 'nodejs_eventloop_lag_max_seconds'));
      delays.p50.push(delayMs(text, 'nodejs_eventloop_lag_p50_seconds'));
    }
    const row = (name: string, all: readonly number[]): Row => ({
      suite: 'event-loop',
      name: `1 MB histories, converted: ${name}`,
      unit: 'ms',
      subject: median(all),
      spread: spread(all),
    });
    return [{ ...row('longest delay', delays.longest), goal: 10, goalIs: 'subject' }, row('p50', delays.p50)];
  } finally {
    await Promise.all([load.stop(), gateway.stop(), upstream.stop()]);
  }
}

function delayMs(metrics: string, name: string): number {
  const seconds = Number(new RegExp(`^${name} (\\S+)`, 'm').exec(metrics)?.[1] ?? Number.NaN);
  return Math.max(0, seconds * 1000 - MONITOR_MS);
}
