/**
 * The reports on the operations port of a gateway with workers. The primary asks each worker, since circuits, counters and the health of the
 * store are a worker's own.
 */
import type { Worker } from 'node:cluster';
import { AggregatorRegistry, type MetricObject, type Registry } from 'prom-client';
import { isObject } from '../../codecs/canonical/json.ts';
import type { Clock } from '../../streams/clock.ts';
import type { OperatorReports } from '../operations/operations.ts';

/** What a worker can be asked for. */
export interface WorkerFacts {
  readonly registry: Registry;
  channels(): readonly object[];
  health(): { readonly reasons: readonly string[] };
}

type Topic = 'channels' | 'health' | 'metrics';

const ASK = 'mizu:ask';
const ANSWER = 'mizu:answer';
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

/** `workers.serving()` take new work, `reporting()` are also those that drain. `count` serving workers are a whole gateway. */
export function workerReports(
  workers: { serving(): readonly Worker[]; reporting(): readonly Worker[] },
  count: number,
  clock: Clock,
): OperatorReports {
  const answers = async (asked: readonly Worker[], topic: Topic) => {
    const all = asked.map(async (worker) => ({ pid: worker.process.pid, answer: await ask(worker, topic, clock, ASK_MS) }));
    return (await Promise.all(all)).filter(({ answer }) => answer !== undefined);
  };
  return {
    async metrics() {
      const all = await Promise.all(workers.reporting().map((worker) => ask(worker, 'metrics', clock, METRICS_MS)));
      if (all.includes(undefined)) throw new Error('a worker did not report its metrics');
      const summed = AggregatorRegistry.aggregate(all as MetricObject[][]);
      return { type: summed.contentType, text: await summed.metrics() };
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
  };
}
