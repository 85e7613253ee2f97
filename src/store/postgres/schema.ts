/**
 * The schema, as migrations that only go forward. A migration that was released is never changed: add another. Amounts are bigint
 * nano-dollars, times bigint milliseconds, free words are JSON text. The names of columns are the interface to other programs.
 */
export interface Migration {
  readonly version: number;
  readonly name: string;
  readonly sql: string;
}

const FIRST = `
CREATE TABLE ledger_head (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  seq bigint NOT NULL DEFAULT 0,
  hash text NOT NULL DEFAULT repeat('0', 64),
  log_seq bigint NOT NULL DEFAULT 0,
  log_at_ms bigint NOT NULL DEFAULT 0,
  video_number bigint NOT NULL DEFAULT 0
);
INSERT INTO ledger_head DEFAULT VALUES;

-- One row for each transaction of the last minutes: tells, after a cut connection, whether its commit happened.
CREATE TABLE commits (id text PRIMARY KEY, at timestamptz NOT NULL DEFAULT now());

CREATE TABLE accounts (
  id text PRIMARY KEY,
  name text NOT NULL UNIQUE,
  class text NOT NULL,
  unlimited boolean NOT NULL,
  disabled boolean NOT NULL,
  created_at_ms bigint NOT NULL
);

CREATE TABLE keys (
  id text PRIMARY KEY,
  account_id text NOT NULL REFERENCES accounts (id),
  name text NOT NULL,
  digest text NOT NULL UNIQUE,
  prefix text NOT NULL,
  last4 text NOT NULL,
  created_at_ms bigint NOT NULL,
  expires_at_ms bigint,
  disabled boolean NOT NULL,
  models text[],
  ips text[],
  limit_total bigint CHECK (limit_total > 0),
  limit_hourly bigint CHECK (limit_hourly > 0),
  limit_daily bigint CHECK (limit_daily > 0),
  sub_account boolean NOT NULL
);
CREATE INDEX keys_account ON keys (account_id);

CREATE TABLE journal (
  seq bigint PRIMARY KEY,
  at_ms bigint NOT NULL,
  kind text NOT NULL,
  ref text NOT NULL,
  from_account text NOT NULL,
  to_account text NOT NULL,
  nanos bigint NOT NULL CHECK (nanos >= 0),
  account_id text,
  key_id text,
  by_whom text,
  note text,
  hash text NOT NULL,
  UNIQUE (ref, kind)
);
CREATE INDEX journal_account ON journal (account_id, seq);

-- seq: the newest journal row that changed the balance, for programs that read this table. The gateway only writes it.
CREATE TABLE balances (account text PRIMARY KEY, nanos bigint NOT NULL, seq bigint NOT NULL) WITH (fillfactor = 70);

CREATE TABLE holds (
  id text PRIMARY KEY,
  account_id text NOT NULL,
  key_id text NOT NULL,
  state text NOT NULL CHECK (state IN ('held', 'settled', 'refunded')),
  nanos bigint NOT NULL CHECK (nanos >= 0),
  opened_at_ms bigint NOT NULL,
  closed_at_ms bigint,
  from_account text NOT NULL
);
CREATE INDEX holds_open ON holds (key_id) WHERE state = 'held';

CREATE TABLE spend (
  key_id text PRIMARY KEY,
  total bigint NOT NULL,
  hour bigint NOT NULL,
  hourly bigint NOT NULL,
  day bigint NOT NULL,
  daily bigint NOT NULL,
  held bigint NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE days (
  key_id text NOT NULL,
  day bigint NOT NULL,
  requests bigint NOT NULL,
  input_tokens bigint NOT NULL,
  cached_input_tokens bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL,
  images bigint NOT NULL,
  videos bigint NOT NULL,
  charged_nanos bigint NOT NULL,
  PRIMARY KEY (key_id, day)
) WITH (fillfactor = 70);

CREATE TABLE owners (
  id text PRIMARY KEY,
  host text NOT NULL,
  pid bigint NOT NULL,
  heartbeat timestamptz NOT NULL
);

CREATE TABLE open_exchanges (exchange_id text PRIMARY KEY, owner_id text NOT NULL, exchange text NOT NULL);
CREATE INDEX open_exchanges_owner ON open_exchanges (owner_id, exchange_id);

CREATE TABLE request_log (
  seq bigint PRIMARY KEY,
  logged_at_ms bigint NOT NULL,
  exchange_id text NOT NULL UNIQUE,
  request_id text NOT NULL,
  client_request_id text,
  account_id text NOT NULL,
  key_id text NOT NULL,
  model text NOT NULL,
  status text NOT NULL,
  charged_nanos bigint NOT NULL,
  entry text NOT NULL
);
CREATE INDEX request_log_request ON request_log (request_id);
CREATE INDEX request_log_client ON request_log (client_request_id) WHERE client_request_id IS NOT NULL;
CREATE INDEX request_log_key ON request_log (key_id, seq);
CREATE INDEX request_log_time ON request_log (logged_at_ms);

CREATE TABLE videos (
  id text PRIMARY KEY,
  number bigint NOT NULL UNIQUE,
  account_id text NOT NULL,
  key_id text NOT NULL,
  state text NOT NULL,
  due_at_ms bigint,
  task text NOT NULL
);
CREATE INDEX videos_owner ON videos (account_id, key_id, number);
CREATE INDEX videos_due ON videos (state, due_at_ms, id) WHERE state IN ('queued', 'submitting', 'running', 'unknown');

CREATE TABLE idempotency (
  account_id text NOT NULL,
  key_id text NOT NULL,
  idempotency_key text NOT NULL,
  task_id text NOT NULL,
  body_hash text NOT NULL,
  PRIMARY KEY (account_id, key_id, idempotency_key)
);

CREATE TABLE leases (name text PRIMARY KEY, holder text NOT NULL, token bigint NOT NULL, expires_at_ms bigint NOT NULL);

CREATE TABLE envelope_secrets (id bigint PRIMARY KEY CHECK (id BETWEEN 1 AND 255), bytes bytea NOT NULL);
`;

