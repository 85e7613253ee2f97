/**
 * The store room: facts that last. This file is its contract; `lmdb/` is the embedded engine, `postgres/` the one for several
 * machines. It knows no HTTP word and no protocol word; time, randomness and ids are passed in. Refusals are returned
 * (`Result`), a broken store throws `StoreError`. A promise that resolved means: on disk.
 */
import type { Accounts } from './accounts.ts';
import type { AdminTokens } from './admin-tokens.ts';
import type { BackupSource } from './archive.ts';
import type { Controls } from './controls.ts';
import type { EnvelopeSecrets } from './envelope-secrets.ts';
import type { Keys } from './keys.ts';
import type { Leases } from './leases.ts';
import type { Ledger } from './ledger.ts';
import type { LimitCounts } from './limit-counts.ts';
import type { RequestLog } from './request-log.ts';
import type { Admission } from './reservations.ts';
import type { UsageByHour } from './rollups.ts';
import type { Settlements } from './settlement.ts';
import type { SpendWindows } from './spend-windows.ts';
import type { Videos } from './videos.ts';

export type StoreHealth =
  | { readonly healthy: true }
  | {
      readonly healthy: false;
      readonly reason: 'free_space' | 'write_failed' | 'unreachable' | 'closed';
      readonly message: string;
    };

export interface Store {
  readonly accounts: Accounts;
  readonly keys: Keys;
  readonly ledger: Ledger;
  readonly spend: SpendWindows;
  /** What was used, by hour, day, account, key, model, Channel and error code (`rollups.ts`). */
  readonly usageByHour: UsageByHour;
  readonly admission: Admission;
  readonly settlements: Settlements;
  readonly requestLog: RequestLog;
  readonly videos: Videos;
  readonly leases: Leases;
  readonly limitCounts: LimitCounts;
  readonly secrets: EnvelopeSecrets;
  readonly controls: Controls;
  readonly adminTokens: AdminTokens;
  readonly backup: BackupSource;
  /** When unhealthy, take no new work. Settlements in flight are still tried. */
  health(): StoreHealth;
  /** Flushes the queue, waits for the disk, closes. The process may end after it. */
  close(): Promise<void>;
}

export interface Clock {
  /** Wall-clock milliseconds since the epoch. */
  now(): number;
  /** Calls back once; the returned function cancels. Must not keep the process alive. */
  after(ms: number, callback: () => void): () => void;
  /**
   * Adds `byMs` to what `now` says, here and wherever times for this store come from. A store that several machines share calls
   * it, so that all of them go by its time, and by nothing where it is right: jumps of the machine's own count no more from then
   * on. Without it a difference is only told.
   */
  adjust?(byMs: number): void;
  /** What the machine's own clock says, where `now` has been put right. */
  ownNow?(): number;
}

export interface StoreOptions {
  readonly path: string;
  readonly clock: Clock;
  readonly randomBytes: (size: number) => Uint8Array;
  /** Which process this is, so that another one can tell whether it lives. `host`: within it a pid is of one process. */
  readonly process: { readonly host: string; readonly pid: number; isAlive(pid: number): boolean };
  /** At most this long a row waits for its flush. Default 10. */
  readonly flushMs?: number;
  /** Below this many free bytes on the disk the store is unhealthy. Default 64 MiB. */
  readonly freeSpaceFloor?: number;
  /** Size of the file that is given up when the disk is full, so that deletes still work. Default 8 MiB; 0 for none. */
  readonly ballastBytes?: number;
  /** A process that has not been heard of for this long is dead, when its pid cannot tell. Default 30 s. */
  readonly processTtlMs?: number;
  /** Told about every settlement that could not be written, and every change of health. */
  readonly onProblem?: (problem: { readonly what: string; readonly error?: unknown }) => void;
}
