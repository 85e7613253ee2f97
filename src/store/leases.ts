/** Leases: at most one process does a job. The token rises with every new holder and fences every write made under it. */
import type { Result } from './result.ts';

export interface Lease {
  readonly name: string;
  readonly holder: string;
  /** Rises with every new holder, never repeats. */
  readonly token: number;
  readonly expiresAtMs: number;
}

export interface Leases {
  /**
   * `ttlMs`: at most {@link MAX_LEASE_MS}. Takes a lease that is free, expired, left by a process that is known to be dead, or
   * already this holder's (then it keeps its token).
   */
  acquire(
    name: string,
    holder: string,
    ttlMs: number,
    nowMs: number,
  ): Promise<Result<Lease, { readonly reason: 'held'; readonly lease: Lease }>>;
  renew(name: string, token: number, ttlMs: number, nowMs: number): Promise<Result<Lease, { readonly reason: 'lost' }>>;
  release(name: string, token: number): Promise<void>;
}

/** A lease that ends later than this was taken under a clock that had jumped, and holds nobody off. */
export const MAX_LEASE_MS = 3_600_000;

/** The lease of the one process that works on video tasks. */
export const VIDEO_WORKER = 'video-worker';
