/**
 * The two engines against each other: the same calls in the same order get the same answers, refusals and errors, and leave the
 * same to be read, also after a restart. Only what is random (ids, hashes over them, secrets) may differ.
 */
import type { UsageGroup } from '../../../src/store/rollups.ts';
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import fc from 'fast-check';
import type { Cause } from '../../../src/store/accounts.ts';
import type { Principal } from '../../../src/store/keys.ts';
import { VIDEO_WORKER } from '../../../src/store/leases.ts';
import type { RequestLogQuery, RequestLogRow } from '../../../src/store/request-log.ts';
import type { Reservation } from '../../../src/store/reservations.ts';
import type { Store } from '../../../src/store/store.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import type { NewVideo, VideoChange } from '../../../src/store/videos.ts';
import { entry, FakeClock, ok, T0 } from '../support/store.ts';
import { onPostgres, openPlace } from '../support/stores.ts';
import { tokenCounts } from '../support/token-counts.ts';

const MINUTE = 60_000;

/** One engine, and what was made on it so far, in the order of its making. */
interface Side {
  readonly place: string;
  readonly clock: FakeClock;
  store: Store;
  readonly owners: Principal[];
  readonly reservations: Reservation[];
  /** Exchanges that were opened or settled, and whose they are: none is opened after that, nor settled for another key. */
  readonly exchanges: Map<string, Principal>;
  /** The token of the worker's lease that was given last. */
  token: number;
  /** The names of random ids, in the order in which they were seen. */
  readonly names: Map<string, string>;
}

/** A call of the store: made on both engines, and its two answers must be the same. */
class Call {
  readonly #text: string;
  readonly make: (side: Side) => Promise<unknown>;
  constructor(text: string, make: (side: Side) => Promise<unknown>) {
    this.#text = text;
    this.make = make;
  }
  toString(): string {
    return this.#text;
  }
}

/** An answer as text that does not depend on chance. */
function plain({ names }: Side, answer: unknown): string {
  const text = JSON.stringify(
    answer,
    (name, value: unknown) => {
      // LMDB keeps in a lease whose registration it is; nobody may read that.
      if (name === 'owner') return undefined;
      if (name === 'hash' || name === 'bytes') return 'random';
      if (typeof value === 'bigint') return `${value}n`;
      if (value instanceof Map) return [...value];
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
      return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
    },
    1,
  );
  return (text ?? 'undefined').replaceAll(/\b(?:acct_|key_|first-secret-)[0-9a-f]{16,}/g, (id) => {
    if (!names.has(id)) names.set(id, `id ${names.size}`);
    return names.get(id) ?? '';
  });
}

/** The first lines that differ, with those around them. */
function differenceOf(postgres: string, lmdb: string): string {
  const [left, right] = [postgres.split('\n'), lmdb.split('\n')];
  const at = left.findIndex((line, n) => line !== right[n]);
  const around = (lines: readonly string[]): string => lines.slice(Math.max(at - 6, 0), at + 6).join('\n');
  return `postgres:\n${around(left)}\nlmdb:\n${around(right)}`;
}

async function answered(side: Side, call: Call): Promise<string> {
  try {
    return plain(side, await call.make(side));
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    return `throws ${error.code}`;
  }
}

const ownerOf = ({ owners }: Side, n: number): Principal => {
  const owner = owners[n % owners.length];
  assert.ok(owner);
  return owner;
};

/** As tasks know their owner. */
const of = (side: Side, n: number) => ({ accountId: ownerOf(side, n).account.id, keyId: ownerOf(side, n).key.id });

