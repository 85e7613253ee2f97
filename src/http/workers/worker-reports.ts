/**
 * The reports on the operations port of a gateway with workers. The primary asks each worker, since circuits, counters and the
 * health of the store are a worker's own.
 */
import type { Worker } from 'node:cluster';
import type { Registry } from 'prom-client';
import { isObject } from '../../codecs/canonical/json.ts';
import type { Clock } from '../../streams/clock.ts';
import { type ChannelReport, liveChannels, type OperatorReports } from '../operations/reports.ts';
import { MetricSums } from './metric-sums.ts';

/** What a worker can be asked for. */
export interface WorkerFacts {
  readonly registry: Registry;
  channels(): readonly object[];
  health(): { readonly reasons: readonly string[] };
}

type Topic = 'channels' | 'health' | 'metrics';

const ASK = 'mizu:ask';
const ANSWER = 'mizu:answer';
const LAST = 'mizu:last-metrics';
const ASK_MS = 2_000;
/** Longer, because a sum without a busy worker would look like lost counts. */
const METRICS_MS = 5_000;

/** In a worker: answers the primary's questions. */
export function answerPrimary(facts: WorkerFacts): void {
  const about: Readonly<Record<Topic, () => Promise<unknown>>> = {
    channels: async () => facts.channels(),
    health: async () => facts.health(),
    metrics: () => facts.registry.getMetricsAsJSON(),
  };
  process.on('message', (message: unknown) => {
    if (!isObject(message) || typeof message[ASK] !== 'number') return;
    const { [ASK]: ask, topic } = message;
    if (topic !== 'channels' && topic !== 'health' && topic !== 'metrics') return;
    const tell = (answer: unknown): void => {
      // The primary may be gone.
      if (process.connected) process.send?.({ [ANSWER]: ask, answer }, undefined, undefined, () => undefined);
    };
    // A question that fails is not answered, and the primary goes on without it.
    about[topic]().then(tell, () => undefined);
  });
}

/**
 * In a worker that has closed everything: its counters stay in the sums of the primary. Resolves when they are sent, or cannot
 * be.
 */
export async function tellLastMetrics({ registry }: Pick<WorkerFacts, 'registry'>): Promise<void> {
  const report = await registry.getMetricsAsJSON();
  await new Promise<void>((resolve) => {
    if (process.connected && process.send !== undefined) process.send({ [LAST]: report }, undefined, undefined, () => resolve());
    else resolve();
  });
}

let asked = 0;

/** The worker's answer, or undefined where none comes in time. */
function ask(worker: Worker, topic: Topic, clock: Clock, ms: number): Promise<unknown> {
  const number = ++asked;
  return new Promise((resolve) => {
    const finish = (answer?: unknown): void => {
      worker.off('message', onMessage);
      timer.cancel();
      resolve(answer);
    };
    const onMessage = (message: unknown): void => {
      if (isObject(message) && message[ANSWER] === number) finish(message['answer']);
    };
    const timer = clock.setTimeout(() => finish(), ms);
    worker.on('message', onMessage);
    worker.send({ [ASK]: number, topic }, (error) => {
      if (error !== null) finish();
    });
  });
}

/** Those that take new work, those that drain as well, and whom to tell when one begins and when it has ended. */
export interface ReportingWorkers {
  serving(): readonly Worker[];
  reporting(): readonly Worker[];
  onFork(listener: (worker: Worker) => void): void;
  onExit(listener: (worker: Worker) => void): void;
}

/** `count` serving workers are a whole gateway. */
export function workerReports(workers: ReportingWorkers, count: number, clock: Clock): OperatorReports {
  const sums = new MetricSums();
  workers.onFork((worker) => {
    worker.on('message', (message: unknown) => {
      if (isObject(message) && message[LAST] !== undefined) sums.reported(worker.id, message[LAST]);
    });
  });
  workers.onExit((worker) => void sums.exited(worker.id));
  const answers = async (asked: readonly Worker[], topic: Topic) => {
    const all = asked.map(async (worker) => ({ pid: worker.process.pid, answer: await ask(worker, topic, clock, ASK_MS) }));
    return (await Promise.all(all)).filter(({ answer }) => answer !== undefined);
  };
  return {
    async metrics() {
      await Promise.all(
        workers.reporting().map(async (worker) => {
          const report = await ask(worker, 'metrics', clock, METRICS_MS);
          // One that has ended meanwhile is in the sums with what it reported last.
          if (worker.isDead() || sums.reported(worker.id, report) || sums.has(worker.id)) return;
          throw new Error('a worker did not report its metrics');
        }),
      );
      return await sums.text();
    },
    async health() {
      const all = await answers(workers.serving(), 'health');
      const reasons = new Set(
        all.flatMap(({ answer }) => (isObject(answer) && Array.isArray(answer['reasons']) ? answer['reasons'] : [])),
      );
      if (all.length < count) reasons.add('workers');
      const each = all.map(({ pid, answer }) => ({ pid, ...(isObject(answer) ? answer : {}) }));
      return {
        ready: reasons.size === 0,
        report: { status: reasons.size === 0 ? 'ok' : 'unready', reasons: [...reasons], workers: each },
      };
    },
    async channels() {
      return { workers: (await answers(workers.reporting(), 'channels')).map(({ pid, answer }) => ({ pid, channels: answer })) };
    },
    async live() {
      // A worker answers with its own report.
      return (await answers(workers.reporting(), 'channels')).flatMap(({ pid, answer }) =>
        liveChannels(answer as readonly ChannelReport[], pid),
      );
    },
  };
}
