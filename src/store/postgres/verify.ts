/** Feeds one snapshot of the PostgreSQL store to the recount, some hundred rows at a time. */
import type { JournalHead, Verification } from '../ledger.ts';
import { Recount } from '../recount.ts';
import type { RequestLogRow } from '../request-log.ts';
import { inSteps, Steps } from '../steps.ts';
import { dueAt } from '../video-rules.ts';
import type { VideoTask } from '../videos.ts';
import { allRows } from './all-rows.ts';
import { rollupOf } from './rollup-rows.ts';
import { filterColumns, nameColumns } from './record-tables.ts';
import { big, int, maybeText, type Row, text } from './rows.ts';
import type { Session, Statement } from './session.ts';

export const HEAD: Statement = { name: 'verify_head', text: 'SELECT * FROM ledger_head' };
/** In no order, which is no matter here. */
const HOURS_OF_ALL: Statement = { name: 'verify_hours_of_all', text: `SELECT * FROM usage_hours WHERE key_id = ''` };
const DAYS_OF_ROLLUPS: Statement = { name: 'verify_rollup_days', text: 'SELECT * FROM usage_days' };
const OPEN: Statement = { name: 'verify_open', text: 'SELECT exchange_id FROM open_exchanges' };

export async function verify(session: Session, kept?: JournalHead): Promise<Verification> {
  const recount = new Recount(kept);
  const look = {
    logged: (logged: RequestLogRow, row: Row) => checkLogged(recount, logged, row),
    task: (task: VideoTask, row: Row) => checkTask(recount, task, row),
  };
  const steps = new Steps();
  for await (const row of allRows(session, look)) {
    recount.row(row);
    if (steps.isOver) await steps.next();
  }
  for (const row of await session.run(HEAD)) recount.head(int(row, 'seq'), text(row, 'hash'));
  for (const [unit, statement] of [
    ['hour', HOURS_OF_ALL],
    ['day', DAYS_OF_ROLLUPS],
  ] as const)
    for await (const row of session.rows(statement)) {
      recount.rollup(unit, rollupOf(row));
      if (steps.isOver) await steps.next();
    }
  for await (const row of session.rows(OPEN)) recount.open(text(row, 'exchange_id'));
  return await inSteps(recount.finish());
}

/** The columns beside the task are copies of what is in it. */
function checkTask(recount: Recount, task: VideoTask, row: Row): void {
  recount.expect('task', `state of ${task.id}`, task.state, text(row, 'state'));
  recount.expect('task', `number of ${task.id}`, task.number, int(row, 'number'));
  recount.expect(
    'index',
    `owner of ${task.id}`,
    `${task.accountId} ${task.keyId}`,
    `${text(row, 'account_id')} ${text(row, 'key_id')}`,
  );
  recount.expect('index', `due time of ${task.id}`, String(dueAt(task) ?? 'none'), String(row['due_at_ms'] ?? 'none'));
}

/** The columns beside the entry are copies of what is in it. */
function checkLogged(recount: Recount, logged: RequestLogRow, row: Row): void {
  const { exchangeId, charge, keyId, accountId } = logged;
  recount.expect('exchange', `charge column of ${exchangeId}`, charge?.total ?? 0n, big(row, 'charged_nanos'));
  recount.expect('exchange', `key column of ${exchangeId}`, keyId, text(row, 'key_id'));
  recount.expect('exchange', `account column of ${exchangeId}`, accountId, text(row, 'account_id'));
  for (const [column, word] of Object.entries(nameColumns(logged)))
    recount.expect('index', `${column} of ${exchangeId}`, word ?? 'none', maybeText(row, column) ?? 'none');
  for (const [column, word] of Object.entries(filterColumns(logged)))
    if (row[column] !== null) recount.expect('index', `${column} of ${exchangeId}`, word, text(row, column));
}
