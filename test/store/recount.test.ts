/** What `verify` finds: a sound store has no difference, and each thing that can be wrong in it is told by name. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { FIRST_HASH, type Hold, type JournalRow, journalHash } from '../../src/store/ledger.ts';
import { countsOf, type DayCounts, NO_USAGE } from '../../src/store/day-usage.ts';
import type { Principal } from '../../src/store/keys.ts';
import { Recount } from '../../src/store/recount.ts';
import type { RequestLogRow } from '../../src/store/request-log.ts';
import { type Rollup, RollupChanges } from '../../src/store/rollups.ts';
import type { SpendRow } from '../../src/store/spend-windows.ts';
import { entry } from './support/store.ts';

type Content = Omit<JournalRow, 'seq' | 'hash' | 'atMs' | 'accountId'>;

const [WALLET, KEY] = ['wallet:a', 'k'] as const;
const nothing = { from: 'external', to: 'external', nanos: 0n } as const;

/** A credit, a charge, a video that was charged, one that is kept and one that was refunded, and a transfer. */
const JOURNAL: readonly Content[] = [
  { kind: 'credit', ref: 'c1', from: 'external', to: WALLET, nanos: 1_000n },
  { kind: 'charge', ref: 'ex_1', from: WALLET, to: 'revenue', nanos: 7n, keyId: KEY },
  { kind: 'hold', ref: 'v1', from: WALLET, to: 'hold:v1', nanos: 100n, keyId: KEY },
  { kind: 'settle', ref: 'v1', from: 'hold:v1', to: 'revenue', nanos: 100n, keyId: KEY },
  { kind: 'hold', ref: 'v2', from: WALLET, to: 'hold:v2', nanos: 30n, keyId: KEY },
  { kind: 'keep', ref: 'v2', ...nothing, keyId: KEY },
  { kind: 'hold', ref: 'v3', from: WALLET, to: 'hold:v3', nanos: 20n, keyId: KEY },
  { kind: 'refund', ref: 'v3', from: 'hold:v3', to: WALLET, nanos: 20n, keyId: KEY },
  { kind: 'sub_account_transfer_out', ref: 't1', from: WALLET, to: 'transit', nanos: 50n, keyId: 's' },
  { kind: 'sub_account_transfer_in', ref: 't1', from: 'transit', to: 'sub:s', nanos: 50n, keyId: 's' },
];

function chained(contents: readonly Content[]): JournalRow[] {
  let previous = FIRST_HASH;
  return contents.map((content, index) => {
    const row = { ...content, seq: index + 1, atMs: index, accountId: 'a' };
    previous = journalHash(previous, row);
    return { ...row, hash: previous };
  });
}

type StoredHold = Parameters<Recount['hold']>[0];
const OPENED_AT: Readonly<Record<string, number>> = { v1: 2, v2: 4, v3: 6 };
const hold = (id: string, state: Hold['state'], nanos: bigint, more: Partial<StoredHold> = {}): StoredHold => ({
  id,
  accountId: 'a',
  keyId: KEY,
  state,
  nanos,
  openedAtMs: OPENED_AT[id] ?? 0,
  from: WALLET,
  ...more,
});

type Task = Parameters<Recount['task']>[0];
const task = (id: string, state: Task['state'], frozenNanos: bigint, more: Partial<Task> = {}): Task => ({
  id,
  state,
  frozenNanos,
  accountId: 'a',
  keyId: KEY,
  ...more,
});

const spent = (total: bigint, held: bigint, more: Partial<SpendRow> = {}): SpendRow => ({
  total,
  hour: 0,
  hourly: total,
  day: 0,
  daily: total,
  held,
  ...more,
});

const logRow = (exchangeId: string, nanos: bigint, more: Partial<RequestLogRow> = {}): RequestLogRow => ({
  ...entry({ account: { id: 'a' }, key: { id: KEY } } as Principal, exchangeId, nanos),
  seq: 1,
  loggedAtMs: 0,
  ...more,
});

function soundStore() {
  const journal = chained(JOURNAL);
  return {
    journal,
    head: { seq: journal.length, hash: journal.at(-1)?.hash ?? '' },
    balances: new Map<string, bigint>([
      ['external', -1_000n],
      [WALLET, 813n],
      ['revenue', 107n],
      ['hold:v2', 30n],
      ['sub:s', 50n],
    ]),
    holds: [hold('v1', 'settled', 100n), hold('v2', 'held', 30n), hold('v3', 'refunded', 20n)],
    tasks: [task('v1', 'succeeded', 100n), task('v2', 'unknown', 30n), task('v3', 'failed', 20n)],
    idempotency: ['v1', 'v2', 'v3'].map((taskId) => ({ taskId, accountId: 'a', keyId: KEY })),
    spend: new Map<string, SpendRow>([[KEY, spent(107n, 30n)]]),
    days: [[KEY, 0, { ...NO_USAGE, requests: 2, videos: 1, inputTokens: 5, chargedNanos: 107n }]] as [
      string,
      number,
      DayCounts,
    ][],
    logged: [logRow('ex_1', 7n, { usage: { input: 5 } }), logRow('ex_free', 0n)],
    open: ['ex_2'],
    /** What is stored of a sum that follows from the rows. */
    sum: (_unit: 'hour' | 'day', rollup: Rollup): Rollup | undefined => rollup,
  };
}
type Stored = ReturnType<typeof soundStore>;

