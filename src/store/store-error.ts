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
 * - `amount_out_of_range`: an amount or a balance would leave the 64-bit range
 * - `closed`: the store has been closed
 */
export type StoreErrorCode =
  | 'unavailable'
  | 'disk_full'
  | 'unhealthy'
  | 'corrupt'
  | 'schema_newer'
  | 'amount_out_of_range'
  | 'closed';

export class StoreError extends Error {
  override readonly name = 'StoreError';
  readonly code: StoreErrorCode;

  constructor(code: StoreErrorCode, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
  }
}
