/**
 * Text of a configuration file (JSON with comments) to a checked, frozen {@link Config}. Every problem is collected and named by its
 * path. Knows the file's shape; reads neither files nor the environment itself.
 */
import { dirname, resolve } from 'node:path';
import { type ParseError, parseTree, type Node as JsonNode, printParseErrorCode } from 'jsonc-parser';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { isObject } from '../../codecs/canonical/json.ts';
import { ipRanges } from '../ip-ranges.ts';
import { buildChannel } from './build-channel.ts';
import { buildModel, type ParsePrice } from './build-model.ts';
import type { Channel, Config, Model, Timeouts } from './config.ts';
import { COMPACT_SUFFIX } from './config.ts';
import { ConfigError, type ConfigProblem, joinPath, partsOf, pathOfPointer } from './config-error.ts';
import { meantKey } from './known-keys.ts';
import { CHANNEL_SCHEMAS, CONFIG_SCHEMA, type ChannelEntry, type ConfigFile } from './schema.ts';
import { resolveSecrets, type SecretSources } from './secrets.ts';

export interface ParseOptions extends SecretSources {
  readonly parsePrice: ParsePrice;
  /** The file's own path: `store.path` is relative to its folder. */
  readonly path: string;
  readonly revision: number;
  readonly nowMs: number;
  /** `HOST` and `PORT`. */
  readonly host?: string;
  readonly port?: number;
}

const DEFAULT_TIMEOUTS: Timeouts = { connectMs: 10_000, firstDataMs: 600_000, idleMs: 120_000, writeStallMs: 60_000 };

interface Checked {
  readonly schema: unknown;
  Check(value: unknown): boolean;
  Errors(value: unknown): { keyword: string; instancePath: string; message: string; params: object }[];
}
const ROOT = checkedBy(CONFIG_SCHEMA);
const CHANNELS = new Map(Object.entries(CHANNEL_SCHEMAS).map(([type, schema]) => [type, checkedBy(schema)]));

function checkedBy(schema: TSchema): Checked {
  const compiled = Compile(schema);
  return { schema, Check: (value) => compiled.Check(value), Errors: (value) => compiled.Errors(value) };
}