const ODD = ['', 'a\u0000b', '\ud800', 'é水', "'; --", 'x'.repeat(300)] as const;
const odd = fc.constantFrom(...ODD);
const word = fc.oneof({ weight: 5, arbitrary: fc.nat(9).map((n) => `word ${n}`) }, { weight: 1, arbitrary: odd });
/** What the gateway's own names, and the names that it knows, can be. */
const name = fc.nat(9).map((n) => `name ${n}`);
const owner = fc.nat(7);
const small = fc.bigInt({ min: -60n, max: 200n });
const amount = fc.oneof(
  { weight: 6, arbitrary: small },
  { weight: 1, arbitrary: fc.constantFrom(0n, 2n ** 53n + 1n, 2n ** 62n, -(2n ** 62n), 2n ** 63n - 1n, 2n ** 63n) },
);
const maybe = <T>(values: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> => fc.option(values, { nil: undefined });
const cause: fc.Arbitrary<Cause> = fc
  .tuple(fc.oneof({ weight: 9, arbitrary: fc.nat(60).map((n) => `cause ${n}`) }, { weight: 1, arbitrary: odd }), maybe(word))
  .map(([id, note]) => ({ id, by: 'test', ...(note === undefined ? {} : { note }) }));
/** Members that are undefined are left out, as the types want it. */
const fields = <T extends object>(members: { [Name in keyof T]: fc.Arbitrary<T[Name]> }) =>
  fc.record(members, { requiredKeys: [], noNullPrototype: true });

const show = (value: unknown): string => fc.stringify(value);
/** Calls of one kind, with what they are given in their text. */
const call = <T extends readonly unknown[]>(
  name: string,
  values: { [Index in keyof T]: fc.Arbitrary<T[Index]> },
  make: (side: Side, ...values: T) => Promise<unknown>,
): fc.Arbitrary<Call> =>
  fc
    .tuple<unknown[]>(...values)
    .map((all) => new Call(`${name}(${all.map(show).join(', ')})`, (side) => make(side, ...(all as unknown as T))));

const limits = fields({ total: amount, hourly: amount, daily: amount });
const perMinute = fc.integer({ min: 0, max: 3 });
const rateLimits = fields({ requestsPerMinute: perMinute, tokensPerMinute: perMinute, maxConcurrency: perMinute });
const keyFields = {
  models: fc.array(word, { maxLength: 2 }),
  expiresAtMs: fc.integer({ min: T0 - 1_000, max: T0 + 90 * MINUTE }),
  limits,
  rateLimits,
};

/** Things that are made come a millisecond apart: what was made in the same one is listed by its random id. */
const makeAccount = call(
  'make account',
  [
    fields({
      name: word,
      class: fc.constantFrom('default', 'gold', '-'),
      unlimited: fc.boolean(),
      creditNanos: amount,
      rateLimits,
    }),
    cause,
  ] as const,
  async ({ store, clock }, account, because) => {
    clock.advance(1);
    return store.accounts.create({ name: 'word 0', ...account }, because);
  },
);
const makeKey = call(
  'make key',
  [owner, fields({ ...keyFields, name: word, subAccount: fc.boolean() }), fc.nat(30), cause] as const,
  async (side, n, key, secret, because) => {
    side.clock.advance(1);
    const { account } = ownerOf(side, n);
    const made = await side.store.keys.create({ accountId: account.id, name: 'k', secret: `secret-${secret}`, ...key }, because);
    if (made.ok) side.owners.push({ account, key: made.value.key });
    return made;
  },
);

const verbs = [
  makeAccount,
  makeKey,
  call('find account', [word] as const, ({ store }, name) => store.accounts.find(name)),
  call('find account by id', [owner] as const, (side, n) => side.store.accounts.find(ownerOf(side, n).account.id)),
  call(
    'change account',
    [
      owner,
      fields({ class: fc.constantFrom('gold', '-'), unlimited: fc.boolean(), disabled: fc.boolean(), rateLimits }),
      cause,
    ] as const,
    (side, n, changes, because) => side.store.accounts.change(ownerOf(side, n).account.id, changes, because),
  ),
  call('change no account', [word, cause] as const, ({ store }, id, because) =>
    store.accounts.change(id, { disabled: true }, because),
  ),
  call('credit', [owner, amount, cause] as const, (side, n, nanos, because) =>
    side.store.accounts.credit(ownerOf(side, n).account.id, nanos, because),
  ),
  call('credit', [owner, amount, cause] as const, (side, n, nanos, because) =>
    side.store.accounts.credit(ownerOf(side, n).account.id, nanos, because),
  ),
  call(
    'change key',
    [owner, fields({ ...keyFields, name: word, disabled: fc.boolean() }), cause] as const,
    (side, n, changes, because) => side.store.keys.change(ownerOf(side, n).key.id, changes, because),
  ),
  call('disable key', [owner, fc.boolean(), cause] as const, (side, n, disabled, because) =>
    side.store.keys.change(ownerOf(side, n).key.id, { disabled }, because),
  ),
  call('transfer', [owner, amount, cause] as const, (side, n, nanos, because) =>
    side.store.keys.transfer(ownerOf(side, n).key.id, nanos, because),
  ),
  call('authenticate', [fc.nat(30)] as const, async ({ store, clock }, n) => store.keys.authenticate(`secret-${n}`, clock.now())),
  call('authenticate', [odd] as const, async ({ store, clock }, token) => store.keys.authenticate(token, clock.now())),
  call('find no key', [odd] as const, async ({ store }, id) => [
    await store.keys.find(id),
    await store.keys.balance(id),
    await store.spend.spend(id, T0),
    await store.spend.usageByDay(id),
    await store.keys.list(id),
  ]),
  call('rotate', [cause] as const, ({ store }, because) => store.secrets.rotate(because)),
];

/** The gateway makes them: they are never odd. */
const exchange = fc.nat(9).map((n) => `ex_${n}`);
const count = fc.nat(5);
const usage = fields(tokenCounts(count));
const settlement = fc.record({
  owner,
  exchange,
  isOpened: fc.boolean(),
  isSettled: fc.integer({ min: 0, max: 2 }).map((n) => n > 0),
  nanos: fc.oneof({ weight: 19, arbitrary: fc.bigInt({ min: 0n, max: 200n }) }, { weight: 1, arbitrary: amount }),
  /** The reservation that was made last goes with it. */
  isReserved: fc.boolean(),
  /** Named as the key's owner, or as someone else. */
  account: fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: owner }),
  more: fields({
    model: name,
    clientRequestId: word,
    requestId: fc.oneof(
      name,
      exchange.map((id) => `req_${id.slice(3)}`),
    ),
    errorText: word,
    usage,
    status: fc.constantFrom('success' as const, 'error' as const),
  }),
});