function wholeOf<T>(work: Generator<void, T>): T {
  for (;;) {
    const { done, value } = work.next();
    if (done === true) return value;
  }
}

function differences(stored: Stored): string[] {
  const recount = new Recount();
  for (const row of stored.journal) recount.journal(row);
  recount.head(stored.head.seq, stored.head.hash);
  for (const [name, nanos] of stored.balances) recount.balance(name, nanos);
  for (const one of stored.holds) recount.hold(one);
  for (const task of stored.tasks) recount.task(task);
  for (const [keyId, row] of stored.spend) recount.spend(keyId, row);
  for (const one of stored.idempotency) recount.idempotency(one);
  for (const one of stored.days) recount.day(...one);
  for (const row of stored.logged) recount.logged(row);
  const sums = new RollupChanges();
  for (const row of stored.logged) sums.exchange(row, row.usage === undefined ? {} : countsOf(row.usage), row.loggedAtMs);
  for (const unit of ['hour', 'day'] as const) {
    const ofUnit = (changes: RollupChanges) => (unit === 'hour' ? changes.hours() : changes.days());
    for (const rollup of [...ofUnit(sums), ...ofUnit(sums.hoursOfAll())]) {
      const kept = stored.sum(unit, rollup);
      if (kept !== undefined) recount.rollup(unit, kept);
    }
  }
  for (const id of stored.open) recount.open(id);
  const { rows, differences: found } = wholeOf(recount.finish());
  assert.equal(rows, stored.journal.length);
  return found.map(({ what, subject }) => `${what}: ${subject}`).sort();
}

/** With other contents and everything that follows from the chain; what is kept beside the journal stays. */
function rewritten(stored: Stored, contents: readonly Content[]): void {
  stored.journal = chained(contents);
  stored.head = { seq: stored.journal.length, hash: stored.journal.at(-1)?.hash ?? '' };
}
const without = (at: number): Content[] => JOURNAL.filter((_, index) => index !== at);
const changed = (at: number, change: Partial<Content>): Content[] =>
  JOURNAL.map((content, index) => (index === at ? { ...content, ...change } : content));

