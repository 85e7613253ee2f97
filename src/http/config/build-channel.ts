/** One entry of `channels` as a Channel: where its base URL leads, how it authenticates, which options its codec reads. */
import { createHash, X509Certificate } from 'node:crypto';
import type { CodecOptions } from '../../codecs/codec.ts';
import { defined } from '../../codecs/defined.ts';
import { CHANNEL_FACTS } from './channel-facts.ts';
import type { Channel, ChannelOptions, Timeouts } from './config.ts';
import { buildPlatform, defaultAddress } from './build-platform.ts';
import type { ConfigProblem } from './config-error.ts';
import type { ChannelEntry, HostedEntry } from './schema.ts';
import { camelKeys } from './schema-terms.ts';

/** Headers that the gateway itself sets on every upstream request, and hop-by-hop headers. */
const OWN_HEADERS = new Set(
  (
    'host content-length content-type transfer-encoding accept-encoding ' +
    'connection keep-alive proxy-connection upgrade expect te trailer http2-settings'
  ).split(' '),
);
/** Client headers that may never be forwarded, whatever is configured. */
const PRIVATE_HEADERS = new Set([
  ...OWN_HEADERS,
  'authorization',
  'x-api-key',
  'x-goog-api-key',
  'cookie',
  'proxy-authorization',
]);

