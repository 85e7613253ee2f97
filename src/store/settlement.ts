/**
 * The life of a synchronous exchange in the store: opened when it is dispatched, settled once whatever ends it. Both join one
 * queue (`settlements/`), which logs them on the local disk at once and gives them to the engine many at a time, so no byte to a
 * client waits for either.
 */
import type { RequestLogEntry } from './request-log.ts';
import type { Reservation } from './reservations.ts';

/** How exchange ids begin. One named `ex_X` is also found by the request id `…_X`, without an index of its own. */
export const EXCHANGE_PREFIX = 'ex_';

/** What must be known of an exchange to close it after a crash. */
export interface OpenExchange {
  readonly exchangeId: string;
  readonly requestId: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly endpoint: string;
  readonly model: string;
  readonly stream: boolean;
  readonly startedAtMs: number;
}

export interface Settlement {
  /** `entry.charge.total` is what is charged; without `charge` the exchange is free. */
  readonly entry: RequestLogEntry;
  /** Becomes the charge at once, and is released when the engine has the settlement (or it has failed for good). */
  readonly reservation?: Reservation;
  /**
   * Done when it is on the local disk; otherwise (or while the engine is away, the same) when the engine has it, and gives what
   * became of it.
   */
  readonly strict?: boolean;
}

export type Settled =
  | { readonly settled: true; readonly chargedNanos: bigint }
  | { readonly settled: false; readonly reason: 'already_settled' };

/**
 * The hot path waits for neither promise (nothing rejects unhandled: a failure is also told to `onProblem`); with durability
 * `strict` the exchange waits for both.
 */
export interface Settlements {
  /** Done when the opening outlives this process; with `strict`, when it is on the local disk. */
  open(exchange: OpenExchange, strict?: boolean): PromiseLike<void>;
  /** Once, whoever asks how often. An exchange closed as interrupted may settle still: its process was only stopped. */
  settle(settlement: Settlement): PromiseLike<Settled>;
  /**
   * Writes everything that waits; resolves when it is on disk, throws `StoreError` when the disk refuses (the rows go on
   * waiting).
   */
  flush(): Promise<void>;
  /**
   * Resolves when what waits now is on disk, or could not be written yet: for reads that must see what was settled before. Never
   * rejects.
   */
  caughtUp(): Promise<void>;
  /** Rows that wait for the next flush. */
  readonly pending: number;
  /** Closes, free of charge, what dead processes left open. Runs at start by itself. Returns what was closed. */
  closeInterrupted(): Promise<OpenExchange[]>;
}

/** What is kept of an open exchange, whatever else the caller's object holds. */
export function openFields({
  exchangeId,
  requestId,
  accountId,
  keyId,
  endpoint,
  model,
  stream,
  startedAtMs,
}: OpenExchange): OpenExchange {
  return { exchangeId, requestId, accountId, keyId, endpoint, model, stream, startedAtMs };
}
