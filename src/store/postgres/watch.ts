/**
 * Keeps the cache honest: one connection that listens for notifications and, notified or not, looks every half second at the
 * journal for what any process has changed. A look that succeeded says that the cache holds as of the moment it was sent; the
 * same look tells whether the database is there, takes writes and has our schema.
 */
import type { Client } from 'pg';
import { newerSchemaMessage } from '../archive.ts';
import { StoreError } from '../store-error.ts';
import type { Changes } from './cache.ts';
import { newClient } from './connection.ts';
import type { Database } from './database.ts';
import { messageOf, storeErrorOf } from './failure.ts';
import { DEFAULTS, type PostgresOptions, type PostgresSeams } from './options.ts';
import { ACCOUNTS, KEYS, SPEND } from './record-tables.ts';
import { accountOf, int, keyOf, maybeText, object, type Row, spendOf, text } from './rows.ts';
import { SCHEMA } from './schema.ts';
import { DatabaseFailure, Session, type Statement } from './session.ts';

/** $1: the journal row that was seen last. */
const STATE: Statement = {
  name: 'watch_state',
  text: `SELECT (SELECT seq FROM ledger_head) AS seq, (SELECT hash FROM ledger_head) AS hash,
    (SELECT hash FROM journal WHERE seq = $1) AS seen_hash, (SELECT max(version) FROM schema_migrations)::bigint AS schema,
    current_setting('transaction_read_only') = 'on' OR pg_is_in_recovery() AS read_only`,
};

/** $1: the journal row that was seen last. Everything that changed since, in one snapshot, with its head. */
const CHANGES: Statement = {
  name: 'watch_changes',
  text: `WITH moved AS MATERIALIZED (SELECT from_account, to_account, account_id, key_id, kind FROM journal WHERE seq > $1)
    SELECT 'head' AS what, hash AS id, seq::text AS value FROM ledger_head
    UNION ALL SELECT 'balance', account, nanos::text FROM balances
      WHERE account IN (SELECT from_account FROM moved UNION SELECT to_account FROM moved)
    UNION ALL SELECT 'spend', s.key_id, ${SPEND.json('s')} FROM spend s WHERE s.key_id IN (SELECT key_id FROM moved)
    UNION ALL SELECT 'account', a.id, ${ACCOUNTS.json('a')} FROM accounts a
      WHERE a.id IN (SELECT account_id FROM moved WHERE kind IN ('account_created', 'account_changed'))
    UNION ALL SELECT 'key', k.id, ${KEYS.json('k')} FROM keys k
      WHERE k.id IN (SELECT key_id FROM moved WHERE kind IN ('key_created', 'key_changed'))
    UNION ALL SELECT 'secret', id::text, encode(bytes, 'hex') FROM envelope_secrets
      WHERE EXISTS (SELECT 1 FROM moved WHERE kind = 'secret_rotated')`,
};

const PROBE: Statement = { name: 'probe', text: 'INSERT INTO commits (id) VALUES ($1) ON CONFLICT DO NOTHING' };

/** With more than this to follow, forgetting all is cheaper. */
const MOST_TO_FOLLOW = 20_000;

/** Connections that may be lost one after the other before the database counts as away. */
const TRIES = 4;

export class Watch {
  readonly #database: Database;
  readonly #options: PostgresOptions;
  readonly #seams: PostgresSeams;
  readonly #onSecret: (id: number, hex: string) => void;
  readonly #pollMs: number;
  readonly #staleMs: number;
  #client: Client | undefined;
  #asOfMs: number | undefined;
  /** Of the journal row that was seen last: as many rows with another one are another history. */
  #seenHash: string | undefined;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #cancel: () => void = () => undefined;
  #closed = false;

  constructor(database: Database, seams: PostgresSeams, onSecret: (id: number, hex: string) => void) {
    const { options } = database;
    this.#database = database;
    this.#options = options;
    this.#seams = seams;
    this.#onSecret = onSecret;
    this.#pollMs = options.pollMs ?? DEFAULTS.pollMs;
    this.#staleMs = options.staleMs ?? DEFAULTS.staleMs;
  }

  /** Throws `StoreError` when the first look fails. */
  async start(): Promise<void> {
    try {
      await this.#connect();
      await this.#poll();
    } catch (error) {
      this.#closed = true;
      await this.#drop();
      throw storeErrorOf(error, 'the database cannot be watched');
    }
    this.#schedule();
  }

  /** True while what the cache holds was confirmed within the bound. */
  isFresh(): boolean {
    if (this.#asOfMs === undefined) return false;
    const age = this.#ownNow() - this.#asOfMs;
    return age >= 0 && age < this.#staleMs;
  }

  /** The machine's own, which goes on while it is asleep; where it jumps, the next look tells anew. */
  #ownNow(): number {
    const { clock } = this.#options;
    return clock.ownNow?.() ?? clock.now();
  }

