/** Memory of the subject's process for each open stream that holds: what thousands of waiting agents cost. */
import { Agent, type ClientRequest, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { CLIENT_PATHS, requestBody } from '../fixtures.ts';
import { modelOf, startGateway } from '../harness/gateway.ts';
import { residentBytes, startHarness } from '../harness/processes.ts';
import type { Row } from '../harness/statistics.ts';

async function open(url: string, headers: Record<string, string>, body: string, count: number): Promise<() => void> {
  const agent = new Agent({ keepAlive: false, maxSockets: Number.POSITIVE_INFINITY });
  const requests: ClientRequest[] = [];
  const one = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const outgoing = request(url, {
        method: 'POST',
        agent,
        headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body), ...headers },
      });
      requests.push(outgoing);
      outgoing.on('response', (answer) => {
        answer.once('data', () => resolve());
        answer.on('error', () => undefined); // ended by us below
        answer.resume();
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  for (let done = 0; done < count; done += 100) await Promise.all(Array.from({ length: Math.min(100, count - done) }, one));
  return () => {
    for (const each of requests) {
      each.on('error', () => undefined); // the socket is taken away
      each.destroy();
    }
  };
}

async function perStream(
  pid: number,
  url: string,
  headers: Record<string, string>,
  body: string,
  count: number,
): Promise<number> {
  (await open(url, headers, body, 100))(); // buffers and code that the first streams make are not what a stream costs
  await sleep(1500);
  const before = residentBytes(pid);
  const close = await open(url, headers, body, count);
  await sleep(1500);
  const after = residentBytes(pid);
  close();
  return (after - before) / count / 1024;
}

export async function memory(count: number): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`;
  const floor = await startHarness('pass-through.ts', [upstreamUrl]);
  const gateway = await startGateway(upstreamUrl);
  try {
    const base = await perStream(
      floor.pid,
      `http://127.0.0.1:${floor.port}/v1/chat/completions`,
      {},
      requestBody('chat', 'hold', true),
      Math.min(count, 1000),
    );
    const mine = await perStream(
      gateway.pid,
      `${gateway.url}${CLIENT_PATHS.messages}`,
      { authorization: `Bearer ${gateway.key}` },
      requestBody('messages', modelOf('chat', 'hold'), true),
      count,
    );
    return [
      {
        suite: 'memory',
        name: `${count} open converted streams`,
        unit: 'KiB a stream (resident)',
        floor: base,
        subject: mine,
        ratio: mine / base,
        goal: 130,
        goalIs: 'subject',
      },
    ];
  } finally {
    await Promise.all([gateway.stop(), floor.stop(), upstream.stop()]);
  }
}
