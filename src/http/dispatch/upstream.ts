/**
 * The HTTP side of a Channel: pooled connections, credentials, the headers that may leave, and one request. Knows no dialect.
 * Redirects are not followed, no client header leaves unless the Channel lists it, and our own timers replace undici's.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { type Dispatcher, Pool, ProxyAgent } from 'undici';
import { bodyBytes, bodyLength } from '../../codecs/bodies/pieces.ts';
import type { Clock } from '../../streams/clock.ts';
import { StreamError } from '../../streams/stream-error.ts';
import { LONG_CHARS } from '../../streams/text-pieces.ts';
import { editJson, type JsonEdit } from '../../codecs/json/edit.ts';
import type { Channel } from '../config/config.ts';
import { type HostedChannel, isHosted, PlatformSession } from '../platforms/session.ts';
import { credentialsIn } from './credentials.ts';
import { isPieces, type Outgoing } from './outgoing.ts';
import { readTraceContext, traceHeaders } from '../tracing/trace-context.ts';
import { isConnectTimeout } from '../errors.ts';
import { UpstreamCall, type UpstreamHead } from './upstream-call.ts';
import { SocketUpgrade, UpstreamSocket } from './upstream-socket.ts';

export interface SendOptions {
  readonly stream: boolean;
  /** Aborts in every phase. */
  readonly signal: AbortSignal;
  readonly clientHeaders: IncomingHttpHeaders;
  readonly upstreamModel: string;
  readonly method?: 'GET' | 'POST';
  /** The context of our own span; absent: the client's is passed on. */
  readonly traceHeaders?: Readonly<Record<string, string>>;
  /** The path is the whole one already, at this origin if it is another: a platform's list of models. */
  readonly listed?: { readonly origin?: string };
}

const KEEP_ALIVE_MS = 30_000;
/** A Channel that opened no WebSocket is asked over HTTP for this long: its server may learn to. */
const HTTP_ONLY_MS = 600_000;
/** Refusals of a handshake that say nothing of what the server speaks: the same request over HTTP is told why. */
const PASSING: ReadonlySet<number> = new Set([401, 403, 408, 429]);

interface Wire {
  readonly method: 'GET' | 'POST';
  readonly origin: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Outgoing['body'];
}

/** The pools of all Channels, and the sessions of those behind a platform; one for each version of a Channel's configuration. */
export class Upstreams {
  readonly #clock: Clock;
  readonly #socketPath: string | undefined;
  readonly #pools = new Map<string, Dispatcher>();
  readonly #sessions = new Map<string, PlatformSession>();
  /** Until when Channels are asked over HTTP alone, by the monotonic clock. */
  readonly #httpOnly = new Map<string, number>();

  /** With `socketPath` every Channel without a proxy is reached at that socket of this machine, whatever its address. */
  constructor(clock: Clock, socketPath?: string) {
    this.#clock = clock;
    this.#socketPath = socketPath;
  }

  /** Sends at once, or as soon as there is a connection and, behind a platform, a credential. */
  open(channel: Channel, outgoing: Outgoing, options: SendOptions): UpstreamCall {
    const call = new UpstreamCall(this.#clock, options.signal);
    if (isHosted(channel)) this.#openHosted(channel, outgoing, options, call);
    else {
      const path = upstreamPath(channel, outgoing.path, options.upstreamModel);
      const headers = upstreamHeaders(channel, outgoing, options);
      this.#dispatch(
        channel,
        { method: options.method ?? 'POST', origin: channel.origin, path, headers, body: outgoing.body },
        call,
      );
    }
    return call;
  }

  /** {@link open}, for those who wait for the answer alone. Rejects with undici's or the signal's error. */
  send(channel: Channel, outgoing: Outgoing, options: SendOptions): Promise<UpstreamHead> {
    return this.open(channel, outgoing, options).head;
  }

