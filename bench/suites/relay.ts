/**
 * The whole gateway through loopback beside the floor, interleaved in one run: processor time a request of the subject's process, and
 * the time to the first byte at concurrency 1.
 */
import { type BenchDialect, CLIENT_PATHS, requestBody } from '../fixtures.ts';
import { modelOf, startGateway } from '../harness/gateway.ts';
import { Load, processorMicros, startHarness } from '../harness/processes.ts';
import { median, percentile, type Row, spread } from '../harness/statistics.ts';

interface Case {
  readonly name: string;
  readonly client: BenchDialect;
  readonly upstream: BenchDialect;
  readonly shape: 'full-flow' | 'paced' | 'whole';
  readonly count: number;
  readonly concurrency: number;
  /** The most that the ratio to the floor should be. */
  readonly goal: number;
}

const CASES: readonly Case[] = [
  {
    name: 'converted stream, full flow',
    client: 'messages',
    upstream: 'chat',
    shape: 'full-flow',
    count: 400,
    concurrency: 8,
    goal: 2.2,
  },
  { name: 'converted stream, paced', client: 'messages', upstream: 'chat', shape: 'paced', count: 60, concurrency: 8, goal: 2.0 },
  {
    name: 'same dialect, full flow',
    client: 'chat',
    upstream: 'chat',
    shape: 'full-flow',
    count: 400,
    concurrency: 8,
    goal: 2.2,
  },
  { name: 'same dialect, paced', client: 'chat', upstream: 'chat', shape: 'paced', count: 60, concurrency: 8, goal: 2.0 },
  { name: 'converted whole answer', client: 'messages', upstream: 'chat', shape: 'whole', count: 600, concurrency: 8, goal: 3 },
];

/** What a good answer holds, so that a fast failure cannot win. */
const ENDING: Readonly<Record<BenchDialect, string>> = {
  chat: '[DONE]',
  responses: 'response.completed',
  messages: 'message_stop',
};
const WHOLE: Readonly<Record<BenchDialect, string>> = {
  chat: '"finish_reason"',
  responses: '"completed"',
  messages: '"end_turn"',
};

export async function relay(rounds: number): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`;
  const floor = await startHarness('pass-through.ts', [upstreamUrl]);
  const gateway = await startGateway(upstreamUrl);
  const load = await Load.start();
  try {
    const rows: Row[] = [];
    for (const each of CASES) {
      const stream = each.shape !== 'whole';
      const subjects = {
        floor: {
          pid: floor.pid,
          url: `http://127.0.0.1:${floor.port}/v1/${each.upstream === 'chat' ? 'chat/completions' : each.upstream}`,
          headers: {},
          body: requestBody(each.upstream, each.shape, stream),
          mustHold: (stream ? ENDING : WHOLE)[each.upstream],
        },
        mizu: {
          pid: gateway.pid,
          url: `${gateway.url}${CLIENT_PATHS[each.client]}`,
          headers: { authorization: `Bearer ${gateway.key}` },
          body: requestBody(each.client, modelOf(each.upstream, each.shape), stream),
          mustHold: (stream ? ENDING : WHOLE)[each.client],
        },
      };
      const micros = { floor: [] as number[], mizu: [] as number[] };
      const firstByte = { floor: [] as number[], mizu: [] as number[] };
      for (const name of ['floor', 'mizu'] as const)
        await load.run({ ...subjects[name], count: Math.ceil(each.count / 2), concurrency: each.concurrency });
      for (let round = 0; round < rounds; round++) {
        // The order alternates, so that a noisy neighbour hits both.
        for (const name of round % 2 === 0 ? (['floor', 'mizu'] as const) : (['mizu', 'floor'] as const)) {
          const subject = subjects[name];
          const before = processorMicros(subject.pid);
          await load.run({ ...subject, count: each.count, concurrency: each.concurrency });
          micros[name].push((processorMicros(subject.pid) - before) / each.count);
          const single = await load.run({ ...subject, count: 40, concurrency: 1 });
          firstByte[name].push(percentile(single.firstByteMs, 0.5));
        }
      }
      const ratios = micros.mizu.map((value, round) => value / (micros.floor[round] ?? Number.NaN));
      rows.push({
        suite: 'relay',
        name: each.name,
        unit: 'µs of processor time a request',
        floor: median(micros.floor),
        subject: median(micros.mizu),
        ratio: median(ratios),
        spread: spread(ratios),
        goal: each.goal,
      });
      rows.push({
        suite: 'relay',
        name: `${each.name}: first byte, concurrency 1`,
        unit: 'ms (p50)',
        floor: median(firstByte.floor),
        subject: median(firstByte.mizu),
        added: median(firstByte.mizu.map((value, round) => value - (firstByte.floor[round] ?? Number.NaN))),
        goal: 0.3,
      });
    }
    return rows;
  } finally {
    await Promise.all([load.stop(), gateway.stop(), floor.stop(), upstream.stop()]);
  }
}
