/** What a gateway reports to operators: of one process, or of all its workers together. */
import type { Gateway } from '../gateway.ts';

/** The reports of one process, or of all the workers of a gateway. */
export interface OperatorReports {
  /** In the text form of Prometheus. */
  metrics(): Promise<{ readonly type: string; readonly text: string }>;
  health(): Promise<{ readonly ready: boolean; readonly report: object }>;
  channels(): Promise<object>;
  /** The same as rows, a Channel once for each worker. */
  live(): Promise<readonly LiveChannel[]>;
}

/** What a running process knows of a Channel. */
export interface LiveChannel {
  readonly id: string;
  /** The process id of the worker; absent in a gateway without workers. */
  readonly worker?: number;
  /** Attempts that run on it. */
  readonly running: number;
  readonly circuits: readonly LiveCircuit[];
}

export interface LiveCircuit {
  readonly model?: string;
  readonly state: string;
  readonly openForMs: number;
  readonly recentFailures: number;
}

/** The reports of this process. */
export function reportsOf(gateway: Gateway): OperatorReports {
  const { registry } = gateway.metrics;
  return {
    metrics: async () => ({ type: registry.contentType, text: await registry.metrics() }),
    async health() {
      const report = healthReport(gateway);
      return { ready: report.reasons.length === 0, report };
    },
    channels: async () => ({ channels: channelReport(gateway) }),
    live: async () => liveChannels(channelReport(gateway)),
  };
}

export function healthReport(gateway: Gateway) {
  const reasons = gateway.unready();
  return {
    status: reasons.length === 0 ? 'ok' : 'unready',
    reasons,
    config_revision: gateway.config.current().revision,
    store: gateway.store.health(),
    settlements_pending: gateway.store.settlements.pending,
  };
}

/** As it goes from a worker to its primary. */
export type ChannelReport = ReturnType<typeof channelReport>[number];

/** Rows of a report, in the names of the admin API. `worker`: the process that reports. */
export function liveChannels(reports: readonly ChannelReport[], worker?: number): LiveChannel[] {
  return reports.map(({ id, running, circuits }) => ({
    id,
    ...(worker === undefined ? {} : { worker }),
    running,
    circuits: circuits.map(({ open_for_ms: openForMs, recent_failures: recentFailures, ...rest }) => ({
      ...rest,
      openForMs,
      recentFailures,
    })),
  }));
}

/** Every Channel with its circuits that are not closed. Keys and URLs stay out. */
export function channelReport(gateway: Gateway) {
  const circuits = gateway.dispatcher.health.report();
  return gateway.config.current().channels.map(({ id, type, priority, weight, models }) => ({
    id,
    type,
    priority,
    weight,
    models: [...models.keys()],
    running: gateway.dispatcher.concurrency.running(id),
    circuits: circuits
      .filter(({ channelId, state, recentFailures }) => channelId === id && (state !== 'closed' || recentFailures > 0))
      .map(({ model, state, openForMs, recentFailures }) => ({
        ...(model === undefined ? {} : { model }),
        state,
        open_for_ms: openForMs,
        recent_failures: recentFailures,
      })),
  }));
}
