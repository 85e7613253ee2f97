/**
 * A PostgreSQL store as rows without an engine. Opened without a gateway: nothing is registered, closed or made but the schema.
 */
import { COPYING, type Archive, type ArchiveRow, type BackupSource } from '../archive.ts';
import { logEntryOf, logText } from '../log-text.ts';
import { exchangesIn } from '../settlements/recovery.ts';
import { RollupChanges } from '../rollups.ts';
import { storable } from '../storable.ts';
import { INSERT_IDEMPOTENCY, INSERT_SECRET, insertVideo, PUT_CONTROL } from './books.ts';
import { ACCOUNTS, DAYS, HOLDS, JOURNAL, KEYS, LOG, SPEND, type Table } from './record-tables.ts';
import { allRows } from './all-rows.ts';
import { writeAll } from '../copy.ts';
import { randomHex } from '../random-hex.ts';
import { StoreError } from '../store-error.ts';
import { Database } from './database.ts';
import { migratePostgres } from './migrate.ts';
import type { PostgresOptions } from './options.ts';
import { ADD_DAYS, ADD_HOURS, columnsOf } from './rollup-rows.ts';
import { int, type Row } from './rows.ts';
import type { Session, Statement } from './session.ts';
import { verify } from './verify.ts';

const statement = (name: string, sql: string): Statement => ({ name: `archive_${name}`, text: sql });

const IS_EMPTY = `NOT EXISTS (SELECT 1 FROM accounts) AND NOT EXISTS (SELECT 1 FROM journal)
    AND NOT EXISTS (SELECT 1 FROM envelope_secrets)`;
const EMPTY = statement('empty', `SELECT ${IS_EMPTY} AS empty`);
/** $1: exchanges that stand in the log of this machine. */
const OPEN = statement(
  'open',
  `SELECT count(*) AS count FROM (SELECT exchange_id FROM open_exchanges UNION
    SELECT id FROM unnest($1::text[]) AS id WHERE NOT EXISTS (SELECT 1 FROM request_log r WHERE r.exchange_id = id)) AS found`,
);
/** $1: names the copy. Asked again over a connection that was lost, it finds its own mark. */
const BEGIN = statement(
  'begin',
  `INSERT INTO schema_migrations AS m (version, name) SELECT ${COPYING}, $1 WHERE ${IS_EMPTY}
    ON CONFLICT (version) DO UPDATE SET name = m.name WHERE m.name = excluded.name RETURNING version`,
);
const FINISH = statement('finish', `DELETE FROM schema_migrations WHERE version = ${COPYING}`);

const PUT_HEAD = statement('put_head', 'UPDATE ledger_head SET seq = $1, hash = $2');
/** Balances come after the journal, so the head is what they hold as of. */
const PUT_BALANCE = statement('put_balance', 'INSERT INTO balances SELECT $1, $2, seq FROM ledger_head');
const PUT_LEASE = statement('put_lease', 'INSERT INTO leases (name, holder, token, expires_at_ms) VALUES ($1, $2, $3, $4)');
const PUT_HEADS = statement(
  'put_heads',
  'UPDATE ledger_head SET log_seq = $1, log_at_ms = $2, video_number = $3, rollups_after = $4',
);

/** Throws `StoreError` as `openPostgresStore` does. */
export async function openPostgresArchive(options: PostgresOptions): Promise<Archive> {
  await migratePostgres(options);
  const database = new Database(options, {});
  const mark = `copy under way: ${randomHex(options.randomBytes)}`;
  const one = async (asked: Statement): Promise<Row> => (await database.run(asked))[0] ?? {};
  return {
    ...backupOf(database),
    rows: () => database.rows((session) => allRows(session)),
    isEmpty: async () => (await one(EMPTY))['empty'] === true,
    begin: async () => (await database.change(BEGIN, [mark])).length > 0,
    write: (rows) =>
      database.changeAll(async (session) => {
        for (const row of rows) await write(session, row);
      }),
    finish: async () => void (await database.change(FINISH)),
    verify: () => database.snapshot((session) => verify(session)),
    close: () => database.close(),
  };
}

/** Of a store that is open already. */
export function backupOf(database: Database): BackupSource {
  return {
    async openExchanges() {
      const logged = exchangesIn(database.options.spoolPath, { entryOf: logEntryOf }).map(storable);
      return int((await database.run(OPEN, [logged]))[0] ?? {}, 'count');
    },
    async backUp(folder, open) {
      const target = await open(folder);
      try {
        if (!(await target.begin())) throw new StoreError('unavailable', `there is something in ${folder} already`);
        await database.snapshot(async (session) => {
          if (!(await target.isEmpty()))
            throw new StoreError('unavailable', 'the connection was lost: back up anew, into an empty folder');
          await writeAll(allRows(session), target);
        });
        await target.finish();
      } finally {
        await target.close();
      }
    },
  };
}

async function write(session: Session, { table, row }: ArchiveRow): Promise<unknown> {
  switch (table) {
    case 'account':
      return await insert(session, ACCOUNTS, row);
    case 'key':
      return await insert(session, KEYS, row);
    case 'journal':
      await insert(session, JOURNAL, row);
      return await session.run(PUT_HEAD, [row.seq, row.hash]);
    case 'balance':
      return await session.run(PUT_BALANCE, [row.account, row.nanos]);
    case 'hold':
      return await insert(session, HOLDS, row);
    case 'spend':
      return await insert(session, SPEND, row);
    case 'day':
      return await insert(session, DAYS, row);
    case 'rollup': {
      const rollups = new RollupChanges();
      rollups.add(row);
      const { hours, days } = columnsOf(rollups);
      await session.run(ADD_HOURS, [hours]);
      return await session.run(ADD_DAYS, [days]);
    }
    case 'log': {
      const { seq, loggedAtMs, ...entry } = row;
      return await insert(session, LOG, { seq, loggedAtMs, entry, text: logText(entry) });
    }
    case 'video':
      return await insertVideo(session, row);
    case 'idempotency':
      return await session.run(INSERT_IDEMPOTENCY, [row.accountId, row.keyId, row.idempotencyKey, row.taskId, row.bodyHash]);
    case 'lease':
      return await session.run(PUT_LEASE, [row.name, row.holder, row.token, row.expiresAtMs]);
    case 'secret':
      return await session.run(INSERT_SECRET, [row.id, row.bytes]);
    case 'control':
      return await session.run(PUT_CONTROL, [row.kind, row.id, row.text]);
    case 'heads':
      return await session.run(PUT_HEADS, [row.logSeq, row.logAtMs, row.videoNumber, row.rollupsAfter ?? -1]);
  }
}

function insert<Row>(session: Session, table: Table<Row>, row: Row): Promise<unknown> {
  return session.run(table.insertion, [table.one(row)]);
}
