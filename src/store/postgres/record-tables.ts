/**
 * The tables whose rows are records, and what is written to each of their columns: statements take their lists from here, and
 * rows go to the database as one JSON array, however many they are. How a row is read is `rows.ts`.
 */
import type { AccountRecord } from '../accounts.ts';
import type { DayCounts } from '../day-usage.ts';
import type { KeyRecord } from '../keys.ts';
import type { HoldRow, JournalRow } from '../ledger.ts';
import { filterWords } from '../log-filters.ts';
import type { RequestLogEntry } from '../request-log.ts';
import type { SpendRow } from '../spend-windows.ts';
import { storable } from '../storable.ts';
import type { Statement } from './session.ts';

type Column = string | number | boolean | readonly string[] | undefined;
/** A row for a JSON array: amounts are text in it, so that no JSON number stands between us and the column. */
type RowOut = Readonly<Record<string, Column>>;

/** A table as statements name it. */
export class Table<Row> {
  readonly #name: string;
  /** `name type, …`: the definition of a record set. */
  readonly #types: string;
  readonly #columns: (row: Row) => RowOut;
  readonly names: readonly string[];
  /** Adds one row; $1: {@link one}. */
  readonly insertion: Statement;
  /** Writes the row of that id anew; $1: {@link one}. */
  readonly replacement: Statement;

  constructor(name: string, types: string, columns: (row: Row) => RowOut) {
    this.#name = name;
    this.#types = types;
    this.#columns = columns;
    this.names = types.split(', ').map((column) => column.slice(0, column.indexOf(' ')));
    this.insertion = { name: `${name}_insert`, text: this.insert('$1') };
    const set = `UPDATE ${name} r SET ${this.set('x', ['id'])} FROM ${this.recordset('$1')} WHERE r.id = x.id`;
    this.replacement = { name: `${name}_replace`, text: set };
  }