/** Several exchanges at once: all of them are in one flush. */
const exchanges = call('exchanges', [fc.array(settlement, { minLength: 1, maxLength: 5 })] as const, async (side, all) => {
  const { store, reservations } = side;
  const answers = all.flatMap((one) => {
    const { owner: n, exchange: id, isOpened, isSettled, nanos, isReserved, account, more } = one;
    const { key, account: own } = ownerOf(side, n);
    const named = { key, account: account === undefined ? own : ownerOf(side, account).account };
    const whose = side.exchanges.get(id) ?? named;
    const row = entry(whose, id, nanos, more);
    const isFirst = !side.exchanges.has(id);
    // What is opened and settled in one flush has the place of the one or of the other: here they come together, or apart.
    const isAlone = all.every((other) => other.exchange !== id || other === one);
    const opens = isFirst && isOpened && (isSettled || isAlone);
    if (opens || isSettled) side.exchanges.set(id, whose);
    const reservation = isReserved && isSettled ? reservations.pop() : undefined;
    return [
      ...(opens ? [store.settlements.open(row)] : []),
      ...(isSettled ? [store.settlements.settle({ entry: row, ...(reservation === undefined ? {} : { reservation }) })] : []),
    ];
  });
  await store.settlements.flush();
  return (await Promise.allSettled(answers)).map((one) =>
    one.status === 'fulfilled' ? one.value : one.reason instanceof StoreError && one.reason.code,
  );
});
const admit = call('admit', [owner, fc.bigInt({ min: 0n, max: 50n })] as const, async (side, n, estimate) => {
  const { store, reservations, clock } = side;
  const who = ownerOf(side, n);
  const admitted = await store.admission.admit(who, estimate, clock.now());
  if (admitted.ok) reservations.push(admitted.value);
  return [admitted.ok || admitted.refusal, store.admission.reserved(who.key.id)];
});
const release = call('release', [] as const, async ({ reservations }) => reservations.pop()?.release());

