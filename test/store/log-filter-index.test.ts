/**
 * Each filter of the request log has an index on both engines; rows of a store that had none are found meanwhile, and entered
 * slice by slice.
 */
import assert from 'node:assert/strict';
import { cpSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { isWanted } from '../../src/store/log-filters.ts';
import type { Principal } from '../../src/store/keys.ts';
import type { RequestLogEntry, RequestLogQuery, RequestLogRow } from '../../src/store/request-log.ts';
import type { Store } from '../../src/store/store.ts';
import { server } from '../support/postgres.ts';
import { editTables } from './support/edit-tables.ts';
import { entry, FakeClock, funded, T0, tempDirectory } from './support/store.ts';
import { eachStore, nameOf, openPlace } from './support/stores.ts';

const CHANNELS = ['c1', 'c2', 'c3'];
const CODES = ['upstream_error', 'rate_limited', undefined];
const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T;

/** The n-th exchange: every word comes with every other. */
function exchange(owner: Principal, n: number): RequestLogEntry {
  const status = n % 7 === 0 ? 'error' : 'success';
  const errorCode = status === 'error' ? pick(CODES, Math.floor(n / 7)) : undefined;
  const channelId = n % 11 === 0 ? undefined : pick(CHANNELS, Math.floor(n / 3));
  const attempt = { channelId: pick(CHANNELS, n), channelType: 'chat', upstreamModel: 'u', startedAtMs: T0, durationMs: 1 };
  return entry(owner, `ex_${n}`, 1n, {
    model: `m${n % 5}`,
    status,
    attempts: n % 13 === 0 ? [] : [attempt],
    ...(errorCode === undefined ? {} : { errorCode, errorText: '"channelId":"c2" \u0000\ud800' }),
    ...(channelId === undefined ? {} : { channelId }),
  });
}

async function fill(store: Store, clock: FakeClock, count: number): Promise<Principal[]> {
  const owners = [await funded(store, 1_000_000n), await funded(store, 1_000_000n)];
  // One that was closed as interrupted and is settled late: its words change, its place does not.
  const late = pick(owners, 0);
  for (let n = 1; n <= count; n += 1) {
    clock.advance(1_000);
    void store.settlements.settle({ entry: exchange(pick(owners, Math.floor(n / 2)), n) });
    if (n === 5) {
      void store.settlements.settle({ entry: entry(late, 'ex_late', 0n, { status: 'interrupted', model: 'm0' }) });
      await store.settlements.flush();
    }
    if (n % 17 === 0) await store.settlements.flush();
  }
  void store.settlements.settle({ entry: entry(late, 'ex_late', 2n, { channelId: 'c3', model: 'm1' }) });
  await store.settlements.flush();
  return owners;
}

const all = (store: Store): Promise<RequestLogRow[]> => store.requestLog.list({ limit: 1_000 });

const queries = (owners: readonly Principal[], last: number) =>
  fc.record(
    {
      keyId: fc.constantFrom(...owners.map(({ key }) => key.id)),
      accountId: fc.constantFrom(...owners.map(({ account }) => account.id), 'acc_nobody'),
      model: fc.constantFrom('m0', 'm1', 'm2', 'm', 'm1\u0000'),
      channelId: fc.constantFrom(...CHANNELS, 'c'),
      status: fc.constantFrom('success', 'error', 'interrupted'),
      code: fc.constantFrom('upstream_error', 'rate_limited', 'error', 'interrupted'),
      sinceMs: fc.integer({ min: T0, max: T0 + last * 1_100 }),
      untilMs: fc.integer({ min: T0, max: T0 + last * 1_100 }),
      after: fc.integer({ min: 0, max: last }),
      before: fc.integer({ min: 1, max: last + 2 }),
      above: fc.integer({ min: 0, max: last }),
      limit: fc.constantFrom(1, 3, 100, 1_000),
    },
    { requiredKeys: [] },
  );

/** What a query must give: every row looked at. */
function expected(rows: readonly RequestLogRow[], query: RequestLogQuery): number[] {
  const { sinceMs = 0, after = 0, above = 0, before = Number.POSITIVE_INFINITY, limit = 100 } = query;
  const fits = (row: RequestLogRow): boolean =>
    row.loggedAtMs >= sinceMs && row.seq > Math.max(after, above) && row.seq < before && isWanted(row, query);
  const found = rows.filter(fits).map(({ seq }) => seq);
  return (query.after === undefined ? found : found.reverse()).slice(0, limit);
}

async function assertFilters(store: Store, owners: readonly Principal[], runs: number): Promise<void> {
  const rows = await all(store);
  await fc.assert(
    fc.asyncProperty(queries(owners, rows.length), async (query) => {
      const asked = query as RequestLogQuery;
      assert.deepEqual(
        (await store.requestLog.list(asked)).map(({ seq }) => seq),
        expected(rows, asked),
      );
    }),
    { numRuns: runs },
  );
  assert.deepEqual((await store.ledger.verify()).differences, []);
}

/** As the last version without the index left it. */
async function withoutIndex(place: string, engine: string): Promise<void> {
  if (engine === 'lmdb')
    await editTables(place, ({ meta, log, logFilters, olderLogKeys }) => {
      logFilters.clearSync();
      for (const { key, value } of log.getRange()) olderLogKeys.putSync([value.keyId, key], [key]);
      meta.putSync('schema', 5);
    });
  else {
    const name = nameOf(place);
    await (await server()).admin(`UPDATE ${name}.request_log SET channel_id = NULL, error_code = NULL`);
  }
}

async function turns(clock: FakeClock, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    clock.advance(25);
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1));
  }
}

