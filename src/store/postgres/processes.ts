/** The registrations of processes on PostgreSQL. */
import type { Registry } from '../processes.ts';
import type { Database } from './database.ts';
import { findProcess } from './books.ts';
import type { PostgresOptions } from './options.ts';
import { int, REGISTRATION, registrationOf, text } from './rows.ts';
import type { Statement } from './session.ts';
import { CLOCK_SLACK_MS } from '../spend-windows.ts';

const BEAT: Statement = {
  name: 'owner_beat',
  text: `INSERT INTO owners (id, host, pid, heartbeat) VALUES ($1, $2, $3, clock_timestamp())
    ON CONFLICT (id) DO UPDATE SET heartbeat = clock_timestamp() RETURNING (extract(epoch FROM heartbeat) * 1000)::bigint AS at_ms`,
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
  const { clock, process: self } = options;
  const keepClock = clockKeeper(options);
  return {
    options,
    requireHealth: () => database.requireHealth(),
    follow: (rule) => database.follow(rule),
    async beat(id) {
      const askedAtMs = clock.now();
      const [row] = await database.change(BEAT, [id, self.host, self.pid]);
      if (row !== undefined) keepClock(askedAtMs, int(row, 'at_ms'), clock.now());
    },
    find: (id) => findProcess(database, id),
    async ofOpenExchanges() {
      const rows = await database.run(OF_OPEN);
      return new Map(rows.map((row) => [text(row, 'process_id'), row['host'] === null ? undefined : registrationOf(row)]));
    },
    sweep: async () => void (await database.change(SWEEP)),
  };
}

/** What NTP keeps together differs by less, and so may a look at the database's clock. */
const ADJUST_MS = 1_000;

/**
 * Spend windows and leases go by one clock, the database's: where two gateways differ by more than windows bear with, each would
 * take what the other has counted for nothing, and a limit by the hour or the day would hold nobody. A machine that is far off is
 * told once, until its clock is right again: the lines of its log are still by its own.
 */
function clockKeeper({ clock, onProblem }: Pick<PostgresOptions, 'clock' | 'onProblem'>) {
  let wasWrong = false;
  /** The database said `databaseMs` at some time between the other two. */
  return (fromMs: number, databaseMs: number, toMs: number): void => {
    const leftMs = Math.max(fromMs - databaseMs, 0) || Math.min(toMs - databaseMs, 0);
    const aheadMs = leftMs + (clock.ownNow === undefined ? 0 : clock.ownNow() - clock.now());
    clock.adjust?.(Math.abs(leftMs) > ADJUST_MS ? -leftMs : 0);
    const isWrong = Math.abs(aheadMs) > CLOCK_SLACK_MS;
    const where = aheadMs > 0 ? 'ahead of' : 'behind';
    if (isWrong && !wasWrong)
      onProblem?.({
        what:
          `clock_differs: this machine's clock is ${Math.round(Math.abs(aheadMs) / 1000)} s ${where} the database's; ` +
          (clock.adjust === undefined
            ? 'while clocks differ, limits by the hour and day do not hold between gateways'
            : "limits, leases and times of answers go by the database's"),
      });
    wasWrong = isWrong;
  };
}
