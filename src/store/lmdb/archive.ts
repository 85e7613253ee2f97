/** An LMDB store as rows without an engine. Opened without a gateway: nothing is registered, closed or made. */
import { COPYING, type Archive, type ArchiveRow, type BackupSource } from '../archive.ts';
import { exchangesIn } from '../settlements/recovery.ts';
import type { StoreOptions } from '../store.ts';
import { rowsOf } from './all-rows.ts';
import { Environment } from './environment.ts';
import { enterJournalRow, enterLogRow } from './exchange-index.ts';
import { makeFolder } from '../make-folder.ts';
import { logPath } from './log-path.ts';
import { entryOf } from './row-shapes.ts';
import { otherNames } from './log-rows.ts';
import { metaOf, SCHEMA, type Tables } from './tables.ts';
import { verify } from './verify.ts';
import { dueKey } from './books.ts';
import type { Work } from './work.ts';

/** Throws `StoreError` as `openLmdbStore` does. */
export async function openLmdbArchive(options: StoreOptions): Promise<Archive> {
  const environment = await Environment.open(options, {});
  const { tables } = environment;
  return {
    ...backupOf(environment),
    async *rows() {
      yield* rowsOf(tables);
    },
    isEmpty: async () => isEmpty(tables),
    begin: () =>
      environment.transact((work) => {
        if (!isEmpty(work.tables) || metaOf(work.tables, 'schema') === COPYING) return false;
        work.put(work.tables.meta, 'schema', COPYING);
        return true;
      }),
    write: (rows) =>
      environment.transact((work) => {
        for (const row of rows) write(work, row);
      }),
    finish: () => environment.transact((work) => work.put(work.tables.meta, 'schema', SCHEMA)),
    verify: () => environment.snapshot((tables) => verify(tables)),
    close: () => environment.close(),
  };
}

function isEmpty(tables: Tables): boolean {
  return tables.accounts.getCount() === 0 && tables.journal.getCount() === 0 && metaOf(tables, 'secrets') === undefined;
}

/**
 * Of a store that is open already: opened a second time in one process, LMDB can wait for ever. lmdb-js opens its tables in
 * transactions that block the main thread, and a batch that the first opening writes waits for that thread with the lock in hand.
 */
export function backupOf(environment: Environment): BackupSource {
  const { options } = environment;
  return {
    openExchanges: () =>
      environment.read(({ openExchanges, exchanges }) => {
        const open = new Set([...openExchanges.getKeys()].map(([, exchangeId]) => exchangeId));
        for (const id of exchangesIn(logPath(options), { entryOf })) if (!exchanges.doesExist(id)) open.add(id);
        return open.size;
      }),
    async backUp(folder) {
      makeFolder(folder);
      await environment.copyTo(folder);
      await atRest({ ...options, path: folder });
    },
  };
}

/** The processes in the copy of a store in use are those of that store alone. */
async function atRest(options: StoreOptions): Promise<void> {
  const copy = await Environment.open(options, {});
  try {
    await copy.transact((work) => {
      const { openExchanges, processes } = work.tables;
      for (const key of [...openExchanges.getKeys()]) work.remove(openExchanges, key);
      for (const key of [...processes.getKeys()]) work.remove(processes, key);
    });
  } finally {
    await copy.close();
  }
}

function write(work: Work, { table, row }: ArchiveRow): void {
  const { tables } = work;
  switch (table) {
    case 'account':
      work.putPrincipal(tables.accounts, row.id, row);
      work.put(tables.accountNames, row.name, row.id);
      return;
    case 'key':
      work.putPrincipal(tables.keys, row.id, row);
      work.put(tables.keyDigests, row.digest, row.id);
      return;
    case 'journal':
      work.put(tables.journal, row.seq, row);
      if (row.kind === 'charge' || row.kind === 'interrupted') enterJournalRow(work, row);
      else work.put(tables.journalRefs, [row.ref, row.kind], row.seq);
      work.put(tables.meta, 'journalHead', { seq: row.seq, hash: row.hash });
      return;
    case 'balance':
      work.put(tables.balances, row.account, row.nanos);
      return;
    case 'hold':
      work.put(tables.holds, row.id, row);
      return;
    case 'spend': {
      const { keyId, ...spend } = row;
      work.put(tables.spend, keyId, spend);
      return;
    }
    case 'day': {
      const { keyId, day, ...counts } = row;
      work.put(tables.days, [keyId, day], counts);
      return;
    }
    case 'rollup':
      work.rollups.add(row);
      return;
    case 'log':
      work.put(tables.log, row.seq, row);
      enterLogRow(work, row);
      for (const name of otherNames(row)) work.put(tables.logIds, [name, row.seq], true);
      work.logIndex.enter(row, row.seq);
      return;
    case 'video': {
      const due = dueKey(row);
      if (due !== undefined) work.put(tables.videoDue, due, true);
      work.put(tables.videoOwners, [row.accountId, row.keyId, row.number], row.id);
      work.put(tables.videos, row.id, row);
      return;
    }
    case 'idempotency': {
      const { accountId, keyId, idempotencyKey, taskId, bodyHash } = row;
      work.put(tables.idempotency, [accountId, keyId, idempotencyKey], { taskId, bodyHash });
      return;
    }
    case 'lease':
      work.put(tables.leases, row.name, { ...row, owner: '' });
      return;
    case 'secret':
      work.put(tables.meta, 'secrets', [...(metaOf(tables, 'secrets') ?? []), { id: row.id, bytes: Buffer.from(row.bytes) }]);
      return;
    case 'control':
      work.put(tables.controls, [row.kind, row.id], row.text);
      return;
    case 'heads':
      work.put(tables.meta, 'logHead', { seq: row.logSeq, atMs: row.logAtMs });
      work.put(tables.meta, 'videoNumber', row.videoNumber);
      if (row.rollupsAfter !== undefined) work.put(tables.meta, 'rollupsAfter', row.rollupsAfter);
  }
}
