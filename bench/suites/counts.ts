/**
 * What can be counted instead of timed, and so does not depend on what else the machine does: bytes allocated an exchange and an
 * event, bytes that young collections leave of an exchange, and system calls a request. The collector's share is its pauses, by
 * the clock.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { startGateway } from '../harness/gateway.ts';
import { preload, readFigures } from '../harness/heap-figures.ts';
import { freePort } from '../harness/ports.ts';
import { Load, startHarness } from '../harness/processes.ts';
import type { Row } from '../harness/statistics.ts';
import { callsDuring } from '../harness/system-calls.ts';
import { mizuSubject, type Pair } from '../harness/subjects.ts';

const CONVERTED: Pair = { client: 'messages', upstream: 'chat' };
const SAME: Pair = { client: 'chat', upstream: 'chat' };
const CASES: readonly { readonly name: string; readonly pair: Pair; readonly shape: string; readonly goalKib?: number }[] = [
  { name: 'converted, 100 events, full flow', pair: CONVERTED, shape: 'full-flow', goalKib: 110 },
  { name: 'same dialect, 100 events, full flow', pair: SAME, shape: 'full-flow' },
  { name: 'converted, 100 events, paced', pair: CONVERTED, shape: 'paced' },
  { name: 'converted whole answer', pair: CONVERTED, shape: 'whole' },
];
/** Words of the streams `paced` and `short`: what they differ by costs what their difference costs. */
const WORDS = { paced: 96, short: 4 } as const;

const LAP = { count: 1_000, concurrency: 8 };
const PACED_LAP = { count: 320, concurrency: 32 };
const WARM_LAPS = 4;
/** An exchange that is over should leave nothing; more than this was seen where dead ones kept the next ones alive (12 to 14). */
const GROWN_OLD_KIB = 8;
/** Until what was allocated for the last answers is counted. */
const REST_MS = 300;
/** Calls that are fewer are noise. */
const FEWEST_CALLS = 0.05;

export async function counts(nodeArgs: readonly string[]): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const port = await freePort();
  const gateway = await startGateway(`http://127.0.0.1:${upstream.port}`, [], [...preload(port), ...nodeArgs]);
  const load = await Load.start();
  const mizu = mizuSubject(gateway);
  const lap = async (pair: Pair, shape: string): Promise<number> => {
    const job = mizu.ask(pair, shape);
    if (job === undefined) throw new Error('every pair is served');
    const size = shape === 'paced' || shape === 'short' ? PACED_LAP : LAP;
    await load.run({ ...job, ...size });
    return size.count;
  };
  /** Bytes of a request, those of them that grew old, and milliseconds of the collector's pauses. */
  const allocated = async (pair: Pair, shape: string) => {
    for (let laps = 0; laps < WARM_LAPS; laps++) await lap(pair, shape);
    await sleep(REST_MS);
    const before = await readFigures(port);
    const count = await lap(pair, shape);
    await sleep(REST_MS);
    const after = await readFigures(port);
    return {
      bytes: (after.allocatedBytes - before.allocatedBytes) / count,
      promoted: (after.promotedBytes - before.promotedBytes) / count,
      collectorMs: (after.collectorMs - before.collectorMs) / count,
    };
  };
  const suite = 'counts';
  try {
    const rows: Row[] = [];
    for (const { name, pair, shape, goalKib } of CASES) {
      const { bytes, promoted, collectorMs } = await allocated(pair, shape);
      const goal = goalKib === undefined ? {} : { goal: goalKib, goalIs: 'subject' as const };
      rows.push({ suite, name: `${name}: allocated`, unit: 'KiB a request', subject: bytes / 1024, ...goal });
      rows.push({
        suite,
        name: `${name}: grown old`,
        unit: 'KiB a request',
        subject: promoted / 1024,
        goal: GROWN_OLD_KIB,
        goalIs: 'subject',
      });
      rows.push({ suite, name: `${name}: pauses of the collector`, unit: 'µs a request', subject: collectorMs * 1000 });
    }
    const [long, short] = [await allocated(CONVERTED, 'paced'), await allocated(CONVERTED, 'short')];
    const event = (long.bytes - short.bytes) / (WORDS.paced - WORDS.short);
    rows.push({ suite, name: 'a paced event, converted: allocated', unit: 'bytes', subject: event });
    for (const { name, pair, shape } of CASES) {
      let count = 1;
      const calls = await callsDuring(gateway.pid, async () => {
        count = await lap(pair, shape);
      });
      if (calls !== undefined) rows.push(...callRows(name, calls, count));
    }
    return rows;
  } finally {
    await Promise.all([load.stop(), gateway.stop(), upstream.stop()]);
  }
}

function callRows(name: string, calls: ReadonlyMap<string, number>, count: number): Row[] {
  const each = [...calls].map(([call, times]) => [call, times / count] as const).sort(([, a], [, b]) => b - a);
  const all = each.reduce((sum, [, times]) => sum + times, 0);
  const row = (call: string, subject: number): Row => ({ suite: 'counts', name: `${name}: ${call}`, unit: 'a request', subject });
  return [
    row('system calls', all),
    ...each.filter(([, times]) => times >= FEWEST_CALLS).map(([call, times]) => row(call, times)),
  ];
}
