/** Builds the {@link Config} from a file of the right shape: fills in defaults, and checks rules that span several keys. */
import { dirname, resolve } from 'node:path';
import { createSecureContext } from 'node:tls';
import { defined } from '../../codecs/defined.ts';
import { parseUsd } from '../../store/money.ts';
import { ipRanges, isLoopback } from '../request/ip-ranges.ts';
import { addBookPrices, type BookOptions } from './book-prices.ts';
import { addressFault, buildChannel, HEADER_NAME, HEADER_VALUE, type Surroundings } from './build-channel.ts';
import { buildModel, rateLimitsOf } from './build-model.ts';
import { type Channel, COMPACT_SUFFIX, type Config, type Limits, type Model } from './config.ts';
import { ConfigError, type ConfigProblem, joinPath } from './config-error.ts';
import { type ChannelEntry, type ConfigFile, LOOPBACK } from './schema.ts';
import { checkFallbacks } from './fallbacks.ts';
import { camelKeys } from './schema-terms.ts';

export interface BuildOptions extends BookOptions {
  /** The file's own path: `store.path` is relative to its folder. */
  readonly path: string;
  readonly revision: number;
  readonly nowMs: number;
  /** The environment, which credentials of clouds may come from. */
  readonly env: Surroundings['env'];
  /** `HOST` and `PORT`. */
  readonly host?: string;
  readonly port?: number;
}

const OPERATIONS_PORT = 8081;
/** The wildcard addresses. */
const ANY: ReadonlySet<string> = new Set(['0.0.0.0', '::']);
/** The beginning of a URL, of whatever scheme. */
const ADDRESS = /^[a-z][a-z0-9+.-]*:\/\//i;
/** Throws {@link ConfigError} with every problem found. */
export function buildConfig(file: ConfigFile, options: BuildOptions): Config {
  const problems: ConfigProblem[] = [];
  const timeouts = camelKeys(file.timeouts);
  const models = new Map<string, Model>();
  for (const [name, entry] of Object.entries(file.models)) {
    models.set(name, buildModel(name, entry, options.parsePrice, problems));
  }
  const channels = buildChannels(file.channels, { timeouts, env: options.env }, models, problems);
  addBookPrices(models, [...channels.channels, ...channels.disabledChannels], file, options, problems);
  checkFallbacks(models, problems);
  const trustedProxies = ipRanges(file.trusted_proxies, (index, message) =>
    problems.push({ path: `trusted_proxies[${index}]`, message }),
  );
  const listen = { host: options.host ?? file.listen.host, port: options.port ?? file.listen.port };
  checkAddresses(file, listen, problems);
  const alerts = thresholdsOf(file, problems);
  if (problems.length > 0) throw new ConfigError(problems);

  return Object.freeze({
    revision: options.revision,
    loadedAtMs: options.nowMs,
    listen,
    ...defined({
      operations: operationsOf(file, listen),
      publicBaseUrl: publicBaseUrlOf(file),
      storeUrl: file.store.url,
      tracing: file.tracing === undefined ? undefined : camelKeys(file.tracing),
    }),
    role: file.node.role,
    storePath: resolve(dirname(options.path), file.store.path),
    backupsPath: resolve(dirname(options.path), file.store.backups ?? `${file.store.path.replace(/[\\/]+$/, '')}-backups`),
    trustedProxies,
    durability: file.ledger.durability,
    unpricedTools: file.ledger.unpriced_tools,
    unpriced: file.ledger.unpriced,
    chargeFailures: file.ledger.charge_failures,
    alerts,
    log: camelKeys(file.log),
    limits: limitsOf(file),
    dispatch: camelKeys(file.dispatch),
    health: camelKeys(file.health),
    history: camelKeys(file.history),
    websocket: { ...camelKeys(file.websocket), messageBytes: file.limits.json_bytes },
    affinity: camelKeys(file.affinity),
    writeStallMs: timeouts.writeStallMs,
    commitAfterMs: file.commit_after_ms,
    keepAliveMs: file.keep_alive_ms,
    warmUpMs: file.warm_up_ms,
    workerSilenceMs: file.worker_silence_ms,
    drainMs: file.drain_ms,
    channelHeader: file.channel_header,
    ...channels,
    models,
    classes: classesOf(file),
  });
}