eachStore(({ name: engine, openStore, place }) => {
  const notOf = (owner: string): string | false => engine !== owner && `a law of ${owner}`;
  test('whatever is asked, the filters give what looking at every row gives', async (t) => {
    const clock = new FakeClock();
    const store = await openStore(t, { clock });
    const owners = await fill(store, clock, 600);
    await assertFilters(store, owners, engine === 'lmdb' ? 300 : 60);
    assert.ok((await store.requestLog.prune(T0 + 300_000)) > 200);
    await assertFilters(store, owners, engine === 'lmdb' ? 100 : 30);
  });

  test('a store without the index is filtered at once, and has it after some slices', async (t) => {
    const clock = new FakeClock();
    const path = await place(t);
    const first = await openPlace(path, { clock });
    const owners = await fill(first, clock, 300);
    await first.close();
    await withoutIndex(path, engine);
    const store = await openPlace(path, { clock });
    await assertFilters(store, owners, 30);
    await turns(clock, 1);
    void store.settlements.settle({ entry: exchange(pick(owners, 0), 301) });
    await store.settlements.flush();
    await assertFilters(store, owners, 60);
    await turns(clock, 30);
    await assertFilters(store, owners, 60);
    assert.ok((await store.requestLog.prune(T0 + 100_000)) > 50);
    await assertFilters(store, owners, 30);
    await store.close();
    if (engine === 'lmdb')
      await editTables(path, ({ meta, olderLogKeys }) =>
        assert.deepEqual([meta.get('filtersAfter'), olderLogKeys.getCount()], [undefined, 0]),
      );
    else {
      const [row] = await (await server()).admin(`SELECT count(*) FROM ${nameOf(path)}.request_log WHERE channel_id IS NULL`);
      assert.equal(Number(row?.['count']), 0);
    }
  });

  test('rows that do not fit are not read', { skip: notOf('lmdb') }, async (t) => {
    const path = tempDirectory(t);
    const clock = new FakeClock();
    const first = await openPlace(path, { clock });
    const [owner, other] = [await funded(first, 1n), await funded(first, 1n)];
    for (let n = 1; n <= 200; n += 1) {
      const more = n === 100 ? ({ errorCode: 'odd', status: 'error', channelId: 'rare', model: 'seldom' } as const) : {};
      void first.settlements.settle({ entry: entry(n === 100 ? owner : other, `ex_${n}`, 0n, more) });
    }
    await first.close();
    // Whoever reads one of these throws.
    await editTables(path, ({ log }, root) => {
      const raw = root.openDB<Buffer, number>({ name: 'log', encoding: 'binary' });
      for (const seq of log.getKeys()) if (seq !== 100) raw.putSync(seq, Buffer.from('[no JSON'));
    });
    const store = await openPlace(path, { clock });
    const found = async (query: RequestLogQuery) => (await store.requestLog.list(query)).map(({ exchangeId }) => exchangeId);
    const { key, account } = owner;
    const asked = [{ code: 'odd' }, { channelId: 'rare' }, { model: 'seldom' }, { keyId: key.id }, { accountId: account.id }];
    for (const query of [...asked, { status: 'error' } as const])
      assert.deepEqual(await found(query), ['ex_100'], JSON.stringify(query));
    await assert.rejects(found({ status: 'success' }));
    await store.close();
  });

  test('each filter has an index that a plan uses', { skip: notOf('postgres') }, async (t) => {
    const path = await place(t);
    const store = await openPlace(path);
    await store.close();
    const name = nameOf(path);
    const { admin } = await server();
    await admin(`INSERT INTO ${name}.request_log SELECT n, n, 'ex_' || n, 'r_' || n, NULL, 'a' || n % 500, 'k' || n % 500, 'm' || n % 500,
      CASE WHEN n % 500 = 1 THEN 'error' ELSE 'success' END, 0, '{}', 'c' || n % 500, CASE WHEN n % 500 = 1 THEN 'odd' ELSE '' END
      FROM generate_series(1, 50000) n`);
    await admin(`ANALYZE ${name}.request_log`);
    const filters = { key_id: 'k1', account_id: 'a1', model: 'm1', channel_id: 'c1', status: 'error', error_code: 'odd' };
    for (const [column, word] of Object.entries(filters)) {
      const sql = `EXPLAIN SELECT * FROM ${name}.request_log WHERE ${column} = '${word}' ORDER BY seq DESC LIMIT 100`;
      const plan = (await admin(sql)).map((row) => row['QUERY PLAN']).join('\n');
      assert.match(
        plan,
        /Index Scan.* using request_log_(key|account|model|channel|status|code)|Bitmap Index Scan on request_log_/,
        column,
      );
    }
  });

  test('a slice that is cut after any of its writes leaves nothing behind', { skip: notOf('lmdb') }, async (t) => {
    const [clock, path] = [new FakeClock(), tempDirectory(t)];
    const first = await openPlace(path, { clock });
    const owners = await fill(first, clock, 20);
    await first.close();
    await withoutIndex(path, engine);
    for (let writes = 1, isCut = true; isCut; writes += 4) {
      const copy = join(tempDirectory(t), 'copy');
      cpSync(path, copy, { recursive: true });
      let left = Number.POSITIVE_INFINITY;
      const store = await openPlace(copy, { clock, onProblem: () => undefined }, () => {
        left -= 1;
        if (left === 0) throw new Error('cut');
      });
      left = writes;
      await turns(clock, 1);
      isCut = left <= 0;
      left = Number.POSITIVE_INFINITY;
      await assertFilters(store, owners, 5);
      await store.close();
    }
  });
});