  /** The JSON array of these rows. */
  many(rows: readonly Row[]): string {
    return JSON.stringify(rows.map(this.#columns));
  }

  /** Of one whose words nobody has looked at: what the database's text cannot hold is replaced. */
  one(row: Row): string {
    return JSON.stringify([this.#columns(row)], (_, value: unknown) => (typeof value === 'string' ? storable(value) : value));
  }

  /** Inserts the rows of the JSON array that `parameter` names. `as`: what `conflict` calls the row that is there. */
  insert(parameter: string, conflict = '', as = ''): string {
    const values = this.names.map((name) => `x.${name}`).join(', ');
    return `INSERT INTO ${this.#name}${as} (${this.names.join(', ')}) SELECT ${values} FROM ${this.recordset(parameter)}${conflict}`;
  }

  recordset(parameter: string): string {
    return `json_to_recordset(${parameter}::json) AS x(${this.#types})`;
  }

  /** `name = of.name, …` of all columns but these. */
  set(of: string, but: readonly string[]): string {
    return this.names.flatMap((name) => (but.includes(name) ? [] : [`${name} = ${of}.${name}`])).join(', ');
  }

  /** A row as JSON text, with every bigint as text: one statement can return rows of several tables, exactly. */
  json(alias: string): string {
    const members = this.#types.split(', ').map((column) => {
      const [name = '', type] = column.split(' ');
      return `'${name}', ${alias}.${name}${type === 'bigint' ? '::text' : ''}`;
    });
    return `json_build_object(${members.join(', ')})::text`;
  }
}

const RATES = 'requests_per_minute bigint, tokens_per_minute bigint, max_concurrency bigint';
const rateColumns = ({ rateLimits }: Pick<AccountRecord, 'rateLimits'>): RowOut => ({
  requests_per_minute: rateLimits?.requestsPerMinute,
  tokens_per_minute: rateLimits?.tokensPerMinute,
  max_concurrency: rateLimits?.maxConcurrency,
});

export const ACCOUNTS = new Table<AccountRecord>(
  'accounts',
  `id text, name text, class text, unlimited boolean, disabled boolean, created_at_ms bigint, ${RATES}`,
  (account) => {
    const { id, name, class: of, unlimited, disabled, createdAtMs } = account;
    return { id, name, class: of, unlimited, disabled, created_at_ms: createdAtMs, ...rateColumns(account) };
  },
);

export const KEYS = new Table<KeyRecord>(
  'keys',
  `id text, account_id text, name text, digest text, prefix text, last4 text, created_at_ms bigint, expires_at_ms bigint, \
disabled boolean, deleted_at_ms bigint, models text[], ips text[], limit_total bigint, limit_hourly bigint, limit_daily bigint, \
sub_account boolean, ${RATES}`,
  (key) => {
    const { id, name, digest, prefix, last4, disabled, models, ips, limits } = key;
    return {
      ...{ id, account_id: key.accountId, name, digest, prefix, last4, disabled, models, ips, sub_account: key.subAccount },
      ...{ created_at_ms: key.createdAtMs, expires_at_ms: key.expiresAtMs, deleted_at_ms: key.deletedAtMs },
      limit_total: limits.total?.toString(),
      limit_hourly: limits.hourly?.toString(),
      limit_daily: limits.daily?.toString(),
      ...rateColumns(key),
    };
  },
);

export const HOLDS = new Table<HoldRow>(
  'holds',
  `id text, account_id text, key_id text, state text, nanos bigint, opened_at_ms bigint, closed_at_ms bigint, from_account text`,
  ({ id, accountId, keyId, state, nanos, openedAtMs, closedAtMs, from }) => {
    const times = { opened_at_ms: openedAtMs, closed_at_ms: closedAtMs };
    return { id, account_id: accountId, key_id: keyId, state, nanos: nanos.toString(), ...times, from_account: from };
  },
);

export const JOURNAL = new Table<JournalRow>(
  'journal',
  `seq bigint, at_ms bigint, kind text, ref text, from_account text, to_account text, nanos bigint, account_id text, key_id text, \
by_whom text, note text, hash text, state text`,
  ({ seq, atMs, kind, ref, from, to, nanos, accountId, keyId, by, note, hash, state }) => {
    const where = { from_account: from, to_account: to, nanos: nanos.toString(), account_id: accountId, key_id: keyId };
    return { seq, at_ms: atMs, kind, ref, ...where, by_whom: by, note, hash, state };
  },
);

export const SPEND = new Table<SpendRow & { readonly keyId: string }>(
  'spend',
  'key_id text, total bigint, hour bigint, hourly bigint, day bigint, daily bigint, held bigint',
  ({ keyId, total, hour, hourly, day, daily, held }) => {
    return { key_id: keyId, total: String(total), hour, hourly: String(hourly), day, daily: String(daily), held: String(held) };
  },
);

export const DAYS = new Table<DayCounts & { readonly keyId: string; readonly day: number }>(
  'days',
  `key_id text, day bigint, requests bigint, input_tokens bigint, cached_input_tokens bigint, cache_write_tokens bigint, \
output_tokens bigint, reasoning_tokens bigint, images bigint, videos bigint, charged_nanos bigint`,
  ({ keyId, day, requests, images, videos, chargedNanos, ...tokens }) => ({
    ...{ key_id: keyId, day, requests, images, videos, charged_nanos: chargedNanos.toString() },
    input_tokens: tokens.inputTokens,
    cached_input_tokens: tokens.cachedInputTokens,
    cache_write_tokens: tokens.cacheWriteTokens,
    output_tokens: tokens.outputTokens,
    reasoning_tokens: tokens.reasoningTokens,
  }),
);

export interface LogRow {
  readonly seq: number;
  /** Absent: as it was. */
  readonly loggedAtMs?: number;
  readonly entry: RequestLogEntry;
  /** The entry as it is kept. */
  readonly text: string;
}

export const LOG = new Table<LogRow>(
  'request_log',
  `seq bigint, logged_at_ms bigint, exchange_id text, request_id text, client_request_id text, account_id text, key_id text, \
model text, status text, charged_nanos bigint, entry text, channel_id text, error_code text`,
  ({ seq, loggedAtMs, entry, text }) => {
    const { exchangeId, accountId, keyId, charge } = entry;
    return {
      ...{ seq, logged_at_ms: loggedAtMs, exchange_id: storable(exchangeId), account_id: accountId, key_id: keyId, entry: text },
      ...nameColumns(entry),
      charged_nanos: (charge?.total ?? 0n).toString(),
      ...filterColumns(entry),
    };
  },
);

/** Of the request log: copies of what is in the entry. */
export function nameColumns({ requestId, clientRequestId, model, status }: RequestLogEntry) {
  const clientId = clientRequestId === undefined ? undefined : storable(clientRequestId.slice(0, 256));
  return { request_id: storable(requestId), client_request_id: clientId, model: storable(model), status };
}

/** Of the request log: copies of what is in the entry. NULL where an older version wrote the row. */
export function filterColumns(entry: RequestLogEntry): { readonly channel_id: string; readonly error_code: string } {
  const [code, , channel] = filterWords(entry);
  return { channel_id: channel ?? '', error_code: code ?? '' };
}
