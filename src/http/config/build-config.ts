/** A file of the right shape as the {@link Config} that the gateway reads: defaults are filled in, and what spans several keys is checked. */
import { dirname, resolve } from 'node:path';
import { ipRanges } from '../ip-ranges.ts';
import { buildChannel } from './build-channel.ts';
import { buildModel, type ParsePrice } from './build-model.ts';
import { type Channel, COMPACT_SUFFIX, type Config, type Model, type Timeouts } from './config.ts';
import { ConfigError, type ConfigProblem } from './config-error.ts';
import type { ChannelEntry, ConfigFile } from './schema.ts';

export interface BuildOptions {
  readonly parsePrice: ParsePrice;
  /** The file's own path: `store.path` is relative to its folder. */
  readonly path: string;
  readonly revision: number;
  readonly nowMs: number;
  /** `HOST` and `PORT`. */
  readonly host?: string;
  readonly port?: number;
}

const LOOPBACK = '127.0.0.1';
const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 10_000, firstDataMs: 600_000, idleMs: 120_000, writeStallMs: 60_000 };

/** Throws {@link ConfigError} with every problem found. */
export function buildConfig(file: ConfigFile, options: BuildOptions): Config {
  const problems: ConfigProblem[] = [];
  const timeouts = timeoutsOf(file.timeouts, DEFAULT_TIMEOUTS);
  const models = new Map<string, Model>();
  for (const [name, entry] of Object.entries(file.models ?? {})) {
    models.set(name, buildModel(name, entry, options.parsePrice, problems));
  }
  const channels = buildChannels(file.channels ?? [], timeouts, models, problems);
  const trustedProxies = ipRanges(file.trusted_proxies ?? [], (index, message) =>
    problems.push({ path: `trusted_proxies[${index}]`, message }),
  );
  const listen = { host: options.host ?? file.listen?.host ?? LOOPBACK, port: options.port ?? file.listen?.port ?? 8080 };
  checkAddresses(file, listen, problems);
  if (problems.length > 0) throw new ConfigError(problems);

  const limits = file.limits ?? {};
  return Object.freeze({
    revision: options.revision,
    loadedAtMs: options.nowMs,
    listen,
    ...(file.operations === null
      ? {}
      : { operations: { host: LOOPBACK, port: 8081, ...file.operations, chosen: file.operations !== undefined } }),
    ...(file.public_base_url === undefined ? {} : { publicBaseUrl: file.public_base_url.replace(/\/+$/, '') }),
    role: file.node?.role ?? 'primary',
    ...(file.store?.url === undefined ? {} : { storeUrl: file.store.url }),
    storePath: resolve(dirname(options.path), file.store?.path ?? './data'),
    trustedProxies,
    durability: file.ledger?.durability ?? 'batched',
    unpricedTools: file.ledger?.unpriced_tools ?? 'forward',
    log: { level: file.log?.level ?? 'info', retentionDays: file.log?.retention_days ?? 90 },
    ...(file.tracing === undefined
      ? {}
      : {
          tracing: {
            endpoint: file.tracing.endpoint,
            headers: file.tracing.headers ?? {},
            sample: file.tracing.sample ?? 1,
            serviceName: file.tracing.service_name ?? 'mizu',
          },
        }),
    limits: {
      jsonBytes: limits.json_bytes ?? 32 * 1024 * 1024,
      multipartBytes: limits.multipart_bytes ?? 64 * 1024 * 1024,
      eventBytes: limits.event_bytes ?? 64 * 1024 * 1024,
      answerBytes: limits.answer_bytes ?? 128 * 1024 * 1024,
      bodyMs: limits.body_ms ?? 60_000,
      connections: limits.connections ?? 20_000,
      key: {
        exchanges: limits.key_exchanges ?? 20_000,
        bodyBytes: limits.key_body_bytes ?? 1024 * 1024 * 1024,
      },
    },
    dispatch: { maxAttempts: file.dispatch?.max_attempts ?? 6, maxRetryWaitMs: file.dispatch?.max_retry_wait_ms ?? 5_000 },
    health: {
      failures: file.health?.failures ?? 5,
      windowMs: file.health?.window_ms ?? 30_000,
      cooldownMs: file.health?.cooldown_ms ?? 30_000,
      rateLimitCooldownMs: file.health?.rate_limit_cooldown_ms ?? 15_000,
      refusedCooldownMs: file.health?.refused_cooldown_ms ?? 60_000,
      ...(file.health?.probe_ms === undefined ? {} : { probeMs: file.health.probe_ms }),
    },
    history: {
      entryBytes: file.history?.entry_bytes ?? 32 * 1024 * 1024,
      keyBytes: file.history?.key_bytes ?? 128 * 1024 * 1024,
      totalBytes: file.history?.total_bytes ?? 512 * 1024 * 1024,
    },
    websocket: {
      turns: file.websocket?.turns ?? 128,
      messageBytes: limits.json_bytes ?? 32 * 1024 * 1024,
      idleMs: file.websocket?.idle_ms ?? 600_000,
      lifetimeMs: file.websocket?.lifetime_ms ?? 3_600_000,
      ...(file.websocket?.per_key === undefined ? {} : { perKey: file.websocket.per_key }),
    },
    affinity: { maxEntries: file.affinity?.max_entries ?? 50_000, idleMs: file.affinity?.idle_ms ?? 1_800_000 },
    writeStallMs: timeouts.writeStallMs,
    commitAfterMs: file.commit_after_ms ?? 10_000,
    keepAliveMs: file.keep_alive_ms ?? 15_000,
    drainMs: file.drain_ms ?? 30_000,
    channelHeader: file.channel_header ?? false,
    ...channels,
    models,
  });
}

