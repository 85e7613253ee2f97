/** Rows as lists: what is written comes back, absent members stay absent, and what an older version wrote is still read. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import { open } from 'lmdb';
import type { RequestLogRow } from '../../src/store/request-log.ts';
import { JOURNAL_ROW, LOG_ROW } from '../../src/store/lmdb/row-shapes.ts';
import { openTables } from '../../src/store/lmdb/tables.ts';
import { MAX_NANOS } from '../../src/store/money.ts';
import { tokenCounts } from './support/token-counts.ts';

const words = fc.string({ unit: 'binary', maxLength: 20 });
const count = fc.nat();
const nanos = fc.bigInt({ min: 0n, max: MAX_NANOS });

const optional = <T>(members: { [Name in keyof T]: fc.Arbitrary<Exclude<T[Name], undefined>> }) =>
  fc.record(members, { requiredKeys: [], noNullPrototype: true });

const logRow = fc.record(
  {
    seq: fc.integer({ min: 1 }),
    loggedAtMs: count,
    exchangeId: words,
    requestId: words,
    clientRequestId: words,
    accountId: words,
    keyId: words,
    endpoint: words,
    model: words,
    upstreamModel: words,
    channelId: words,
    channelType: words,
    stream: fc.boolean(),
    status: fc.constantFrom('success', 'error', 'interrupted'),
    httpStatus: count,
    errorCode: words,
    errorText: words,
    clientGone: fc.boolean(),
    startedAtMs: count,
    durationMs: count,
    firstByteMs: count,
    firstOutputMs: count,
    lastOutputMs: count,
    ip: words,
    effort: words,
    usage: optional({
      ...tokenCounts(count),
      videos: count,
      meters: fc.array(fc.tuple(words, count), { maxLength: 3 }).map((pairs) => new Map(pairs)),
      serviceTier: words,
    }),
    usageJson: words,
    charge: fc.record(
      {
        lines: fc.array(
          fc.record(
            {
              item: words,
              billedAs: words,
              quantity: count,
              rate: nanos,
              per: fc.constantFrom('million', 'thousand', 'piece'),
              amount: nanos,
            },
            { noNullPrototype: true, requiredKeys: ['item', 'quantity', 'rate', 'per', 'amount'] },
          ),
          { maxLength: 3 },
        ),
        total: nanos,
        flags: fc.array(words, { maxLength: 2 }),
      },
      { noNullPrototype: true },
    ),
    attempts: fc.array(
      fc.record(
        {
          channelId: words,
          channelType: words,
          upstreamModel: words,
          startedAtMs: count,
          durationMs: count,
          upstreamStatus: count,
          upstreamRequestId: words,
          errorCode: words,
          errorText: words,
        },
        { noNullPrototype: true, requiredKeys: ['channelId', 'channelType', 'upstreamModel', 'startedAtMs', 'durationMs'] },
      ),
      { maxLength: 2 },
    ),
    affinity: fc.record({ hit: fc.boolean(), target: words }, { noNullPrototype: true }),
  },
  {
    noNullPrototype: true,
    requiredKeys: [
      'seq',
      'loggedAtMs',
      'exchangeId',
      'requestId',
      'accountId',
      'keyId',
      'endpoint',
      'model',
      'stream',
      'status',
      'startedAtMs',
      'durationMs',
      'attempts',
    ],
  },
);

test('a row of the request log comes back from the store as it was written', async (t) => {
  const path = mkdtempSync(join(tmpdir(), 'mizu-listed-'));
  const root = open({ path, noSubdir: false, maxDbs: 64, cache: false });
  t.after(async () => {
    await root.close();
    rmSync(path, { recursive: true });
  });
  const { log } = openTables(root);
  fc.assert(
    fc.property(logRow, (row: RequestLogRow) => {
      log.putSync(row.seq, row);
      assert.deepEqual(log.get(row.seq), row);
    }),
  );
});

test('a row that was stored with its member names is read as it is', () => {
  const row = { seq: 1, atMs: 2, kind: 'charge', ref: 'ex_1', from: 'wallet:a', to: 'revenue', nanos: 3n, hash: 'f' } as const;
  assert.deepEqual(JOURNAL_ROW.value(row), row);
  assert.deepEqual(JOURNAL_ROW.value(JOURNAL_ROW.list(row)), row);
});

test('a list that is shorter than its shape was written before the last members were known', () => {
  const listed = LOG_ROW.list({
    seq: 1,
    loggedAtMs: 1,
    exchangeId: 'ex_1',
    requestId: 'r',
    accountId: 'a',
    keyId: 'k',
    endpoint: 'chat',
    model: 'm',
    stream: false,
    status: 'success',
    startedAtMs: 1,
    durationMs: 1,
    attempts: [],
  });
  assert.ok(Array.isArray(listed));
  assert.equal(LOG_ROW.value(listed.slice(0, 15)).exchangeId, 'ex_1');
});
