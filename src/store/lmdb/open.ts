/** Opens the store on LMDB and puts its parts together. Several processes may have the same path open. */
import type { Store, StoreOptions } from '../store.ts';
import { Reservations } from '../reservations.ts';
import { closeOnce } from '../closing.ts';
import { createAccounts } from './accounts.ts';
import { createAdmission } from './admission.ts';
import { Environment, type Seams } from './environment.ts';
import { createKeys } from './keys.ts';
import { createLeases } from './leases.ts';
import { createLedger } from './ledger.ts';
import { createLimitCounts } from './limit-counts.ts';
import { Owner } from './owners.ts';
import { createRequestLog } from './request-log.ts';
import { createSecrets } from './secrets.ts';
import { SettlementQueue } from './settlement-queue.ts';
import { createSpend } from './spend.ts';
import { createVideos } from './videos.ts';

/** Throws `StoreError`: `unavailable` when the path cannot be used, `schema_newer` when a newer version wrote it. */
export async function openLmdbStore(options: StoreOptions, seams: Seams = {}): Promise<Store> {
  const environment = await Environment.open(options, seams);
  const secrets = await createSecrets(environment);
  const owner = await Owner.register(environment);
  await owner.closeInterrupted();
  const reservations = new Reservations();
  const settlements = new SettlementQueue(environment, owner);
  return {
    accounts: createAccounts(environment),
    keys: createKeys(environment),
    ledger: createLedger(environment),
    spend: createSpend(environment),
    admission: createAdmission(environment, reservations),
    settlements,
    requestLog: createRequestLog(environment),
    videos: createVideos(environment, reservations),
    leases: createLeases(environment, owner),
    limitCounts: createLimitCounts(environment),
    secrets,
    health: () => environment.health(),
    close: closeOnce({ settlements, owner, engine: () => environment.close() }),
  };
}
