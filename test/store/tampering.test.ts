/**
 * Whoever can write the store behind the gateway's back is found out by `ledger verify`: each of these changes leaves the sums of
 * the journal as they are. A journal that is written anew as a whole is found by a head that somebody kept.
 */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { FIRST_HASH, type JournalHead, type JournalRow, journalHash } from '../../src/store/ledger.ts';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import { openLmdbArchive } from '../../src/store/lmdb/archive.ts';
import type { Tables } from '../../src/store/lmdb/tables.ts';
import type { Store } from '../../src/store/store.ts';
import { server } from '../support/postgres.ts';
import { editTables } from './support/edit-tables.ts';
import { cause, entry, FakeClock, funded, ok, options, T0, tempDirectory } from './support/store.ts';
import { eachStore, nameOf, openPlace } from './support/stores.ts';

const HOUR = 3_600_000;

/** A limited key with charges of two days, a free answer, and a task that is queued beside one that ended. */
async function fill(store: Store, clock: FakeClock): Promise<{ readonly keyId: string; readonly accountId: string }> {
  const rateLimits = { requestsPerMinute: 60, maxConcurrency: 2 };
  const principal = await funded(store, 10_000n, { limits: { total: 5_000n }, rateLimits, models: ['m'] });
  const { key, account } = principal;
  const settle = async (id: string, nanos: bigint): Promise<void> => {
    const usage = { input: 5, output: 7 };
    void store.settlements.settle({ entry: entry(principal, id, nanos, { usage, clientRequestId: `client ${id}` }) });
    await store.settlements.flush();
  };
  await settle('ex_yesterday', 100n);
  clock.advance(24 * HOUR);
  await settle('ex_today', 200n);
  await settle('ex_free', 0n);
  const video = { principal, model: 'v', requestJson: '{}', priceNanos: 50n, bodyHash: 'hash' };
  for (const id of ['video_queued', 'video_done'])
    ok(await store.videos.create({ ...video, id, idempotencyKey: `idem-${id}`, nowMs: clock.now() }));
  const { token } = ok(await store.leases.acquire(VIDEO_WORKER, 'w', HOUR, clock.now()));
  const change = (what: Parameters<Store['videos']['change']>[1]) => store.videos.change('video_done', what, token, clock.now());
  ok(await change({ event: 'submit', channelId: 'c', upstreamModel: 'u' }));
  ok(await change({ event: 'accept', upstreamId: 'up', dueAtMs: T0 }));
  ok(await change({ event: 'succeed', outputUrl: 'https://example.com/v' }));
  ok(await store.accounts.change(account.id, { rateLimits: { tokensPerMinute: 1_000 } }, cause()));
  ok(await store.adminTokens.create({ name: 'ops', role: 'read' }, cause()));
  const out = { kind: 'channel', id: 'c', text: '{}', journalKind: 'channel_out_of_service' } as const;
  ok(await store.controls.change(out, cause()));
  return { keyId: key.id, accountId: account.id };
}

type Ids = Awaited<ReturnType<typeof fill>>;
const told = (differences: readonly { readonly what: string; readonly subject: string }[], { keyId, accountId }: Ids): string[] =>
  differences.map(({ what, subject }) => `${what}: ${subject}`.replaceAll(keyId, 'KEY').replaceAll(accountId, 'ACCOUNT')).sort();

const DAY = Math.floor(T0 / (24 * HOUR));
const [YESTERDAY, TODAY] = ['2026-03-01', '2026-03-02'];
const OTHER = 'f'.repeat(64);

interface Tampering {
  readonly lmdb?: (tables: Tables, ids: Ids) => void;
  /** Statements; `KEY` and `ACCOUNT` are the ids. */
  readonly postgres?: string;
  readonly found: readonly string[];
}

const changeKey = (tables: Tables, { keyId }: Ids, changes: object): void => {
  const key = tables.keys.get(keyId);
  assert.ok(key !== undefined);
  tables.keys.putSync(keyId, { ...key, ...changes });
};
const changeAccount = (tables: Tables, { accountId }: Ids, changes: object): void => {
  const account = tables.accounts.get(accountId);
  assert.ok(account !== undefined);
  tables.accounts.putSync(accountId, { ...account, ...changes });
};
const changeSpend = (tables: Tables, { keyId }: Ids, changes: object): void => {
  const row = tables.spend.get(keyId);
  assert.ok(row !== undefined);
  tables.spend.putSync(keyId, { ...row, ...changes });
};
const onlyKey = <K, V>(range: Iterable<{ readonly key: K; readonly value: V }>): { readonly key: K; readonly value: V } => {
  const [first] = range;
  assert.ok(first !== undefined);
  return first;
};

