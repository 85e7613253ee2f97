/**
 * How far down a converting gateway could get: the least one (`harness/least-gateway.ts`), without and with a ledger, and Mizu,
 * each beside the pass-through. One dialect pair in full flow, and the first token of a paced stream.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { answerHolds, CLIENT_PATHS, requestBody } from '../fixtures.ts';
import { type Contestant, contest } from '../harness/contest.ts';
import { firstTokens } from '../harness/first-token.ts';
import { modelOf, startGateway } from '../harness/gateway.ts';
import { Load, startHarness } from '../harness/processes.ts';
import { addedRow, ratioRow, type Row } from '../harness/statistics.ts';

const SUBJECTS = [
  ['conversion', 'the least gateway: key and conversion'],
  ['log', 'the least gateway: and a log line'],
  ['ledger', 'the least gateway: and a durable ledger'],
  ['mizu', 'Mizu'],
] as const;

export async function least(rounds: number, nodeArgs: readonly string[]): Promise<Row[]> {
  const upstream = await startHarness('upstream.ts');
  const upstreamUrl = `http://127.0.0.1:${upstream.port}`;
  const folder = mkdtempSync(join(tmpdir(), 'mizu-bench-least-'));
  const startLeast = (level: string) => startHarness('least-gateway.ts', [upstreamUrl, level, folder]);
  const floor = await startHarness('pass-through.ts', [upstreamUrl]);
  const conversion = await startLeast('conversion');
  const log = await startLeast('log');
  const ledger = await startLeast('ledger');
  const mizu = await startGateway(upstreamUrl, [], nodeArgs);
  const load = await Load.start();
  const contestants = (shape: string) => {
    const job = (url: string, key: string): Contestant['job'] => ({
      url: `${url}${CLIENT_PATHS.messages}`,
      headers: { authorization: `Bearer ${key}` },
      body: requestBody('messages', modelOf('chat', shape), true),
      mustHold: answerHolds('messages', true),
    });
    const ofLeast = ({ pid, port }: { readonly pid: number; readonly port: number }): Contestant => ({
      pids: [pid],
      job: job(`http://127.0.0.1:${port}`, mizu.key),
    });
    return {
      floor: {
        pids: [floor.pid],
        job: {
          url: `http://127.0.0.1:${floor.port}${CLIENT_PATHS.chat}`,
          headers: {},
          body: requestBody('chat', shape, true),
          mustHold: answerHolds('chat', true),
        },
      },
      conversion: ofLeast(conversion),
      log: ofLeast(log),
      ledger: ofLeast(ledger),
      mizu: { pids: [mizu.pid], job: job(mizu.url, mizu.key) },
    };
  };
  try {
    const laps = await contest(load, contestants('full-flow'), { rounds, count: 1_000, concurrency: 8, warmAtMost: 20_000 });
    const first = await firstTokens(load, contestants('short'), rounds);
    return SUBJECTS.flatMap(([subject, name]) => [
      ratioRow(
        { suite: 'least', name: `full flow: ${name}`, unit: 'µs of processor time a request' },
        laps.floor.micros,
        laps[subject].micros,
      ),
      addedRow(
        { suite: 'least', name: `first token, concurrency 1, p50: ${name}`, unit: 'ms (p50)' },
        first.floor.p50,
        first[subject].p50,
      ),
    ]);
  } finally {
    const all = [load, mizu, ledger, log, conversion, floor, upstream];
    await Promise.all(all.map((each) => each.stop()));
    rmSync(folder, { recursive: true, force: true });
  }
}