  /**
   * A WebSocket at the path of a request; undefined where the Channel opens none, and is asked over HTTP. Rejects with the reason
   * of the abort, and where there was no connection in time.
   */
  async connect(
    channel: Channel,
    path: string,
    options: SendOptions,
    maxMessageBytes: number,
  ): Promise<UpstreamSocket | undefined> {
    const until = this.#httpOnly.get(channel.fingerprint);
    if (until !== undefined && this.#clock.monotonic() < until) return undefined;
    const { signal, upstreamModel } = options;
    const upgrade = new SocketUpgrade(this.#clock, channel.timeouts.connectMs);
    const onAbort = (): void => upgrade.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    const { accept: _, 'accept-encoding': _encoding, ...headers } = upstreamHeaders(channel, { path, headers: {} }, options);
    try {
      this.#pool(channel, channel.origin).dispatch(
        {
          origin: channel.origin,
          path: upstreamPath(channel, path, upstreamModel),
          method: 'GET',
          upgrade: 'websocket',
          headers: { ...headers, ...upgrade.headers() },
          headersTimeout: 0,
          bodyTimeout: 0,
        },
        upgrade,
      );
      const answer = await upgrade.answered;
      if (answer.kind === 'open') return new UpstreamSocket(answer, maxMessageBytes, this.#clock);
      if (answer.status < 500 && !PASSING.has(answer.status)) this.#onlyHttp(channel);
    } catch (thrown) {
      if (signal.aborted || isConnectTimeout(thrown)) throw thrown;
      // Whatever else went wrong with the handshake, the request over HTTP finds out whether the upstream is well.
      if (thrown instanceof StreamError) this.#onlyHttp(channel);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
    return undefined;
  }

  #onlyHttp({ fingerprint }: Channel): void {
    this.#httpOnly.set(fingerprint, this.#clock.monotonic() + HTTP_ONLY_MS);
  }

  /** What is known of the credential of a Channel behind a platform. */
  session(channel: HostedChannel): PlatformSession {
    const known = this.#sessions.get(channel.fingerprint);
    if (known !== undefined) return known;
    const session = new PlatformSession(channel, this.#clock.own ?? this.#clock);
    this.#sessions.set(channel.fingerprint, session);
    return session;
  }

  /** Closes the pools of Channels that are gone or changed, once their requests are over. */
  keepOnly(channels: readonly Channel[]): void {
    const wanted = new Set(channels.map(({ fingerprint }) => fingerprint));
    for (const [key, pool] of this.#pools) {
      if (wanted.has(key.split(' ')[0] ?? '')) continue;
      this.#pools.delete(key);
      void pool.close().catch(() => pool.destroy());
    }
    for (const fingerprint of this.#httpOnly.keys()) if (!wanted.has(fingerprint)) this.#httpOnly.delete(fingerprint);
    // A sign-in that is under way ends, for the requests that wait for it: each has a deadline, and none keeps its connection.
    for (const fingerprint of this.#sessions.keys()) if (!wanted.has(fingerprint)) this.#sessions.delete(fingerprint);
  }

  async close(): Promise<void> {
    const pools = [...this.#pools.values()];
    this.#pools.clear();
    for (const session of this.#sessions.values()) session.close();
    this.#sessions.clear();
    await Promise.all(pools.map((pool) => pool.destroy()));
  }

  #openHosted(channel: HostedChannel, outgoing: Outgoing, options: SendOptions, call: UpstreamCall): void {
    const { platform } = this.session(channel);
    const whole = { ...outgoing, headers: upstreamHeaders(channel, outgoing, options) };
    const adapted = options.listed === undefined ? platform.adapt(whole, options, channel.basePath) : whole;
    const { body } = adapted;
    const request = {
      method: options.method ?? 'POST',
      origin: options.listed?.origin ?? channel.origin,
      path: adapted.path,
      headers: adapted.headers,
      body,
    };
    const send = (authorisation: Readonly<Record<string, string>>): void => {
      if (call.over) return;
      call.signedAt = this.#clock.monotonic();
      call.lent = credentialsIn(Object.entries(authorisation));
      this.#dispatch(channel, { ...request, headers: { ...request.headers, ...authorisation } }, call);
    };
    const unsigned = { ...request, body: body === undefined || isPieces(body) ? undefined : body };
    const authorisation = platform.authorise(unsigned);
    if (authorisation instanceof Promise) authorisation.then(send).catch((error: unknown) => call.abort(error));
    else send(authorisation);
  }

  #dispatch(channel: Channel, { method, origin, path, headers, body }: Wire, call: UpstreamCall): void {
    // A long text is made bytes on the way, too; its length is what it would be told with otherwise.
    const isLong = typeof body === 'string' && body.length > LONG_CHARS;
    const sent = isLong ? { ...headers, 'content-length': String(Buffer.byteLength(body)) } : headers;
    this.#pool(channel, origin).dispatch(
      {
        origin,
        path,
        method,
        headers: sent,
        body: bodyOf(isLong ? { pieces: [body] } : body),
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      call,
    );
  }

  #pool(channel: Channel, origin: string): Dispatcher {
    const key = origin === channel.origin ? channel.fingerprint : `${channel.fingerprint} ${origin}`;
    const known = this.#pools.get(key);
    if (known !== undefined) return known;
    const pool = createPool(channel, origin, this.#socketPath);
    this.#pools.set(key, pool);
    return pool;
  }
}

function bodyOf(body: Outgoing['body']): string | Uint8Array | Readable | null {
  if (body === undefined) return null;
  return isPieces(body) ? Readable.from(paced(bodyBytes(body.pieces)), { objectMode: false }) : body;
}

/** After this much the event loop has a turn: a fast reader must not keep everybody else waiting. */
const TURN_BYTES = 512 * 1024;

async function* paced(bytes: Iterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  let size = 0;
  for (const chunk of bytes) {
    yield chunk;
    size += chunk.length;
    if (size < TURN_BYTES) continue;
    size = 0;
    await setImmediate();
  }
}

function createPool(channel: Channel, origin: string, socketPath: string | undefined): Dispatcher {
  const { ca, proxy } = channel.options;
  const connect = {
    timeout: channel.timeouts.connectMs,
    ...(ca === undefined ? {} : { ca }),
    ...(socketPath === undefined ? {} : { socketPath }),
  };
  const shared = {
    allowH2: false,
    pipelining: 1,
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: KEEP_ALIVE_MS,
    maxHeaderSize: 64 * 1024,
  };
  if (proxy === undefined) return new Pool(origin, { ...shared, connect });
  const { connectMs } = channel.timeouts;
  return new ProxyAgent({
    ...shared,
    uri: proxy,
    requestTls: connect,
    connectTimeout: connectMs,
    // Of what opens tunnels: a proxy that takes a connection and says nothing would keep it, and its request, for five minutes.
    clientFactory: (address, options) => new Pool(address, { ...options, headersTimeout: connectMs }),
  });
}

/** The endpoint beneath the versioned base path, or the path that the operator gave: all of it, after the origin. */
function upstreamPath(channel: Channel, path: string, model: string): string {
  const custom = channel.options.path;
  if (custom === undefined) return channel.versionedPath + path;
  const query = path.indexOf('?');
  const filled = custom.replaceAll('{model}', encodeURIComponent(model));
  return filled + (query < 0 || custom.includes('?') ? '' : path.slice(query));
}

function upstreamHeaders(channel: Channel, outgoing: Outgoing, options: SendOptions): Record<string, string> {
  const headers: Record<string, string> = { accept: options.stream ? 'text/event-stream' : 'application/json' };
  // A compressed event stream arrives in blocks of the compressor's choosing.
  headers['accept-encoding'] = 'identity';
  if (outgoing.body !== undefined) headers['content-type'] = outgoing.contentType ?? 'application/json';
  headers['user-agent'] = 'mizu';
  for (const name of channel.options.forwardHeaders) {
    const value = options.clientHeaders[name];
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  if (outgoing.body !== undefined && isPieces(outgoing.body))
    headers['content-length'] = String(bodyLength(outgoing.body.pieces));
  Object.assign(headers, options.traceHeaders ?? passedOn(options.clientHeaders), outgoing.headers, credentials(channel));
  for (const [name, value] of channel.options.headers) {
    if (value === null) delete headers[name];
    else headers[name] = isListHeader(name) ? joinList(headers[name], value) : value;
  }
  return headers;
}

/** Without traces of our own the client's trace goes on unbroken: its context is passed as it came. */
function passedOn(clientHeaders: IncomingHttpHeaders): Record<string, string> {
  const context = readTraceContext(clientHeaders);
  return context === undefined ? {} : traceHeaders(context);
}

function credentials(channel: Channel): Record<string, string> {
  const key = channel.apiKey;
  if (key === undefined || channel.platform !== undefined) return {};
  switch (channel.options.auth) {
    case 'bearer':
      return { authorization: `Bearer ${key}` };
    case 'x-api-key':
      return { 'x-api-key': key };
    case 'x-goog-api-key':
      return { 'x-goog-api-key': key };
    case 'none':
      return {};
  }
}

/** The operator's overrides of a JSON body, in place: every other byte stays. */
export function applyParameters(body: string, channel: Channel): string {
  const edits: JsonEdit[] = [];
  for (const [name, value] of channel.options.parameters) edits.push({ path: [name], value });
  for (const name of channel.options.dropParameters) edits.push({ path: [name], value: undefined });
  return edits.length === 0 ? body : editJson(body, edits);
}

/** Headers that hold a list which several sides may add to: the client, the codec and the Channel. */
const LISTS: ReadonlySet<string> = new Set(['anthropic-beta']);

/** `name` in lower case. */
function isListHeader(name: string): boolean {
  return LISTS.has(name);
}

/** `given` as it is written, and what of `more` it does not name. */
export function joinList(given: string | undefined, more: string): string {
  if (given === undefined || given.trim() === '') return more;
  const named = new Set(given.split(',').map((entry) => entry.trim()));
  const missing = more.split(',').filter((entry) => entry.trim() !== '' && !named.has(entry.trim()));
  return [given, ...missing].join(',');
}
