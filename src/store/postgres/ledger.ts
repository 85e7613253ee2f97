/** Reading the journal and the holds, on PostgreSQL. Writing is `work.ts`; checking is `verify.ts`. */
import type { HoldRow, Ledger } from '../ledger.ts';
import { rebuildRollups } from '../books/rollups.ts';
import { storable } from '../storable.ts';
import type { Database } from './database.ts';
import { holdOf, int, journalOf, text } from './rows.ts';
import type { Statement } from './session.ts';
import { StoreError } from '../store-error.ts';
import { HEAD, verify } from './verify.ts';

const DEFAULT_LIMIT = 1000;

const JOURNAL: Statement = {
  name: 'journal_after',
  text: 'SELECT * FROM journal WHERE seq > $1 AND ($2::text IS NULL OR account_id = $2) ORDER BY seq LIMIT $3',
};
const BY_REF: Statement = { name: 'journal_by_ref', text: 'SELECT * FROM journal WHERE ref = $1 ORDER BY seq' };
const HOLDS: Statement = {
  name: 'holds',
  text: `SELECT * FROM holds WHERE ($1::text IS NULL OR state = $1) AND ($2::text IS NULL OR key_id = $2) ORDER BY id COLLATE "C"`,
};

export function createLedger(database: Database): Ledger {
  return {
    verify: ({ head } = {}) => database.snapshot((session) => verify(session, head)),

    rebuildRollups: () => rebuildRollups(database),

    async head() {
      const [row] = await database.run(HEAD);
      if (row === undefined) throw new StoreError('corrupt', 'the ledger has no head');
      return { seq: int(row, 'seq'), hash: text(row, 'hash') };
    },

    async journal(query = {}) {
      const { after = 0, limit = DEFAULT_LIMIT, accountId, ref } = query;
      const rows = await (ref === undefined
        ? database.run(JOURNAL, [after, accountId === undefined ? undefined : storable(accountId), limit])
        : database.run(BY_REF, [storable(ref)]));
      return rows.map(journalOf);
    },

    async holds({ state, keyId } = {}) {
      const rows = await database.run(HOLDS, [state, keyId === undefined ? undefined : storable(keyId)]);
      return rows.map(holdOf) satisfies HoldRow[];
    },
  };
}