const time = fc.integer({ min: -90, max: 90 }).map((minutes) => T0 + minutes * MINUTE);
const query: fc.Arbitrary<RequestLogQuery> = fields({
  status: fc.constantFrom('success' as const, 'error' as const, 'interrupted' as const),
  sinceMs: time,
  untilMs: time,
  after: fc.nat(30),
  before: fc.nat(30),
  limit: fc.constantFrom(0, 1, 2, 5, 5_000),
});
const day = fc.constantFrom('2026-02-28', '2026-03-01', '2026-03-02', '2026-02-30', '', 'x');
const reads = [
  call('list log', [query, maybe(owner), maybe(owner)] as const, (side, asked, key, account) =>
    side.store.requestLog.list({
      ...asked,
      ...(key === undefined ? {} : { keyId: ownerOf(side, key).key.id }),
      ...(account === undefined ? {} : { accountId: ownerOf(side, account).account.id }),
    }),
  ),
  call(
    'find log',
    [
      fc.oneof(
        word,
        exchange,
        exchange.map((id) => `req_${id.slice(3)}`),
      ),
    ] as const,
    ({ store }, id) => store.requestLog.find(id),
  ),
  call('prune', [time] as const, ({ store }, before) => store.requestLog.prune(before)),
  call('usage', [owner, fields({ from: day, to: day })] as const, (side, n, range) =>
    side.store.spend.usageByDay(ownerOf(side, n).key.id, range),
  ),
  call(
    'journal',
    [fields({ after: fc.nat(40), limit: fc.integer({ min: 1, max: 9 }) }), maybe(owner)] as const,
    (side, asked, n) =>
      side.store.ledger.journal({ ...asked, ...(n === undefined ? {} : { accountId: ownerOf(side, n).account.id }) }),
  ),
  call(
    'journal of',
    [
      fc.oneof(
        exchange,
        cause.map(({ id }) => id),
      ),
    ] as const,
    ({ store }, ref) => store.ledger.journal({ ref }),
  ),
];

