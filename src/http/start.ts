/** Wires the parts of a gateway together and starts its listeners. Reads no environment. */
import type { CodecSet } from '../codecs/codec-set.ts';
import type { Mint } from '../codecs/codec.ts';
import { createEnvelopes } from '../codecs/envelope.ts';
import { USD } from '../store/money.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../streams/clock.ts';
import { LoopTurns } from '../streams/loop-turns.ts';
import type { Logger } from 'pino';
import { type AdminApiOptions, createAdminApi } from './admin/admin-api.ts';
import type { Config, OperationsAddress } from './config/config.ts';
import type { ConfigSource } from './config/source.ts';
import { Affinity } from './dispatch/affinity.ts';
import { Concurrency } from './dispatch/concurrency.ts';
import { Health } from './dispatch/health.ts';
import { watchService } from './dispatch/out-of-service.ts';
import { startProbes } from './dispatch/probes.ts';
import { RetryBudget } from './dispatch/retry-budget.ts';
import { UnknownMembers } from './dispatch/unknown-members.ts';
import { Upstreams } from './dispatch/upstream.ts';
import type { Gateway } from './gateway.ts';
import { LimitBuckets } from './limits/buckets.ts';
import { LimitExchange, startLimitExchange } from './limits/limit-exchange.ts';
import { type Limits, localLimits } from './limits/limits.ts';
import { workersLimits } from './limits/workers-limits.ts';
import { KeySlots } from './request/key-slots.ts';
import { Solvency } from './request/solvency.ts';
import { localMemory, type Memory } from './history/memory.ts';
import { type WorkerLink, workersMemory } from './history/workers-memory.ts';
import { ResponseHistory } from './history/response-history.ts';
import { createMetrics } from './operations/metrics.ts';
import { createOperationsServer, openOperations, type OperationsServer } from './operations/operations.ts';
import { type OperatorReports, reportsOf } from './operations/reports.ts';
import { startRetention } from './operations/retention.ts';
import { HANDLERS } from './routes/handlers.ts';
import { GatewayServer } from './server/server.ts';
import { OneATurn } from './one-a-turn.ts';
import { LargeWork } from './request/large-work.ts';
import { NO_SITE, type Site } from './server/site.ts';
import { createOtlpExporter } from './tracing/otlp-exporter.ts';
import { createTracer, noTracer, type Tracer } from './tracing/tracer.ts';
import { InFlight } from './exchange/in-flight.ts';
import { type LoadTokenizer, Tokenizer } from './money/tokenizer.ts';
import { RefusalRates } from './exchange/refusal-rates.ts';
import { LedgerAlerts } from './exchange/ledger-alerts.ts';
import { TokenRates } from './money/token-rates.ts';
import { UnfinishedBytes } from './websocket/inbound.ts';
import { startVideoWorker, type VideoWorker } from './videos/worker.ts';

export interface StartOptions {
  readonly config: ConfigSource;
  readonly store: Store;
  readonly codecs: CodecSet;
  readonly clock: Clock;
  readonly mint: Mint;
  /** Uniform in [0, 1): weights and jitter. */
  readonly random: () => number;
  readonly chargeFor: Gateway['chargeFor'];
  readonly log: Logger;
  readonly processFigures: boolean;
  /** Of the gateway, for `mizu_build_info`. */
  readonly version?: string;
  /** Default: the tables of `gpt-tokenizer`. */
  readonly loadTokenizer?: LoadTokenizer;
  /** The web pages. Absent: none, and their paths answer 404. */
  readonly site?: Site;
  /** The admin API of the operations port. Absent: none. */
  readonly admin?: (reports: OperatorReports) => AdminApiOptions;
  /** The pages of the console, on the operations port. */
  readonly consoleSite?: Site;
  /** How the response history of other workers is reached; absent in a process without workers. */
  readonly worker?: { readonly worker: number; readonly link: WorkerLink };
  /** A socket of this machine that all upstreams are reached at. Absent: each Channel at its own address. */
  readonly upstreamSocket?: string;
  /** False in a worker: its primary listens for operators. Default true. */
  readonly operations?: boolean;
}

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly port: number;
  readonly operationsPort: number | undefined;
  /**
   * Becomes unready, takes no new work, lets open streams finish within `drain_ms`, then closes everything but the store.
   * `drained` is called when nothing but the store is waited for, which may hang.
   */
  stop(drained?: () => void): Promise<void>;
  /** Cuts what is still open; `stop` then resolves. */
  cut(): void;
}

