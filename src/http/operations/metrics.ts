/** Prometheus metrics. Labels have few values: routes, Channels, and our own codes and states; never a key or a client's text. */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import type { CircuitReport, CircuitState } from '../dispatch/health.ts';
import type { LimitKind, LimitScope } from '../limits/buckets.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const GAP_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60];

export interface Metrics {
  readonly registry: Registry;
  requestStarted(route: string): void;
  /** `code` is empty for a success. */
  requestEnded(route: string, status: number, code: string, seconds: number): void;
  /** `reason` is empty for a success; one of a fixed set of words. */
  attemptEnded(channelId: string, reason: string): void;
  firstToken(route: string, seconds: number): void;
  tokenGap(route: string, seconds: number): void;
  tokens(kind: 'input' | 'cached_input' | 'cache_write' | 'output', count: number): void;
  /** Input tokens by what the upstream's prompt cache did for them. */
  promptTokens(channelId: string, model: string, counts: PromptTokens): void;
  /** A circuit of the Channel went to this state. */
  circuitMoved(channelId: string, state: CircuitState): void;
  probed(channelId: string, good: boolean): void;
  /** A refusal that got neither a row nor a line. */
  refusalThinned(): void;
  configReload(accepted: boolean): void;
  /** Refused for a limit by time, or at once. */
  rateLimited(scope: LimitScope, kind: LimitKind): void;
}

export interface PromptTokens {
  readonly read: number;
  readonly write: number;
  readonly none: number;
}

export interface MetricsOptions {
  readonly circuits: () => readonly CircuitReport[];
  readonly pendingSettlements: () => number;
  /** Event-loop delay and process figures; off in tests. */
  readonly processFigures: boolean;
}

export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (options.processFigures) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 });

  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]): Counter<L> =>
    new Counter({ name, help, labelNames, registers });
  const seconds = (name: string, help: string, buckets: number[]): Histogram<'route'> =>
    new Histogram({ name, help, labelNames: ['route'], buckets, registers });

  const requests = counter('mizu_requests_total', 'Requests answered.', 'route', 'status');
  const errors = counter('mizu_errors_total', 'Failed requests by code.', 'route', 'code');
  const attempts = counter('mizu_attempts_total', 'Upstream attempts.', 'channel', 'outcome', 'reason');
  const inFlight = new Gauge({
    name: 'mizu_requests_in_flight',
    help: 'Requests being answered.',
    labelNames: ['route'],
    registers,
  });
  const duration = seconds('mizu_request_duration_seconds', 'From the request to the end of its answer.', SECONDS);
  const first = seconds('mizu_time_to_first_token_seconds', 'From the request to the first output of a stream.', SECONDS);
  const gap = seconds('mizu_time_between_tokens_seconds', 'Between two writes of a stream.', GAP_SECONDS);
  const tokens = counter('mizu_tokens_total', 'Billed tokens.', 'kind');
  for (const kind of ['input', 'cached_input', 'cache_write', 'output']) tokens.inc({ kind }, 0);
  const prompts = counter(
    'mizu_prompt_tokens_total',
    "Input tokens of a Channel's model, by what its prompt cache did: read, write, none.",
    ...(['channel', 'model', 'cache'] as const),
  );
  const thinned = counter('mizu_refusals_unwritten_total', 'Refusals without a row, because their key caused many.');
  thinned.inc(0);
  const reloads = counter('mizu_config_reloads_total', 'Configuration reloads.', 'result');
  // A counter must exist at zero for its first increase to be visible.
  for (const result of ['accepted', 'refused']) reloads.inc({ result }, 0);
  const moves = counter(
    'mizu_circuit_transitions_total',
    "Transitions of a Channel's circuits, by new state.",
    'channel',
    'state',
  );
  const probes = counter('mizu_probes_total', 'Active probes of Channels.', 'channel', 'outcome');
  const limited = counter('mizu_rate_limited_total', 'Requests refused for a limit, by whose and which.', 'scope', 'limit');
  addReadGauges(registry, options);

  return {
    registry,
    requestStarted: (route) => inFlight.inc({ route }),
    requestEnded(route, status, code, seconds) {
      inFlight.dec({ route });
      requests.inc({ route, status });
      if (code !== '') errors.inc({ route, code });
      duration.observe({ route }, seconds);
    },
    attemptEnded: (channel, reason) => attempts.inc({ channel, outcome: reason === '' ? 'success' : 'failure', reason }),
    circuitMoved: (channel, state) => moves.inc({ channel, state }),
    probed: (channel, good) => probes.inc({ channel, outcome: good ? 'success' : 'failure' }),
    firstToken: (route, seconds) => first.observe({ route }, seconds),
    tokenGap: (route, seconds) => gap.observe({ route }, seconds),
    tokens(kind, count) {
      if (count > 0) tokens.inc({ kind }, count);
    },
    promptTokens(channel, model, counts) {
      for (const [cache, count] of Object.entries(counts)) if (count > 0) prompts.inc({ channel, model, cache }, count);
    },
    refusalThinned: () => thinned.inc(),
    configReload: (accepted) => reloads.inc({ result: accepted ? 'accepted' : 'refused' }),
    rateLimited: (scope, limit) => limited.inc({ scope, limit }),
  };
}

/** Gauges that are read at each scrape. */
function addReadGauges(registry: Registry, { circuits, pendingSettlements }: MetricsOptions): void {
  const registers = [registry];
  new Gauge({
    name: 'mizu_circuit_open',
    help: '1 while the circuit of a Channel and model is not closed.',
    labelNames: ['channel', 'model', 'state'],
    registers,
    collect() {
      this.reset();
      for (const { channelId, model = '', state } of circuits()) {
        if (state !== 'closed') this.set({ channel: channelId, model, state }, 1);
      }
    },
  });
  new Gauge({
    name: 'mizu_settlements_pending',
    help: 'Settlements that are not on disk yet.',
    registers,
    collect() {
      this.set(pendingSettlements());
    },
  });
}
