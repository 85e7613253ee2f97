/**
 * One request to one upstream inside an attempt: sent, its status judged, its answer read under the Channel's timers and the
 * client's signal. Knows no endpoint: what is sent, and what an answer is, comes from the caller.
 */
import type { IncomingMessage } from 'node:http';
import { bodyLength } from '../../codecs/bodies/pieces.ts';
import { byClient, GatewayError } from '../../codecs/canonical/error.ts';
import { namingModel } from '../../codecs/errors/model-names.ts';
import type { UpstreamAnswer } from '../../codecs/codec.ts';
import { createIdleTimers, type IdleTimers } from '../../streams/idle-timers.ts';
import { StreamError } from '../../streams/stream-error.ts';
import type { ExchangeTrace } from '../tracing/tracer.ts';
import type { Channel } from '../config/config.ts';
import { errorCode, upstreamFailure } from '../errors.ts';
import type { Gateway } from '../gateway.ts';
import { isHosted } from '../platforms/session.ts';
import { quotingNoCredentials, withoutCredentials, withoutTokens } from './credentials.ts';
import type { Target } from './plan.ts';
import { isPieces, type Outgoing } from './outgoing.ts';
import type { SendOptions } from './upstream.ts';
import { headerOf, type UpstreamCall, type UpstreamHead } from './upstream-call.ts';
import { readErrorText } from './upstream-body.ts';

/** On whose behalf an upstream is asked: a client's call, or the gateway's own. */
export interface Asker {
  readonly gateway: Pick<Gateway, 'upstreams' | 'clock'>;
  /** The client's, whose headers a Channel may pass on. */
  readonly request: Pick<IncomingMessage, 'headers'>;
  readonly trace?: ExchangeTrace;
}

/** A request that is under way, over whatever connection. */
export type OpenCall = Pick<UpstreamCall, 'head' | 'abortedFor' | 'signedAt'> & { abort(reason: unknown): void };

/** Another way to ask a Channel than a request of its own. */
export interface UpstreamLink {
  /** Undefined: this Channel, or this request, is asked over HTTP. */
  open(channel: Channel, outgoing: Outgoing, options: SendOptions): OpenCall | undefined;
}

export interface CallOptions {
  /** Tried first. */
  readonly link?: UpstreamLink | undefined;
  /** Asks for an event stream. */
  readonly stream: boolean;
  /** Default: POST. */
  readonly method?: 'GET' | 'POST';
  /** The answer may go on when `read` has settled: whoever reads on stops the timers. */
  readonly goesOn?: boolean;
  /** For those who must know afterwards whether the upstream can have seen the request. */
  onOpen?(call: UpstreamCall): void;
  decodeError(answer: UpstreamAnswer): Error;
}

type Read<Answer> = (head: UpstreamHead, timers: IdleTimers) => Promise<Answer>;

/** `read` gets a 2xx answer; the timers stop when it has settled. Rejects with the refusal, the timer's error or the client's. */
export function callUpstream<Answer>(
  asker: Asker,
  target: Target,
  outgoing: Outgoing,
  options: CallOptions,
  read: Read<Answer>,
): Promise<Answer> {
  return callOnce(asker, target, outgoing, options, read, true);
}

