/**
 * The responses endpoint on WebSockets: a turn beside the same turn over SSE, what a connection costs that says nothing, and a
 * long conversation that is continued turn by turn.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CLIENT_PATHS, requestBody } from '../fixtures.ts';
import { contest } from '../harness/contest.ts';
import { type Gateway, modelOf, startGateway } from '../harness/gateway.ts';
import { Load, processorMicros, residentBytes, startHarness } from '../harness/processes.ts';
import { median, ratioRow, type Row, seriesRows } from '../harness/statistics.ts';

const UPSTREAMS = ['responses', 'chat', 'messages'] as const;
const SHAPES = [
  { shape: 'full-flow', count: 500, concurrency: 8, warmAtMost: 10_000 },
  { shape: 'paced', count: 200, concurrency: 32, warmAtMost: 1_000 },
] as const;
const CONNECTIONS = 1_000;
const TURNS = [10, 25, 50, 100] as const;
/** Conversations a measurement, so that it is long enough to measure. */
const CONVERSATIONS = 4;

export async function websocket(rounds: number, nodeArgs: readonly string[]): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const gateway = await startGateway(`http://127.0.0.1:${upstream.port}`, [], nodeArgs);
  const [http, sockets] = [await Load.start(), await Load.start('socket-load.ts')];
  try {
    const memory = await idleConnections(gateway, sockets);
    return [...(await turns(gateway, http, sockets, rounds)), memory, ...(await conversations(gateway, sockets, rounds))];
  } finally {
    await Promise.all([http.stop(), sockets.stop(), gateway.stop(), upstream.stop()]);
  }
}

const urlOf = (gateway: Gateway): string => gateway.url.replace('http', 'ws') + CLIENT_PATHS.responses;
const headersOf = (gateway: Gateway): Record<string, string> => ({ authorization: `Bearer ${gateway.key}` });

async function turns(gateway: Gateway, http: Load, sockets: Load, rounds: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const dialect of UPSTREAMS) {
    for (const { shape, ...laps } of SHAPES) {
      const body = requestBody('responses', modelOf(dialect, shape), true);
      const job = { headers: headersOf(gateway), body, mustHold: '"type":"response.completed"' };
      const pids = [gateway.pid];
      const { sse, socket } = await contest(
        http,
        {
          sse: { pids, job: { ...job, url: gateway.url + CLIENT_PATHS.responses } },
          socket: { pids, job: { ...job, url: urlOf(gateway) }, load: sockets },
        },
        { rounds, ...laps },
      );
      const name = `a turn over WebSocket, upstream ${dialect}, ${shape}; floor: over SSE`;
      const unit = 'µs of processor time a turn';
      rows.push(ratioRow({ suite: 'websocket', name, unit, goal: 1.2 }, sse.micros, socket.micros));
    }
  }
  return rows;
}

async function idleConnections(gateway: Gateway, sockets: Load): Promise<Row> {
  const job = { url: urlOf(gateway), headers: headersOf(gateway), body: '{}', mustHold: '', count: 0, concurrency: 0 };
  // Buffers and code that the first connections make are not what a connection costs.
  const first = await Load.start('socket-load.ts');
  await first.run({ ...job, hold: 100 });
  await first.stop();
  await sleep(1_500);
  const before = residentBytes(gateway.pid);
  await sockets.run({ ...job, hold: CONNECTIONS });
  await sleep(1_500);
  return {
    suite: 'websocket',
    name: `${CONNECTIONS} idle connections`,
    unit: 'KiB a connection (resident)',
    subject: (residentBytes(gateway.pid) - before) / CONNECTIONS / 1024,
    goal: 25,
    goalIs: 'subject',
  };
}

async function conversations(gateway: Gateway, sockets: Load, rounds: number): Promise<Row[]> {
  const body = requestBody('responses', modelOf('messages', 'full-flow'), true);
  const points: { readonly at: number; readonly cost: number }[] = [];
  for (const at of TURNS) {
    const job = { url: urlOf(gateway), headers: headersOf(gateway), body, mustHold: '"type":"response.completed"' };
    const measured: number[] = [];
    for (let round = 0; round <= rounds; round++) {
      const before = processorMicros(gateway.pid);
      await sockets.run({ ...job, count: at * CONVERSATIONS, concurrency: 1, conversation: at });
      if (round > 0) measured.push((processorMicros(gateway.pid) - before) / CONVERSATIONS);
    }
    points.push({ at, cost: median(measured) });
  }
  const name = 'turns of one conversation over WebSocket';
  return seriesRows({ suite: 'websocket', name, unit: 'µs of processor time in all' }, points);
}
