/**
 * What every game day is made of: simulated Channels of three dialects, an operator who breaks them one after another, SDK
 * clients that ask without a pause, and the same timeline read back from the rows of the log and the text of the metrics, from
 * nothing else.
 */
import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import Anthropic from '@anthropic-ai/sdk';
import OpenAI from 'openai';
import type { Fault, Script } from '../../src/simulator/script.ts';
import { type Simulator, startSimulator } from '../../src/simulator/simulator.ts';
import type { RequestLogRow } from '../../src/store/request-log.ts';
import { type Installation, waitFor } from './processes.ts';

const CHANNELS = { ada: 'chat_completion', bea: 'responses', cyd: 'messages' } as const;
export const CHANNEL_IDS = ['ada', 'bea', 'cyd'] as const;
type Id = keyof typeof CHANNELS;

/** What the operator does: one Channel at a time, in a way that failover can hide, or cannot. */
export const ACTS: readonly { readonly id: Id; readonly fault: Fault; readonly reason: string; readonly hidden: boolean }[] = [
  { id: 'ada', fault: { type: 'status', status: 503 }, reason: 'status_503', hidden: true },
  { id: 'bea', fault: { type: 'cut', at: 0 }, reason: 'network', hidden: true },
  { id: 'cyd', fault: { type: 'html', status: 200 }, reason: 'undecodable', hidden: true },
  { id: 'ada', fault: { type: 'status', status: 401 }, reason: 'status_401', hidden: true },
  { id: 'cyd', fault: { type: 'cut', at: 6 }, reason: 'network', hidden: false },
];

export const ANSWER = ['one ', 'two ', 'three ', 'four ', 'five ', 'six ', 'seven ', 'eight'];
const script = (faults: readonly Fault[] = []): Script => ({
  times: 1_000_000,
  reply: { pieces: [{ type: 'text', text: ANSWER }], usage: { input: 5, output: 8 } },
  pace: { ms: 1 },
  faults,
});

/** One for each Channel, ended after the test. */
export async function startUpstreams(t: TestContext, host = '127.0.0.1'): Promise<ReadonlyMap<string, Simulator>> {
  const simulators = new Map<string, Simulator>();
  for (const id of CHANNEL_IDS) {
    const simulator = await startSimulator({ journal: 1, host });
    simulator.enqueue(script());
    simulators.set(id, simulator);
    t.after(() => simulator.close());
  }
  return simulators;
}

/** The model `slow` takes some seconds for an answer, from now on. */
export function defineSlow(simulators: ReadonlyMap<string, Simulator>): void {
  for (const simulator of simulators.values()) simulator.define('slow', { ...script(), pace: { ms: 1_000 } });
}

/** The part of a configuration that names them; short cooldowns, so that a broken Channel is soon asked again. */
export function channelsOf(simulators: ReadonlyMap<string, Simulator>): {
  readonly channels: readonly object[];
  readonly health: object;
} {
  return {
    channels: CHANNEL_IDS.map((id) => {
      return {
        id,
        type: CHANNELS[id],
        base_url: simulators.get(id)?.url,
        api_key: `key-of-${id}`,
        models: { m: `${id}-model`, slow: 'script:slow' },
      };
    }),
    health: { failures: 3, window_ms: 5000, cooldown_ms: 150, refused_cooldown_ms: 150 },
  };
}

/** `metrics` is the text of every gateway's, joined. Returns what the operator would write down. */
export async function breakOneByOne(
  simulators: ReadonlyMap<string, Simulator>,
  crowd: Crowd,
  metrics: () => Promise<string>,
  enough: number,
): Promise<string[]> {
  const told: string[] = [];
  const count = async (id: string, outcome: string): Promise<number> => attemptsIn(await metrics(), id, outcome);
  for (const { id, fault, reason, hidden } of ACTS) {
    const simulator = simulators.get(id);
    assert.ok(simulator);
    const failuresBefore = crowd.failures.length;
    const failedBefore = await count(id, 'failure');
    simulator.reset();
    simulator.enqueue(script([fault]));
    told.push(`${id} broke: ${reason}`);
    await waitFor(
      async () => (hidden ? (await count(id, 'failure')) > failedBefore : crowd.failures.length > failuresBefore) || undefined,
      () => `${id} was never asked`,
    );
    simulator.reset();
    simulator.enqueue(script());
    const good = await count(id, 'success');
    told.push(`${id} recovered`);
    // What the break had in flight is over by then.
    await waitFor(
      async () => (await count(id, 'success')) >= good + 2 * enough || undefined,
      () => `${id} never came back`,
    );
    if (hidden) assert.deepEqual(crowd.failures.slice(failuresBefore), [], `clients saw that ${id} broke`);
  }
  return told;
}

/** What became of one request, as its client saw it. */
export interface Asked {
  /** Its `x-request-id`. */
  readonly id: string;
  readonly gateway: string;
  /** `away`: 503 `store_unavailable`. `gone`: no connection. A wrong answer is `failed`, too. */
  readonly outcome: 'whole' | 'failed' | 'away' | 'gone';
  readonly said: string;
}

