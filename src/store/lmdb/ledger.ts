/** Reading the journal and the holds, on LMDB. Writing is `work.ts`; checking is `verify.ts`. */
import type { JournalRow, Ledger } from '../ledger.ts';
import { storable } from '../storable.ts';
import type { Environment } from './environment.ts';
import { verify } from './verify.ts';

const DEFAULT_LIMIT = 1000;

export function createLedger(environment: Environment): Ledger {
  return {
    verify: () => environment.read(verify),

    journal: (query = {}) =>
      environment.read((tables) => {
        const { after = 0, limit = DEFAULT_LIMIT, accountId, ref } = query;
        if (ref !== undefined) {
          const rows = [...tables.journalRefs.getRange({ start: [storable(ref), ''], end: [storable(ref), '\uffff'] })].map(
            ({ value }) => tables.journal.get(value),
          );
          return rows.filter((row) => row !== undefined).sort((a, b) => a.seq - b.seq);
        }
        const found: JournalRow[] = [];
        for (const { value } of tables.journal.getRange({ start: after + 1 })) {
          if (accountId !== undefined && value.accountId !== accountId) continue;
          found.push(value);
          if (found.length >= limit) break;
        }
        return found;
      }),

    holds: (query = {}) =>
      environment.read((tables) => {
        const all = [...tables.holds.getRange()].map(({ value }) => value);
        return all.filter(({ state, keyId }) => (query.state ?? state) === state && (query.keyId ?? keyId) === keyId);
      }),
  };
}
