/** A store with something of everything, copied from each engine to each, row by row the same; and what a copy refuses. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import type { Archive } from '../../src/store/archive.ts';
import { copyStore } from '../../src/store/copy.ts';
import type { Principal } from '../../src/store/keys.ts';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import { openLmdbArchive } from '../../src/store/lmdb/archive.ts';
import { openPostgresArchive } from '../../src/store/postgres/archive.ts';
import type { Store } from '../../src/store/store.ts';
import { cause, entry, funded, ok, options, refusal, T0 } from './support/store.ts';
import { eachStore, onPostgres, openPlace, postgresOptions } from './support/stores.ts';

const archiveOf = (place: string): Promise<Archive> =>
  place.startsWith('postgres://') ? openPostgresArchive(postgresOptions(place)) : openLmdbArchive(options(place));

function directory(t: TestContext): string {
  const path = mkdtempSync(join(tmpdir(), 'mizu-copy-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Something of everything, with odd words in it. */
async function fill(store: Store): Promise<Principal> {
  const limits = { total: 2n ** 62n, daily: 10n ** 17n };
  const owner = await funded(store, 10n ** 18n, { subAccount: true, limits, ips: ['10.0.0.0/8'], models: ['a', 'é'] });
  ok(
    await store.accounts.create(
      { name: 'Ünlimited 水', unlimited: true, class: 'gold' },
      { id: 'c\u0000d', by: 'ops', note: '\ud800' },
    ),
  );
  ok(await store.keys.transfer(owner.key.id, 10n ** 17n, cause()));
  for (let n = 0; n < 700; n += 1) {
    const usage = { input: n, output: 2, ...(n % 3 === 0 ? { meters: new Map([['web_search', n + 1]]) } : {}) };
    const charge = {
      lines: [{ item: 'input', quantity: n, rate: 7n, per: 'million', amount: 7n }],
      total: BigInt(n),
      flags: ['x'],
    } as const;
    const errorText = '\u0000\ud800"\\';
    void store.settlements.settle({
      entry: entry(owner, `c${n}`, 0n, { usage, charge, clientRequestId: `mine ${n % 7}`, errorText }),
    });
  }
  await store.settlements.flush();
  const token = ok(await store.leases.acquire(VIDEO_WORKER, 'w', 1_000, T0)).token;
  for (const [n, state] of ['queued', 'submitting', 'running', 'succeeded', 'failed', 'unknown'].entries()) {
    const video = { id: `v-${state}`, principal: owner, model: 'v', requestJson: '{"prompt":"水"}', priceNanos: 11n };
    ok(await store.videos.create({ ...video, idempotencyKey: `k${n}`, bodyHash: 'h', nowMs: T0 }));
    const step = (change: Parameters<Store['videos']['change']>[1]) => store.videos.change(`v-${state}`, change, token, T0 + n);
    if (n > 0) ok(await step({ event: 'submit', channelId: 'c', upstreamModel: 'u' }));
    if (state === 'running') ok(await step({ event: 'accept', upstreamId: 'up', dueAtMs: T0 + 5 }));
    if (state === 'succeeded') ok(await step({ event: 'succeed', outputUrl: 'https://x' }));
    if (state === 'failed') ok(await step({ event: 'fail', error: { code: 'c', message: 'm' } }));
    if (state === 'unknown') ok(await step({ event: 'lose', why: 'lost' }));
  }
  await store.secrets.rotate(cause());
  ok(await store.adminTokens.create({ name: 'ops 水', role: 'read' }, cause()));
  const channel = { kind: 'channel', id: 'é', journalKind: 'channel_out_of_service' } as const;
  ok(await store.controls.change({ ...channel, text: '{"by":"ops"}' }, cause()));
  return owner;
}

async function copy(from: string, to: string) {
  const [source, target] = [await archiveOf(from), await archiveOf(to)];
  try {
    return await copyStore(source, target);
  } finally {
    await source.close();
    await target.close();
  }
}

const NAMES = [
  'journal',
  'account',
  'key',
  'balance',
  'hold',
  'spend',
  'day',
  'rollup',
  'log',
  'video',
  'idempotency',
  'lease',
  'secret',
  'control',
  'heads',
];

