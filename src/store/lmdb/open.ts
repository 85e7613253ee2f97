/** Opens the store on LMDB and puts its parts together. Several processes may have the same path open. */
import type { Store, StoreOptions } from '../store.ts';
import { indexOlderRows } from '../log-filters.ts';
import { Reservations } from '../reservations.ts';
import { closeOnce } from '../closing.ts';
import { SettlementLog, storeIdOf } from '../settlements/log.ts';
import { SettlementQueue } from '../settlements/queue.ts';
import { createAdminTokens } from '../admin-tokens.ts';
import { StoreProcess } from '../processes.ts';
import { createAccounts } from './accounts.ts';
import { createAdmission } from './admission.ts';
import { backupOf } from './archive.ts';
import { Environment, type Seams } from './environment.ts';
import { createControls } from './controls.ts';
import { createKeys } from './keys.ts';
import { createLeases } from './leases.ts';
import { createLedger } from './ledger.ts';
import { createLimitCounts } from './limit-counts.ts';
import { logPath } from './log-path.ts';
import { hasOlderRows, indexSlice } from './log-index.ts';
import { createRegistry } from './processes.ts';
import { createRequestLog } from './request-log.ts';
import { createUsageByHour } from './rollups.ts';
import { createSecrets } from './secrets.ts';
import { createSettlementEngine } from './settlement-engine.ts';
import { createSpend } from './spend.ts';
import { createVideos } from './videos.ts';

/** Throws `StoreError`: `unavailable` when the path cannot be used, `schema_newer` when a newer version wrote it. */
export async function openLmdbStore(options: StoreOptions, seams: Seams = {}): Promise<Store> {
  const environment = await Environment.open(options, seams);
  const secrets = await createSecrets(environment);
  const process = await StoreProcess.register(createRegistry(environment));
  const settlements = new SettlementQueue(createSettlementEngine(environment, process), logOf(environment, process));
  process.everyBeat(async () => void (await settlements.closeInterrupted()));
  await settlements.closeInterrupted();
  const stopIndexing = indexOlderRows(options, async () => {
    const isLeft = environment.look(hasOlderRows);
    if (isLeft) await environment.transact(indexSlice);
    return isLeft;
  });
  const reservations = new Reservations();
  const controls = createControls(environment);
  return {
    accounts: createAccounts(environment),
    keys: createKeys(environment),
    ledger: createLedger(environment),
    spend: createSpend(environment),
    usageByHour: createUsageByHour(environment),
    admission: createAdmission(environment, reservations),
    settlements,
    requestLog: createRequestLog(environment),
    videos: createVideos(environment, reservations),
    leases: createLeases(environment, process),
    limitCounts: createLimitCounts(environment),
    secrets,
    controls,
    adminTokens: createAdminTokens(controls, options),
    backup: backupOf(environment),
    health: () => environment.health(),
    close: closeOnce({
      settlements,
      process,
      engine: async () => {
        await stopIndexing();
        await environment.close();
      },
    }),
  };
}

function logOf(environment: Environment, process: StoreProcess): SettlementLog {
  const { options } = environment;
  return new SettlementLog({
    path: logPath(options),
    storeId: environment.look(({ journal }) => storeIdOf(journal.get(1)?.hash)),
    processId: process.id,
    mayLive: (id) => process.mayLive(id),
    onProblem: options.onProblem,
  });
}
