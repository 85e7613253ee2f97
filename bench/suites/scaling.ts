/**
 * Cost against size: events, tool deltas, bytes of an event, turns and bytes of a history in this process by the clock; open
 * streams by the processor time of a whole gateway.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { CLIENT_PATHS, requestBody, textFrames, tokens } from '../fixtures.ts';
import { modelOf, startGateway } from '../harness/gateway.ts';
import { OpenStreams, possibleStreams } from '../harness/open-streams.ts';
import { convert, pairOf } from '../harness/pipeline.ts';
import { processorMicros, startHarness } from '../harness/processes.ts';
import { median, type Row, seriesRows } from '../harness/statistics.ts';
import { microsOf } from '../harness/timing.ts';
import { historyBody, toolDeltas } from '../shapes.ts';

const COUNTS = [100, 1000, 10_000, 50_000] as const;
const OPEN = [100, 300, 1000, 3000] as const;
/** Each stream says something twice a second. */
const WINDOW_MS = 3_000;
/** Enough events for the compilers. */
const WARM_STREAMS = 1_000;
const WARM_MS = 6_000;

export async function scaling(rounds: number, nodeArgs: readonly string[]): Promise<Row[]> {
  return [...inProcess(rounds), ...(await openStreams(rounds, nodeArgs))];
}

function inProcess(rounds: number): Row[] {
  const series = (name: string, sizes: readonly number[], work: (size: number) => () => void): Row[] =>
    seriesRows(
      { suite: 'scaling', name, unit: 'µs' },
      sizes.map((at) => ({ at, cost: microsOf(work(at), rounds).best })),
    );
  const messages = pairOf('messages', 'chat');
  const chat = pairOf('chat', 'messages');
  const target = { ...chat.decoding, facts: {}, without: new Set<never>() };
  return [
    ...series('text events', COUNTS, (count) => {
      const bytes = Buffer.from(textFrames('chat', tokens(count)).join(''));
      return () => void convert(messages, [bytes]);
    }),
    ...series('tool deltas', COUNTS, (count) => {
      const { reads } = toolDeltas(count);
      return () => void convert(messages, reads);
    }),
    ...series('bytes of one event', [1024, 16_384, 262_144, 1_048_576], (size) => {
      const bytes = Buffer.from(textFrames('chat', ['x'.repeat(size)]).join(''));
      return () => void convert(messages, [bytes]);
    }),
    ...series('turns of history', [10, 100, 400, 1000], (turns) => {
      const text = historyBody(turns, turns * 2000);
      return () => {
        const request = chat.client.decodeRequest(text, JSON.parse(text), { open: () => undefined });
        chat.upstream.encodeRequest(request, target);
      };
    }),
  ];
}

/** What one event on each of the open streams costs: with streams that cost each other nothing it grows as their number does. */
async function openStreams(rounds: number, nodeArgs: readonly string[]): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const gateway = await startGateway(`http://127.0.0.1:${upstream.port}`, [], nodeArgs);
  const streams = await OpenStreams.start({
    url: `${gateway.url}${CLIENT_PATHS.messages}`,
    headers: { authorization: `Bearer ${gateway.key}` },
    body: requestBody('messages', modelOf('chat', 'slow'), true),
    event: 'event: content_block_delta',
  });
  try {
    await streams.open(WARM_STREAMS);
    await sleep(WARM_MS);
    await streams.close();
    const points: { at: number; cost: number }[] = [];
    let open = 0;
    for (const at of OPEN) {
      if (possibleStreams(at) < at) break;
      await streams.open(at - open);
      open = at;
      const costs: number[] = [];
      for (let round = 0; round < rounds; round++) {
        const [events, micros] = [await streams.events(), processorMicros(gateway.pid)];
        await sleep(WINDOW_MS);
        costs.push((processorMicros(gateway.pid) - micros) / ((await streams.events()) - events));
      }
      points.push({ at, cost: median(costs) * at });
    }
    return seriesRows({ suite: 'scaling', name: 'open streams', unit: 'µs of processor time for an event on each' }, points);
  } finally {
    await Promise.all([streams.stop(), gateway.stop(), upstream.stop()]);
  }
}