eachStore(({ place }) => {
  test('what is copied to LMDB and back is the same store, and goes on', async (t) => {
    const [first, second, third] = [await place(t), directory(t), await place(t)];
    const filled = await openPlace(first);
    const owner = await fill(filled);
    // An exchange that was interrupted and settled late has two rows in the journal.
    const late = entry(owner, 'late', 3n);
    void filled.settlements.open(late);
    await filled.close();
    const store = await openPlace(first);
    await store.settlements.settle({ entry: late });
    const before = await store.ledger.journal({ limit: 10_000 });
    const secret = store.secrets.current();
    await store.close();
    const there = ok(await copy(first, second));
    assert.deepEqual([...there.rows.keys()], NAMES);
    assert.equal(there.rows.get('log'), 701);
    assert.deepEqual(ok(await copy(second, third)).rows, there.rows);

    const back = await openPlace(third);
    t.after(() => back.close());
    assert.deepEqual(await back.ledger.journal({ limit: 10_000 }), before);
    assert.deepEqual(back.secrets.current().id, secret.id);
    assert.equal((await back.requestLog.find('mine 3')).length, 100);
    const kept = (await back.requestLog.find('c699'))[0]?.errorText ?? '';
    assert.equal(kept.replaceAll('\ufffd', ''), '\u0000"\\');
    assert.equal((await back.videos.due(T0 + 100, 10)).length, 2);
    assert.ok(ok(await back.leases.acquire(VIDEO_WORKER, 'x', 1, T0 + 10 ** 9)).token > 1);
    const [account] = await back.accounts.list();
    assert.ok(account);
    ok(await back.accounts.credit(account.id, 5n, cause('after')));
    assert.equal((await back.settlements.settle({ entry: late })).settled, false);
    assert.deepEqual((await back.ledger.verify()).differences, []);
  });

  test('only an empty store is copied into, and an unfinished copy opens for nobody', async (t) => {
    const [from, to, empty] = [directory(t), await place(t), await place(t)];
    const store = await openPlace(from);
    await funded(store, 5n);
    await store.close();
    ok(await copy(from, to));
    assert.equal(refusal(await copy(from, to)).reason, 'target_not_empty');
    const half = await archiveOf(empty);
    assert.equal(await half.begin(), true);
    await half.close();
    await assert.rejects(openPlace(empty), { code: 'schema_newer', message: /unfinished copy/ });
  });

  test('of two copies into one place that begin at the same time one is refused, and the other is whole', async (t) => {
    const [from, to] = [directory(t), await place(t)];
    const store = await openPlace(from);
    await fill(store);
    await store.close();
    const source = await archiveOf(from);
    // A folder is opened once in a process.
    const target = await archiveOf(to);
    const targets = [target, to.startsWith('postgres://') ? await archiveOf(to) : target];
    // Both have found it empty when the first of them begins.
    const found = Promise.withResolvers<void>();
    let waiting = 0;
    const copies = targets.map((into) =>
      copyStore(source, {
        ...into,
        async begin() {
          waiting += 1;
          if (waiting === targets.length) found.resolve();
          await found.promise;
          return await into.begin();
        },
      }),
    );
    const ends = await Promise.all(copies);
    assert.deepEqual(ends.map((end) => (end.ok ? 'copied' : end.refusal.reason)).sort(), ['copied', 'target_not_empty']);
    assert.equal(await target.begin(), false, 'what is copied stays');
    for (const archive of [source, ...new Set(targets)]) await archive.close();
    const copied = await openPlace(to);
    assert.deepEqual((await copied.ledger.verify()).differences, []);
    await copied.close();
  });

  test('a store with open exchanges or an unsound ledger is not copied', async (t) => {
    const [from, to] = [await place(t), directory(t)];
    const store = await openPlace(from);
    const owner = await funded(store, 5n);
    await store.settlements.open(entry(owner, 'open', 1n));
    assert.deepEqual(refusal(await copy(from, to)), { reason: 'exchanges_open', count: 1 });
    await store.close();
    const source = await archiveOf(from);
    await source.write([{ table: 'balance', row: { account: 'wallet:forged', nanos: 7n } }]);
    await source.close();
    assert.equal(refusal(await copy(from, to)).reason, 'source_unsound');
  });
});

onPostgres(({ place }) => {
  test('a folder moves to the database and back', async (t) => {
    const [first, second, third] = [directory(t), await place(t), directory(t)];
    const store = await openPlace(first);
    await fill(store);
    const before = await store.ledger.journal({ limit: 10_000 });
    await store.close();
    const there = ok(await copy(first, second));
    assert.deepEqual([...there.rows.keys()], NAMES);
    const moved = await openPlace(second);
    assert.deepEqual(await moved.ledger.journal({ limit: 10_000 }), before);
    assert.deepEqual((await moved.ledger.verify()).differences, []);
    await moved.close();
    assert.deepEqual(ok(await copy(second, third)).rows, there.rows);
  });

  test('a row that changed on its way is found', async (t) => {
    const [from, to] = [directory(t), await place(t)];
    const store = await openPlace(from);
    await funded(store, 5n);
    await store.close();
    const [source, target] = [await archiveOf(from), await archiveOf(to)];
    const falsified: Archive = {
      ...target,
      write: (rows) =>
        target.write(rows.map((row) => (row.table === 'account' ? { ...row, row: { ...row.row, class: 'other' } } : row))),
    };
    assert.equal(refusal(await copyStore(source, falsified)).reason, 'rows_differ');
    await source.close();
    await target.close();
    await assert.rejects(openPlace(to), { code: 'schema_newer' });
  });
});