/** What of the file and of the process a Channel depends on. */
export interface Surroundings {
  readonly timeouts: Timeouts;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Undefined when the base URL cannot be read; problems are appended. */
export function buildChannel(
  entry: ChannelEntry,
  { timeouts: general, env }: Surroundings,
  at: string,
  problems: ConfigProblem[],
): Channel | undefined {
  const platform = isHosted(entry) ? buildPlatform(entry, env, at, problems) : undefined;
  const address = entry.base_url ?? (isHosted(entry) ? defaultAddress(entry) : '');
  const url = readBaseUrl(address, `${at}.base_url`, problems);
  if (url === undefined) return undefined;
  const options = optionsOf(entry, at, problems);
  if (entry.api_key !== undefined && !HEADER_VALUE.test(entry.api_key))
    problems.push({ path: `${at}.api_key`, message: 'holds a character that a header cannot carry' });
  const basePath = url.pathname.replace(/\/+$/, '');
  const raw = entry.options;
  const timeouts = { ...general, ...camelKeys(entry.timeouts) };
  const models = Array.isArray(entry.models)
    ? entry.models.map((name): [string, string] => [name, name])
    : Object.entries(entry.models);
  return {
    id: entry.id,
    type: entry.type,
    ...defined({ platform }),
    origin: url.origin,
    basePath,
    versionedPath: platform === undefined ? versionedPath(entry.type, basePath, raw) : basePath,
    ...(entry.api_key === undefined ? {} : { apiKey: entry.api_key }),
    priority: entry.priority,
    weight: entry.weight,
    ...(entry.classes === undefined ? {} : { classes: new Set(entry.classes) }),
    models: new Map(models),
    timeouts,
    ...('file_scope' in entry && entry.file_scope != null ? { fileScope: entry.file_scope } : {}),
    opaqueScope: ('opaque_scope' in entry ? entry.opaque_scope : undefined) ?? url.origin,
    codec: codecOptions(raw),
    options,
    image: {
      generationTool: 'image_enable_openai_generation_tool' in raw && raw.image_enable_openai_generation_tool,
      defaults: 'image_defaults' in raw ? raw.image_defaults : {},
    },
    ...('poll_interval_ms' in raw ? { video: videoOf(raw) } : {}),
    fingerprint: createHash('sha256')
      .update(JSON.stringify([entry, timeouts, platform]))
      .digest('hex')
      .slice(0, 32),
  };
}

function isHosted(entry: ChannelEntry): entry is HostedEntry {
  return 'platform' in entry;
}

function videoOf(raw: RawOptions & { readonly poll_interval_ms: number }): NonNullable<Channel['video']> {
  return {
    apiVersion: 'api_version' in raw && raw.api_version === 'v2' ? 'v2' : 'v1',
    pollIntervalMs: raw.poll_interval_ms,
    ...('poll_deadline_s' in raw && raw.poll_deadline_s !== undefined ? { pollDeadlineS: raw.poll_deadline_s } : {}),
  };
}

/** The path to which the endpoint is appended. MiniMax has its version in `options.api_version`. */
function versionedPath(type: ChannelEntry['type'], basePath: string, options: object): string {
  if (type === 'minimax_video') {
    const version = 'api_version' in options && options.api_version === 'v2' ? 'v2' : 'v1';
    return `${basePath.replace(/\/v[12]$/, '')}/${version}`;
  }
  if (/\/v\d[^/]*$/.test(basePath)) return basePath;
  return `${basePath}${type === 'gemini' ? '/v1beta' : '/v1'}`;
}

function readBaseUrl(text: string, path: string, problems: ConfigProblem[]): URL | undefined {
  const url = URL.parse(text);
  const message = addressFault(url, 'api_key');
  if (message !== undefined) problems.push({ path, message });
  return message === undefined && url !== null ? url : undefined;
}

/** The fault of a base URL, or undefined; `instead` is the configuration key that credentials belong to. */
export function addressFault(url: URL | null, instead: string): string | undefined {
  if (url === null) return 'is not a URL';
  if (url.username !== '' || url.password !== '') return `must not hold credentials (use ${instead})`;
  return url.search !== '' || url.hash !== '' ? 'must not have a query or a fragment' : undefined;
}

type RawOptions = ChannelEntry['options'];

function optionsOf(entry: ChannelEntry, at: string, problems: ConfigProblem[]): ChannelOptions {
  const raw = entry.options;
  const headers = headersOf(raw, at, problems);
  const parameters = new Map(Object.entries(raw.parameters).map(([name, value]) => [name, JSON.stringify(value)]));
  const dropParameters = raw.drop_parameters;
  checkMembers(parameters, dropParameters, at, problems);
  checkConnection(raw, at, problems);
  return {
    ...defined({
      path: 'path' in raw ? raw.path : undefined,
      proxy: raw.proxy,
      ca: raw.ca,
      maxConcurrency: raw.max_concurrency,
    }),
    ...('compaction' in raw ? defined({ compaction: raw.compaction }) : {}),
    websocket: 'websocket' in raw && raw.websocket,
    auth: ('auth' in raw ? raw.auth : undefined) ?? CHANNEL_FACTS[entry.type].auth,
    headers,
    forwardHeaders: forwardedOf(raw, headers, at, problems),
    parameters,
    dropParameters,
    maxQueue: raw.max_queue,
    queueMs: raw.queue_ms,
    retries: raw.retries,
  };
}

function headersOf(raw: RawOptions, at: string, problems: ConfigProblem[]): ChannelOptions['headers'] {
  const headers = new Map<string, string | null>();
  for (const [name, value] of Object.entries(raw.headers)) {
    const key = name.toLowerCase();
    const path = `${at}.options.headers[${JSON.stringify(name)}]`;
    if (OWN_HEADERS.has(key)) problems.push({ path, message: 'is set by the gateway itself' });
    if (!HEADER_NAME.test(name)) problems.push({ path, message: 'is not a valid header name' });
    if (value !== null && !HEADER_VALUE.test(value)) problems.push({ path, message: 'is not a valid header value' });
    if (headers.has(key)) problems.push({ path, message: 'is given twice' });
    headers.set(key, value);
  }
  return headers;
}

function forwardedOf(
  raw: RawOptions,
  headers: ChannelOptions['headers'],
  at: string,
  problems: ConfigProblem[],
): ReadonlySet<string> {
  const path = `${at}.options.forward_headers`;
  const names = ('forward_headers' in raw ? raw.forward_headers : []).map((name) => name.toLowerCase());
  for (const name of names) {
    if (PRIVATE_HEADERS.has(name)) problems.push({ path, message: `${name} is never forwarded` });
    else if (headers.has(name)) problems.push({ path, message: `${name} is also in headers` });
  }
  return new Set(names);
}

function checkMembers(set: ReadonlyMap<string, string>, dropped: readonly string[], at: string, problems: ConfigProblem[]): void {
  for (const name of dropped) {
    if (set.has(name)) problems.push({ path: `${at}.options.drop_parameters`, message: `${name} is also in parameters` });
  }
  for (const name of ['model', 'stream', 'messages', 'input', 'contents']) {
    if (set.has(name) || dropped.includes(name))
      problems.push({ path: `${at}.options`, message: `the member ${name} belongs to the gateway` });
  }
}

function checkConnection(raw: RawOptions, at: string, problems: ConfigProblem[]): void {
  const proxyProblem = raw.proxy === undefined ? undefined : problemOfProxy(raw.proxy);
  if (proxyProblem !== undefined) problems.push({ path: `${at}.options.proxy`, message: proxyProblem });
  if (raw.ca !== undefined && !isPem(raw.ca)) problems.push({ path: `${at}.options.ca`, message: 'holds no PEM certificate' });
}

function problemOfProxy(address: string): string | undefined {
  const url = URL.parse(address);
  if (url === null) return 'is not a URL';
  try {
    // Each by itself, as they are sent.
    for (const part of [url.username, url.password]) decodeURIComponent(part);
    return undefined;
  } catch {
    return 'a % in its user or password is written %25';
  }
}

/** What may name a header (RFC 9110, section 5.6.2): with any other name no request could be sent. */
export const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]+$/;
/** The characters of a header value (RFC 9110); those above ASCII are sent as Latin-1. */
export const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;

function isPem(text: string): boolean {
  const blocks = text.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  try {
    return blocks.length > 0 && blocks.every((block) => new X509Certificate(block).subject !== undefined);
  } catch {
    // OpenSSL cannot read it, so no connection could use it.
    return false;
  }
}

function codecOptions(raw: RawOptions): CodecOptions {
  return {
    ...('legacy_output_cap' in raw && raw.legacy_output_cap ? { legacyOutputCap: true } : {}),
    ...('replay_reasoning_content' in raw && raw.replay_reasoning_content ? { replayReasoningContent: true } : {}),
    ...('accept_done_without_finish' in raw && raw.accept_done_without_finish ? { acceptDoneWithoutFinish: true } : {}),
    ...('developer_as_system' in raw && raw.developer_as_system ? { developerAsSystem: true } : {}),
    ...('lower_custom_tools' in raw && raw.lower_custom_tools ? { lowerCustomTools: true } : {}),
    ...('cache_breakpoints' in raw && raw.cache_breakpoints === 'auto' ? { cacheBreakpoints: 'auto' } : {}),
    ...('router_cache_control' in raw && raw.router_cache_control ? { routerCacheControl: true } : {}),
  };
}
