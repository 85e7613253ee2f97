/** Other gateways beside this one and the pass-through: same upstream, load, machine and run. Named by `--rival`; without one there is nothing to do. */
import { answerHolds, CLIENT_PATHS, requestBody } from '../fixtures.ts';
import { type Contestant, contest } from '../harness/contest.ts';
import { type Gateway, modelOf, startGateway } from '../harness/gateway.ts';
import { Load, type Started, startHarness } from '../harness/processes.ts';
import { type Rival, startRival } from '../harness/rivals.ts';
import { ratioRow, type Row } from '../harness/statistics.ts';

export interface RivalOptions {
  /** {@link startRival} */
  readonly rivals: readonly string[];
  /** For the gateway's Node. */
  readonly nodeArgs: readonly string[];
  /** Where the upstream listens, for rivals that have to be told before; 0: anywhere. */
  readonly upstreamPort: number;
}

interface Case {
  readonly name: string;
  readonly shape: 'whole' | 'full-flow';
  readonly upstream: 'chat' | 'messages';
}

const CASES: readonly Case[] = [
  { name: 'whole answer, chat to chat', shape: 'whole', upstream: 'chat' },
  { name: 'whole answer, messages upstream to chat', shape: 'whole', upstream: 'messages' },
  { name: 'full flow, chat to chat', shape: 'full-flow', upstream: 'chat' },
  { name: 'full flow, messages upstream to chat', shape: 'full-flow', upstream: 'messages' },
];

const LAPS = {
  whole: { count: 1_000, concurrency: 8, warmAtMost: 20_000 },
  // Not more, for a rival that waits by timers.
  'full-flow': { count: 400, concurrency: 8, warmAtMost: 8_000 },
} as const;

export async function rivals(rounds: number, options: RivalOptions): Promise<Row[]> {
  if (options.rivals.length === 0) return [];
  const upstream = await startHarness('upstream.ts', [String(options.upstreamPort)]);
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`;
  const floor = await startHarness('pass-through.ts', [upstreamUrl]);
  const gateway = await startGateway(upstreamUrl, [], options.nodeArgs);
  const load = await Load.start();
  try {
    const rows: Row[] = [];
    for (const description of options.rivals) {
      const rival = await startRival(description, upstreamUrl);
      try {
        for (const each of CASES) rows.push(...(await against(rival, each, { gateway, floor }, load, rounds)));
      } finally {
        await rival.stop();
      }
    }
    return rows;
  } finally {
    await Promise.all([load.stop(), gateway.stop(), floor.stop(), upstream.stop()]);
  }
}

interface Own {
  readonly gateway: Gateway;
  /** The pass-through: no gateway of this kind can be faster under this load. */
  readonly floor: Started;
}

async function against(rival: Rival, each: Case, { gateway, floor }: Own, load: Load, rounds: number): Promise<Row[]> {
  const headers = rival.headers(each.upstream);
  if (headers === undefined) return [];
  const stream = each.shape !== 'whole';
  const mustHold = answerHolds('chat', stream);
  const theirs: Contestant = {
    pids: rival.pids,
    job: { url: rival.url, headers, body: requestBody('chat', each.shape, stream), mustHold },
  };
  const ours: Contestant = {
    pids: [gateway.pid],
    job: {
      url: `${gateway.url}${CLIENT_PATHS.chat}`,
      headers: { authorization: `Bearer ${gateway.key}` },
      body: requestBody('chat', modelOf(each.upstream, each.shape), stream),
      mustHold,
    },
  };
  const bare: Contestant = {
    pids: [floor.pid],
    job: {
      url: `http://127.0.0.1:${floor.port}${CLIENT_PATHS[each.upstream]}`,
      headers: {},
      body: requestBody(each.upstream, each.shape, stream),
      mustHold: answerHolds(each.upstream, stream),
    },
  };
  const laps = await contest(load, { theirs, ours, bare }, { rounds, ...LAPS[each.shape] });
  const rate = { suite: 'rivals', unit: 'requests a second (more is better)', atLeast: true as const };
  const time = { suite: 'rivals', unit: 'µs of processor time a request' };
  const name = `${each.name}; floor: ${rival.name}`;
  const goal = stream || rival.goal === undefined ? {} : { goal: rival.goal };
  const rows = [
    ratioRow({ ...rate, name: `${name}, requests`, ...goal }, laps.theirs.perSecond, laps.ours.perSecond),
    ratioRow({ ...rate, name: `${name}, requests of the pass-through` }, laps.theirs.perSecond, laps.bare.perSecond),
  ];
  if (rival.pids.length > 0) rows.push(ratioRow({ ...time, name }, laps.theirs.micros, laps.ours.micros));
  return rows;
}
