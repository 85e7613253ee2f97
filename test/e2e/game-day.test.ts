/**
 * The game day: the gateway as a process, three simulated Channels of three dialects, official SDK clients that stream without a pause, and
 * an operator who breaks the Channels one after another. What he did is printed; the same timeline is then reconstructed from `mizu logs`
 * alone, and its counts from `/metrics` alone.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { Fault, Script } from '../../src/http/simulator/script.ts';
import { type Simulator, startSimulator } from '../../src/http/simulator/simulator.ts';
import type { RequestLogRow } from '../../src/store/request-log.ts';
import { freePort, install, type Installation, type Serving, waitFor } from '../support/processes.ts';

const CHANNELS = { ada: 'chat_completion', bea: 'responses', cyd: 'messages' } as const;
type Id = keyof typeof CHANNELS;

/** What the operator does: one Channel at a time, in a way that failover can hide, or cannot. */
const ACTS: readonly { readonly id: Id; readonly fault: Fault; readonly reason: string; readonly hidden: boolean }[] = [
  { id: 'ada', fault: { type: 'status', status: 503 }, reason: 'status_503', hidden: true },
  { id: 'bea', fault: { type: 'cut', at: 0 }, reason: 'network', hidden: true },
  { id: 'cyd', fault: { type: 'html', status: 200 }, reason: 'undecodable', hidden: true },
  { id: 'ada', fault: { type: 'status', status: 401 }, reason: 'status_401', hidden: true },
  { id: 'cyd', fault: { type: 'cut', at: 6 }, reason: 'in mid-stream', hidden: false },
];

const ANSWER = ['one ', 'two ', 'three ', 'four ', 'five ', 'six ', 'seven ', 'eight'];
const script = (faults: readonly Fault[] = []): Script => ({
  times: 1_000_000,
  reply: { pieces: [{ type: 'text', text: ANSWER }], usage: { input: 5, output: 8 } },
  pace: { ms: 1 },
  faults,
});

test('a game day can be read back from the request log and the metrics', async (t) => {
  const simulators = new Map<string, Simulator>();
  for (const id of Object.keys(CHANNELS)) {
    const simulator = await startSimulator({ journal: 1 });
    simulator.enqueue(script());
    simulators.set(id, simulator);
    t.after(() => simulator.close());
  }
  const operationsPort = await freePort();
  await using place = await install({
    operations: { port: operationsPort },
    channels: Object.entries(CHANNELS).map(([id, type]) => ({
      id,
      type,
      base_url: simulators.get(id)?.url,
      api_key: `key-of-${id}`,
      models: { m: `${id}-model` },
    })),
    models: { m: { price: { input: '1', output: '2' } } },
    health: { failures: 3, window_ms: 5000, cooldown_ms: 150, refused_cooldown_ms: 150 },
  });
  const serving = await place.serve();
  const metrics = async (): Promise<string> => (await fetch(`http://127.0.0.1:${operationsPort}/metrics`)).text();

  const crowd = startCrowd(serving, place);
  const told: string[] = [];
  for (const { id, fault, reason, hidden } of ACTS) {
    const simulator = simulators.get(id);
    assert.ok(simulator);
    const failuresBefore = crowd.failures;
    const failedBefore = await failuresOf(metrics, id);
    simulator.reset();
    simulator.enqueue(script([fault]));
    told.push(`${id} broke: ${reason}`);
    await waitFor(
      async () => (hidden ? (await failuresOf(metrics, id)) > failedBefore : crowd.failures > failuresBefore) || undefined,
      () => `${id} was never asked`,
    );
    simulator.reset();
    simulator.enqueue(script());
    const good = await successesOf(metrics, id);
    told.push(`${id} recovered`);
    // Five good ones: what the break had in flight is over by then.
    await waitFor(
      async () => (await successesOf(metrics, id)) >= good + 5 || undefined,
      () => `${id} never came back`,
    );
    if (hidden) assert.equal(crowd.failures, failuresBefore, `clients saw that ${id} broke: ${crowd.lastFailure}`);
  }
  await crowd.stop();
  await waitFor(
    async () => /^mizu_settlements_pending 0$/m.test(await metrics()) || undefined,
    () => 'settlements wait',
  );
  const figures = await metrics();
  assert.equal(await serving.stop(), 0);

  const rows = await allRows(place);
  const read = timelineOf(rows);
  t.diagnostic(`told: ${told.join('; ')}`);
  t.diagnostic(`read: ${read.join('; ')}`);
  assert.deepEqual(read, told, 'the log tells what happened');
  assert.equal(rows.length, crowd.asked, 'one row an exchange');
  assert.equal(rows.filter(({ status }) => status === 'error').length, crowd.failures);

  const counted = new Map<string, number>();
  for (const row of rows)
    for (const { channelId, errorCode } of row.attempts) {
      const outcome = `${channelId} ${errorCode === undefined ? 'success' : 'failure'}`;
      counted.set(outcome, (counted.get(outcome) ?? 0) + 1);
    }
  for (const id of Object.keys(CHANNELS)) {
    for (const outcome of ['success', 'failure']) {
      assert.equal(
        attemptsIn(figures, id, outcome),
        counted.get(`${id} ${outcome}`) ?? 0,
        `${id} ${outcome}: metrics and log agree`,
      );
    }
  }
  for (const { id, reason, hidden } of ACTS) {
    if (hidden)
      assert.match(figures, new RegExp(`mizu_attempts_total\\{channel="${id}",outcome="failure",reason="${reason}"\\} \\d`));
  }
  assert.match(figures, /mizu_circuit_transitions_total\{channel="ada",state="open"\} \d/);
  const errors = [...figures.matchAll(/^mizu_errors_total\{[^}]*\} (\d+)$/gm)].reduce((sum, [, count]) => sum + Number(count), 0);
  assert.equal(errors, crowd.failures);
  assert.match((await place.run('logs', '--request', rows.find(({ status }) => status === 'error')?.requestId ?? '')).out, /cyd/);
  assert.equal((await place.run('ledger', 'verify')).code, 0);
});

