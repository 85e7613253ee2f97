/** A row of the settlement queue: what is to be written, who waits for it, and where it is kept meanwhile. */
import type { RequestLogEntry } from '../request-log.ts';
import type { OpenExchange, Settled } from '../settlement.ts';

export type QueueWork =
  | { readonly kind: 'open'; readonly exchange: OpenExchange }
  | { readonly kind: 'settle'; readonly entry: RequestLogEntry }
  /** Found opened and never settled in the spool of a dead process. */
  | { readonly kind: 'interrupt'; readonly exchange: OpenExchange };

export interface QueueRow {
  readonly what: QueueWork;
  /** When it came. */
  readonly atMs: number;
  /** Gives the reservation back: the charge is in the database, or lost for good. */
  readonly release: (() => void) | undefined;
  /** The opening that was still waiting when this settlement came: both are written by this row alone. */
  readonly opening: QueueRow | undefined;
  /** Resolves when the row is in the database or on the local disk; what comes after is ignored. */
  readonly kept: Promise<Settled>;
  keep(settled: Settled): void;
  lose(error: unknown): void;
  /** It is in the spool of this process, or on its way into it. */
  spooling: boolean;
  /** It is in the spool, on the disk. */
  spooled: boolean;
  /** It came from the spool of another process, which is told when it is in the database. */
  onWritten: (() => void) | undefined;
}

export function settleRow(what: QueueWork, atMs: number, release?: () => void, opening?: QueueRow): QueueRow {
  const { promise, resolve, reject } = Promise.withResolvers<Settled>();
  return {
    what,
    atMs,
    release,
    opening,
    kept: quiet(promise),
    keep: resolve,
    lose: reject,
    spooling: false,
    spooled: false,
    onWritten: undefined,
  };
}

/** Nobody may be waiting: a failure is told to `onProblem` too, so it must not count as unhandled. */
export function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