export interface Crowd {
  readonly asked: readonly Asked[];
  readonly failures: readonly Asked[];
  stop(): Promise<void>;
}

/**
 * SDK clients of three dialects for each gateway, which ask as soon as they have their answer, each time in a new conversation.
 * Behind a gateway that is gone they go on to the next one.
 */
export function startCrowd(gateways: ReadonlyMap<string, string>, key: string, ofEach: number): Crowd {
  const asked: Asked[] = [];
  let stopping = false;
  const behind = [...gateways].map(([gateway, url]) => ({ gateway, sdks: sdksOf(url, key) }));

  const client = async (dialect: keyof typeof ASK, home: number, number: number): Promise<void> => {
    let at = home;
    for (let round = 0; !stopping; round++) {
      const place = behind[at % behind.length];
      assert.ok(place);
      const id = `${dialect}-${home}-${number}-${round}`;
      const { outcome, said } = await outcomeOf(ASK[dialect](place.sdks, id));
      asked.push({ id, gateway: place.gateway, outcome, said });
      if (outcome === 'gone') at += 1;
      if (outcome !== 'whole') await new Promise((resolve) => setTimeout(resolve, 10));
    }
  };
  const clients = behind.flatMap((_, home) =>
    (['chat', 'responses', 'messages'] as const).flatMap((dialect) =>
      Array.from({ length: ofEach }, (_, number) => client(dialect, home, number)),
    ),
  );
  return {
    asked,
    get failures() {
      return asked.filter(({ outcome }) => outcome !== 'whole');
    },
    async stop() {
      stopping = true;
      await Promise.all(clients);
    },
  };
}

interface Sdks {
  readonly openai: OpenAI;
  readonly anthropic: Anthropic;
}

function sdksOf(url: string, apiKey: string): Sdks {
  return {
    openai: new OpenAI({ apiKey, baseURL: `${url}/v1`, maxRetries: 0 }),
    anthropic: new Anthropic({ apiKey, baseURL: url, maxRetries: 0 }),
  };
}

type Ask = (sdks: Sdks, id: string) => Promise<string>;

const ASK: Readonly<Record<'chat' | 'responses' | 'messages', Ask>> = {
  async chat({ openai }, id) {
    let text = '';
    const messages = [{ role: 'user' as const, content: id }];
    const stream = await openai.chat.completions.create({ model: 'm', stream: true, messages }, named(id));
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
    return text;
  },
  async responses({ openai }, id) {
    let text = '';
    let ended = false;
    for await (const event of await openai.responses.create({ model: 'm', stream: true, input: id }, named(id))) {
      if (event.type === 'response.output_text.delta') text += event.delta;
      if (event.type === 'response.failed') throw new Error(event.response.error?.message);
      ended ||= event.type === 'response.completed';
    }
    assert.ok(ended, 'a stream without an end');
    return text;
  },
  async messages({ anthropic }, id) {
    const messages = [{ role: 'user' as const, content: id }];
    return await anthropic.messages.stream({ model: 'm', max_tokens: 100, messages }, named(id)).finalText();
  },
};

function named(id: string) {
  return { headers: { 'x-request-id': id } };
}

async function outcomeOf(answer: Promise<string>): Promise<Pick<Asked, 'outcome' | 'said'>> {
  try {
    const text = await answer;
    return { outcome: text === ANSWER.join('') ? 'whole' : 'failed', said: text };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    if (error instanceof OpenAI.APIConnectionError || error instanceof Anthropic.APIConnectionError)
      return { outcome: 'gone', said };
    const status = error instanceof OpenAI.APIError || error instanceof Anthropic.APIError ? error.status : undefined;
    const away = status === 503 && error instanceof Error && JSON.stringify(error).includes('store_unavailable');
    return { outcome: away ? 'away' : 'failed', said: `${status ?? ''} ${said}` };
  }
}

/** When each Channel broke and came back. That many good answers in a row began after the break was over. */
export function timelineOf(rows: readonly RequestLogRow[], enough: number): string[] {
  const seen = rows.flatMap(({ attempts }) =>
    attempts.map((attempt) => ({ at: attempt.startedAtMs, id: attempt.channelId, reason: reasonOf(attempt) })),
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
      if (state.good < enough) continue;
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

/** The whole log, by the operator's verb. */
export async function logOf(place: Installation): Promise<RequestLogRow[]> {
  const { out } = await place.run('logs', '--json', '--limit', '100000');
  return out
    .trim()
    .split('\n')
    .map((line): RequestLogRow => JSON.parse(line));
}

/** Attempts of a Channel with this outcome, by the metrics. */
export function attemptsIn(figures: string, id: string, outcome: string): number {
  return sumOf(figures, `mizu_attempts_total\\{channel="${id}",outcome="${outcome}",reason="[^"]*"\\}`);
}

/** The sum of a metric's values; `name` is a regular expression for the whole of it with its labels. */
export function sumOf(figures: string, name: string): number {
  return [...figures.matchAll(new RegExp(`^${name} (\\d+)$`, 'gm'))].reduce((sum, [, count]) => sum + Number(count), 0);
}