/** `first`: another call may follow, signed with another credential. */
async function callOnce<Answer>(
  asker: Asker,
  target: Target,
  outgoing: Outgoing,
  options: CallOptions,
  read: Read<Answer>,
  first: boolean,
): Promise<Answer> {
  const { channel, upstreamModel, model, note, signal } = target;
  const { stream, method, link } = options;
  const { gateway, request, trace } = asker;
  const { upstreams, clock } = gateway;
  const sending: SendOptions = {
    stream,
    signal,
    clientHeaders: request.headers,
    upstreamModel,
    ...(method === undefined ? {} : { method }),
    ...(trace === undefined ? {} : { traceHeaders: trace.nextAttempt() }),
  };
  const call = link?.open(channel, outgoing, sending) ?? openRequest(upstreams.open(channel, outgoing, sending), options);
  let head: UpstreamHead | undefined;
  const timers = createIdleTimers(clock, channel.timeouts, (error) => call.abort(timeoutOf(error, head)));
  try {
    head = await call.head;
    note.upstreamStatus = head.status;
    const requestId = requestIdOf(head, channel);
    if (requestId !== '') note.upstreamRequestId = withoutCredentials(requestId, channel, head.lent);
    if (head.status < 200 || head.status > 299) {
      // It has answered: a body that hangs is the patience of whoever reads it, and takes nothing back.
      timers.stop();
      const receivedAtMs = (clock.own ?? clock).now();
      const text = withoutCredentials(await readErrorText(head, clock), channel, head.lent);
      const raw = { status: head.status, headers: head.headers, text, receivedAtMs };
      const told = isHosted(channel) ? upstreams.session(channel).platform.refused(withoutTokens(raw), call) : undefined;
      if (told?.again === true && first) return await callOnce(asker, target, outgoing, options, read, false);
      const refused = told?.error ?? options.decodeError(told?.answer ?? raw);
      if (!(refused instanceof GatewayError)) throw refused;
      const error = repeatable(refused, told?.repeats);
      throw model === undefined ? error : namingModel(error, upstreamModel, model);
    }
    const answer = await read(head, timers);
    if (options.goesOn !== true) timers.stop();
    return answer;
  } catch (thrown) {
    timers.stop();
    if (head === undefined && call.abortedFor === undefined && isCutOff(thrown) && isLong(outgoing.body))
      throw byClient(upstreamFailure(thrown));
    const failure: unknown = call.abortedFor ?? thrown;
    throw failure instanceof GatewayError ? quotingNoCredentials(failure, channel, head?.lent) : failure;
  }
}

/** The least that common servers and proxies allow a body, or a message of a WebSocket, where nobody says otherwise. */
const LONG_BYTES = 1024 * 1024;
const CUT_OFF: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

/**
 * A server that finds a request too long mostly says 413 and closes, and the rest of the request, which it does not read, resets
 * the connection: often before that answer is read. Whoever may send a long request could otherwise shut a model for all others;
 * an upstream that is truly down cuts off the short ones, too.
 */
function isCutOff(thrown: unknown): boolean {
  return CUT_OFF.has(errorCode(thrown) ?? '');
}

function isLong(body: Outgoing['body']): boolean {
  if (body === undefined) return false;
  const length = isPieces(body) ? bodyLength(body.pieces) : Buffer.byteLength(body);
  return length > LONG_BYTES;
}

function openRequest(call: UpstreamCall, options: CallOptions): UpstreamCall {
  options.onOpen?.(call);
  return call;
}

function repeatable(error: GatewayError, repeats: number | undefined): GatewayError {
  return repeats === undefined ? error : new GatewayError(error.code, error.message, { ...error.details, repeats });
}

function requestIdOf({ headers }: UpstreamHead, channel: Channel): string {
  const own = isHosted(channel) ? headerOf(headers, 'x-amzn-requestid') || headerOf(headers, 'apim-request-id') : '';
  return own || headerOf(headers, 'x-request-id') || headerOf(headers, 'request-id');
}

/** A whole answer has one limit, until it is complete: one that had begun did not fail to begin. */
function timeoutOf(error: StreamError, head: UpstreamHead | undefined): StreamError {
  const isBegun = head?.body.begun === true && !STREAM_TYPES.has(contentTypeOf(head));
  return isBegun && error.reason === 'first_data_timeout' ? new StreamError('unfinished_answer', error.message) : error;
}

const STREAM_TYPES: ReadonlySet<string> = new Set(['text/event-stream', 'application/vnd.amazon.eventstream']);

/** The type of an answer without its parameters, in lower case; empty where the upstream names none. */
export function contentTypeOf(head: UpstreamHead): string {
  return headerOf(head.headers, 'content-type').split(';')[0]?.trim().toLowerCase() ?? '';
}