const WRONG: Record<string, readonly [damage: (stored: Stored) => unknown, found: readonly string[]]> = {
  nothing: [() => undefined, []],
  'a head that is behind': [
    (stored) => {
      stored.head = { seq: 9, hash: stored.journal[8]?.hash ?? '' };
    },
    ['chain: the newest hash', 'chain: the newest journal row'],
  ],
  'an amount in the journal': [
    ({ journal }) => {
      const [first, second] = journal;
      if (first !== undefined && second !== undefined) journal[1] = { ...second, nanos: 8n };
    },
    [
      'balance: revenue',
      'balance: wallet:a',
      ...Array.from({ length: 9 }, (_, n) => `chain: hash of journal row ${n + 2}`).sort(),
      'chain: the newest hash',
      'exchange: charge of ex_1',
      'day: charges of 1970-01-01 of k',
      'spend: daily of k',
      'spend: hourly of k',
      'spend: total of k',
    ].sort(),
  ],
  'a balance': [({ balances }) => balances.set(WALLET, 814n), ['balance: wallet:a', 'sum: all balances']],
  'a balance of nobody': [({ balances }) => balances.set('wallet:x', 1n), ['balance: wallet:x', 'sum: all balances']],
  'half a transfer': [
    (stored) => {
      rewritten(stored, without(9));
      stored.balances.set('transit', 50n).delete('sub:s');
    },
    ['balance: transit'],
  ],
  'a hold of another state': [
    ({ holds }) => holds.splice(0, 1, hold('v1', 'refunded', 100n)),
    ['hold: v1', 'task: hold of v1, which is succeeded'],
  ],
  'a hold that is gone': [
    ({ holds }) => holds.pop(),
    ['hold: v3', 'task: frozen price of v3', 'task: hold of v3, which is failed'],
  ],
  'a task that is gone': [({ tasks }) => tasks.pop(), ['index: idempotency of v3', 'task: v3']],
  'a task of another key': [
    ({ tasks }) => tasks.splice(0, 1, task('v1', 'succeeded', 100n, { keyId: 'x' })),
    ['index: idempotency of v1', 'task: key of v1'],
  ],
  'a hold that another would be refunded of': [
    ({ holds }) => holds.splice(1, 1, hold('v2', 'held', 30n, { from: 'wallet:b', accountId: 'b', keyId: 'x', openedAtMs: 0 })),
    ['hold: account of v2', 'hold: key of v2', 'hold: payer of v2', 'hold: time of v2', 'task: account of v2', 'task: key of v2'],
  ],
  'an idempotency entry that is gone': [({ idempotency }) => idempotency.pop(), ['index: idempotency of v3']],
  'an idempotency entry of nothing': [
    ({ idempotency }) => idempotency.push({ taskId: 'v9', accountId: 'a', keyId: KEY }),
    ['index: idempotency of v9'],
  ],
  'the price of a task': [({ tasks }) => tasks.splice(1, 1, task('v2', 'unknown', 31n)), ['task: frozen price of v2']],
  'a hold that was opened twice': [
    (stored) => {
      rewritten(stored, [...JOURNAL, ...JOURNAL.slice(4, 5)]);
      stored.balances.set(WALLET, 783n).set('hold:v2', 60n);
      stored.spend.set(KEY, spent(107n, 60n));
    },
    ['balance: hold:v2', 'hold: time of v2', 'hold: v2 opened'],
  ],
  'a hold that was settled for another amount': [
    (stored) => {
      rewritten(stored, changed(3, { nanos: 90n }));
      stored.balances.set('revenue', 97n).set('hold:v1', 10n);
      stored.spend.set(KEY, spent(97n, 40n));
      stored.days = [[KEY, 0, { ...NO_USAGE, requests: 2, videos: 1, inputTokens: 5, chargedNanos: 97n }]];
    },
    ['balance: hold:v1', 'hold: amount of settle of v1'],
  ],
  'a hold that was closed twice': [
    (stored) => {
      rewritten(stored, [...JOURNAL, { kind: 'refund', ref: 'v1', ...nothing }]);
    },
    ['hold: v1 at journal row 11'],
  ],
  'what a key spent': [
    ({ spend }) => spend.set(KEY, spent(107n, 29n, { total: 108n })),
    ['spend: held of k', 'spend: total of k'],
  ],
  'an hour that was reset': [({ spend }) => spend.set(KEY, spent(107n, 30n, { hourly: 0n })), ['spend: hourly of k']],
  'a day that is said to be another': [({ spend }) => spend.set(KEY, spent(107n, 30n, { day: 1 })), ['spend: day of k']],
  'what a key spent in days': [
    ({ days }) => days.pop(),
    [
      'day: charges of 1970-01-01 of k',
      'day: inputTokens of k in all days',
      'day: requests of k in all days',
      'day: videos of 1970-01-01 of k',
    ],
  ],
  'a day that was moved': [
    ({ days }) => {
      const [first] = days;
      if (first !== undefined) days[0] = [first[0], 3, first[2]];
    },
    [
      'day: charges of 1970-01-01 of k',
      'day: charges of 1970-01-04 of k',
      'day: videos of 1970-01-01 of k',
      'day: videos of 1970-01-04 of k',
    ],
  ],
  'what a key spent that never paid': [({ spend }) => spend.set('x', spent(0n, 0n)), ['spend: x']],
  'an exchange that is logged twice': [
    ({ logged }) => logged.push(logRow('ex_free', 0n)),
    ['day: requests of k in all days', 'exchange: ex_free'],
  ],
  'a charge that is not journaled': [
    ({ logged }) => logged.push(logRow('ex_3', 2n)),
    ['day: requests of k in all days', 'exchange: charge of ex_3'],
  ],
  'a charge that another key is said to have paid': [
    ({ logged }) => logged.splice(0, 1, logRow('ex_1', 7n, { keyId: 'x' })),
    ['day: requests of x in all days', 'exchange: key of ex_1'],
  ],
  'a sum of an hour that is gone': [
    (stored) => {
      stored.sum = (unit, rollup) => (unit === 'hour' && rollup.keyId === KEY ? undefined : rollup);
    },
    [
      'rollup: 1970-01-01 of all keys, ["model","",""]',
      'rollup: 1970-01-01 of k, ["model","",""]',
      'rollup: 1970-01-01T00 of all keys, ["model","",""]',
      'rollup: 1970-01-01T00 of k, ["model","",""]',
    ],
  ],
  'the sum of a day': [
    (stored) => {
      stored.sum = (unit, rollup) => {
        const sums = { ...rollup.sums, outputTokens: rollup.sums.outputTokens + 1 };
        return unit === 'day' && rollup.keyId === '' ? { ...rollup, sums } : rollup;
      };
    },
    ['rollup: 1970-01-01 of all keys, ["model","",""]'],
  ],
  'a sum of an hour in which nothing was': [
    (stored) => {
      stored.sum = (_unit, rollup) => ({ ...rollup, at: rollup.at + 24 });
    },
    [
      'rollup: 1970-01-02T00 of k, ["model","",""]',
      'rollup: 1970-01-01T00 of k, ["model","",""]',
      'rollup: 1970-01-02 of all keys, ["model","",""]',
      'rollup: 1970-01-02 of k, ["model","",""]',
      'rollup: 1970-01-25 of all keys, ["model","",""]',
      'rollup: 1970-01-25 of k, ["model","",""]',
    ].sort(),
  ],
  'an exchange that is open and settled': [({ open }) => open.push('ex_1'), ['exchange: ex_1']],
};

for (const [what, [damage, found]] of Object.entries(WRONG)) {
  test(`verify tells what is wrong: ${what}`, () => {
    const stored = soundStore();
    damage(stored);
    assert.deepEqual(differences(stored), found);
  });
}