const id = fc.oneof({ weight: 12, arbitrary: fc.nat(5).map((n) => `video_${n}`) }, { weight: 1, arbitrary: odd });
const due = fc.integer({ min: 0, max: 9 }).map((minutes) => T0 + minutes * MINUTE);
const video = (side: Side, n: number, taskId: string, key: string, priceNanos: bigint, bodyHash: string): NewVideo => ({
  id: taskId,
  principal: ownerOf(side, n),
  model: 'v',
  requestJson: '{"prompt":"é水\\u0000"}',
  priceNanos,
  idempotencyKey: key,
  bodyHash,
  nowMs: side.clock.now(),
});
const change: fc.Arbitrary<VideoChange> = fc.oneof(
  fc.constant({ event: 'submit', channelId: 'c', upstreamModel: 'u' } as const),
  fc.constant({ event: 'retry', channelId: 'd', upstreamModel: 'u' } as const),
  due.map((dueAtMs) => ({ event: 'accept', upstreamId: 'up', dueAtMs, deadlineAtMs: dueAtMs + 1 }) as const),
  due.map((dueAtMs) => ({ event: 'poll', dueAtMs }) as const),
  word.map((outputUrl) => ({ event: 'succeed', outputUrl }) as const),
  word.map((message) => ({ event: 'fail', error: { code: 'c', message } }) as const),
  due.map((dueAtMs) => ({ event: 'lose', why: 'lost', dueAtMs }) as const),
);
const stale = fc.constantFrom(0, 0, 0, 0, 1);
const holder = fc.constantFrom('w1', 'w2');
const idempotencyKey = fc.oneof({ weight: 9, arbitrary: fc.nat(5).map((n) => `key ${n}`) }, { weight: 1, arbitrary: odd });
const videos = [
  call(
    'make video',
    [owner, id, idempotencyKey, fc.oneof(small, small, amount), fc.constantFrom('h', 'h', 'i')] as const,
    (side, n, taskId, key, price, hash) => side.store.videos.create(video(side, n, taskId, key, price, hash)),
  ),
  call('earlier', [owner, idempotencyKey, fc.constantFrom('h', 'i')] as const, (side, n, key, hash) =>
    side.store.videos.earlier(video(side, n, 'none', key, 0n, hash)),
  ),
  call('find video', [owner, id] as const, async (side, n, taskId) => [
    await side.store.videos.find(taskId, of(side, n)),
    await side.store.videos.inspect(taskId),
  ]),
  call('list videos', [owner, fc.integer({ min: -1, max: 4 }), maybe(id)] as const, (side, n, limit, after) =>
    side.store.videos.list(of(side, n), { limit, ...(after === undefined ? {} : { after }) }),
  ),
  call('cancel', [owner, id] as const, (side, n, taskId) => side.store.videos.cancel(taskId, of(side, n), side.clock.now())),
  call('change video', [id, change, stale] as const, ({ store, clock, token }, taskId, what, old) =>
    store.videos.change(taskId, what, token - old, clock.now()),
  ),
  call('change video', [id, change, stale] as const, ({ store, clock, token }, taskId, what, old) =>
    store.videos.change(taskId, what, token - old, clock.now()),
  ),
  call(
    'put off',
    [fc.array(fc.record({ id, dueAtMs: due }), { maxLength: 4 }), stale] as const,
    ({ store, clock, token }, looks, old) => store.videos.reschedule(looks, token - old, clock.now()),
  ),
  call('resolve', [id, word, fc.boolean(), cause] as const, ({ store, clock }, taskId, text, good, because) =>
    store.videos.resolve(
      taskId,
      good ? { event: 'succeed', outputUrl: text } : { event: 'fail', error: { code: 'c', message: text } },
      because,
      clock.now(),
    ),
  ),
  call(
    'due',
    [
      due,
      fc.integer({ min: 1, max: 4 }),
      fields({ states: fc.subarray(['queued', 'running', 'unknown'] as const), inHand: fc.array(id, { maxLength: 2 }) }),
    ] as const,
    ({ store }, nowMs, limit, asked) => store.videos.due(nowMs, limit, asked),
  ),
  call('lose abandoned', [stale] as const, ({ store, clock, token }, old) =>
    store.videos.loseAbandoned(token - old, clock.now()),
  ),
];
const leases = [
  call('take lease', [holder, fc.constantFrom(0, 1_000, 100 * MINUTE)] as const, async (side, by, ttlMs) => {
    const taken = await side.store.leases.acquire(VIDEO_WORKER, by, ttlMs, side.clock.now());
    if (taken.ok) side.token = taken.value.token;
    return taken;
  }),
  call('renew lease', [stale] as const, ({ store, clock, token }, old) =>
    store.leases.renew(VIDEO_WORKER, token - old, 5_000, clock.now()),
  ),
  call('release lease', [stale] as const, ({ store, token }, old) => store.leases.release(VIDEO_WORKER, token - old)),
];

const wait = call('wait', [fc.constantFrom(0.001, 0.5, 30, 61, 24 * 60)] as const, async ({ clock }, minutes) =>
  clock.advance(minutes * MINUTE),
);
const reopenAgain = async (side: Side): Promise<void> => {
  await side.store.close();
  side.reservations.length = 0;
  side.store = await openPlace(side.place, { clock: side.clock });
};
const reopen = fc.constant(new Call('reopen', reopenAgain));

/** An account with a plain key and one that has a balance of its own. */
const begin = (n: number): Call =>
  new Call(`begin ${n}`, async (side) => {
    side.clock.advance(1);
    const account = ok(
      await side.store.accounts.create({ name: `owner ${n}`, creditNanos: 500n }, { id: `account ${n}`, by: 'test' }),
    );
    for (const subAccount of [false, true]) {
      side.clock.advance(1);
      const secret = `secret-${n}-${subAccount}`;
      const made = ok(
        await side.store.keys.create({ accountId: account.id, name: 'key', secret, subAccount }, { id: secret, by: 'test' }),
      );
      side.owners.push({ account, key: made.key });
    }
  });

