/** What an error of the driver or the server means to the store. Knows SQLSTATE classes and socket errors; no message text is trusted. */
import { StoreError } from '../store-error.ts';

/**
 * - `again`: the server undid the transaction because of another one; the same transaction may be tried at once
 * - `lost`: the connection is gone; whether a commit that was under way happened is unknown
 * - `store`: the database cannot do it now (full, slow, read-only, shutting down)
 * - `row`: the statement itself is wrong for the data: trying again gives the same
 */
export type FailureKind = 'again' | 'lost' | 'store' | 'row';

export function sqlStateOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

const AGAIN: ReadonlySet<string> = new Set(['40001', '40P01', '40003']);
/** admin_shutdown, crash_shutdown, cannot_connect_now, idle timeouts: the backend has ended this connection. */
const LOST: ReadonlySet<string> = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '53300']);

export function failureKind(error: unknown): FailureKind {
  const state = sqlStateOf(error);
  if (state === undefined) return isConnectionError(error) ? 'lost' : 'row';
  if (AGAIN.has(state)) return 'again';
  if (LOST.has(state) || state.startsWith('08')) return 'lost';
  // 25006 read-only, 53 out of resources, 55P03 lock timeout, 57014 statement timeout, 58 system error, XX internal, 28 and 3D access.
  if (/^(25006|53|55|57|58|XX|28|3D|25P02|F0)/.test(state)) return 'store';
  return 'row';
}

const SOCKET_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOENT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENETDOWN',
  'ECONNABORTED',
]);

/** The driver has no codes of its own for a cut connection and for its timeouts: these are its fixed texts. */
const DRIVER_TEXT =
  /connection terminated|timeout exceeded when trying to connect|query read timeout|client has encountered a connection error|not queryable|client was closed|server closed the connection/i;

function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  if (error instanceof AggregateError) return error.errors.some(isConnectionError);
  if ('code' in error && typeof error.code === 'string') return SOCKET_CODES.has(error.code);
  return DRIVER_TEXT.test(error.message);
}

/** The error that a caller of the store sees. `what` is said when the code alone says too little. */
export function storeErrorOf(error: unknown, what: string): StoreError {
  if (error instanceof StoreError) return error;
  const state = sqlStateOf(error);
  const message = `${what}: ${messageOf(error)}`;
  if (state === '28P01' || state === '28000') return new StoreError('access_denied', message, error);
  if (state === '3D000') return new StoreError('bad_url', message, error);
  if (state === '42501') return new StoreError('access_denied', message, error);
  if (state === '25006') return new StoreError('read_only', message, error);
  if (state === '53100') return new StoreError('disk_full', message, error);
  if (state === '22003') return new StoreError('amount_out_of_range', message, error);
  if (failureKind(error) === 'row' && state?.startsWith('23') === true) return new StoreError('corrupt', message, error);
  return new StoreError('unavailable', message, error);
}

export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message || error.name : String(error);
}