/** How long a shutdown waits for settlements once every connection is closed: a disk that hangs must not block it for ever. */
const SETTLE_MS = 5_000;

/** Rejects when a listener cannot be opened. */
export async function startGateway(given: StartOptions): Promise<RunningGateway> {
  const service = watchService({ ...given, controls: given.store.controls });
  // Before it listens: a Channel that is out of service gets nothing from the first request on.
  await service.look();
  const options = { ...given, config: service };
  let draining = false;
  let worker: VideoWorker | undefined;
  const buckets = new LimitBuckets();
  const gateway = createGateway(options, { isDraining: () => draining, videoCreated: () => worker?.wake() }, buckets);
  let before = options.config.current();
  const stopListening = options.config.onChange((config) => {
    applyConfig(gateway, before, config);
    before = config;
  });
  const server = new GatewayServer(gateway, HANDLERS);
  const { listen, ...rest } = options.config.current();
  const operations = options.operations === false ? undefined : rest.operations;
  const operationsServer = operations === undefined ? undefined : operationsServerOf(options, gateway, operations.tls);
  let operationsPort: number | undefined;
  let port: number;
  try {
    if (operations !== undefined && operationsServer !== undefined)
      operationsPort = await openOperations(operations, (host, at) => operationsServer.listen(host, at), options.log);
    port = await server.listen(listen.host, listen.port);
  } catch (error) {
    await operationsServer?.close();
    service.stop();
    throw error;
  }
  service.start();
  const stopProbes = startProbes({ ...gateway, health: gateway.dispatcher.health });
  const stopRetention = startRetention(options);
  const limitExchange = exchangeLimits(options, buckets);
  worker = startVideoWorker({ ...options, ...gateway, holder: options.mint('process_') });
  return {
    gateway,
    port,
    operationsPort,
    async stop(drained) {
      draining = true;
      service.stop();
      stopProbes();
      limitExchange?.stop();
      await Promise.all([server.drain(options.config.current().drainMs), worker?.stop()]);
      drained?.();
      await stopRetention();
      await gateway.inFlight.idle(gateway.clock, SETTLE_MS);
      await closeGateway(gateway, operationsServer);
      stopListening();
    },
    cut() {
      server.cut();
      worker?.cut();
    },
  };
}

function operationsServerOf(
  { admin, consoleSite, log }: StartOptions,
  gateway: Gateway,
  tls: OperationsAddress['tls'],
): OperationsServer {
  const reports = reportsOf(gateway);
  const api = admin === undefined ? undefined : createAdminApi(admin(reports));
  return createOperationsServer(reports, log, { tls, admin: api, site: consoleSite, turns: gateway.turns });
}

/** Rejects when rows could not be written. Everything is closed all the same, since an open handle keeps the process alive. */
export async function closeGateway(gateway: Gateway, operations?: OperationsServer): Promise<void> {
  try {
    gateway.refusals.flush();
    await gateway.store.settlements.flush();
  } finally {
    await operations?.close();
    await gateway.upstreams.close();
    gateway.memory.close();
    gateway.tokenizer.close();
    gateway.alerts.close();
    await gateway.tracer.close();
  }
}

interface Signals {
  readonly isDraining: () => boolean;
  readonly videoCreated: () => void;
}

function createMemory({ clock, config, mint, worker }: StartOptions): Memory {
  const history = new ResponseHistory(clock, () => config.current().history);
  return worker === undefined ? localMemory(history, mint) : workersMemory({ history, mint, clock, ...worker });
}

/** Of a worker its primary keeps the buckets. */
function createLimits({ clock, store, worker }: StartOptions, buckets: LimitBuckets): Limits {
  const alone = localLimits(clock, buckets);
  return worker === undefined ? alone : workersLimits(worker.link, clock, alone, store.limitCounts);
}

/** Undefined in a worker: its primary exchanges the counts. */
function exchangeLimits({ worker, mint, store, clock, log }: StartOptions, buckets: LimitBuckets): { stop(): void } | undefined {
  if (worker !== undefined) return undefined;
  const { limitCounts } = store;
  const exchange = new LimitExchange(buckets, mint('limits_'), (member, counts) => limitCounts.exchange(member, counts), clock);
  return startLimitExchange(exchange, clock, log);
}

const SILENT: Signals = { isDraining: () => false, videoCreated: () => undefined };