const TAMPERINGS: Readonly<Record<string, Tampering>> = {
  nothing: { lmdb: () => undefined, postgres: 'SELECT 1', found: [] },
  'an admin token may write that was made to read, and its secret is another': {
    lmdb: ({ controls }) =>
      void controls.putSync(['admin_token', 'ops'], JSON.stringify({ name: 'ops', role: 'write', digest: OTHER })),
    postgres: `UPDATE controls SET value = '{"name":"ops","role":"write","digest":"${OTHER}"}' WHERE kind = 'admin_token'`,
    found: ['control: admin_token ops'],
  },
  'an admin token is slipped in, and a Channel is put back by nobody': {
    lmdb({ controls }) {
      controls.putSync(['admin_token', 'evil'], JSON.stringify({ name: 'evil', role: 'write', digest: OTHER }));
      controls.removeSync(['channel', 'c']);
    },
    postgres: `INSERT INTO controls VALUES ('admin_token', 'evil', '{"role":"write","digest":"${OTHER}"}');
      DELETE FROM controls WHERE kind = 'channel'`,
    found: ['control: admin_token evil', 'control: channel c'],
  },
  'the spend of this hour is reset': {
    lmdb: (tables, ids) => changeSpend(tables, ids, { hourly: 0n }),
    postgres: 'UPDATE spend SET hourly = 0',
    found: ['spend: hourly of KEY'],
  },
  'the spend of this day is reset': {
    lmdb: (tables, ids) => changeSpend(tables, ids, { daily: 0n }),
    postgres: 'UPDATE spend SET daily = 0',
    found: ['spend: daily of KEY'],
  },
  'the hour and the day are moved on, so that what was spent counts no more': {
    lmdb: (tables, ids) => changeSpend(tables, ids, { hour: 0, day: 0 }),
    postgres: 'UPDATE spend SET hour = 0, day = 0',
    found: ['spend: day of KEY', 'spend: hour of KEY'],
  },
  'the spend is removed as a whole': {
    lmdb: (tables, { keyId }) => void tables.spend.removeSync(keyId),
    postgres: 'DELETE FROM spend',
    found: ['daily', 'day', 'held', 'hour', 'hourly', 'total'].map((name) => `spend: ${name} of KEY`),
  },
  'charges are moved from one day to another': {
    lmdb(tables, { keyId }) {
      const [first, second] = [tables.days.get([keyId, DAY]), tables.days.get([keyId, DAY + 1])];
      assert.ok(first !== undefined && second !== undefined);
      tables.days.putSync([keyId, DAY], { ...first, chargedNanos: 0n });
      tables.days.putSync([keyId, DAY + 1], { ...second, chargedNanos: second.chargedNanos + 100n });
    },
    postgres: `UPDATE days SET charged_nanos = CASE WHEN day = ${DAY} THEN 0 ELSE charged_nanos + 100 END`,
    found: [`day: charges of ${YESTERDAY} of KEY`, `day: charges of ${TODAY} of KEY`],
  },
  'a day is another one': {
    lmdb(tables, { keyId }) {
      const row = tables.days.get([keyId, DAY]);
      assert.ok(row !== undefined);
      tables.days.removeSync([keyId, DAY]);
      tables.days.putSync([keyId, DAY - 1], row);
    },
    postgres: `UPDATE days SET day = day - 1 WHERE day = ${DAY}`,
    found: ['day: charges of 2026-02-28 of KEY', `day: charges of ${YESTERDAY} of KEY`],
  },
  'the counts of a day are reset': {
    lmdb(tables, { keyId }) {
      const row = tables.days.get([keyId, DAY]);
      assert.ok(row !== undefined);
      tables.days.putSync([keyId, DAY], { ...row, requests: 0, outputTokens: 0 });
    },
    postgres: `UPDATE days SET requests = 0, output_tokens = 0 WHERE day = ${DAY}`,
    found: ['day: outputTokens of KEY in all days', 'day: requests of KEY in all days'],
  },
  'a task is not due any more': {
    lmdb: (tables) => void tables.videoDue.removeSync(onlyKey(tables.videoDue.getRange()).key),
    postgres: "UPDATE videos SET due_at_ms = NULL WHERE id = 'video_queued'",
    found: ['index: due time of video_queued'],
  },
  'a task is due next year': {
    lmdb(tables) {
      const { key } = onlyKey(tables.videoDue.getRange());
      tables.videoDue.removeSync(key);
      tables.videoDue.putSync([key[0], key[1] + 1, key[2]], true);
    },
    postgres: "UPDATE videos SET due_at_ms = due_at_ms + 1 WHERE id = 'video_queued'",
    found: ['index: due time of video_queued'],
  },
  'a task is not listed for its owner': {
    lmdb: (tables) => void tables.videoOwners.removeSync(onlyKey(tables.videoOwners.getRange()).key),
    postgres: "UPDATE videos SET key_id = 'key_other' WHERE id = 'video_queued'",
    found: ['index: owner of video_queued'],
  },
  'an idempotency key may make a second task': {
    lmdb: (tables, { accountId, keyId }) => void tables.idempotency.removeSync([accountId, keyId, 'idem-video_queued']),
    postgres: "DELETE FROM idempotency WHERE task_id = 'video_queued'",
    found: ['index: idempotency of video_queued'],
  },
  'an idempotency key belongs to another key': {
    lmdb(tables, { accountId, keyId }) {
      const row = tables.idempotency.get([accountId, keyId, 'idem-video_queued']);
      assert.ok(row !== undefined);
      tables.idempotency.removeSync([accountId, keyId, 'idem-video_queued']);
      tables.idempotency.putSync([accountId, 'key_other', 'idem-video_queued'], row);
    },
    postgres: "UPDATE idempotency SET key_id = 'key_other' WHERE task_id = 'video_queued'",
    found: ['index: idempotency of video_queued'],
  },
  'a spend limit is raised': {
    lmdb: (tables, ids) => changeKey(tables, ids, { limits: { total: 9_000n } }),
    postgres: 'UPDATE keys SET limit_total = 9000',
    found: ['key: limit_total of KEY'],
  },
  'limits of a key are removed': {
    lmdb: (tables, ids) => changeKey(tables, ids, { limits: {}, rateLimits: undefined, models: undefined }),
    postgres: 'UPDATE keys SET limit_total = NULL, requests_per_minute = NULL, max_concurrency = NULL, models = NULL',
    found: ['limit_total', 'max_concurrency', 'models', 'requests_per_minute'].map((name) => `key: ${name} of KEY`),
  },
  'a key is disabled, and given an address': {
    lmdb: (tables, ids) => changeKey(tables, ids, { disabled: true, ips: ['10.0.0.1'] }),
    postgres: "UPDATE keys SET disabled = true, ips = ARRAY['10.0.0.1']",
    found: ['key: disabled of KEY', 'key: ips of KEY'],
  },
  'an account becomes unlimited, of another class, with another limit': {
    lmdb: (tables, ids) =>
      changeAccount(tables, ids, { unlimited: true, class: 'gold', rateLimits: { tokensPerMinute: 1_000_000 } }),
    postgres: "UPDATE accounts SET unlimited = true, class = 'gold', tokens_per_minute = 1000000",
    found: ['class', 'tokens_per_minute', 'unlimited'].map((name) => `account: ${name} of ACCOUNT`),
  },
  'a digest is exchanged for one whose secret is known': {
    lmdb(tables, ids) {
      const key = tables.keys.get(ids.keyId);
      assert.ok(key !== undefined);
      tables.keyDigests.removeSync(key.digest);
      tables.keyDigests.putSync(OTHER, ids.keyId);
      changeKey(tables, ids, { digest: OTHER });
    },
    postgres: `UPDATE keys SET digest = '${OTHER}'`,
    found: ['key: digest of KEY'],
  },
  'a hold would be refunded to somebody else': {
    lmdb(tables) {
      const hold = tables.holds.get('video_queued');
      assert.ok(hold !== undefined);
      tables.holds.putSync('video_queued', { ...hold, from: 'wallet:acct_other' });
    },
    postgres: "UPDATE holds SET from_account = 'wallet:acct_other' WHERE id = 'video_queued'",
    found: ['hold: payer of video_queued'],
  },
  'a key that nobody made': {
    lmdb(tables, { keyId }) {
      const key = tables.keys.get(keyId);
      assert.ok(key !== undefined);
      tables.keys.putSync('key_made', { ...key, id: 'key_made', digest: OTHER });
      tables.keyDigests.putSync(OTHER, 'key_made');
    },
    postgres: `INSERT INTO keys (id, account_id, name, digest, prefix, last4, created_at_ms, disabled, sub_account)
      SELECT 'key_made', account_id, name, '${OTHER}', prefix, last4, created_at_ms, disabled, sub_account FROM keys`,
    found: ['key: key_made'],
  },
  'a key that is gone': {
    lmdb(tables, { keyId }) {
      const key = tables.keys.get(keyId);
      assert.ok(key !== undefined);
      tables.keys.removeSync(keyId);
      tables.keyDigests.removeSync(key.digest);
    },
    postgres: 'DELETE FROM keys',
    found: ['key: KEY'],
  },
  'an account has two names': {
    lmdb: (tables, { accountId }) => tables.accountNames.putSync('second name', accountId),
    found: ['index: names of accounts'],
  },
  'an answer is not found by the id that its client gave it': {
    lmdb: (tables) => void tables.logIds.removeSync(onlyKey(tables.logIds.getRange()).key),
    postgres: "UPDATE request_log SET request_id = 'other', client_request_id = 'other' WHERE exchange_id = 'ex_free'",
    found: ['index: name of ex_free', 'index: names of exchanges'],
  },
  'an answer is listed for another key': {
    lmdb(tables, { keyId }) {
      const [seq = 0] = tables.exchanges.get('ex_yesterday') ?? [];
      const [byte, bit] = [seq >> 3, 1 << (seq & 7)];
      const [of, other] = [tables.logFilters.get(['key', keyId, 0]), new Uint8Array(32)];
      assert.ok(of);
      of[byte] = (of[byte] ?? 0) & ~bit;
      other[byte] = bit;
      tables.logFilters.putSync(['key', keyId, 0], of);
      tables.logFilters.putSync(['key', 'key_other', 0], other);
    },
    postgres: "UPDATE request_log SET key_id = 'key_other' WHERE exchange_id = 'ex_yesterday'",
    found: ['index: key of ex_yesterday'],
  },
  'an answer is listed for another model, as a failure': {
    lmdb({ exchanges, logFilters }) {
      const [seq = 0] = exchanges.get('ex_today') ?? [];
      for (const [filter, word] of [
        ['model', 'model'],
        ['status', 'success'],
      ] as const) {
        const places = logFilters.get([filter, word, 0]);
        assert.ok(places, filter);
        places[seq >> 3] = (places[seq >> 3] ?? 0) & ~(1 << (seq & 7));
        logFilters.putSync([filter, word, 0], places);
      }
    },
    postgres: "UPDATE request_log SET model = 'other', status = 'error' WHERE exchange_id = 'ex_today'",
    found: ['index: filters of exchanges', 'index: model of ex_today', 'index: status of ex_today'],
  },
  'an answer is listed under an error that it had not': {
    lmdb: (tables) => tables.logFilters.putSync(['code', 'overloaded', 0], new Uint8Array(32).fill(1, 0, 1)),
    postgres: "UPDATE request_log SET error_code = 'overloaded' WHERE exchange_id = 'ex_yesterday'",
    found: ['index: filters of exchanges'],
  },
};
/** Where an index is a column, it is told as one; counts of indexes are LMDB's own. */
const ON_POSTGRES: Readonly<Record<string, readonly string[]>> = {
  'an answer is listed under an error that it had not': ['index: error_code of ex_yesterday'],
  'an answer is not found by the id that its client gave it': [
    'index: client_request_id of ex_free',
    'index: request_id of ex_free',
  ],
  'an answer is listed for another model, as a failure': ['index: model of ex_today', 'index: status of ex_today'],
  'an answer is listed for another key': ['exchange: key column of ex_yesterday'],
};
const COUNTS = /^(index: (tasks that are due|owners of tasks)|key: digests)$/;

