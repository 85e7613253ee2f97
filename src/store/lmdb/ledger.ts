/** Reading the journal and the holds, on LMDB. Writing is `work.ts`; checking is `verify.ts`. */
import type { JournalRow, Ledger } from '../ledger.ts';
import { rebuildRollups } from '../books/rollups.ts';
import { storable } from '../storable.ts';
import type { Environment } from './environment.ts';
import { exchangeEntry } from './exchange-index.ts';
import { headOf, verify } from './verify.ts';

const DEFAULT_LIMIT = 1000;
/** Longer words name no exchange; LMDB could not even look them up. */
const MAX_ID = 256;

export function createLedger(environment: Environment): Ledger {
  return {
    verify: ({ head } = {}) => environment.read((tables) => verify(tables, head)),

    rebuildRollups: () => rebuildRollups(environment),

    head: () => environment.read(headOf),

    journal: (query = {}) =>
      environment.read((tables) => {
        const { after = 0, limit = DEFAULT_LIMIT, accountId, ref } = query;
        if (ref !== undefined) {
          const named = tables.journalRefs.getRange({ start: [storable(ref), ''], end: [storable(ref), '\uffff'] });
          const ofExchange = ref.length > MAX_ID ? undefined : exchangeEntry(tables, ref);
          const seqs = [...[...named].map(({ value }) => value), ...(ofExchange?.journalSeqs ?? [])];
          const rows = seqs.map((seq) => tables.journal.get(seq));
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
