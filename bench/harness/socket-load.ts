/**
 * The client on WebSockets: each worker keeps one connection and asks turn after turn, every turn new or continuing the one
 * before; or many connections that only stay open. The same jobs and results a line as `load.ts`.
 */
import { createInterface } from 'node:readline';
import { WebSocket } from 'ws';
import type { LoadJob, LoadResult } from './load.ts';

export interface SocketJob extends LoadJob {
  /** Turns that continue each other before a worker begins a new conversation. Absent: every turn is one of its own. */
  readonly conversation?: number;
  /** Only opens so many connections, and keeps them. */
  readonly hold?: number;
}

interface Connection {
  readonly ws: WebSocket;
  onMessage: (text: string) => void;
}

const open: Connection[] = [];
const idle: Connection[] = [];

function connect({ url, headers }: SocketJob): Promise<Connection> {
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(url, { headers: { ...headers }, perMessageDeflate: false });
    const connection: Connection = { ws, onMessage: () => undefined };
    ws.on('open', () => resolve(connection));
    ws.on('error', reject);
    ws.on('message', (data) => connection.onMessage(String(data)));
    open.push(connection);
  });
}

/** Resolves with the id of the response. */
function turn(connection: Connection, job: SocketJob, previousId: string | undefined): Promise<string> {
  const { ws } = connection;
  const create = `{"type":"response.create",${previousId === undefined ? '' : `"previous_response_id":"${previousId}",`}`;
  return new Promise((resolve, reject) => {
    connection.onMessage = (text) => {
      if (text.includes(job.mustHold)) resolve(/"id":"(resp_\w+)"/.exec(text)?.[1] ?? '');
      else if (text.startsWith('{"type":"error"')) reject(new Error(text.slice(0, 300)));
    };
    ws.once('close', (code) => reject(new Error(`closed with ${code}`)));
    ws.send(create + job.body.slice(1));
  });
}

async function run(job: SocketJob): Promise<LoadResult> {
  const started = performance.now();
  const total: number[] = [];
  let left = job.hold === undefined ? job.count : 0;
  let why: string | undefined;
  const worker = async (): Promise<void> => {
    const connection = idle.pop() ?? (await connect(job));
    let previousId: string | undefined;
    for (let done = 0; left-- > 0 && why === undefined; done++) {
      if (job.conversation === undefined || done % job.conversation === 0) previousId = undefined;
      const asked = performance.now();
      try {
        const id = await turn(connection, job, previousId);
        if (job.conversation !== undefined) previousId = id;
        total.push(performance.now() - asked);
      } catch (error) {
        why = String(error);
      } finally {
        connection.ws.removeAllListeners('close');
      }
    }
    idle.push(connection);
  };
  if (job.hold !== undefined) {
    for (let done = 0; done < job.hold; done += 50)
      await Promise.all(Array.from({ length: Math.min(50, job.hold - done) }, () => connect(job)));
  } else await Promise.all(Array.from({ length: job.concurrency }, worker));
  return {
    done: total.length,
    failed: why === undefined ? 0 : 1,
    ...(why === undefined ? {} : { firstFailure: why }),
    wallMs: performance.now() - started,
    firstTokenMs: [],
    totalMs: total.sort((a, b) => a - b),
  };
}

process.stdout.write('ready 0\n');
for await (const line of createInterface({ input: process.stdin })) {
  const job: SocketJob = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(await run(job))}\n`);
}