function checkAddresses(file: ConfigFile, listen: Config['listen'], problems: ConfigProblem[]): void {
  const { operations } = file;
  if (listen.port !== 0 && operations?.port === listen.port && (operations.host ?? LOOPBACK) === listen.host)
    problems.push({ path: 'operations.port', message: 'is the port of listen, and operators need one of their own' });
  for (const [path, url] of [
    ['public_base_url', file.public_base_url],
    ['tracing.endpoint', file.tracing?.endpoint],
  ] as const) {
    if (url !== undefined && !URL.canParse(url)) problems.push({ path, message: 'is not a URL' });
  }
}

function buildChannels(
  entries: readonly ChannelEntry[],
  timeouts: Timeouts,
  models: ReadonlyMap<string, Model>,
  problems: ConfigProblem[],
): Pick<Config, 'channels' | 'disabledChannels'> {
  const ids = new Set<string>();
  const channels: Channel[] = [];
  const disabledChannels: Channel[] = [];
  for (const [index, entry] of entries.entries()) {
    const at = `channels[${index}]`;
    if (ids.has(entry.id)) problems.push({ path: `${at}.id`, message: `another channel is called ${entry.id}` });
    ids.add(entry.id);
    const channel = buildChannel(entry, timeoutsOf(entry.timeouts, timeouts), at, problems);
    if (channel === undefined) continue;
    for (const model of channel.models.keys()) {
      const priced = model.endsWith(COMPACT_SUFFIX) ? model.slice(0, -COMPACT_SUFFIX.length) : model;
      if (!models.has(model) && !models.has(priced))
        problems.push({ path: `${at}.models`, message: `${JSON.stringify(model)} is not in models` });
    }
    (entry.disabled === true ? disabledChannels : channels).push(channel);
  }
  return { channels, disabledChannels };
}

function timeoutsOf(entry: ConfigFile['timeouts'], fallback: Timeouts): Timeouts {
  return {
    connectMs: entry?.connect_ms ?? fallback.connectMs,
    firstDataMs: entry?.first_data_ms ?? fallback.firstDataMs,
    idleMs: entry?.idle_ms ?? fallback.idleMs,
    writeStallMs: entry?.write_stall_ms ?? fallback.writeStallMs,
  };
}