/** Which registration of a process took a lease; '' for one that was copied from elsewhere. */
const LEASE_OWNER = `ALTER TABLE leases ADD COLUMN owner_id text NOT NULL DEFAULT ''`;

/**
 * Limits by time, what the journal holds about keys and accounts, and what gateways on several machines tell each other of their
 * counts.
 */
const RATE_LIMITS = `
ALTER TABLE accounts ADD COLUMN requests_per_minute bigint CHECK (requests_per_minute > 0),
  ADD COLUMN tokens_per_minute bigint CHECK (tokens_per_minute > 0),
  ADD COLUMN max_concurrency bigint CHECK (max_concurrency > 0);
ALTER TABLE keys ADD COLUMN requests_per_minute bigint CHECK (requests_per_minute > 0),
  ADD COLUMN tokens_per_minute bigint CHECK (tokens_per_minute > 0),
  ADD COLUMN max_concurrency bigint CHECK (max_concurrency > 0);
ALTER TABLE journal ADD COLUMN state text;

-- Of the last minute only, and nothing is lost where a crash of the server empties it.
CREATE UNLOGGED TABLE limit_counts (
  member text NOT NULL,
  bucket text NOT NULL,
  since bigint NOT NULL,
  requests bigint NOT NULL,
  tokens bigint NOT NULL,
  in_flight bigint NOT NULL,
  requests_per_minute bigint,
  tokens_per_minute bigint,
  at timestamptz NOT NULL,
  PRIMARY KEY (member, bucket)
) WITH (fillfactor = 70);
`;

/**
 * Sums by hour and by day; key '' stands for all keys together. `rollups_after`: the hour up to which rows were logged without
 * them.
 */