/** The same rows with another word in one of them, and every hash made anew. */
function writtenAnew(journal: readonly JournalRow[]): { readonly rows: JournalRow[]; readonly head: JournalHead } {
  let hash = FIRST_HASH;
  const rows = journal.map(({ hash: _, ...row }) => {
    const changed = row.kind === 'credit' ? { ...row, note: 'a present' } : row;
    hash = journalHash(hash, changed);
    return { ...changed, hash };
  });
  return { rows, head: { seq: rows.length, hash } };
}

eachStore(({ name: engine, place }) => {
  test('every change behind the back of the gateway is told by name', async (t) => {
    const asked = Object.entries(TAMPERINGS).filter(([, tampering]) => tampering[engine] !== undefined);
    assert.ok(asked.length >= 20);
    const whole = await place(t);
    const clock = new FakeClock();
    const filled = await openPlace(whole, { clock });
    const sample = engine === 'lmdb' ? await fill(filled, clock) : undefined;
    await filled.close();
    for (const [index, [what, { lmdb, postgres, found }]] of asked.entries()) {
      if (lmdb !== undefined && sample !== undefined) {
        const copy = join(tempDirectory(t), `copy-${index}`);
        cpSync(whole, copy, { recursive: true });
        await editTables(copy, (tables) => lmdb(tables, sample));
        const archive = await openLmdbArchive(options(copy));
        const { differences } = await archive.verify();
        await archive.close();
        assert.deepEqual(
          told(differences, sample).filter((each) => !COUNTS.test(each)),
          [...found].sort(),
          what,
        );
      } else if (postgres !== undefined) {
        const url = await place(t);
        const moving = new FakeClock();
        const store = await openPlace(url, { clock: moving });
        const ids = await fill(store, moving);
        const { admin } = await server();
        await admin(`SET search_path = ${nameOf(url)}; ${postgres.replaceAll('KEY', ids.keyId)}`);
        const { differences } = await store.ledger.verify();
        await store.close();
        assert.deepEqual(told(differences, ids), [...(ON_POSTGRES[what] ?? found)].sort(), what);
      }
    }
  });

  test('a journal that is written anew adds up, and differs from a head that was kept', async (t) => {
    const [clock, path] = [new FakeClock(), await place(t)];
    const first = await openPlace(path, { clock });
    await fill(first, clock);
    const kept = await first.ledger.head();
    const { rows, head } = writtenAnew(await first.ledger.journal());
    await first.close();
    if (engine === 'lmdb') {
      await editTables(path, (tables) => {
        for (const row of rows) tables.journal.putSync(row.seq, row);
        tables.meta.putSync('journalHead', head);
      });
    } else {
      const { admin } = await server();
      const updates = rows.map(({ seq, hash, note }) => {
        const text = note === undefined ? 'note' : `'${note.replaceAll("'", "''")}'`;
        return `UPDATE journal SET hash = '${hash}', note = ${text} WHERE seq = ${seq};`;
      });
      await admin(`SET search_path = ${nameOf(path)}; ${updates.join('\n')} UPDATE ledger_head SET hash = '${head.hash}'`);
    }
    const store = await openPlace(path, { clock });
    t.after(() => store.close());
    assert.deepEqual((await store.ledger.verify()).differences, []);
    assert.deepEqual((await store.ledger.verify({ head: kept })).differences, [
      { what: 'chain', subject: 'the head that was kept', expected: kept.hash, found: head.hash },
    ]);
  });
});

eachStore(({ openStore }) => {
  test('a head that was kept holds for ever, and one that is longer than the journal does not', async (t) => {
    const store = await openStore(t);
    const [empty, first] = [{ seq: 0, hash: FIRST_HASH }, await store.ledger.head()];
    const owner = await funded(store, 100n);
    const kept = await store.ledger.head();
    const rows = await store.ledger.journal();
    assert.deepEqual(kept, { seq: rows.length, hash: rows.at(-1)?.hash });
    ok(await store.accounts.credit(owner.account.id, 1n, cause()));
    for (const head of [empty, first, kept, await store.ledger.head()])
      assert.deepEqual((await store.ledger.verify({ head })).differences, []);
    const longer = await store.ledger.verify({ head: { seq: 99, hash: kept.hash } });
    assert.deepEqual(longer.differences, [
      { what: 'chain', subject: 'the head that was kept', expected: 'row 99', found: `${rows.length + 1} rows` },
    ]);
    const wrong = await store.ledger.verify({ head: { seq: 0, hash: kept.hash } });
    assert.equal(wrong.differences.length, 1);
  });
});
