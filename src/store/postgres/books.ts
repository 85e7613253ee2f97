/** The books of a transaction on PostgreSQL: the statements that read and write a record of each kind. */
import type { AccountRecord } from '../accounts.ts';
import type { Books, LogLimits, Registration, VideoReplacement } from '../books/books.ts';
import type { ControlKind } from '../controls.ts';
import type { EnvelopeSecret } from '../envelope-secrets.ts';
import type { KeyRecord } from '../keys.ts';
import type { HoldRow, HoldState } from '../ledger.ts';
import type { RequestLogRow } from '../request-log.ts';
import { settledVideoOf } from '../rollup-recount.ts';
import type { Rollup, SettledVideo } from '../rollups.ts';
import type { OpenExchange } from '../settlement.ts';
import { exchangeOf } from '../settlements/records.ts';
import { isStorable, storable } from '../storable.ts';
import { dueAt, type Earlier, isIdempotencyKey, isTaskId } from '../video-rules.ts';
import type { NewVideo, VideoTask } from '../videos.ts';
import { ACCOUNTS, HOLDS, KEYS } from './record-tables.ts';
import { ADD_DAYS, ADD_HOURS, HOURS_OF_KEYS, jsonOf, REMOVE_DAY, REMOVE_HOURS, rollupOf } from './rollup-rows.ts';
import {
  accountOf,
  bytes,
  holdOf,
  int,
  keyOf,
  logRowOf,
  maybeInt,
  REGISTRATION,
  registrationOf,
  taskOf,
  taskText,
  text,
} from './rows.ts';
import type { Session, Statement } from './session.ts';
import { Work } from './work.ts';

const ACCOUNT: Statement = { name: 'account_by_id', text: 'SELECT * FROM accounts WHERE id = $1' };
const ACCOUNT_NAMED: Statement = { name: 'account_by_name', text: 'SELECT * FROM accounts WHERE name = $1' };
export const KEY: Statement = { name: 'key_by_id', text: 'SELECT * FROM keys WHERE id = $1' };
const KEY_TAKEN: Statement = { name: 'key_taken', text: 'SELECT 1 AS one FROM keys WHERE digest = $1' };
const HOLD: Statement = { name: 'hold_by_id', text: 'SELECT * FROM holds WHERE id = $1' };
const CLOSE_HOLD: Statement = { name: 'hold_close', text: 'UPDATE holds SET state = $2, closed_at_ms = $3 WHERE id = $1' };
/** Locked against a new holder until the transaction is over: what was fenced in is committed before the lease can move. */
const HOLDS_LEASE: Statement = {
  name: 'lease_holds',
  text: 'SELECT 1 AS one FROM leases WHERE name = $1 AND token = $2 AND expires_at_ms > 0 FOR SHARE',
};
const VIDEOS: Statement = { name: 'video_find_all', text: 'SELECT task FROM videos WHERE id = ANY ($1)' };
const SUBMITTING: Statement = {
  name: 'video_submitting',
  text: `SELECT task FROM videos WHERE state = 'submitting' ORDER BY id COLLATE "C"`,
};
const INSERT_VIDEO: Statement = {
  name: 'video_insert',
  text: 'INSERT INTO videos (id, number, account_id, key_id, state, due_at_ms, task) VALUES ($1, $2, $3, $4, $5, $6, $7)',
};
const UPDATE_VIDEOS: Statement = {
  name: 'video_update_all',
  text: `UPDATE videos v SET state = n.state, due_at_ms = n.due_at_ms, task = n.task
    FROM jsonb_to_recordset($1) AS n (id text, state text, due_at_ms bigint, task text) WHERE v.id = n.id`,
};
const EARLIER: Statement = {
  name: 'video_earlier',
  text: `SELECT i.task_id, i.body_hash, v.task FROM idempotency i LEFT JOIN videos v ON v.id = i.task_id
    WHERE i.account_id = $1 AND i.key_id = $2 AND i.idempotency_key = $3`,
};
export const INSERT_IDEMPOTENCY: Statement = {
  name: 'idempotency_insert',
  text: 'INSERT INTO idempotency (account_id, key_id, idempotency_key, task_id, body_hash) VALUES ($1, $2, $3, $4, $5)',
};
const SECRETS: Statement = { name: 'secrets', text: 'SELECT * FROM envelope_secrets ORDER BY id' };
export const INSERT_SECRET: Statement = {
  name: 'secret_insert',
  text: 'INSERT INTO envelope_secrets (id, bytes) VALUES ($1, $2)',
};
const CONTROL: Statement = { name: 'control_find', text: 'SELECT value FROM controls WHERE kind = $1 AND id = $2' };
export const PUT_CONTROL: Statement = { name: 'control_put', text: 'INSERT INTO controls (kind, id, value) VALUES ($1, $2, $3)' };
const REMOVE_CONTROL: Statement = { name: 'control_remove', text: 'DELETE FROM controls WHERE kind = $1 AND id = $2' };
const FORGET_CLAIMS: Statement = { name: 'claims_forget', text: 'DELETE FROM operator_claims WHERE at_ms < $1' };
const CLAIMED: Statement = { name: 'claim_find', text: 'SELECT hash FROM operator_claims WHERE name = $1' };
const CLAIM: Statement = { name: 'claim_put', text: 'INSERT INTO operator_claims (name, hash, at_ms) VALUES ($1, $2, $3)' };