/** The parts, without listeners and jobs. */
export function createGateway(options: StartOptions, signals = SILENT, buckets = new LimitBuckets()): Gateway {
  const { isDraining, videoCreated } = signals;
  const { config, store, clock } = options;
  const { affinity } = config.current();
  const limits = createLimits(options, buckets);
  const health = new Health(
    clock,
    () => config.current().health,
    (channelId, model, state) => {
      metrics.circuitMoved(channelId, state);
      options.log.warn({ channel: channelId, model, state }, 'circuit');
    },
  );
  const metrics = createMetrics({
    circuits: () => health.report(),
    pendingSettlements: () => store.settlements.pending,
    held: () => ({
      body_bytes: keySlots.bytes,
      body_values: keySlots.values,
      history_bytes: memory.bytes,
      unfinished_message_bytes: unfinished.total,
      leaving_clients: leavers.waiting,
      large_bodies: largeWork.waiting,
      waiting_requests: turns.waiting,
      waiting_streams: streamTurns.waiting,
      reserved_usd: Number(store.admission.reserved()) / Number(USD),
    }),
    storeHealthy: () => store.health().healthy,
    openVideos: async () => await store.videos.openByState(),
    version: options.version ?? '',
    processFigures: options.processFigures,
  });
  const [keySlots, memory, unfinished, leavers] = [new KeySlots(), createMemory(options), new UnfinishedBytes(), new OneATurn()];
  const [largeWork, turns, streamTurns] = [new LargeWork(), new LoopTurns(), new LoopTurns()];
  const tokenizer = new Tokenizer(clock, options.log, options.loadTokenizer);
  return {
    config,
    store,
    clock,
    mint: options.mint,
    codecs: options.codecs,
    chargeFor: options.chargeFor,
    dispatcher: {
      clock,
      random: options.random,
      health,
      affinity: new Affinity(clock, affinity),
      concurrency: new Concurrency(clock),
      retries: new RetryBudget(),
      unknown: new UnknownMembers(clock),
    },
    upstreams: new Upstreams(clock, options.upstreamSocket),
    envelopes: createEnvelopes(store.secrets),
    keySlots,
    limits,
    solvency: new Solvency(store.keys, clock),
    refusals: new RefusalRates(clock),
    tokenRates: new TokenRates(),
    memory,
    unfinished,
    alerts: new LedgerAlerts({ store, clock, log: options.log, metrics, config: () => options.config.current() }),
    log: options.log,
    metrics,
    tracer: tracerOf(options),
    inFlight: new InFlight(),
    tokenizer,
    leavers,
    largeWork,
    turns,
    streamTurns,
    site: options.site ?? NO_SITE,
    videoCreated,
    unready: () => [
      ...(isDraining() ? ['draining'] : []),
      ...(store.health().healthy ? [] : ['store']),
      ...(tokenizer.tried ? [] : ['tokenizer']),
    ],
  };
}

/** The exporter is fixed at start. */
function tracerOf({ config, clock, random, mint, log }: StartOptions): Tracer {
  const { tracing } = config.current();
  if (tracing === undefined) return noTracer;
  const exporter = createOtlpExporter({
    endpoint: tracing.endpoint,
    headers: tracing.headers,
    resource: { 'service.name': tracing.serviceName },
    clock,
    onLost: (count, error) => log.warn({ count, err: error }, 'spans were lost'),
  });
  // The random digits are at the end of an id.
  return createTracer({ exporter, clock, random, sample: tracing.sample, hexId: (bytes) => mint('').slice(-bytes * 2) });
}

/**
 * Applies a new configuration. Open streams go on; a changed Channel starts with closed circuits (its credential may be right
 * now); pools that no Channel uses any more close after their last request.
 */
function applyConfig(gateway: Gateway, before: Config, config: Config): void {
  gateway.upstreams.keepOnly(config.channels);
  const known = new Set(before.channels.map(({ fingerprint }) => fingerprint));
  const unchanged = config.channels.filter(({ fingerprint }) => known.has(fingerprint));
  gateway.dispatcher.health.keepOnly(new Set(unchanged.map(({ id }) => id)));
  const channelIds = new Set(config.channels.map(({ id }) => id));
  gateway.dispatcher.retries.keepOnly(channelIds);
  gateway.dispatcher.unknown.keepOnly(channelIds);
  gateway.log.level = config.log.level;
}
