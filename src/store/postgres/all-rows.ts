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
import type { Session, Statement } from './session.ts';

/** For those who compare a record with the columns beside it. */
export interface Look {
  logged?(logged: RequestLogRow, row: Row): void;
  task?(task: VideoTask, row: Row): void;
}

const all = (name: string, sql: string): Statement => ({ name: `all_${name}`, text: sql });

/** Words in the order of their bytes, whatever order the database has for them. */
const ALL = {
  journal: all('journal', 'SELECT * FROM journal ORDER BY seq'),
  accounts: all('accounts', 'SELECT * FROM accounts ORDER BY id COLLATE "C"'),
  keys: all('keys', 'SELECT * FROM keys ORDER BY id COLLATE "C"'),
  balances: all('balances', 'SELECT * FROM balances ORDER BY account COLLATE "C"'),
  holds: all('holds', 'SELECT * FROM holds ORDER BY id COLLATE "C"'),
  spend: all('spend', 'SELECT * FROM spend ORDER BY key_id COLLATE "C"'),
  days: all('days', 'SELECT * FROM days ORDER BY key_id COLLATE "C", day'),
  rollups: all(
    'rollups',
    `SELECT * FROM usage_hours WHERE key_id <> ''
      ORDER BY key_id COLLATE "C", at, model COLLATE "C", channel_id COLLATE "C", code COLLATE "C"`,
  ),
  log: all('log', 'SELECT * FROM request_log ORDER BY seq'),
  videos: all('videos', 'SELECT * FROM videos ORDER BY number'),
  idempotency: all(
    'idempotency',
    'SELECT * FROM idempotency ORDER BY account_id COLLATE "C", key_id COLLATE "C", idempotency_key COLLATE "C"',
  ),
  leases: all('leases', 'SELECT * FROM leases ORDER BY name COLLATE "C"'),
  secrets: all('secrets', 'SELECT * FROM envelope_secrets ORDER BY id'),
  controls: all('controls', 'SELECT * FROM controls ORDER BY kind COLLATE "C", id COLLATE "C"'),
  heads: all('heads', 'SELECT log_seq, log_at_ms, video_number, rollups_after FROM ledger_head'),
} as const satisfies Record<string, Statement>;

/** Table by table, of one snapshot. */
export async function* allRows(session: Session, look: Look = {}): AsyncGenerator<ArchiveRow> {
  for await (const row of session.rows(ALL.journal)) yield { table: 'journal', row: journalOf(row) };
  for await (const row of session.rows(ALL.accounts)) yield { table: 'account', row: accountOf(row) };
  for await (const row of session.rows(ALL.keys)) yield { table: 'key', row: keyOf(row) };
  for await (const row of session.rows(ALL.balances))
    yield { table: 'balance', row: { account: text(row, 'account'), nanos: big(row, 'nanos') } };
  for await (const row of session.rows(ALL.holds)) yield { table: 'hold', row: holdOf(row) };
  for await (const row of session.rows(ALL.spend)) yield { table: 'spend', row: { keyId: text(row, 'key_id'), ...spendOf(row) } };
  for await (const row of session.rows(ALL.days))
    yield { table: 'day', row: { keyId: text(row, 'key_id'), day: int(row, 'day'), ...countsOf(row) } };
  for await (const row of session.rows(ALL.rollups)) {
    const rollup = rollupOf(row);
    if (!isNothing(rollup.sums)) yield { table: 'rollup', row: rollup };
  }
  for await (const row of session.rows(ALL.log)) {
    const logged = logRowOf(row);
    look.logged?.(logged, row);
    yield { table: 'log', row: logged };
  }
  for await (const row of session.rows(ALL.videos)) {
    const task = taskOf(row);
    look.task?.(task, row);
    yield { table: 'video', row: task };
  }
  for await (const row of session.rows(ALL.idempotency)) {
    const owner = { accountId: text(row, 'account_id'), keyId: text(row, 'key_id') };
    const made = { taskId: text(row, 'task_id'), bodyHash: text(row, 'body_hash') };
    yield { table: 'idempotency', row: { ...owner, idempotencyKey: text(row, 'idempotency_key'), ...made } };
  }
  for await (const row of session.rows(ALL.leases)) yield { table: 'lease', row: leaseOf(row) };
  for await (const row of session.rows(ALL.secrets))
    yield { table: 'secret', row: { id: int(row, 'id'), bytes: bytes(row, 'bytes') } };
  for await (const row of session.rows(ALL.controls)) yield { table: 'control', row: controlOf(row) };
  for await (const row of session.rows(ALL.heads)) {
    const heads = { logSeq: int(row, 'log_seq'), logAtMs: int(row, 'log_at_ms'), videoNumber: int(row, 'video_number') };
    const rollupsAfter = int(row, 'rollups_after');
    yield { table: 'heads', row: rollupsAfter < 0 ? heads : { ...heads, rollupsAfter } };
  }
}