type Runner = Pick<Session, 'run'>;

const OPEN_OF: Statement = {
  name: 'open_of',
  text: 'SELECT exchange FROM open_exchanges WHERE owner_id = $1 ORDER BY exchange_id LIMIT $2',
};
const PROCESS: Statement = { name: 'owner_find', text: `SELECT ${REGISTRATION} FROM owners WHERE id = $1` };
const REMOVE_PROCESS: Statement = { name: 'owner_leave', text: 'DELETE FROM owners WHERE id = $1' };

const LOG_LIMITS: Statement = {
  name: 'log_limits',
  text: `SELECT h.log_seq, h.log_at_ms, r.seq, r.logged_at_ms, (SELECT min(at) FROM usage_hours) AS first_hour
    FROM ledger_head h LEFT JOIN LATERAL (SELECT seq, logged_at_ms FROM request_log ORDER BY seq LIMIT 1) r ON true`,
};
const LOGGED: Statement = {
  name: 'logged_between',
  text: 'SELECT * FROM request_log WHERE logged_at_ms >= $1 AND logged_at_ms < $2 AND seq > $3 ORDER BY seq LIMIT $4',
};
const SUCCEEDED: Statement = {
  name: 'videos_succeeded',
  text: `SELECT number, task FROM videos WHERE state = 'succeeded' AND number > $1 ORDER BY number LIMIT $2`,
};
const SUMMED_UP: Statement = { name: 'all_summed_up', text: 'UPDATE ledger_head SET rollups_after = -1' };
const PAGE = 1_000;

export class PostgresBooks extends Work implements Books {
  async account(id: string): Promise<AccountRecord | undefined> {
    if (!isStorable(id)) return undefined;
    const [row] = await this.run(ACCOUNT, [id]);
    return row === undefined ? undefined : accountOf(row);
  }

  async isNameTaken(name: string): Promise<boolean> {
    return (await this.run(ACCOUNT_NAMED, [name])).length > 0;
  }

  async addAccount(account: AccountRecord): Promise<void> {
    await this.run(ACCOUNTS.insertion, [ACCOUNTS.one(account)]);
    this.changedAccount(account);
  }

  async replaceAccount(account: AccountRecord): Promise<void> {
    await this.run(ACCOUNTS.replacement, [ACCOUNTS.one(account)]);
    this.changedAccount(account);
  }

  async key(id: string): Promise<KeyRecord | undefined> {
    if (!isStorable(id)) return undefined;
    const [row] = await this.run(KEY, [id]);
    return row === undefined ? undefined : keyOf(row);
  }

  async isDigestTaken(digest: string): Promise<boolean> {
    return (await this.run(KEY_TAKEN, [digest])).length > 0;
  }

  async addKey(key: KeyRecord): Promise<void> {
    await this.run(KEYS.insertion, [KEYS.one(key)]);
    this.changedKey(key);
  }

  async replaceKey(key: KeyRecord): Promise<void> {
    await this.run(KEYS.replacement, [KEYS.one(key)]);
    this.changedKey(key);
  }

  async hold(id: string): Promise<HoldRow | undefined> {
    const [row] = await this.run(HOLD, [id]);
    return row === undefined ? undefined : holdOf(row);
  }

  async addHold(hold: HoldRow): Promise<void> {
    await this.run(HOLDS.insertion, [HOLDS.one(hold)]);
  }

  async closeHold({ id }: HoldRow, state: HoldState, atMs: number): Promise<void> {
    await this.run(CLOSE_HOLD, [id, state, atMs]);
  }

  async openExchanges(processId: string, limit: number): Promise<OpenExchange[]> {
    return (await this.run(OPEN_OF, [processId, limit])).map((row) => exchangeOf(text(row, 'exchange')));
  }

  process(id: string): Promise<Registration | undefined> {
    return findProcess(this, id);
  }

  async removeProcess(id: string): Promise<void> {
    await this.run(REMOVE_PROCESS, [id]);
  }

  async logLimits(): Promise<LogLimits> {
    const [row = {}] = await this.run(LOG_LIMITS);
    const [seq, firstHour] = [maybeInt(row, 'seq'), maybeInt(row, 'first_hour')];
    const oldest = seq === undefined ? undefined : { seq, loggedAtMs: int(row, 'logged_at_ms') };
    return { oldest, head: { seq: int(row, 'log_seq'), atMs: int(row, 'log_at_ms') }, firstHour };
  }

  async logged(fromMs: number, toMs: number, after: number, limit: number): Promise<RequestLogRow[]> {
    return (await this.run(LOGGED, [fromMs, toMs, after, limit])).map(logRowOf);
  }

