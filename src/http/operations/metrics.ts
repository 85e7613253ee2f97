/** Prometheus metrics. Labels have few values: routes, Channels, and our own codes and states; never a key or a client's text. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { CircuitState } from '../dispatch/circuit.ts';
import type { CircuitReport } from '../dispatch/health.ts';
import type { LimitKind, LimitScope } from '../limits/buckets.ts';
import { kept, type Seconds, SeriesHistogram, tallies, type Tally } from './series.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];
const UPSTREAM_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];
const GAP_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60];

export interface Metrics {
  readonly registry: Registry;
  requestStarted(route: string): void;
  /** `code` is empty for a success. */
  requestEnded(route: string, status: number, code: string, seconds: number): void;
  /** What was refused before it was a request: an upgrade, a message of a WebSocket. */
  requestRefused(route: string, error: { readonly status: number; readonly code: string }): void;
  /** `reason` is empty for a success; one of a fixed set of words. */
  attemptEnded(channelId: string, reason: string): void;
  firstToken(route: string, seconds: number): void;
  tokenGap(route: string, seconds: number): void;
  /** What a request of an admitted exchange used, was charged, and how its Channel answered. */
  exchanged(exchange: ExchangeFigures): void;
  settlementLost(): void;
  connectionDropped(): void;
  /** A task of this model came to its end. */
  videoEnded(model: string, state: 'succeeded' | 'failed' | 'cancelled', nanos: bigint): void;
  /** A circuit of the Channel went to this state. */
  circuitMoved(channelId: string, state: CircuitState): void;
  probed(channelId: string, good: boolean): void;
  /** A refusal that got neither a row nor a line. */
  refusalThinned(): void;
  configReload(accepted: boolean): void;
  /** A balance, or what a spend limit leaves, went under its threshold. */
  ledgerAlert(what: 'balance' | 'total' | 'hourly' | 'daily'): void;
  /** Refused for a limit by time, or at once. */
  rateLimited(scope: LimitScope, kind: LimitKind): void;
}

type TokenKind = 'input' | 'cached_input' | 'cache_write' | 'output';

/** Of an exchange that was admitted: its model is one of the configuration. */
export interface ExchangeFigures {
  readonly model: string;
  /** Billed; absent where nothing was. */
  readonly tokens?: Readonly<Record<TokenKind, number>>;
  readonly chargedNanos: bigint;
  /** The Channel that answered, with times since its attempt began; absent where none did. */
  readonly answered?: {
    readonly channelId: string;
    readonly seconds: number;
    readonly firstTokenSeconds?: number;
    readonly affinityHit: boolean;
  };
}

export interface MetricsOptions {
  readonly version: string;
  readonly storeHealthy: () => boolean;
  readonly openVideos: () => Promise<ReadonlyMap<string, number>>;
  readonly circuits: () => readonly CircuitReport[];
  readonly pendingSettlements: () => number;
  /** What waits or is kept in this process, by kind. */
  readonly held: () => Readonly<Record<string, number>>;
  /** Event-loop delay and process figures; off in tests. */
  readonly processFigures: boolean;
}

