/**
 * The whole gateway through loopback beside the floor, interleaved in one run: processor time a request of the subject's process, and
 * the time to the first token at concurrency 1.
 */
import { type BenchDialect, CLIENT_PATHS, requestBody, tokens } from '../fixtures.ts';
import { type Gateway, modelOf, startGateway } from '../harness/gateway.ts';
import { startRival } from '../harness/rivals.ts';
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
    goal: 1.6,
  },
  {
    name: 'converted stream, paced',
    client: 'messages',
    upstream: 'chat',
    shape: 'paced',
    count: 200,
    concurrency: 64,
    goal: 1.4,
  },
  {
    name: 'same dialect, full flow',
    client: 'chat',
    upstream: 'chat',
    shape: 'full-flow',
    count: 400,
    concurrency: 8,
    goal: 1.4,
  },
  { name: 'same dialect, paced', client: 'chat', upstream: 'chat', shape: 'paced', count: 200, concurrency: 64, goal: 1.35 },
  { name: 'converted whole answer', client: 'messages', upstream: 'chat', shape: 'whole', count: 600, concurrency: 8, goal: 3 },
];

/** The rival and Mizu by turns, chat to chat: whole answers a second, and its processor time as the floor of ours. */
async function against(description: string, upstreamUrl: string, gateway: Gateway, load: Load, rounds: number): Promise<Row[]> {
  const rival = await startRival(description, upstreamUrl);
  try {
    const rows: Row[] = [];
    for (const shape of ['whole', 'full-flow'] as const) {
      const stream = shape !== 'whole';
      const mustHold = (stream ? ENDING : WHOLE).chat;
      const jobs = {
        rival: { url: rival.url, headers: rival.headers, body: requestBody('chat', shape, stream), mustHold },
        mizu: {
          url: `${gateway.url}${CLIENT_PATHS.chat}`,
          headers: { authorization: `Bearer ${gateway.key}` },
          body: requestBody('chat', modelOf('chat', shape), stream),
          mustHold,
        },
      };
      const perSecond = { rival: [] as number[], mizu: [] as number[] };
      for (let round = 0; round <= rounds; round++) {
        for (const name of ['rival', 'mizu'] as const) {
          const { wallMs, done } = await load.run({ ...jobs[name], count: 300, concurrency: 8 });
          if (round > 0) perSecond[name].push((done / wallMs) * 1000);
        }
      }
      const ratios = perSecond.mizu.map((value, round) => value / (perSecond.rival[round] ?? Number.NaN));
      rows.push({
        suite: 'relay',
        name: `beside ${rival.name}: ${shape}, chat to chat`,
        unit: 'requests a second (more is better)',
        floor: median(perSecond.rival),
        subject: median(perSecond.mizu),
        ratio: median(ratios),
        spread: spread(ratios),
      });
    }
    return rows;
  } finally {
    await rival.stop();
  }
}

/** The first word as every dialect quotes it. The upstream says these words too. */
const FIRST_TOKEN = JSON.stringify(tokens(96)[0]).slice(0, -1);

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

export interface RelayOptions {
  /** {@link startRival} */
  readonly rivals: readonly string[];
  /** For the gateway's Node. */
  readonly nodeArgs: readonly string[];
}

export async function relay(rounds: number, options: RelayOptions): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`;
  const floor = await startHarness('pass-through.ts', [upstreamUrl]);
  const gateway = await startGateway(upstreamUrl, [], options.nodeArgs);
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
      const firstToken = { floor: [] as number[], mizu: [] as number[] };
      // Until the compiler has little left to do: what is measured is a gateway that runs, not one that starts.
      for (const name of ['floor', 'mizu'] as const)
        await load.run({ ...subjects[name], count: each.count * 3, concurrency: each.concurrency });
      for (let round = 0; round < rounds; round++) {
        // The order alternates, so that a noisy neighbour hits both.
        for (const name of round % 2 === 0 ? (['floor', 'mizu'] as const) : (['mizu', 'floor'] as const)) {
          const subject = subjects[name];
          const before = processorMicros(subject.pid);
          await load.run({ ...subject, count: each.count, concurrency: each.concurrency });
          micros[name].push((processorMicros(subject.pid) - before) / each.count);
          const single = await load.run({ ...subject, firstToken: FIRST_TOKEN, count: 60, concurrency: 1 });
          firstToken[name].push(percentile(single.firstTokenMs, 0.5));
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
        name: `${each.name}: first token, concurrency 1`,
        unit: 'ms (p50)',
        floor: median(firstToken.floor),
        subject: median(firstToken.mizu),
        added: median(firstToken.mizu.map((value, round) => value - (firstToken.floor[round] ?? Number.NaN))),
        goal: 0.1,
      });
    }
    for (const rival of options.rivals) rows.push(...(await against(rival, upstreamUrl, gateway, load, rounds)));
    return rows;
  } finally {
    await Promise.all([load.stop(), gateway.stop(), floor.stop(), upstream.stop()]);
  }
}
