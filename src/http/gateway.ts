/** What every handler is given: the parts that live as long as the process, and the facts of one call. Wired once in `start.ts`. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Mint } from '../codecs/codec.ts';
import type { Envelopes } from '../codecs/envelope.ts';
import type { CodecSet } from '../codecs/codec-set.ts';
import type { chargeFor } from '../store/charge.ts';
import type { Store } from '../store/store.ts';
import type { Clock } from '../streams/clock.ts';
import type { Config } from './config/config.ts';
import type { ConfigSource } from './config/source.ts';
import type { Dispatcher } from './dispatch/dispatch.ts';
import type { Upstreams } from './dispatch/upstream.ts';
import type { KeySlots } from './key-slots.ts';
import type { Metrics } from './metrics.ts';
import type { Method, RouteName } from './route-table.ts';

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
  readonly log: Logger;
  readonly metrics: Metrics;
  /** A video task was created: the worker of this process looks at once. */
  readonly videoCreated: () => void;
  /** Reasons why no new work is taken (`draining`, `store`); empty when ready. */
  readonly unready: () => readonly string[];
}

/** One request that is being answered. */
export interface Call {
  readonly gateway: Gateway;
  /** The snapshot that serves this call to its end. */
  readonly config: Config;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly path: string;
  readonly route: RouteName;
  readonly method: Method;
  /** The path parameter of video routes. */
  readonly id?: string;
  /** Shown in every answer. The client's own when it sent a usable one. */
  readonly requestId: string;
  readonly clientRequestId?: string;
  readonly startedAtMs: number;
  readonly ip: string;
  /** Aborted, with a `client_closed_request` error as its reason, when the client leaves before its answer is complete. */
  readonly gone: AbortSignal;
}

/** Answers the call, or throws what `errors.ts` turns into an answer. */
export type Handler = (call: Call) => Promise<void>;