/** Everything that can be read. */
const read = new Call('read everything', async ({ store, owners, clock }) => {
  const log: RequestLogRow[] = [];
  for (let page = await store.requestLog.list({ limit: 3 }); page.length > 0; ) {
    log.push(...page);
    page = await store.requestLog.list({ limit: 3, before: page.at(-1)?.seq ?? 0 });
  }
  const each = await Promise.all(
    owners.map(async ({ key: { id: keyId } }) => [
      await store.keys.find(keyId),
      await store.keys.balance(keyId),
      await store.spend.spend(keyId, clock.now()),
      await store.spend.usageByDay(keyId),
      store.admission.reserved(keyId),
    ]),
  );
  const [accounts, keys] = [await store.accounts.list(), await store.keys.list()];
  // Groups are ordered by ids, which each engine draws for itself.
  const made = new Map([...accounts, ...keys].map(({ id }, at) => [id, at]));
  const place = ({ hour, day, accountId, keyId, model, channelId, code }: UsageGroup): string =>
    JSON.stringify([hour, day, made.get(accountId ?? '') ?? -1, made.get(keyId ?? '') ?? -1, model, channelId, code]);
  return {
    accounts,
    keys,
    each,
    journal: await store.ledger.journal({ limit: 10_000 }),
    holds: await store.ledger.holds(),
    videos: await store.videos.all(),
    log,
    filtered: await Promise.all(
      [{ model: '' }, { channelId: '' }, { code: '' }, { code: 'error' }].map(async (asked) =>
        (await store.requestLog.list(asked)).map(({ exchangeId }) => exchangeId),
      ),
    ),
    head: await store.requestLog.head(),
    used: await Promise.all(
      ([[], ['hour', 'key', 'model', 'channel', 'code'], ['day', 'account', 'code']] as const).map(async (by) => {
        const groups = await store.usageByHour({ fromMs: 0, toMs: clock.now() + 1 }, {}, by);
        return groups.map((group) => [place(group), group] as const).sort(([a], [b]) => (a < b ? -1 : 1));
      }),
    ),
    secret: store.secrets.current(),
    sound: (await store.ledger.verify()).differences,
  };
});

const some = (weight: number, calls: readonly fc.Arbitrary<Call>[]) => ({ weight, arbitrary: fc.oneof(...calls) });
const calls = fc.array(
  fc.oneof(
    some(6, verbs),
    some(4, [exchanges]),
    some(2, [admit, admit, release]),
    some(3, reads),
    some(6, videos),
    some(2, leases),
    some(1, [wait]),
    some(2, [reopen]),
  ),
  { maxLength: 80, size: 'max' },
);

onPostgres(({ makePlace, dropPlace, histories }) => {
  test('both engines give the same answers to the same calls, and the same is to be read after them', async () => {
    await fc.assert(
      fc.asyncProperty(calls, async (all) => {
        const places = [mkdtempSync(join(tmpdir(), 'mizu-store-')), await makePlace()];
        const sides = await Promise.all(
          places.map(async (place): Promise<Side> => {
            const clock = new FakeClock();
            const store = await openPlace(place, { clock });
            return { place, clock, store, owners: [], reservations: [], exchanges: new Map(), token: 0, names: new Map() };
          }),
        );
        const both = async (one: Call): Promise<void> => {
          const [lmdb, postgres] = await Promise.all(sides.map((side) => answered(side, one)));
          if (postgres !== lmdb) assert.fail(`${one}:\n${differenceOf(postgres ?? '', lmdb ?? '')}`);
        };
        try {
          for (const n of [1, 2]) await both(begin(n));
          for (const one of all) await both(one);
          await both(read);
          await both(new Call('reopen', reopenAgain));
          await both(read);
        } finally {
          await Promise.all(sides.map(({ store }) => store.close()));
          rmSync(places[0] ?? '', { recursive: true, force: true });
          await dropPlace(places[1] ?? '');
        }
      }),
      { numRuns: histories * 2 },
    );
  });
});
