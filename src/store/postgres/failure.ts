/**
 * What an error of the driver or the server means to the store. Knows SQLSTATE classes and socket errors; no message text is
 * trusted.
 */
import { StoreError, type StoreErrorCode } from '../store-error.ts';

/**
 * - `again`: the server undid the transaction because of another one; the same transaction may be tried at once
 * - `lost`: a connection that stood is gone; whether a commit that was under way happened is unknown
 * - `away`: no connection could be made, or one does not answer in time: trying again at once only takes longer
 * - `store`: the database cannot do it now (full, slow, read-only, shutting down, without the rights or the tables)
 * - `row`: the statement itself is wrong for the data: trying again gives the same
 */
export type FailureKind = 'again' | 'lost' | 'away' | 'store' | 'row';

/** The server's code. Each has a digit in it, which `EPIPE` has not. */
function sqlStateOf(error: unknown): string | undefined {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && /^(?=.*\d)[0-9A-Z]{5}$/.test(code) ? code : undefined;
}

const AGAIN: ReadonlySet<string> = new Set(['40001', '40P01', '40003']);
/** admin_shutdown, crash_shutdown, cannot_connect_now, idle timeouts: the backend has ended this connection. */
const LOST: ReadonlySet<string> = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '53300']);

/** Too many rows, a value that its column cannot hold, a broken constraint, more than a page or an index takes. */
const ROW = /^(21|22|23|54)/;

/**
 * By the SQL state: one that does not speak of the data would be the same for every row. Without a state by what the connection
 * said; what nobody foresaw concerns the row alone.
 */
export function failureKind(error: unknown): FailureKind {
  const state = sqlStateOf(error);
  if (state === undefined) return connectionFailure(error) ?? 'row';
  if (AGAIN.has(state)) return 'again';
  if (LOST.has(state) || state.startsWith('08')) return 'lost';
  return ROW.test(state) ? 'row' : 'store';
}

/** The other end hung up, so it is there. */
const HUNG_UP: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED']);

/** The driver has no codes of its own for a cut connection and for its timeouts: these are its fixed texts. */
const TIMED_OUT = /timeout exceeded when trying to connect|query read timeout|connection terminated due to connection timeout/i;
const ENDED =
  /connection terminated|client has encountered a connection error|not queryable|client was closed|server closed the connection|received unexpected \w+ message/i;

/** OpenSSL's words for a certificate that is not to be trusted, and the driver's for a server without TLS. */
const UNTRUSTED =
  /^(CERT_|CRL_|DEPTH_ZERO_|SELF_SIGNED_|UNABLE_TO_|HOSTNAME_MISMATCH|INVALID_(CA|PURPOSE)|ERR_TLS_|ERR_SSL_|ERR_OSSL_|EPROTO)/;
const NO_TLS = 'The server does not support SSL connections';

function isUntrusted(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  return error.message === NO_TLS || ('code' in error && typeof error.code === 'string' && UNTRUSTED.test(error.code));
}

function connectionFailure(error: unknown): 'lost' | 'away' | undefined {
  if (!(error instanceof Error)) return undefined;
  if (isUntrusted(error)) return 'away';
  // One for each address that was tried.
  if (error instanceof AggregateError) return connectionFailure(error.errors[0]);
  const { message } = error;
  if (TIMED_OUT.test(message)) return 'away';
  // Every error of the operating system has a code: the network or the name service failed.
  if ('code' in error && typeof error.code === 'string' && 'syscall' in error) return HUNG_UP.has(error.code) ? 'lost' : 'away';
  return ENDED.test(message) ? 'lost' : undefined;
}

/** The states that mean more than that the store cannot be used now. */
const CODES: ReadonlyMap<string, StoreErrorCode> = new Map([
  ['28P01', 'access_denied'],
  ['28000', 'access_denied'],
  ['42501', 'access_denied'],
  ['3D000', 'bad_url'],
  ['25006', 'read_only'],
  ['53100', 'disk_full'],
  ['22003', 'amount_out_of_range'],
]);

/** True when this connection was told to take no writes, which it keeps to: a new one may have been told something else. */
export function isReadOnlySession(error: unknown): boolean {
  return sqlStateOf(error) === '25006';
}

/** The error that a caller of the store sees. `what` is added where the code alone does not explain it. */
export function storeErrorOf(error: unknown, what: string): StoreError {
  if (error instanceof StoreError) return error;
  const state = sqlStateOf(error);
  const message = `${what}: ${messageOf(error)}`;
  if (isUntrusted(error)) return new StoreError('untrusted', message, error);
  const code = state === undefined ? undefined : CODES.get(state);
  if (code !== undefined) return new StoreError(code, message, error);
  if (state !== undefined && ROW.test(state)) return new StoreError('corrupt', message, error);
  return new StoreError('unavailable', message, error);
}

export function messageOf(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return messageOf(error.errors[0]);
  return error instanceof Error ? error.message || error.name : String(error);
}
