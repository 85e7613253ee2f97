/** Opens the store on PostgreSQL and puts its parts together. Any number of processes on any number of machines may share it. */
import { Reservations } from '../reservations.ts';
import type { Store } from '../store.ts';
import { closeOnce } from '../closing.ts';
import { createAccounts } from './accounts.ts';
import { createAdmission } from './admission.ts';
import { Database } from './database.ts';
import { createKeys } from './keys.ts';
import { createLeases } from './leases.ts';
import { createLedger } from './ledger.ts';
import { createLimitCounts } from './limit-counts.ts';
import { migratePostgres } from './migrate.ts';
import type { PostgresOptions, PostgresSeams } from './options.ts';
import { Owner } from './owners.ts';
import { createRequestLog } from './request-log.ts';
import { createSecrets } from './secrets.ts';
import { SettlementQueue } from './settlement-queue.ts';
import { createSpend } from './spend.ts';
import { Spool } from './spool.ts';
import { createVideos } from './videos.ts';
import { Watch } from './watch.ts';

/**
 * Throws `StoreError`: `bad_url`, `access_denied`, `read_only`, `schema_newer`, `schema_older`, `untrusted`, `unavailable`. What dead processes
 * left open is closed, and what they left in the local spool is taken over, before it resolves.
 */
export async function openPostgresStore(options: PostgresOptions, seams: PostgresSeams = {}): Promise<Store> {
  await migratePostgres(options);
  const database = new Database(options, seams);
  const secrets = createSecrets(database);
  const { beforeStatement: _seam, ...quiet } = seams;
  const watch = new Watch(database, quiet, secrets.learn);
  let owner: Owner | undefined;
  let spool: Spool;
  try {
    await watch.start();
    await secrets.start();
    owner = await Owner.register(database);
    spool = new Spool(options, owner.id);
  } catch (error) {
    owner?.abandon();
    await watch.close();
    await database.close();
    throw error;
  }
  const settlements = new SettlementQueue(database, owner, spool);
  const close = closeOnce({
    settlements,
    owner,
    engine: async () => {
      await spool.close();
      await watch.close();
      await database.close();
    },
  });
  owner.everyBeat(() => settlements.recover());
  try {
    await settlements.recover();
    await settlements.closeInterrupted();
  } catch (error) {
    // A connection that stayed open would keep a process alive that serves nobody.
    await close();
    throw error;
  }
  const reservations = new Reservations();
  return {
    accounts: createAccounts(database),
    keys: createKeys(database, watch),
    ledger: createLedger(database),
    spend: createSpend(database),
    admission: createAdmission(database, watch, reservations),
    settlements,
    requestLog: createRequestLog(database),
    videos: createVideos(database, reservations),
    leases: createLeases(database, owner),
    limitCounts: createLimitCounts(database),
    secrets,
    health: () => database.health(),
    close,
  };
}