  /** Looks now. Resolves when a look that began after this call is over; never rejects. */
  async look(): Promise<void> {
    // A notification may still arrive while the connection ends: it would open another one, which nobody ends.
    if (this.#closed) return;
    if (this.#looking !== undefined) {
      this.#lookAgain = true;
      await this.#looking;
      return;
    }
    this.#looking = this.#lookUntilQuiet();
    await this.#looking;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#cancel();
    await this.#looking;
    await this.#drop();
  }

  async #lookUntilQuiet(): Promise<void> {
    try {
      do {
        this.#lookAgain = false;
        await this.#lookOnce();
      } while (this.#lookAgain && !this.#closed);
    } finally {
      this.#looking = undefined;
    }
  }

  async #lookOnce(): Promise<void> {
    try {
      await this.#pollOrReconnect();
      this.#database.setLine(undefined);
      if (this.#database.needsProbe) {
        await this.#database.change(PROBE, [`probe-${this.#options.clock.now()}`]);
        this.#database.recovered();
      }
    } catch (error) {
      await this.#drop();
      if (!this.#closed) this.#database.setLine(messageOf(error));
    }
  }

  /** That one connection has ended says nothing about the database: another is tried before anything is said. */
  async #pollOrReconnect(): Promise<void> {
    for (let tries = 1; ; tries += 1) {
      try {
        if (this.#client === undefined) await this.#connect();
        await this.#poll();
        return;
      } catch (error) {
        await this.#drop();
        const failure = error instanceof StoreError || error instanceof DatabaseFailure ? error : new DatabaseFailure(error);
        if (!(failure instanceof DatabaseFailure) || failure.kind !== 'lost' || tries >= TRIES) throw error;
      }
    }
  }

  async #poll(): Promise<void> {
    const client = this.#client;
    if (client === undefined) throw new StoreError('unavailable', 'there is no connection');
    const session = new Session(client, this.#seams);
    const sentAt = this.#ownNow();
    const { cache } = this.#database;
    const { seen } = cache;
    const [state] = await session.run(STATE, [seen]);
    if (state === undefined) throw new StoreError('corrupt', 'the ledger has no head');
    if (state['read_only'] === true) throw new StoreError('read_only', 'the database takes no writes: it is a replica');
    const schema = int(state, 'schema');
    if (schema > SCHEMA) throw newerSchema(schema);
    const head = int(state, 'seq');
    if (seen > 0 && maybeText(state, 'seen_hash') !== this.#seenHash)
      throw new StoreError(
        'corrupt',
        `the journal has lost rows: it ends at ${head}, and row ${seen} is not the one that was seen`,
      );
    if (this.#asOfMs === undefined || head - seen > MOST_TO_FOLLOW) {
      cache.restart(head);
      this.#seenHash = text(state, 'hash');
    } else if (head > seen) this.#follow(await session.run(CHANGES, [seen]));
    this.#asOfMs = sentAt;
  }

  #follow(rows: readonly Row[]): void {
    const head = rows.find(({ what }) => what === 'head');
    this.#database.cache.follow(changesOf(rows));
    this.#seenHash = head === undefined ? undefined : text(head, 'id');
    for (const row of rows) if (row['what'] === 'secret') this.#onSecret(int(row, 'id'), text(row, 'value'));
  }

  async #connect(): Promise<void> {
    const client = newClient({ ...this.#options, statementTimeoutMs: Math.max(this.#staleMs, 1_000) });
    client.on('error', () => {
      // The next look finds out, and connects anew.
      if (this.#client === client) this.#client = undefined;
    });
    client.on('notification', () => void this.look());
    await client.connect();
    this.#client = client;
    // Engines without notifications are watched by looking alone.
    await client.query('LISTEN mizu').catch((error: unknown) => this.#options.onProblem?.({ what: 'no_notifications', error }));
  }

  async #drop(): Promise<void> {
    const client = this.#client;
    this.#client = undefined;
    if (client === undefined) return;
    await client.end().catch((error: unknown) => this.#options.onProblem?.({ what: 'watch_connection_lost', error }));
  }

  #schedule(ms = this.#pollMs): void {
    if (this.#closed) return;
    this.#cancel = this.#options.clock.after(ms, () => {
      const sent = this.#options.clock.now();
      void this.look().then(() => {
        // At a fixed pace: a slow look shortens the wait for the next one.
        const took = Math.min(Math.max(this.#options.clock.now() - sent, 0), this.#pollMs);
        this.#schedule(this.#pollMs - took);
      });
    });
  }
}

export function newerSchema(found: number): StoreError {
  return new StoreError('schema_newer', newerSchemaMessage(found, SCHEMA));
}

/** Rows of `what, id, value` as changes. */
function changesOf(rows: readonly Row[]): Changes {
  const of = (what: string) => rows.filter((row) => row['what'] === what);
  const [head] = of('head');
  return {
    seq: head === undefined ? 0 : int(head, 'value'),
    accounts: of('account').map((row) => accountOf(object(text(row, 'value')))),
    keys: of('key').map((row) => keyOf(object(text(row, 'value')))),
    balances: new Map(of('balance').map((row) => [text(row, 'id'), BigInt(text(row, 'value'))])),
    spend: new Map(of('spend').map((row) => [text(row, 'id'), spendOf(object(text(row, 'value')))])),
  };
}