export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const registers = [registry];
  if (options.processFigures) collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 20 });

  const counter = <L extends string>(name: string, help: string, ...labelNames: L[]): Counter<L> =>
    new Counter({ name, help, labelNames, registers });
  const { tally, gauge, histogram } = seriesOf(registry);
  const seconds = (name: string, help: string, buckets: number[]) => {
    const ofRoute = histogram(name, help, buckets, 'route');
    return kept((route: string) => ofRoute({ route }));
  };

  const request = tally('mizu_requests_total', 'Requests answered.', 'route', 'status');
  const requests = kept((route: string) => kept((status: number) => request({ route, status })));
  const errors = counter('mizu_errors_total', 'Failed requests by code.', 'route', 'code');
  const attempt = tally('mizu_attempts_total', 'Upstream attempts.', 'channel', 'outcome', 'reason');
  const attempts = kept((channel: string) =>
    kept((reason: string) => attempt({ channel, outcome: reason === '' ? 'success' : 'failure', reason })),
  );
  const flight = gauge('mizu_requests_in_flight', 'Requests being answered.', 'route');
  const inFlight = kept((route: string) => flight({ route }));
  const duration = seconds('mizu_request_duration_seconds', 'From the request to the end of its answer.', SECONDS);
  const first = seconds('mizu_time_to_first_token_seconds', 'From the request to the first output of a stream.', SECONDS);
  const gap = seconds('mizu_time_between_tokens_seconds', 'Between two writes of a stream.', GAP_SECONDS);
  const exchanged = exchangeFigures(registry);
  const settlementsLost = counter(
    'mizu_settlements_lost_total',
    'Settlements that could not be written: each is a line at error.',
  );
  const connectionsDropped = counter(
    'mizu_connections_dropped_total',
    'Connections that were not accepted (`limits.connections`), or cut because they pipelined too much.',
  );
  for (const zero of [settlementsLost, connectionsDropped]) zero.inc(0);
  const videoEnds = counter('mizu_videos_ended_total', 'Video tasks that came to an end.', 'model', 'state');
  const thinned = counter('mizu_refusals_unwritten_total', 'Refusals without a row, because their key caused many.');
  thinned.inc(0);
  const alerts = counter(
    'mizu_ledger_alerts_total',
    'Balances and spend limits that went under their threshold, by which.',
    'what',
  );
  for (const what of ['balance', 'total', 'hourly', 'daily']) alerts.inc({ what }, 0);
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
    requestStarted(route) {
      inFlight(route).value += 1;
    },
    requestEnded(route, status, code, seconds) {
      inFlight(route).value -= 1;
      requests(route)(status).value += 1;
      if (code !== '') errors.inc({ route, code });
      duration(route).add(seconds);
    },
    attemptEnded(channel, reason) {
      attempts(channel)(reason).value += 1;
    },
    requestRefused(route, { status, code }) {
      requests(route)(status).value += 1;
      errors.inc({ route, code });
    },
    circuitMoved: (channel, state) => moves.inc({ channel, state }),
    probed: (channel, good) => probes.inc({ channel, outcome: good ? 'success' : 'failure' }),
    firstToken: (route, seconds) => first(route).add(seconds),
    tokenGap: (route, seconds) => gap(route).add(seconds),
    exchanged,
    settlementLost: () => settlementsLost.inc(),
    connectionDropped: () => connectionsDropped.inc(),
    videoEnded(model, state, nanos) {
      videoEnds.inc({ model, state });
      exchanged({ model, chargedNanos: nanos });
    },
    refusalThinned: () => thinned.inc(),
    ledgerAlert: (what) => alerts.inc({ what }),
    configReload: (accepted) => reloads.inc({ result: accepted ? 'accepted' : 'refused' }),
    rateLimited: (scope, limit) => limited.inc({ scope, limit }),
  };
}

/** Series of metrics that every exchange counts in. */
function seriesOf(registry: Registry) {
  return {
    tally: <L extends string>(name: string, help: string, ...labels: L[]): ((of: Record<L, string | number>) => Tally) =>
      tallies({ registry, type: 'counter', name, help, labels }),
    gauge: <L extends string>(name: string, help: string, ...labels: L[]): ((of: Record<L, string | number>) => Tally) =>
      tallies({ registry, type: 'gauge', name, help, labels }),
    histogram<L extends string>(
      name: string,
      help: string,
      buckets: number[],
      ...labels: L[]
    ): (of: Record<L, string>) => Seconds {
      const histogram = new SeriesHistogram({ name, help, buckets, labels });
      registry.registerMetric(histogram);
      return (of) => histogram.series(of);
    },
  };
}

const KINDS = ['input', 'cached_input', 'cache_write', 'output'] as const;
/** What the prompt cache of an upstream did, and the tokens that tell it. */
const CACHES = [
  ['read', 'cached_input'],
  ['write', 'cache_write'],
  ['none', 'input'],
] as const;
const NANOS_A_DOLLAR = 1e9;

