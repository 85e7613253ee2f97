/** Feeds one snapshot of the PostgreSQL store to the recount, some thousand rows at a time. */
import type { Verification } from '../ledger.ts';
import { Recount } from '../recount.ts';
import type { VideoTask } from '../videos.ts';
import { big, holdOf, int, journalOf, type Row, spendOf, text } from './rows.ts';
import type { Session, Statement, Value } from './session.ts';
import { taskOf } from './videos.ts';

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
  charges: paged('charges', 'request_log', 'seq, exchange_id, charged_nanos', 'seq', -1),
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

const HEAD: Statement = { name: 'verify_head', text: 'SELECT * FROM ledger_head' };
const DAYS: Statement = {
  name: 'verify_days',
  text: 'SELECT key_id, sum(charged_nanos)::text AS charged FROM days GROUP BY key_id',
};

export async function verify(session: Session): Promise<Verification> {
  const recount = new Recount();
  for await (const row of rowsOf(session, PAGES.journal)) recount.journal(journalOf(row));
  for (const row of await session.run(HEAD)) recount.head(int(row, 'seq'), text(row, 'hash'));
  for await (const row of rowsOf(session, PAGES.balances)) recount.balance(text(row, 'account'), big(row, 'nanos'));
  for await (const row of rowsOf(session, PAGES.holds)) recount.hold(holdOf(row));
  for await (const row of rowsOf(session, PAGES.videos)) recount.task(checkedTask(recount, row));
  for await (const row of rowsOf(session, PAGES.spend)) recount.spend(text(row, 'key_id'), spendOf(row));
  for (const row of await session.run(DAYS)) recount.day(text(row, 'key_id'), big(row, 'charged'));
  for await (const row of rowsOf(session, PAGES.charges)) recount.logged(text(row, 'exchange_id'), big(row, 'charged_nanos'));
  for await (const row of rowsOf(session, PAGES.open)) recount.open(text(row, 'exchange_id'));
  return recount.finish();
}

/** The columns beside the task are copies of what is in it. */
function checkedTask(recount: Recount, row: Row): VideoTask {
  const task = taskOf(row);
  recount.expect('task', `state of ${task.id}`, task.state, text(row, 'state'));
  recount.expect('task', `number of ${task.id}`, task.number, int(row, 'number'));
  return task;
}
