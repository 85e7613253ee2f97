/** Feeds one snapshot of the PostgreSQL store to the recount, some thousand rows at a time. */
import type { JournalHead, Verification } from '../ledger.ts';
import { Recount } from '../recount.ts';
import { filmOf } from '../rollup-recount.ts';
import type { RequestLogRow } from '../request-log.ts';
import { dueAt } from '../video-rules.ts';
import type { VideoTask } from '../videos.ts';
import { controlOf } from './controls.ts';
import { logRowOf } from './request-log.ts';
import { rollupOf } from './rollup-rows.ts';
import { accountOf, big, filterColumns, holdOf, int, journalOf, keyOf, type Row, spendOf, text } from './rows.ts';
import type { Session, Statement, Value } from './session.ts';
import { countsOfDay } from './spend.ts';
import { taskOf } from './books.ts';

const PAGE = 5_000;

/** Pages by a unique column; $1: the last one seen, $2: how many. */
export interface Paged {
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
export const PAGES = {
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

export const HEAD: Statement = { name: 'verify_head', text: 'SELECT * FROM ledger_head' };
const CONTROLS: Statement = { name: 'verify_controls', text: 'SELECT * FROM controls' };
const DAYS: Statement = { name: 'verify_days', text: 'SELECT * FROM days' };
const ROLLUP_HOURS: Statement = { name: 'verify_rollup_hours', text: 'SELECT * FROM usage_hours' };
const ROLLUP_DAYS: Statement = { name: 'verify_rollup_days', text: 'SELECT * FROM usage_days' };
const IDEMPOTENCY: Statement = { name: 'verify_idempotency', text: 'SELECT task_id, account_id, key_id FROM idempotency' };

export async function verify(session: Session, kept?: JournalHead): Promise<Verification> {
  const recount = new Recount(kept);
  for await (const row of rowsOf(session, PAGES.journal)) recount.journal(journalOf(row));
  for (const row of await session.run(HEAD)) recount.head(int(row, 'seq'), text(row, 'hash'));
  for await (const row of rowsOf(session, PAGES.balances)) recount.balance(text(row, 'account'), big(row, 'nanos'));
  for await (const row of rowsOf(session, PAGES.accounts)) recount.account(accountOf(row));
  for await (const row of rowsOf(session, PAGES.keys)) recount.key(keyOf(row));
  for (const row of await session.run(CONTROLS)) recount.control(controlOf(row));
  for await (const row of rowsOf(session, PAGES.holds)) recount.hold(holdOf(row));
  for await (const row of rowsOf(session, PAGES.videos)) {
    const task = checkedTask(recount, row);
    recount.task(task);
    recount.film(filmOf(task));
  }
  for await (const row of rowsOf(session, PAGES.spend)) recount.spend(text(row, 'key_id'), spendOf(row));
  for (const row of await session.run(DAYS)) recount.day(text(row, 'key_id'), int(row, 'day'), countsOfDay(row));
  for (const row of await session.run(IDEMPOTENCY))
    recount.idempotency({ taskId: text(row, 'task_id'), accountId: text(row, 'account_id'), keyId: text(row, 'key_id') });
  for await (const row of rowsOf(session, PAGES.log)) recount.logged(checkedLog(recount, row));
  for (const row of await session.run(ROLLUP_HOURS)) recount.rollup('hour', rollupOf(row));
  for (const row of await session.run(ROLLUP_DAYS)) recount.rollup('day', rollupOf(row));
  for (const row of await session.run(HEAD)) {
    const logHead = { seq: int(row, 'log_seq'), atMs: int(row, 'log_at_ms') };
    recount.rollupLimits({ logHead, after: int(row, 'rollups_after') });
  }
  for await (const row of rowsOf(session, PAGES.open)) recount.open(text(row, 'exchange_id'));
  return recount.finish();
}

/** The columns beside the task are copies of what is in it. */
function checkedTask(recount: Recount, row: Row): VideoTask {
  const task = taskOf(row);
  recount.expect('task', `state of ${task.id}`, task.state, text(row, 'state'));
  recount.expect('task', `number of ${task.id}`, task.number, int(row, 'number'));
  recount.expect(
    'index',
    `owner of ${task.id}`,
    `${task.accountId} ${task.keyId}`,
    `${text(row, 'account_id')} ${text(row, 'key_id')}`,
  );
  recount.expect('index', `due time of ${task.id}`, String(dueAt(task) ?? 'none'), String(row['due_at_ms'] ?? 'none'));
  return task;
}

/** The columns beside the entry are copies of what is in it. */
function checkedLog(recount: Recount, row: Row): RequestLogRow {
  const entry = logRowOf(row);
  const { exchangeId } = entry;
  recount.expect('exchange', `charge column of ${exchangeId}`, entry.charge?.total ?? 0n, big(row, 'charged_nanos'));
  recount.expect('exchange', `key column of ${exchangeId}`, entry.keyId, text(row, 'key_id'));
  recount.expect('exchange', `account column of ${exchangeId}`, entry.accountId, text(row, 'account_id'));
  for (const [column, word] of Object.entries(filterColumns(entry)))
    if (row[column] !== null) recount.expect('index', `${column} of ${exchangeId}`, word, text(row, column));
  return entry;
}