/** Latency by Channel and model, tokens and charge by model, and whether the caches of upstreams were of use. */
function exchangeFigures(registry: Registry): (exchange: ExchangeFigures) => void {
  const { tally, histogram } = seriesOf(registry);
  const ofBoth = (name: string, help: string) => {
    const of = histogram(name, help, UPSTREAM_SECONDS, 'channel', 'model');
    return kept((channel: string) => kept((model: string) => of({ channel, model })));
  };
  const kindTokens = tally('mizu_tokens_total', 'Billed tokens.', 'kind');
  const all = kept((kind: TokenKind) => kindTokens({ kind }));
  for (const kind of KINDS) all(kind);
  const modelTokens = tally('mizu_model_tokens_total', 'Billed tokens, by model.', 'model', 'kind');
  const tokens = kept((model: string) => kept((kind: TokenKind) => modelTokens({ model, kind })));
  const modelCharge = tally('mizu_charged_usd_total', 'Charged US dollars; the ledger has them exactly.', 'model');
  const charged = kept((model: string) => modelCharge({ model }));
  const duration = ofBoth('mizu_upstream_duration_seconds', 'From an attempt to the end of its answer.');
  const first = ofBoth('mizu_upstream_first_token_seconds', 'From an attempt to the first output of its answer.');
  const result = tally(
    'mizu_affinity_total',
    'Answers, by whether the Channel was the one that the conversation had last.',
    'channel',
    'result',
  );
  const affinity = kept((channel: string) => kept((isHit: boolean) => result({ channel, result: isHit ? 'hit' : 'miss' })));
  const prompt = tally(
    'mizu_prompt_tokens_total',
    "Input tokens of a Channel's model, by what its prompt cache did: read, write, none.",
    ...(['channel', 'model', 'cache'] as const),
  );
  const prompts = kept((channel: string) => kept((model: string) => kept((cache: string) => prompt({ channel, model, cache }))));

  return ({ model, tokens: used, chargedNanos, answered }) => {
    if (chargedNanos > 0n) charged(model).value += Number(chargedNanos) / NANOS_A_DOLLAR;
    if (used !== undefined) {
      for (const kind of KINDS) {
        if (used[kind] === 0) continue;
        all(kind).value += used[kind];
        tokens(model)(kind).value += used[kind];
      }
    }
    if (answered === undefined) return;
    const { channelId: channel, seconds, firstTokenSeconds, affinityHit } = answered;
    duration(channel)(model).add(seconds);
    if (firstTokenSeconds !== undefined) first(channel)(model).add(firstTokenSeconds);
    affinity(channel)(affinityHit).value += 1;
    if (used === undefined) return;
    for (const [cache, kind] of CACHES) if (used[kind] > 0) prompts(channel)(model)(cache).value += used[kind];
  };
}

/** A store that cannot even tell is unwell, and takes no other metric with it. */
function isHealthy(storeHealthy: () => boolean): boolean {
  try {
    return storeHealthy();
  } catch {
    return false;
  }
}

/** Gauges that are read at each scrape. What all workers see alike is not added up. */
function addReadGauges(registry: Registry, options: MetricsOptions): void {
  const { circuits, pendingSettlements, held, storeHealthy, openVideos, version } = options;
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
    name: 'mizu_build_info',
    help: 'Always 1: which version runs, on which Node.',
    labelNames: ['version', 'node'],
    aggregator: 'first',
    registers,
  }).set({ version, node: process.versions.node }, 1);
  new Gauge({
    name: 'mizu_store_healthy',
    help: '1 while the store takes new work; of workers the worst.',
    aggregator: 'min',
    registers,
    collect() {
      this.set(isHealthy(storeHealthy) ? 1 : 0);
    },
  });
  new Gauge({
    name: 'mizu_videos',
    help: 'Video tasks that are not over, by state.',
    labelNames: ['state'],
    aggregator: 'max',
    registers,
    async collect() {
      this.reset();
      // A store that is away is told by its own gauge.
      const counts = await openVideos().catch(() => undefined);
      if (counts === undefined) return;
      for (const state of ['queued', 'submitting', 'running', 'unknown']) this.set({ state }, counts.get(state) ?? 0);
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
  new Gauge({
    name: 'mizu_held',
    help: 'What requests and clients hold in memory, by kind.',
    labelNames: ['kind'],
    registers,
    collect() {
      for (const [kind, amount] of Object.entries(held())) this.set({ kind }, amount);
    },
  });
}
