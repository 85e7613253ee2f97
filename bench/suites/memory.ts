/** Memory of the subject's process for each open stream that holds: what thousands of waiting agents cost. */
import { setTimeout as sleep } from 'node:timers/promises';
import { CLIENT_PATHS, requestBody } from '../fixtures.ts';
import { modelOf, startGateway } from '../harness/gateway.ts';
import { OpenStreams, possibleStreams } from '../harness/open-streams.ts';
import { residentBytes, startHarness } from '../harness/processes.ts';
import type { Row } from '../harness/statistics.ts';

const GOAL = 1.3;
/** Buffers and code that the first streams make are not what a stream costs. */
const FIRST = 100;
/** For what was read and written to be let go. */
const SETTLE_MS = 1_500;

export async function memory(wanted: number, nodeArgs: readonly string[]): Promise<Row[]> {
  const count = possibleStreams(wanted);
  const upstream = await startHarness('upstream.ts');
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`;
  const floor = await startHarness('pass-through.ts', [upstreamUrl]);
  const gateway = await startGateway(upstreamUrl, [], nodeArgs);
  try {
    const bare = await OpenStreams.start({
      url: `http://127.0.0.1:${floor.port}${CLIENT_PATHS.chat}`,
      headers: {},
      body: requestBody('chat', 'hold', true),
      event: 'data: ',
    });
    const base = await perStream(floor.pid, bare, count);
    const streams = await OpenStreams.start({
      url: `${gateway.url}${CLIENT_PATHS.messages}`,
      headers: { authorization: `Bearer ${gateway.key}` },
      body: requestBody('messages', modelOf('chat', 'hold'), true),
      event: 'event: ',
    });
    const mine = await perStream(gateway.pid, streams, count);
    const name = `${count} open converted streams`;
    const unit = 'KiB a stream (resident)';
    return [{ suite: 'memory', name, unit, floor: base, subject: mine, ratio: mine / base, goal: GOAL }];
  } finally {
    await Promise.all([gateway.stop(), floor.stop(), upstream.stop()]);
  }
}

async function perStream(pid: number, streams: OpenStreams, count: number): Promise<number> {
  try {
    await streams.open(FIRST);
    await streams.close();
    await sleep(SETTLE_MS);
    const before = residentBytes(pid);
    await streams.open(count);
    await sleep(SETTLE_MS);
    return (residentBytes(pid) - before) / count / 1024;
  } finally {
    await streams.stop();
  }
}