  async settledVideos(): Promise<SettledVideo[]> {
    const videos: SettledVideo[] = [];
    for (let after = -1; ; ) {
      const rows = await this.run(SUCCEEDED, [after, PAGE]);
      videos.push(...rows.flatMap((row) => settledVideoOf(taskOf(row)) ?? []));
      const last = rows.at(-1);
      if (last === undefined || rows.length < PAGE) return videos;
      after = int(last, 'number');
    }
  }

  async hoursOfKeys(from: number, to: number): Promise<Rollup[]> {
    return (await this.run(HOURS_OF_KEYS, [from, to])).map(rollupOf);
  }

  async removeRollups(hours: { readonly from: number; readonly to: number }, day: number): Promise<void> {
    await this.run(REMOVE_HOURS, [hours.from, hours.to]);
    await this.run(REMOVE_DAY, [day]);
  }

  async addRollups(hours: readonly Rollup[], days: readonly Rollup[]): Promise<void> {
    await this.run(ADD_HOURS, [jsonOf(hours)]);
    await this.run(ADD_DAYS, [jsonOf(days)]);
  }

  async allSummedUp(): Promise<void> {
    await this.run(SUMMED_UP);
  }

  async holdsLease(name: string, token: number): Promise<boolean> {
    return (await this.run(HOLDS_LEASE, [name, token])).length > 0;
  }

  videos(ids: readonly string[]): Promise<VideoTask[]> {
    return videosOf(this, ids);
  }

  earlierVideo(request: Pick<NewVideo, 'principal' | 'idempotencyKey'>): Promise<Earlier | undefined> {
    return earlierOf(this, request);
  }

  async addVideo(task: VideoTask, { idempotencyKey, bodyHash }: Pick<NewVideo, 'idempotencyKey' | 'bodyHash'>): Promise<void> {
    await insertVideo(this, task);
    await this.run(INSERT_IDEMPOTENCY, [task.accountId, task.keyId, idempotencyKey, task.id, bodyHash]);
  }

  async replaceVideos(changes: readonly VideoReplacement[]): Promise<void> {
    if (changes.length === 0) return;
    const rows = changes.map(({ next }) => ({ id: next.id, state: next.state, due_at_ms: dueAt(next), task: taskText(next) }));
    await this.run(UPDATE_VIDEOS, [JSON.stringify(rows)]);
  }

  async submittingVideos(): Promise<VideoTask[]> {
    return (await this.run(SUBMITTING)).map(taskOf);
  }

  secrets(): Promise<EnvelopeSecret[]> {
    return secretsOf(this);
  }

  async addSecret({ id, bytes: secret }: EnvelopeSecret): Promise<void> {
    await this.run(INSERT_SECRET, [id, secret]);
  }

  async hasControl(kind: ControlKind, id: string): Promise<boolean> {
    return (await this.run(CONTROL, [kind, storable(id)])).length > 0;
  }

  async addControl(kind: ControlKind, id: string, value: string): Promise<void> {
    await this.run(PUT_CONTROL, [kind, storable(id), value]);
  }

  async removeControl(kind: ControlKind, id: string): Promise<void> {
    await this.run(REMOVE_CONTROL, [kind, storable(id)]);
  }

  async forgetClaims(beforeMs: number): Promise<void> {
    await this.run(FORGET_CLAIMS, [beforeMs]);
  }

  async claim(name: string): Promise<{ readonly hash: string } | undefined> {
    const [row] = await this.run(CLAIMED, [name]);
    return row === undefined ? undefined : { hash: text(row, 'hash') };
  }

  async addClaim(name: string, hash: string, atMs: number): Promise<void> {
    await this.run(CLAIM, [name, hash, atMs]);
  }
}

export async function findProcess(runner: Runner, id: string): Promise<Registration | undefined> {
  const [row] = await runner.run(PROCESS, [id]);
  return row && registrationOf(row);
}

export async function secretsOf(runner: Runner): Promise<EnvelopeSecret[]> {
  return (await runner.run(SECRETS)).map((row) => ({ id: int(row, 'id'), bytes: bytes(row, 'bytes') }));
}

export async function insertVideo(runner: Runner, task: VideoTask): Promise<void> {
  const { id, number, accountId, keyId, state } = task;
  await runner.run(INSERT_VIDEO, [id, number, accountId, keyId, state, dueAt(task), taskText(task)]);
}

export async function videosOf(runner: Runner, ids: readonly string[]): Promise<VideoTask[]> {
  const known = ids.filter(isTaskId);
  return known.length === 0 ? [] : (await runner.run(VIDEOS, [known])).map(taskOf);
}

export async function earlierOf(
  runner: Runner,
  { principal, idempotencyKey }: Pick<NewVideo, 'principal' | 'idempotencyKey'>,
): Promise<Earlier | undefined> {
  const [row] = isIdempotencyKey(idempotencyKey)
    ? await runner.run(EARLIER, [principal.account.id, principal.key.id, idempotencyKey])
    : [];
  if (row === undefined) return undefined;
  const task = row['task'] === null ? undefined : taskOf(row);
  return { taskId: text(row, 'task_id'), bodyHash: text(row, 'body_hash'), task };
}
