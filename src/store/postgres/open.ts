/** Opens the store on PostgreSQL and puts its parts together. Any number of processes on any number of machines may share it. */
import { createAdminTokens } from '../admin-tokens.ts';
import { indexOlderRows } from '../log-filters.ts';
import { StoreProcess } from '../processes.ts';
import { Reservations } from '../reservations.ts';
import type { Store } from '../store.ts';
import { closeOnce } from '../closing.ts';
import { SettlementLog, storeIdOf } from '../settlements/log.ts';
import { SettlementQueue } from '../settlements/queue.ts';
import { createAccounts } from './accounts.ts';
import { createAdmission } from './admission.ts';
import { backupOf } from './archive.ts';
import { createControls } from './controls.ts';
import { Database } from './database.ts';
import { createKeys } from './keys.ts';
import { createLeases } from './leases.ts';
import { createLedger } from './ledger.ts';
import { createLimitCounts } from './limit-counts.ts';
import { migratePostgres } from './migrate.ts';
import { DEFAULTS, type PostgresOptions, type PostgresSeams } from './options.ts';
import { createRegistry } from './processes.ts';
import { createRequestLog, fillColumns } from './request-log.ts';
import { createSecrets } from './secrets.ts';
import { createSettlementEngine } from './settlement-engine.ts';
import { createUsageByHour } from './rollups.ts';
import { createSpend } from './spend.ts';
import { createVideos } from './videos.ts';
import { text } from './rows.ts';
import type { Statement } from './session.ts';
import { Watch } from './watch.ts';

const FIRST_ROW: Statement = { name: 'journal_first', text: 'SELECT hash FROM journal WHERE seq = 1' };

/**
 * Throws `StoreError`: `bad_url`, `access_denied`, `read_only`, `schema_newer`, `schema_older`, `untrusted`, `unavailable`. What
 * dead processes left open is closed, and what they left in the settlement log is taken over, before it resolves.
 */
export async function openPostgresStore(options: PostgresOptions, seams: PostgresSeams = {}): Promise<Store> {
  await migratePostgres(options);
  const database = new Database(options, seams);
  const secrets = createSecrets(database);
  const { beforeStatement: _seam, ...quiet } = seams;
  const watch = new Watch(database, quiet, secrets.learn);
  let process: StoreProcess | undefined;
  let log: SettlementLog;
  try {
    await watch.start();
    await secrets.start();
    process = await StoreProcess.register(createRegistry(database));
    log = await logOf(database, process);
  } catch (error) {
    process?.abandon();
    await watch.close();
    await database.close();
    throw error;
  }
  const settlements = new SettlementQueue(createSettlementEngine(database, process), log);
  const stopIndexing = indexOlderRows(options, () => fillColumns(database));
  const close = closeOnce({
    settlements,
    process,
    engine: async () => {
      await stopIndexing();
      await watch.close();
      await database.close();
    },
  });
  process.everyBeat(async () => void (await settlements.closeInterrupted()));
  try {
    await settlements.closeInterrupted();
  } catch (error) {
    // A connection that stayed open would keep a process alive that serves nobody.
    await close();
    throw error;
  }
  const reservations = new Reservations();
  const controls = createControls(database);
  return {
    accounts: createAccounts(database),
    keys: createKeys(database, watch),
    ledger: createLedger(database),
    spend: createSpend(database),
    usageByHour: createUsageByHour(database),
    admission: createAdmission(database, watch, reservations),
    settlements,
    requestLog: createRequestLog(database),
    videos: createVideos(database, reservations),
    leases: createLeases(database, process),
    limitCounts: createLimitCounts(database),
    secrets,
    controls,
    adminTokens: createAdminTokens(controls, options),
    backup: backupOf(database),
    health: () => database.health(),
    close,
  };
}

async function logOf(database: Database, process: StoreProcess): Promise<SettlementLog> {
  const { spoolPath, spoolMaxBytes = DEFAULTS.spoolMaxBytes, onProblem } = database.options;
  const [first] = await database.run(FIRST_ROW);
  return new SettlementLog({
    path: spoolPath,
    storeId: storeIdOf(first === undefined ? undefined : text(first, 'hash')),
    processId: process.id,
    mayLive: (id) => process.mayLive(id),
    maxBytes: spoolMaxBytes,
    onProblem,
  });
}
