/** Builds the {@link Config} from a file of the right shape: fills in defaults, and checks rules that span several keys. */
import { dirname, resolve } from 'node:path';
import { defined } from '../../codecs/defined.ts';
import { ipRanges } from '../request/ip-ranges.ts';
import { isPlainBaseUrl } from './base-url.ts';
import { addressFault, buildChannel, HEADER_VALUE } from './build-channel.ts';
import { buildModel, type ParsePrice, rateLimitsOf } from './build-model.ts';
import {
  type Channel,
  COMPACT_SUFFIX,
  type Config,
  type HistoryLimits,
  type Limits,
  type Model,
  type Timeouts,
  type WebSocketLimits,
} from './config.ts';
import { ConfigError, type ConfigProblem, joinPath } from './config-error.ts';
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
const OPERATIONS_PORT = 8081;
/** The wildcard addresses. */
const ANY: ReadonlySet<string> = new Set(['0.0.0.0', '::']);
/** The beginning of a URL, of whatever scheme. */
const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\//i;
const MIB = 1024 * 1024;
const JSON_BYTES = 32 * MIB;
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

  return Object.freeze({
    revision: options.revision,
    loadedAtMs: options.nowMs,
    listen,
    ...defined({
      operations: operationsOf(file, listen),
      publicBaseUrl: publicBaseUrlOf(file),
      storeUrl: file.store?.url,
      tracing: tracingOf(file),
    }),
    role: file.node?.role ?? 'primary',
    storePath: resolve(dirname(options.path), file.store?.path ?? './data'),
    trustedProxies,
    durability: file.ledger?.durability ?? 'batched',
    unpricedTools: file.ledger?.unpriced_tools ?? 'forward',
    log: { level: file.log?.level ?? 'info', retentionDays: file.log?.retention_days ?? 90 },
    limits: limitsOf(file),
    dispatch: { maxAttempts: file.dispatch?.max_attempts ?? 6, maxRetryWaitMs: file.dispatch?.max_retry_wait_ms ?? 5_000 },
    health: healthOf(file),
    history: historyOf(file),
    websocket: websocketOf(file),
    affinity: { maxEntries: file.affinity?.max_entries ?? 50_000, idleMs: file.affinity?.idle_ms ?? 1_800_000 },
    writeStallMs: timeouts.writeStallMs,
    commitAfterMs: file.commit_after_ms ?? 10_000,
    keepAliveMs: file.keep_alive_ms ?? 15_000,
    drainMs: file.drain_ms ?? 30_000,
    channelHeader: file.channel_header ?? false,
    ...channels,
    models,
    classes: classesOf(file),
  });
}

function classesOf({ classes = {} }: ConfigFile): Config['classes'] {
  return new Map(
    Object.entries(classes).flatMap(([name, entry]) => {
      const limits = rateLimitsOf(entry.limits);
      return limits === undefined ? [] : [[name, limits]];
    }),
  );
}

/** The default port moves by one where `listen` uses it. */
function operationsOf({ operations }: ConfigFile, listen: Config['listen']): Config['operations'] {
  if (operations === null) return undefined;
  const port = listen.port === OPERATIONS_PORT ? OPERATIONS_PORT + 1 : OPERATIONS_PORT;
  return { host: LOOPBACK, port, ...operations, chosen: operations !== undefined };
}

function publicBaseUrlOf({ public_base_url: url }: ConfigFile): string | undefined {
  return url?.replace(/\/+$/, '');
}

function tracingOf({ tracing }: ConfigFile): Config['tracing'] {
  if (tracing === undefined) return undefined;
  const { endpoint, headers = {}, sample = 1, service_name: serviceName = 'mizu' } = tracing;
  return { endpoint, headers, sample, serviceName };
}

function limitsOf({ limits = {} }: ConfigFile): Limits {
  return {
    jsonBytes: limits.json_bytes ?? JSON_BYTES,
    jsonValues: limits.json_values ?? 250_000,
    multipartBytes: limits.multipart_bytes ?? 64 * MIB,
    eventBytes: limits.event_bytes ?? 64 * MIB,
    answerBytes: limits.answer_bytes ?? 128 * MIB,
    bodyMs: limits.body_ms ?? 60_000,
    connections: limits.connections ?? 20_000,
    key: {
      exchanges: limits.key_exchanges ?? 20_000,
      bodyBytes: limits.key_body_bytes ?? 1024 * MIB,
      allBytes: limits.body_bytes ?? 2048 * MIB,
    },
  };
}

function healthOf({ health = {} }: ConfigFile): Config['health'] {
  return {
    failures: health.failures ?? 5,
    windowMs: health.window_ms ?? 30_000,
    cooldownMs: health.cooldown_ms ?? 30_000,
    rateLimitCooldownMs: health.rate_limit_cooldown_ms ?? 15_000,
    refusedCooldownMs: health.refused_cooldown_ms ?? 60_000,
    ...defined({ probeMs: health.probe_ms }),
  };
}

function historyOf({ history = {} }: ConfigFile): HistoryLimits {
  return {
    entryBytes: history.entry_bytes ?? 32 * MIB,
    keyBytes: history.key_bytes ?? 128 * MIB,
    totalBytes: history.total_bytes ?? 512 * MIB,
  };
}

/** A message may be as large as a body. */
function websocketOf({ websocket = {}, limits }: ConfigFile): WebSocketLimits {
  return {
    turns: websocket.turns ?? 128,
    messageBytes: limits?.json_bytes ?? JSON_BYTES,
    idleMs: websocket.idle_ms ?? 600_000,
    lifetimeMs: websocket.lifetime_ms ?? 3_600_000,
    perKey: websocket.per_key ?? 64,
    unfinishedBytes: websocket.unfinished_bytes ?? 64 * MIB,
  };
}

function checkAddresses(file: ConfigFile, listen: Config['listen'], problems: ConfigProblem[]): void {
  const operations = operationsOf(file, listen);
  const shared =
    operations !== undefined && (operations.host === listen.host || ANY.has(operations.host) || ANY.has(listen.host));
  if (shared && listen.port !== 0 && operations.port === listen.port)
    problems.push({ path: 'operations.port', message: 'must differ from listen.port' });
  const publicBaseUrl = publicBaseUrlOf(file);
  if (publicBaseUrl !== undefined && !isPlainBaseUrl(publicBaseUrl))
    problems.push({
      path: 'public_base_url',
      message: 'must be a plain http or https URL: a host, a port, a path; no user, query or fragment',
    });
  const tracingFault = file.tracing === undefined ? undefined : addressFault(URL.parse(file.tracing.endpoint), 'tracing.headers');
  if (tracingFault !== undefined) problems.push({ path: 'tracing.endpoint', message: tracingFault });
  if (ADDRESS.test(file.store?.path ?? ''))
    problems.push({ path: 'store.path', message: 'must be a folder: a database is named by store.url' });
  for (const [name, value] of Object.entries(file.tracing?.headers ?? {})) {
    if (!HEADER_VALUE.test(value))
      problems.push({ path: joinPath(['tracing', 'headers', name]), message: 'is not a valid header value' });
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
    if (ids.has(entry.id)) problems.push({ path: `${at}.id`, message: `is the id of another channel, too: ${entry.id}` });
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
