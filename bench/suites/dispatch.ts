/**
 * What dispatch itself costs a request: eligible Channels, the conversation's identity, order, circuit, the attempt loop and its
 * row, with an attempt that answers at once. Three Channels of one priority; each conversation has two turns, so that half of
 * them are known.
 */
import type { CanonicalRequest } from '../../src/codecs/canonical/request.ts';
import { codecs } from '../../src/codecs/registry.ts';
import { Affinity, conversationOf } from '../../src/http/dispatch/affinity.ts';
import { eligibleChannels } from '../../src/http/dispatch/candidates.ts';
import { Concurrency } from '../../src/http/dispatch/concurrency.ts';
import { dispatch } from '../../src/http/dispatch/dispatch.ts';
import type { Dispatcher } from '../../src/http/dispatch/plan.ts';
import { Health } from '../../src/http/dispatch/health.ts';
import { RetryBudget } from '../../src/http/dispatch/retry-budget.ts';
import { UnknownMembers } from '../../src/http/dispatch/unknown-members.ts';
import { systemClock } from '../../src/streams/clock.ts';
import { testConfig } from '../../test/support/test-gateway.ts';
import { requestBody } from '../fixtures.ts';
import { median, type Row, spread } from '../harness/statistics.ts';

const LANES = 32;
const REQUESTS = 32_768;
const GOAL_MICROS = 8;

export async function dispatching(rounds: number): Promise<Row[]> {
  return [
    await row(rounds, 'the conversation named by the client', (lane) => ({ metadata: { user_id: `u${lane}` } })),
    await row(rounds, 'the conversation known by its first turn', (lane) => ({ system: `You are number ${lane}.` })),
  ];
}

async function row(rounds: number, name: string, more: (lane: number) => object): Promise<Row> {
  const config = testConfig({
    channels: ['a', 'b', 'c'].map((id) => ({ id, type: 'messages', base_url: `http://${id}`, api_key: 'k', models: ['bench'] })),
    models: { bench: { price: { input: '1', output: '2' } } },
  });
  const dispatcher: Dispatcher = {
    clock: systemClock,
    random: Math.random,
    health: new Health(systemClock, () => config.health),
    affinity: new Affinity(systemClock, config.affinity),
    concurrency: new Concurrency(systemClock),
    retries: new RetryBudget(),
    unknown: new UnknownMembers(systemClock),
  };
  const requests = Array.from({ length: LANES }, (_, lane) => requestOf(more(lane)));
  const { signal } = new AbortController();
  let turn = 0;
  const one = async (lane: number): Promise<void> => {
    const request = requests[lane];
    if (request === undefined) throw new Error('no request');
    const need = { model: 'bench', accountClass: 'default', types: codecs.textTypes };
    const taken = await dispatch(
      {
        channels: eligibleChannels(config, need),
        model: 'bench',
        conversation: conversationOf(`key_${turn >> 1}`, request),
        maxAttempts: config.dispatch.maxAttempts,
        maxRetryWaitMs: config.dispatch.maxRetryWaitMs,
        signal,
      },
      async ({ channel }) => channel.id,
      dispatcher,
      [],
    );
    taken.succeeded();
  };
  const micros: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const before = process.cpuUsage();
    for (let done = 0; done < REQUESTS; done += LANES, turn++) await Promise.all(requests.map((_, lane) => one(lane)));
    const { user, system } = process.cpuUsage(before);
    if (round > 0) micros.push((user + system) / REQUESTS);
  }
  return {
    suite: 'dispatch',
    name,
    unit: 'µs of processor time a request',
    subject: median(micros),
    spread: spread(micros),
    goal: GOAL_MICROS,
    goalIs: 'subject',
  };
}

function requestOf(more: object): CanonicalRequest {
  const codec = codecs.client('messages');
  const text = JSON.stringify({ ...JSON.parse(requestBody('messages', 'bench', true)), ...more });
  return codec.decodeRequest(text, JSON.parse(text), { open: () => undefined });
}
