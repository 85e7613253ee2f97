/** The registrations of processes on PostgreSQL. */
import type { Registry } from '../processes.ts';
import type { Database } from './database.ts';
import { findProcess } from './books.ts';
import { REGISTRATION, registrationOf, text } from './rows.ts';
import type { Statement } from './session.ts';

const BEAT: Statement = {
  name: 'owner_beat',
  text: `INSERT INTO owners (id, host, pid, heartbeat) VALUES ($1, $2, $3, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET heartbeat = clock_timestamp()`,
};
const OF_OPEN: Statement = {
  name: 'owners_of_open',
  text: `SELECT e.owner_id AS process_id, ${REGISTRATION} FROM (SELECT DISTINCT owner_id FROM open_exchanges) e
    LEFT JOIN owners o ON o.id = e.owner_id`,
};
/** Dead processes without open exchanges, and the proofs of commits that nobody asks about any more. */
const SWEEP: Statement = {
  name: 'sweep',
  text: `WITH old AS (DELETE FROM commits WHERE at < now() - interval '15 minutes')
    DELETE FROM owners o WHERE heartbeat < now() - interval '1 day'
      AND NOT EXISTS (SELECT 1 FROM open_exchanges e WHERE e.owner_id = o.id)`,
};

export function createRegistry(database: Database): Registry {
  const { options } = database;
  const { process: self } = options;
  return {
    options,
    requireHealth: () => database.requireHealth(),
    follow: (rule) => database.follow(rule),
    beat: async (id) => void (await database.change(BEAT, [id, self.host, self.pid])),
    find: (id) => findProcess(database, id),
    async ofOpenExchanges() {
      const rows = await database.run(OF_OPEN);
      return new Map(rows.map((row) => [text(row, 'process_id'), row['host'] === null ? undefined : registrationOf(row)]));
    },
    sweep: async () => void (await database.change(SWEEP)),
  };
}
