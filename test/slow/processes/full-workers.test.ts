/** Workers that can take no further connection, because of `limits.connections` or because none may open another file. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { test } from 'node:test';
import { install, type Serving, waitFor } from '../../support/processes.ts';
import { channel, MODELS } from '../../support/test-gateway.ts';

const WORKERS = 2;
const FILE = { channels: [channel('http://127.0.0.1:1')], models: MODELS };

/** Ask nothing, and stay. */
class Crowd implements Disposable {
  readonly #sockets: Socket[] = [];
  readonly #port: number;

  constructor({ url }: Serving) {
    this.#port = Number(new URL(url).port);
  }

  /** A few at a time: the primary process holds what it hands on, and would be the first without a descriptor. */
  async grow(count: number): Promise<void> {
    for (let n = 0; n < count; n++) {
      this.#sockets.push(connect(this.#port, '127.0.0.1').on('error', () => undefined));
      if (n % 10 === 9) await pause(20);
    }
  }

  get open(): number {
    return this.#sockets.filter((socket) => !socket.destroyed).length;
  }

  [Symbol.dispose](): void {
    for (const socket of this.#sockets) socket.destroy();
  }
}

function allListen(serving: Serving): Promise<true> {
  return waitFor(
    () => (serving.text().split('Mizu listens').length > WORKERS ? true : undefined),
    () => serving.text(),
  );
}

function childrenOf({ process: { pid } }: Serving): string[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
}

/** What a process has worked so far, in hundredths of a second. */
function workOf(pid: string | number | undefined): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return Number(fields[11]) + Number(fields[12]);
}

async function statusOf({ url }: Serving, key: string): Promise<number> {
  const headers = { authorization: `Bearer ${key}`, connection: 'close' };
  return (await fetch(`${url}/v1/models`, { headers, signal: AbortSignal.timeout(5_000) })).status;
}

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

test('limits.connections with workers: who is too many is refused and counted, and no processor is kept busy with them', async () => {
  const most = 6;
  await using place = await install({ ...FILE, operations: { port: 0 }, limits: { connections: most } });
  const serving = await place.serve('--workers', String(WORKERS));
  await allListen(serving);
  using crowd = new Crowd(serving);
  // More than they can take, and until each has taken what it can: one may be busy with its start.
  let came = 0;
  await waitFor(
    async () => {
      await crowd.grow(20);
      came += 20;
      await pause(100);
      return crowd.open === most * WORKERS ? true : undefined;
    },
    () => `${crowd.open} of ${came} are open`,
  );
  const pids = [serving.process.pid, ...childrenOf(serving)];
  const before = pids.map(workOf);
  await pause(1_000);
  const spent = pids.map((pid, index) => workOf(pid) - (before[index] ?? 0));
  assert.ok(Math.max(...spent) < 20, `hundredths of a second that they worked in one: ${spent.join(', ')}`);
  const operations = /Operations: (http:\/\/[\d.:]+)/.exec(serving.text())?.[1];
  await waitFor(
    async () => {
      const text = await (await fetch(`${operations}/metrics`)).text();
      return Number(/^mizu_connections_dropped_total (\d+)$/m.exec(text)?.[1]) === came - most * WORKERS ? true : undefined;
    },
    () => `of ${came} they are not counted`,
  );
  crowd[Symbol.dispose]();
  await pause(200);
  assert.equal(await statusOf(serving, place.key), 200);
});

test('workers that a stranger has left no descriptor take connections again once there are some', async () => {
  await using place = await install({ ...FILE, operations: null });
  const few = { command: ['bash', '-c', 'ulimit -n 120; exec "$@"', 'bash'] };
  const serving = await place.serveAt(few, '--workers', String(WORKERS));
  await allListen(serving);
  {
    using crowd = new Crowd(serving);
    await crowd.grow(400);
    await waitFor(
      () => (crowd.open < 120 * WORKERS ? true : undefined),
      () => `${crowd.open} are open`,
    );
    await pause(1_000);
  }
  await pause(500);
  for (let n = 0; n < 6; n++) assert.equal(await statusOf(serving, place.key), 200);
});
