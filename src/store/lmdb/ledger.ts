/** Reading the journal and the holds, on LMDB. Writing is `work.ts`; checking is `verify.ts`. */
import type { HoldRow, JournalRow, Ledger } from '../ledger.ts';
import { rebuildRollups } from '../books/rollups.ts';
import { storable } from '../storable.ts';
import type { Environment } from './environment.ts';
import { exchangeEntry } from './exchange-index.ts';
import { scan } from './steps.ts';
import type { Tables } from './tables.ts';
import { headOf, verify } from './verify.ts';

const DEFAULT_LIMIT = 1000;
/** Longer words name no exchange; LMDB could not even look them up. */
const MAX_ID = 256;

export function createLedger(environment: Environment): Ledger {
  return {
    verify: ({ head } = {}) => environment.snapshot((tables) => verify(tables, head)),

    rebuildRollups: () => rebuildRollups(environment),

    head: () => environment.read(headOf),

    async journal({ after = 0, limit = DEFAULT_LIMIT, accountId, ref } = {}) {
      if (ref !== undefined) return environment.look((tables) => rowsOfRef(tables, ref));
      const found: JournalRow[] = [];
      const take = (row: JournalRow): boolean => {
        if ((accountId ?? row.accountId) === row.accountId) found.push(row);
        return found.length < limit;
      };
      await scan(environment, ({ journal }) => journal, take, { start: after + 1 });
      return found;
    },

    async holds(query = {}) {
      const found: HoldRow[] = [];
      const take = (hold: HoldRow): void => {
        const { state, keyId } = hold;
        if ((query.state ?? state) === state && (query.keyId ?? keyId) === keyId) found.push(hold);
      };
      await scan(environment, ({ holds }) => holds, take);
      return found;
    },
  };
}

function rowsOfRef(tables: Tables, ref: string): JournalRow[] {
  const named = tables.journalRefs.getRange({ start: [storable(ref), ''], end: [storable(ref), '\uffff'] });
  const ofExchange = ref.length > MAX_ID ? undefined : exchangeEntry(tables, ref);
  const seqs = [...[...named].map(({ value }) => value), ...(ofExchange?.journalSeqs ?? [])];
  const rows = seqs.map((seq) => tables.journal.get(seq));
  return rows.filter((row) => row !== undefined).sort((a, b) => a.seq - b.seq);
}
