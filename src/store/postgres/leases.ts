/** Leases on PostgreSQL: one row each, changed by single statements that may be repeated. */
import { type Lease, type Leases, MAX_LEASE_MS } from '../leases.ts';
import { done, refused } from '../result.ts';
import type { Database } from './database.ts';
import type { StoreProcess } from '../processes.ts';
import { int, type Row, text } from './rows.ts';
import type { Statement } from './session.ts';

/**
 * $1 name, $2 holder, $3 now, $4 expiry, $5 the taker's registration, $6 a registration that is known to be dead, or null. A
 * living holder keeps its token, a new one gets the next.
 */
const ACQUIRE: Statement = {
  name: 'lease_acquire',
  text: `INSERT INTO leases AS l (name, holder, token, expires_at_ms, owner_id) VALUES ($1, $2, 1, $4, $5)
    ON CONFLICT (name) DO UPDATE SET holder = $2, expires_at_ms = $4, owner_id = $5,
      token = CASE WHEN l.holder = $2 AND l.expires_at_ms > $3 THEN l.token ELSE l.token + 1 END
    WHERE l.holder = $2 OR l.expires_at_ms <= $3 OR l.expires_at_ms > $3::bigint + ${MAX_LEASE_MS} OR l.owner_id = $6::text RETURNING *`,
};
const FIND: Statement = { name: 'lease_find', text: 'SELECT * FROM leases WHERE name = $1' };
const RENEW: Statement = {
  name: 'lease_renew',
  text: 'UPDATE leases SET expires_at_ms = $3 WHERE name = $1 AND token = $2 AND expires_at_ms > 0 RETURNING *',
};
/** The row stays, so that the token goes on rising; a released one can no longer be renewed or write. */
const RELEASE: Statement = {
  name: 'lease_release',
  text: `UPDATE leases SET holder = '', expires_at_ms = 0 WHERE name = $1 AND token = $2`,
};

/** A lease also ends with the process that took it, where that is known to be dead: a restart does not wait for it to expire. */
export function createLeases(database: Database, process: StoreProcess): Leases {
  return {
    async acquire(name, holder, ttlMs, nowMs) {
      let dead: string | undefined;
      for (;;) {
        const [taken] = await database.change(ACQUIRE, [name, holder, nowMs, nowMs + ttlMs, process.id, dead]);
        if (taken !== undefined) return done(leaseOf(taken));
        const [held] = await database.run(FIND, [name]);
        if (held === undefined) continue;
        const [lease, taker] = [leaseOf(held), text(held, 'owner_id')];
        const isHeld = lease.expiresAtMs > nowMs && lease.holder !== holder;
        if (isHeld && (taker === '' || (await process.mayLive(taker)))) return refused({ reason: 'held', lease } as const);
        dead = isHeld ? taker : undefined;
      }
    },

    async renew(name, token, ttlMs, nowMs) {
      const [row] = await database.change(RENEW, [name, token, nowMs + ttlMs]);
      return row === undefined ? refused({ reason: 'lost' } as const) : done(leaseOf(row));
    },

    async release(name, token) {
      await database.change(RELEASE, [name, token]);
    },
  };
}

export function leaseOf(row: Row): Lease {
  return {
    name: text(row, 'name'),
    holder: text(row, 'holder'),
    token: int(row, 'token'),
    expiresAtMs: int(row, 'expires_at_ms'),
  };
}
