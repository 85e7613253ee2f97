/** Leases on LMDB. */
import { type Lease, type Leases, MAX_LEASE_MS } from '../leases.ts';
import { done, refused } from '../result.ts';
import type { Environment } from './environment.ts';
import type { StoreProcess } from '../processes.ts';
import { registrationOf } from './books.ts';
import type { LeaseRow, Tables } from './tables.ts';

/** A lease also ends with the process that took it, where that is known to be dead: a restart does not wait for it to expire. */
export function createLeases(environment: Environment, process: StoreProcess): Leases {
  const isHeld = (tables: Tables, { expiresAtMs, owner: taker }: LeaseRow, nowMs: number): boolean =>
    expiresAtMs > nowMs &&
    expiresAtMs <= nowMs + MAX_LEASE_MS &&
    process.isAlive(taker, registrationOf(tables, taker, environment.options.clock.now()));

  return {
    acquire: (name, holder, ttlMs, nowMs) =>
      environment.transact((work) => {
        const lease = work.tables.leases.get(name);
        const mine = lease?.holder === holder;
        if (lease !== undefined && !mine && isHeld(work.tables, lease, nowMs))
          return refused({ reason: 'held', lease: leaseOf(lease) } as const);
        const token = mine && lease.expiresAtMs > nowMs ? lease.token : (lease?.token ?? 0) + 1;
        const taken: Lease = { name, holder, token, expiresAtMs: nowMs + ttlMs };
        work.put(work.tables.leases, name, { ...taken, owner: process.id });
        return done(taken);
      }),

    renew: (name, token, ttlMs, nowMs) =>
      environment.transact((work) => {
        const lease = work.tables.leases.get(name);
        if (lease?.token !== token || lease.expiresAtMs <= 0) return refused({ reason: 'lost' } as const);
        const renewed = { ...lease, expiresAtMs: nowMs + ttlMs };
        work.put(work.tables.leases, name, renewed);
        return done(leaseOf(renewed));
      }),

    release: (name, token) =>
      environment.transact((work) => {
        const lease = work.tables.leases.get(name);
        // The row stays, so that the token goes on rising; a released one can no longer be renewed or write.
        if (lease?.token === token) work.put(work.tables.leases, name, { ...lease, holder: '', expiresAtMs: 0 });
      }),
  };
}

/** Which process took it means nothing outside of this store. */
export function leaseOf({ owner: _owner, ...lease }: LeaseRow): Lease {
  return lease;
}
