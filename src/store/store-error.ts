/**
 * How a broken store fails: one class with a closed list of codes. Knows nothing of HTTP (a caller answers 503 to all of them).
 * A refusal that a caller must branch on is not an error: it is returned (see `result.ts`).
 */

/**
 * - `unavailable`: a write or a read failed; nothing of the change was kept
 * - `disk_full`: the write failed for lack of space; nothing of the change was kept
 * - `unhealthy`: refused before it was tried, because free space is below the floor or an earlier write failed
 * - `corrupt`: what is stored contradicts itself
 * - `schema_newer`: the store was written by a newer version
 * - `schema_older`: the store must be migrated first, and this start was told not to
 * - `amount_out_of_range`: an amount or a balance would leave the 64-bit range
 * - `closed`: the store has been closed
 * - `bad_url`: the database's address cannot be understood, or names a database that does not exist
 * - `access_denied`: the database refused the user or the password
 * - `untrusted`: the database's certificate is not one to trust, or TLS was asked for and there is none
 * - `read_only`: the database takes no writes (a replica)
 */
export type StoreErrorCode =
  | 'unavailable'
  | 'disk_full'
  | 'unhealthy'
  | 'corrupt'
  | 'schema_newer'
  | 'schema_older'
  | 'amount_out_of_range'
  | 'closed'
  | 'bad_url'
  | 'access_denied'
  | 'untrusted'
  | 'read_only';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
