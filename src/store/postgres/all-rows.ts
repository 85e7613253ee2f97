/** All that a PostgreSQL store holds, as rows that no engine owns: for copies, and for the recount. */
import type { ArchiveRow } from '../archive.ts';
import type { RequestLogRow } from '../request-log.ts';
import { isNothing } from '../rollups.ts';
import type { VideoTask } from '../videos.ts';
import { controlOf } from './controls.ts';
import { leaseOf } from './leases.ts';
import { rollupOf } from './rollup-rows.ts';
import {
  accountOf,
  big,
  bytes,
  countsOf,
  holdOf,
  int,
  journalOf,
  keyOf,
  logRowOf,
  type Row,
  spendOf,
  taskOf,
  text,
} from './rows.ts';
import type { Session, Statement, Value } from './session.ts';

type Run = Pick<Session, 'run'>;

/** For those who compare a record with the columns beside it. */
export interface Look {
  logged?(logged: RequestLogRow, row: Row): void;
  task?(task: VideoTask, row: Row): void;
}

const PAGE = 1_000;

/** Pages by a unique column; $1: the last one seen, $2: how many. */
interface Paged {
  readonly statement: Statement;
  readonly first: Value;
  readonly column: string;
}

const paged = (name: string, table: string, columns: string, column: string, first: Value): Paged => {
  const order = typeof first === 'string' ? `${column} COLLATE "C"` : column;
  const text = `SELECT ${columns} FROM ${table} WHERE ${order} > $1 ORDER BY ${order} LIMIT $2`;
  return { statement: { name: `page_${name}`, text }, first, column };
};

/** Every table in pages, by name. `-1`: no sequence begins below. */
const PAGES = {
  journal: paged('journal', 'journal', '*', 'seq', -1),
  balances: paged('balances', 'balances', '*', 'account', ''),
  accounts: paged('accounts', 'accounts', '*', 'id', ''),
  keys: paged('keys', 'keys', '*', 'id', ''),
  holds: paged('holds', 'holds', '*', 'id', ''),
  videos: paged('videos', 'videos', '*', 'number', -1),
  spend: paged('spend', 'spend', '*', 'key_id', ''),
  log: paged('log', 'request_log', '*', 'seq', -1),
  open: paged('open', 'open_exchanges', '*', 'exchange_id', ''),
} as const satisfies Record<string, Paged>;

export async function* rowsOf(session: Pick<Session, 'run'>, { statement, first, column }: Paged): AsyncGenerator<Row> {
  let after = first;
  for (;;) {
    const rows = await session.run(statement, [after, PAGE]);
    yield* rows;
    const last = rows.at(-1)?.[column];
    if (rows.length < PAGE || (typeof last !== 'string' && typeof last !== 'bigint')) return;
    after = last;
  }
}

const statement = (name: string, sql: string): Statement => ({ name: `all_${name}`, text: sql });

const DAYS = statement('days', 'SELECT * FROM days ORDER BY key_id COLLATE "C", day');
const ROLLUPS = statement(
  'rollups',
  `SELECT * FROM usage_hours WHERE key_id <> ''
    ORDER BY key_id COLLATE "C", at, model COLLATE "C", channel_id COLLATE "C", code COLLATE "C"`,
);
const IDEMPOTENCY = statement(
  'idempotency',
  'SELECT * FROM idempotency ORDER BY account_id COLLATE "C", key_id COLLATE "C", idempotency_key COLLATE "C"',
);
const LEASES = statement('leases', 'SELECT * FROM leases ORDER BY name COLLATE "C"');
const SECRETS = statement('secrets', 'SELECT * FROM envelope_secrets ORDER BY id');
const CONTROLS = statement('controls', 'SELECT * FROM controls ORDER BY kind COLLATE "C", id COLLATE "C"');
const HEADS = statement('heads', 'SELECT log_seq, log_at_ms, video_number, rollups_after FROM ledger_head');

/**
 * Table by table. Of a store at rest each page may come from another connection of the pool; of one in use, from one snapshot.
 */
export async function* allRows(database: Run, look: Look = {}): AsyncGenerator<ArchiveRow> {
  for await (const row of rowsOf(database, PAGES.journal)) yield { table: 'journal', row: journalOf(row) };
  for await (const row of rowsOf(database, PAGES.accounts)) yield { table: 'account', row: accountOf(row) };
  for await (const row of rowsOf(database, PAGES.keys)) yield { table: 'key', row: keyOf(row) };
  for await (const row of rowsOf(database, PAGES.balances))
    yield { table: 'balance', row: { account: text(row, 'account'), nanos: big(row, 'nanos') } };
  for await (const row of rowsOf(database, PAGES.holds)) yield { table: 'hold', row: holdOf(row) };
  for await (const row of rowsOf(database, PAGES.spend))
    yield { table: 'spend', row: { keyId: text(row, 'key_id'), ...spendOf(row) } };
  for (const row of await database.run(DAYS))
    yield { table: 'day', row: { keyId: text(row, 'key_id'), day: int(row, 'day'), ...countsOf(row) } };
  for (const row of await database.run(ROLLUPS)) {
    const rollup = rollupOf(row);
    if (!isNothing(rollup.sums)) yield { table: 'rollup', row: rollup };
  }
  for await (const row of rowsOf(database, PAGES.log)) {
    const logged = logRowOf(row);
    look.logged?.(logged, row);
    yield { table: 'log', row: logged };
  }
  for await (const row of rowsOf(database, PAGES.videos)) {
    const task = taskOf(row);
    look.task?.(task, row);
    yield { table: 'video', row: task };
  }
  for (const row of await database.run(IDEMPOTENCY)) {
    const owner = { accountId: text(row, 'account_id'), keyId: text(row, 'key_id') };
    const made = { taskId: text(row, 'task_id'), bodyHash: text(row, 'body_hash') };
    yield { table: 'idempotency', row: { ...owner, idempotencyKey: text(row, 'idempotency_key'), ...made } };
  }
  for (const row of await database.run(LEASES)) yield { table: 'lease', row: leaseOf(row) };
  for (const row of await database.run(SECRETS))
    yield { table: 'secret', row: { id: int(row, 'id'), bytes: bytes(row, 'bytes') } };
  for (const row of await database.run(CONTROLS)) yield { table: 'control', row: controlOf(row) };
  for (const row of await database.run(HEADS)) {
    const heads = { logSeq: int(row, 'log_seq'), logAtMs: int(row, 'log_at_ms'), videoNumber: int(row, 'video_number') };
    const rollupsAfter = int(row, 'rollups_after');
    yield { table: 'heads', row: rollupsAfter < 0 ? heads : { ...heads, rollupsAfter } };
  }
}

/** Exchanges that are open: no archive holds them. */
export async function* openIds(database: Run): AsyncGenerator<string> {
  for await (const row of rowsOf(database, PAGES.open)) yield text(row, 'exchange_id');
}