/** Throws {@link ConfigError} with every problem found. */
export function parseConfig(text: string, options: ParseOptions): Config {
  const problems: ConfigProblem[] = [];
  const raw = resolveSecrets(readJsonc(text), options, problems);
  if (problems.length === 0) checkShape(raw, problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return build(raw as ConfigFile, options);
}

/** JSON with comments and trailing commas; a key given twice is refused, since one of the two would be lost. */
function readJsonc(text: string): unknown {
  const errors: ParseError[] = [];
  const root = parseTree(text.replace(/^\uFEFF/, ''), errors, { allowTrailingComma: true });
  const first = errors[0];
  if (first !== undefined || root === undefined) {
    const line = text.slice(0, first?.offset ?? 0).split('\n').length;
    const what = first === undefined ? 'the file is empty' : `line ${line}: ${printParseErrorCode(first.error)}`;
    throw new ConfigError([{ path: '', message: `not valid JSON: ${what}` }]);
  }
  const problems: ConfigProblem[] = [];
  const value = valueAt(root, [], problems);
  if (problems.length > 0) throw new ConfigError(problems);
  return value;
}

function valueAt(node: JsonNode, path: readonly (string | number)[], problems: ConfigProblem[]): unknown {
  if (node.type === 'array') return (node.children ?? []).map((child, index) => valueAt(child, [...path, index], problems));
  if (node.type !== 'object') return node.value;
  const entries = new Map<string, unknown>();
  for (const property of node.children ?? []) {
    const [key, value] = property.children ?? [];
    if (key === undefined || value === undefined) continue;
    const name = String(key.value);
    if (entries.has(name)) problems.push({ path: joinPath([...path, name]), message: 'is given twice' });
    entries.set(name, valueAt(value, [...path, name], problems));
  }
  return Object.fromEntries(entries);
}

/** Channels are checked one by one against the schema of their own type, so that a problem names the key and not eight alternatives. */
function checkShape(raw: unknown, problems: ConfigProblem[]): void {
  const channels = isObject(raw) ? raw['channels'] : undefined;
  collect(ROOT, isObject(raw) && Array.isArray(channels) ? { ...raw, channels: [] } : raw, '', problems);
  if (!Array.isArray(channels)) return;
  for (const [index, channel] of channels.entries()) {
    const type = isObject(channel) ? channel['type'] : undefined;
    const schema = typeof type === 'string' ? CHANNELS.get(type) : undefined;
    if (schema !== undefined) collect(schema, channel, `/channels/${index}`, problems);
    else problems.push({ path: `channels[${index}].type`, message: `must be one of ${[...CHANNELS.keys()].join(', ')}` });
  }
}

/** What only repeats another problem of the same place. */
const ECHOES = new Set(['boolean', 'anyOf', 'const']);

function collect(schema: Checked, value: unknown, at: string, problems: ConfigProblem[]): void {
  if (schema.Check(value)) return;
  const all = schema.Errors(value);
  // Where one of some words must stand, what is no text at all is told the words, too.
  const worded = new Set(all.filter(({ keyword }) => keyword === 'const').map(({ instancePath }) => instancePath));
  const errors = all.filter(({ keyword, instancePath }) => keyword !== 'type' || !worded.has(instancePath));
  const known = new Set(errors.filter(({ keyword }) => !ECHOES.has(keyword)).map(({ instancePath }) => instancePath));
  const words = new Map<string, string[]>();
  const before = problems.length;
  for (const { keyword, instancePath, message, params } of errors) {
    if (keyword === 'additionalProperties' && 'additionalProperties' in params && Array.isArray(params.additionalProperties)) {
      for (const key of params.additionalProperties) {
        const meant = meantKey(schema.schema, partsOf(instancePath), String(key));
        const where = at === '' || meant === undefined ? meant : `${pathOfPointer(at)}.${meant}`;
        const hint = where === undefined ? '' : `; did you mean ${where}?`;
        problems.push({ path: pathOfPointer(`${at}${instancePath}/${String(key)}`), message: `is not a known key${hint}` });
      }
    } else if (keyword === 'const' && 'allowedValue' in params && !known.has(instancePath)) {
      words.set(instancePath, [...(words.get(instancePath) ?? []), JSON.stringify(params.allowedValue)]);
    } else if (!ECHOES.has(keyword)) {
      problems.push({ path: pathOfPointer(at + instancePath), message });
    }
  }
  for (const [place, allowed] of words) {
    problems.push({
      path: pathOfPointer(at + place),
      message: `must be ${allowed.length > 1 ? 'one of ' : ''}${allowed.join(', ')}`,
    });
  }
  if (problems.length === before) problems.push({ path: pathOfPointer(at), message: 'does not fit the schema' });
}

function build(file: ConfigFile, options: ParseOptions): Config {
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
  const listenPort = options.port ?? file.listen?.port ?? 8080;
  const isTaken = listenPort !== 0 && file.operations?.port === listenPort;
  if (isTaken && (file.operations?.host ?? '127.0.0.1') === (options.host ?? file.listen?.host ?? '127.0.0.1'))
    problems.push({ path: 'operations.port', message: 'is the port of listen, and operators need one of their own' });
  for (const [path, url] of [
    ['public_base_url', file.public_base_url],
    ['tracing.endpoint', file.tracing?.endpoint],
  ] as const) {
    if (url !== undefined && !URL.canParse(url)) problems.push({ path, message: 'is not a URL' });
  }
  if (problems.length > 0) throw new ConfigError(problems);

  const operations =
    file.operations === null
      ? undefined
      : { host: '127.0.0.1', port: 8081, ...file.operations, chosen: file.operations !== undefined };
  const limits = file.limits ?? {};
  return Object.freeze({
    revision: options.revision,
    loadedAtMs: options.nowMs,
    listen: {
      host: options.host ?? file.listen?.host ?? '127.0.0.1',
      port: listenPort,
    },
    ...(operations === undefined ? {} : { operations }),
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
    channels,
    models,
  });
}

function buildChannels(
  entries: readonly ChannelEntry[],
  timeouts: Timeouts,
  models: ReadonlyMap<string, Model>,
  problems: ConfigProblem[],
): readonly Channel[] {
  const ids = new Set<string>();
  const channels: Channel[] = [];
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
    if (entry.disabled !== true) channels.push(channel);
  }
  return channels;
}

function timeoutsOf(entry: ConfigFile['timeouts'], fallback: Timeouts): Timeouts {
  return {
    connectMs: entry?.connect_ms ?? fallback.connectMs,
    firstDataMs: entry?.first_data_ms ?? fallback.firstDataMs,
    idleMs: entry?.idle_ms ?? fallback.idleMs,
    writeStallMs: entry?.write_stall_ms ?? fallback.writeStallMs,
  };
}