function thresholdsOf({ ledger }: ConfigFile, problems: ConfigProblem[]): Config['alerts'] {
  const read = (path: string, text: string): bigint => {
    const parsed = parseUsd(text);
    if (!parsed.ok) problems.push({ path, message: parsed.refusal.message });
    return parsed.ok ? parsed.value : 0n;
  };
  const { alert_balance: balance, alert_window: window, alert_accounts: own } = ledger;
  const accounts = Object.entries(own).map(
    ([name, text]) => [name, read(joinPath(['ledger', 'alert_accounts', name]), text)] as const,
  );
  return {
    ...(balance === null ? {} : { balanceNanos: read('ledger.alert_balance', balance) }),
    window,
    accounts: new Map(accounts),
  };
}

function classesOf({ classes }: ConfigFile): Config['classes'] {
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
  const { insecure: _insecure, ...rest } = operations ?? { insecure: false };
  return { host: LOOPBACK, port, ...rest, chosen: operations !== undefined };
}

function publicBaseUrlOf({ public_base_url: url }: ConfigFile): string | undefined {
  return url?.replace(/\/+$/, '');
}

function limitsOf({ limits }: ConfigFile): Limits {
  const { keyExchanges: exchanges, keyBodyBytes: bodyBytes, bodyBytes: allBytes, ...rest } = camelKeys(limits);
  return { ...rest, key: { exchanges, bodyBytes, allBytes } };
}

function checkAddresses(file: ConfigFile, listen: Config['listen'], problems: ConfigProblem[]): void {
  const operations = operationsOf(file, listen);
  const shared =
    operations !== undefined && (operations.host === listen.host || ANY.has(operations.host) || ANY.has(listen.host));
  if (shared && listen.port !== 0 && operations.port === listen.port)
    problems.push({ path: 'operations.port', message: 'must differ from listen.port' });
  if (operations !== undefined) checkOperations(file, operations, problems);
  const publicBaseUrl = publicBaseUrlOf(file);
  if (publicBaseUrl !== undefined && !isPlainBaseUrl(publicBaseUrl))
    problems.push({
      path: 'public_base_url',
      message: 'must be a plain http or https URL: a host, a port, a path; no user, query or fragment',
    });
  const tracingFault = file.tracing === undefined ? undefined : addressFault(URL.parse(file.tracing.endpoint), 'tracing.headers');
  if (tracingFault !== undefined) problems.push({ path: 'tracing.endpoint', message: tracingFault });
  if (ADDRESS.test(file.store.path))
    problems.push({ path: 'store.path', message: 'must be a folder: a database is named by store.url' });
  for (const [name, value] of Object.entries(file.tracing?.headers ?? {})) {
    const path = joinPath(['tracing', 'headers', name]);
    if (!HEADER_NAME.test(name)) problems.push({ path, message: 'is not a valid header name' });
    if (!HEADER_VALUE.test(value)) problems.push({ path, message: 'is not a valid header value' });
  }
}

/** Tokens of operators pass through it: beyond this machine it encrypts, unless the operator allows plain text. */
function checkOperations(
  { operations: written }: ConfigFile,
  { host, tls }: NonNullable<Config['operations']>,
  problems: ConfigProblem[],
): void {
  if (tls === undefined && written?.insecure !== true && host !== 'localhost' && !isLoopback(host))
    problems.push({ path: 'operations.host', message: 'beyond this machine needs operations.tls, or operations.insecure: true' });
  if (tls === undefined) return;
  try {
    createSecureContext(tls);
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : '';
    problems.push({ path: 'operations.tls', message: `is no certificate with its key${why}` });
  }
}

function buildChannels(
  entries: readonly ChannelEntry[],
  surroundings: Surroundings,
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
    const channel = buildChannel(entry, surroundings, at, problems);
    if (channel === undefined) continue;
    for (const model of channel.models.keys()) {
      const priced = model.endsWith(COMPACT_SUFFIX) ? model.slice(0, -COMPACT_SUFFIX.length) : model;
      if (!models.has(model) && !models.has(priced))
        problems.push({ path: `${at}.models`, message: `${JSON.stringify(model)} is not in models` });
    }
    (entry.disabled ? disabledChannels : channels).push(channel);
  }
  return { channels, disabledChannels };
}

const PLAIN = /^https?:\/\/(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:\/[A-Za-z0-9._~-]+)*$/;

/**
 * The address that the examples name: http or https, a host, a port, a path; no slash at its end. It is never taken from a
 * request's Host header, which anybody may choose, and its characters are limited because readers paste these examples into a
 * shell.
 */
function isPlainBaseUrl(text: string): boolean {
  return PLAIN.test(text) && URL.canParse(text);
}
