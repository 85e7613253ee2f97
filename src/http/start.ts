/** Wires the parts of a gateway together and starts its listeners; the one place that knows them all. Reads no environment. */
import type { CodecSet } from '../codecs/codec-set.ts';
import type { Mint } from '../codecs/codec.ts';
import { createEnvelopes } from '../codecs/envelope.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../streams/clock.ts';
import type { Logger } from 'pino';
import type { Config } from './config/config.ts';
import type { ConfigSource } from './config/source.ts';
import { Affinity } from './dispatch/affinity.ts';
import { Concurrency } from './dispatch/concurrency.ts';
import { Health } from './dispatch/health.ts';
import { Upstreams } from './dispatch/upstream.ts';
import type { Gateway } from './gateway.ts';
import { KeySlots } from './key-slots.ts';
import { createMetrics } from './metrics.ts';
import { createOperationsServer, type OperationsServer } from './operations.ts';
import { HANDLERS } from './routes/table.ts';
import { createGatewayServer } from './server.ts';
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
  /** False in a worker: its primary listens for operators. Default true. */
  readonly operations?: boolean;
}

export interface RunningGateway {
  readonly gateway: Gateway;
  readonly port: number;
  readonly operationsPort: number | undefined;
  /** Not ready any more, no new work, open streams finish within `drain_ms`; then everything is closed. The store stays open. */
  stop(): Promise<void>;
  /** Cuts what is still open; `stop` then resolves. */
  cut(): void;
}

/** Rejects when a listener cannot be opened. */
export async function startGateway(options: StartOptions): Promise<RunningGateway> {
  let draining = false;
  let worker: VideoWorker | undefined;
  const gateway = createGateway(options, { isDraining: () => draining, videoCreated: () => worker?.wake() });
  const stopFollowing = options.config.onChange((config) => follow(gateway, config));
  const server = createGatewayServer(gateway, HANDLERS);
  const { listen, ...rest } = options.config.current();
  const operations = options.operations === false ? undefined : rest.operations;
  const operationsServer = operations === undefined ? undefined : createOperationsServer(gateway);
  let operationsPort: number | undefined;
  let port: number;
  try {
    if (operations !== undefined) operationsPort = await operationsServer?.listen(operations.host, operations.port);
    port = await server.listen(listen.host, listen.port);
  } catch (error) {
    await operationsServer?.close();
    throw error;
  }
  worker = startVideoWorker({ ...options, upstreams: gateway.upstreams, holder: options.mint('process_') });
  return {
    gateway,
    port,
    operationsPort,
    async stop() {
      draining = true;
      await Promise.all([server.drain(options.config.current().drainMs), worker?.stop()]);
      await close(operationsServer, gateway);
      stopFollowing();
    },
    cut: () => server.cut(),
  };
}

async function close(operations: OperationsServer | undefined, gateway: Gateway): Promise<void> {
  await gateway.store.settlements.flush();
  await operations?.close();
  await gateway.upstreams.close();
}

interface Signals {
  readonly isDraining: () => boolean;
  readonly videoCreated: () => void;
}

function createGateway(options: StartOptions, { isDraining, videoCreated }: Signals): Gateway {
  const { config, store, clock } = options;
  const { affinity } = config.current();
  const health = new Health(clock, () => config.current().health);
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
    },
    upstreams: new Upstreams(),
    envelopes: createEnvelopes(store.secrets),
    keySlots: new KeySlots(),
    log: options.log,
    metrics: createMetrics({
      circuits: () => health.report(),
      pendingSettlements: () => store.settlements.pending,
      processFigures: options.processFigures,
    }),
    videoCreated,
    unready: () => [...(isDraining() ? ['draining'] : []), ...(store.health().healthy ? [] : ['store'])],
  };
}

/** A new configuration touches no open stream: pools that are not wanted close when their requests are over. */
function follow(gateway: Gateway, config: Config): void {
  gateway.upstreams.keepOnly(config.channels);
  gateway.dispatcher.health.keepOnly(new Set(config.channels.map(({ id }) => id)));
  gateway.log.level = config.log.level;
}