interface Crowd {
  readonly asked: number;
  readonly failures: number;
  readonly lastFailure: string;
  stop(): Promise<void>;
}

/** Six SDK clients that ask as soon as they have their answer, each time in a new conversation. A wrong answer is a failure too. */
function startCrowd(serving: Serving, { key }: Installation): Crowd {
  const openai = new OpenAI({ apiKey: key, baseURL: `${serving.url}/v1`, maxRetries: 0 });
  const anthropic = new Anthropic({ apiKey: key, baseURL: serving.url, maxRetries: 0 });
  const state = { asked: 0, failures: 0, lastFailure: '', stopping: false };

  const byChat = async (content: string): Promise<string> => {
    let text = '';
    const stream = await openai.chat.completions.create({ model: 'm', stream: true, messages: [{ role: 'user', content }] });
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    return text;
  };
  const byResponses = async (input: string): Promise<string> => {
    let text = '';
    let ended = false;
    for await (const event of await openai.responses.create({ model: 'm', stream: true, input })) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      if (event.type === 'response.failed') throw new Error(event.response.error?.message);
      ended ||= event.type === 'response.completed';
    }
    assert.ok(ended, 'a stream without an end');
    return text;
  };
  const byMessages = async (content: string): Promise<string> => {
    const stream = anthropic.messages.stream({ model: 'm', max_tokens: 100, messages: [{ role: 'user', content }] });
    return await stream.finalText();
  };

  const client = async (ask: (text: string) => Promise<string>, name: string): Promise<void> => {
    for (let round = 0; !state.stopping; round++) {
      state.asked += 1;
      try {
        assert.equal(await ask(`${name} ${round}`), ANSWER.join(''));
      } catch (error) {
        state.failures += 1;
        state.lastFailure = `${name}: ${error instanceof Error ? error.message : String(error)}`;
      }
    }
  };
  const clients = [byChat, byResponses, byMessages].flatMap((ask) => [0, 1].map((index) => client(ask, `${ask.name}-${index}`)));
  return {
    get asked() {
      return state.asked;
    },
    get failures() {
      return state.failures;
    },
    get lastFailure() {
      return state.lastFailure;
    },
    async stop() {
      state.stopping = true;
      await Promise.all(clients);
    },
  };
}

/** When each Channel broke and came back, from rows alone. */
function timelineOf(rows: readonly RequestLogRow[]): string[] {
  const seen = rows.flatMap((row) =>
    row.attempts.map((attempt, index) => {
      const last = index === row.attempts.length - 1;
      const midStream = last && row.errorCode !== undefined && attempt.errorCode === undefined;
      return { at: attempt.startedAtMs, id: attempt.channelId, reason: midStream ? 'in mid-stream' : reasonOf(attempt) };
    }),
  );
  seen.sort((a, b) => a.at - b.at);
  const broken = new Map<string, { good: number }>();
  const timeline: string[] = [];
  for (const { id, reason } of seen) {
    const state = broken.get(id);
    if (reason !== undefined) {
      if (state === undefined) timeline.push(`${id} broke: ${reason}`);
      broken.set(id, { good: 0 });
    } else if (state !== undefined) {
      state.good += 1;
      // One good answer may have begun before the break was noticed; two in a row did not.
      if (state.good < 2) continue;
      broken.delete(id);
      timeline.push(`${id} recovered`);
    }
  }
  return timeline;
}

function reasonOf({ errorCode, upstreamStatus }: RequestLogRow['attempts'][number]): string | undefined {
  if (errorCode === undefined) return undefined;
  return upstreamStatus !== undefined && upstreamStatus >= 300 ? `status_${upstreamStatus}` : errorCode;
}

async function allRows(place: Installation): Promise<RequestLogRow[]> {
  const { out } = await place.run('logs', '--json', '--limit', '100000');
  return out
    .trim()
    .split('\n')
    .map((line): RequestLogRow => JSON.parse(line));
}

function attemptsIn(figures: string, id: string, outcome: string): number {
  const pattern = new RegExp(`^mizu_attempts_total\\{channel="${id}",outcome="${outcome}",reason="[^"]*"\\} (\\d+)$`, 'gm');
  return [...figures.matchAll(pattern)].reduce((sum, [, count]) => sum + Number(count), 0);
}

const failuresOf = async (metrics: () => Promise<string>, id: string): Promise<number> =>
  attemptsIn(await metrics(), id, 'failure');
const successesOf = async (metrics: () => Promise<string>, id: string): Promise<number> =>
  attemptsIn(await metrics(), id, 'success');
