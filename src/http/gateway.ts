/** What every handler is given: the parts that live as long as the process (wired in `start.ts`), and the facts of one call. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Mint } from '../codecs/codec.ts';
import type { Envelopes } from '../codecs/envelope.ts';
import type { CodecSet } from '../codecs/codec-set.ts';
import type { chargeFor } from '../store/charge.ts';
import type { Principal } from '../store/keys.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../streams/clock.ts';
import type { LoopTurns } from '../streams/loop-turns.ts';
import type { Config } from './config/config.ts';
import type { ConfigSource } from './config/source.ts';
import type { Dispatcher } from './dispatch/plan.ts';
import type { Upstreams } from './dispatch/upstream.ts';
import type { Limits, LimitTicket } from './limits/limits.ts';
import type { KeySlots } from './request/key-slots.ts';
import type { Solvency } from './request/solvency.ts';
import type { Memory } from './history/memory.ts';
import type { Metrics } from './operations/metrics.ts';
import type { UnfinishedBytes } from './websocket/inbound.ts';
import type { OneATurn } from './one-a-turn.ts';
import type { LargeWork } from './request/large-work.ts';
import type { Method, RouteName } from './server/route-table.ts';
import type { Site } from './server/site.ts';
import type { ExchangeTrace, Tracer } from './tracing/tracer.ts';
import type { InFlight } from './exchange/in-flight.ts';
import type { LedgerAlerts } from './exchange/ledger-alerts.ts';
import type { Tokenizer } from './money/tokenizer.ts';
import type { RefusalRates } from './exchange/refusal-rates.ts';
import type { TokenRates } from './money/token-rates.ts';

export interface Gateway {
  readonly config: ConfigSource;
  readonly store: Store;
  readonly clock: Clock;
  readonly mint: Mint;
  readonly codecs: CodecSet;
  readonly chargeFor: typeof chargeFor;
  readonly dispatcher: Dispatcher;
  readonly upstreams: Upstreams;
  readonly envelopes: Envelopes;
  readonly keySlots: KeySlots;
  readonly solvency: Solvency;
  readonly refusals: RefusalRates;
  readonly tokenRates: TokenRates;
  readonly alerts: LedgerAlerts;
  readonly limits: Limits;
  /** Responses that may be continued by id. */
  readonly memory: Memory;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly tracer: Tracer;
  readonly inFlight: InFlight;
  readonly tokenizer: Tokenizer;
  readonly unfinished: UnfinishedBytes;
  /** Clients that left and are not let go of yet. */
  readonly leavers: OneATurn;
  readonly largeWork: LargeWork;
  /** The work of requests, whatever their size. */
  readonly turns: LoopTurns;
  /** The work on the streams of upstreams; a key is a party. */
  readonly streamTurns: LoopTurns;
  /** The web pages of the current configuration. */
  readonly site: Site;
  /** Wakes the video worker of this process: a task was created. */
  readonly videoCreated: () => void;
  /** Reasons why no new work is taken (`draining`, `store`, `tokenizer`); empty when ready. */
  readonly unready: () => readonly string[];
}

/** Collected while a call is answered: for its log line, its row, the metrics and the trace. */
export interface CallNotes {
  /** Set by `identify`: from here on a refusal is written to the request log of this key. */
  principal?: Principal;
  /** As the client named it. */
  model?: string;
  stream?: boolean;
  /** It became an `Exchange` (or several), which has the line and the row; until then it is a refusal. */
  admitted?: boolean;
  /** What the call has taken of the limits that apply to it, and how much was left then, as headers. */
  limit?: LimitTicket;
  limitHeaders?: Readonly<Record<string, string>>;
  /** Code of a failure that was sent inside a stream, after the 200. */
  failure?: string;
}

/** One call, whether an HTTP request or one turn of a WebSocket: who calls, which route, with which configuration. */
export interface CallContext {
  readonly gateway: Gateway;
  /** The snapshot that serves this call to its end. */
  readonly config: Config;
  /** The request, or the one that opened the WebSocket: its headers carry the key. */
  readonly request: IncomingMessage;
  readonly path: string;
  readonly route: RouteName;
  readonly method: Method;
  /** Sent with every answer. The client's own when it sent a usable one. */
  readonly requestId: string;
  readonly clientRequestId?: string;
  readonly startedAtMs: number;
  readonly ip: string;
  /**
   * Aborted with a GatewayError before the answer is complete: `client_closed_request` when the client left, `shutting_down` when
   * the drain ends.
   */
  readonly gone: AbortSignal;
  readonly notes: CallNotes;
  /** Undefined while traces are off, and for calls that are no exchange. */
  readonly trace?: ExchangeTrace;
}

/** One HTTP request that is being answered. */
export interface Call extends CallContext {
  readonly response: ServerResponse;
  /** The parameter in its path, where the route has one. */
  readonly id?: string;
}

/** Answers the call, or throws; `errors.ts` turns what is thrown into an error response. */
export type Handler = (call: Call) => Promise<void>;