const ROLLUPS = `
CREATE TABLE usage_hours (
  key_id text NOT NULL,
  at bigint NOT NULL,
  model text NOT NULL,
  channel_id text NOT NULL,
  code text NOT NULL,
  account_id text NOT NULL,
  requests bigint NOT NULL,
  input_tokens bigint NOT NULL,
  cached_input_tokens bigint NOT NULL,
  cache_write_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  reasoning_tokens bigint NOT NULL,
  images bigint NOT NULL,
  videos bigint NOT NULL,
  duration_ms bigint NOT NULL,
  charged_nanos bigint NOT NULL,
  first_token bigint[] NOT NULL,
  PRIMARY KEY (key_id, at, model, channel_id, code)
) WITH (fillfactor = 70);
CREATE TABLE usage_days (LIKE usage_hours INCLUDING ALL) WITH (fillfactor = 70);
ALTER TABLE ledger_head ADD COLUMN rollups_after bigint NOT NULL DEFAULT -1;
CREATE INDEX request_log_account ON request_log (account_id, seq);
CREATE INDEX request_log_model ON request_log (model, seq);
CREATE INDEX request_log_status ON request_log (status, seq) WHERE status <> 'success';
UPDATE ledger_head SET rollups_after = greatest(log_at_ms, (extract(epoch FROM now()) * 1000)::bigint) / 3600000 WHERE log_seq > 0;
`;

/** What operators decide while gateways run, and which of their requests were made already. */
const CONTROLS = `
CREATE TABLE controls (kind text NOT NULL, id text NOT NULL, value text NOT NULL, PRIMARY KEY (kind, id));
CREATE TABLE operator_claims (name text PRIMARY KEY, hash text NOT NULL, at_ms bigint NOT NULL);
CREATE INDEX operator_claims_time ON operator_claims (at_ms);
`;

/** A key that was deleted stays for the rows that name it. */
const DELETED_KEYS = 'ALTER TABLE keys ADD COLUMN deleted_at_ms bigint';

/**
 * Every filter of the log has an index. Where a row has no Channel or code the column is ''; NULL is what an older version wrote,
 * also beside this one, and is filled in later, slice by slice.
 */
const LOG_FILTERS = `
ALTER TABLE request_log ADD COLUMN channel_id text, ADD COLUMN error_code text;
CREATE INDEX request_log_channel ON request_log (channel_id, seq);
CREATE INDEX request_log_code ON request_log (error_code, seq);
DROP INDEX request_log_status;
CREATE INDEX request_log_status ON request_log (status, seq);
CREATE INDEX request_log_older ON request_log (seq) WHERE channel_id IS NULL;
`;

/** Pages of accounts and keys are read in the order of their creation. */
const CREATION_ORDER = `
CREATE INDEX accounts_created ON accounts (created_at_ms, id COLLATE "C");
CREATE INDEX keys_created ON keys (created_at_ms, id COLLATE "C");
CREATE INDEX keys_account_created ON keys (account_id, created_at_ms, id COLLATE "C");
DROP INDEX keys_account;
`;

export const MIGRATIONS: readonly Migration[] = [
  { version: 1, name: 'first', sql: FIRST },
  { version: 2, name: 'lease owner', sql: LEASE_OWNER },
  { version: 3, name: 'rate limits', sql: RATE_LIMITS },
  { version: 4, name: 'sums by hour', sql: ROLLUPS },
  { version: 5, name: 'controls of operators', sql: CONTROLS },
  { version: 6, name: 'deleted keys', sql: DELETED_KEYS },
  { version: 7, name: 'filters of the log', sql: LOG_FILTERS },
  { version: 8, name: 'order of creation', sql: CREATION_ORDER },
];

/** The schema that this code knows. */
export const SCHEMA = MIGRATIONS.reduce((newest, { version }) => Math.max(newest, version), 0);
