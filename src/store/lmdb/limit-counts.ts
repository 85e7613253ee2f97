/** The counts of limits on LMDB, for several gateways on one folder. */
import { type ForeignCount, HEARD_MS, type LimitCounts } from '../limit-counts.ts';
import type { Environment } from './environment.ts';
import type { Tables } from './tables.ts';

export function createLimitCounts(environment: Environment): LimitCounts {
  const { clock } = environment.options;
  return {
    async exchange(member, counts) {
      const nowMs = clock.now();
      const old: [string, string][] = [];
      const others: ForeignCount[] = [];
      const read = (tables: Tables): void => {
        for (const { key, value } of tables.limitCounts.getRange()) {
          const { atMs, ...count } = value;
          // A clock that went back makes a row of the future: it is one of now.
          const ageMs = Math.max(0, nowMs - atMs);
          if (ageMs > 2 * HEARD_MS) old.push(key);
          else if (key[0] !== member && ageMs <= HEARD_MS) others.push({ ...count, member: key[0], ageMs });
        }
      };
      // What another process has just written counts, too.
      environment.look(read, true);
      if (counts.length === 0 && old.length === 0) return others;
      await environment.transact((work) => {
        for (const key of old) work.remove(work.tables.limitCounts, key);
        for (const count of counts) work.put(work.tables.limitCounts, [member, count.bucket], { ...count, atMs: nowMs });
      });
      return others;
    },
  };
}
