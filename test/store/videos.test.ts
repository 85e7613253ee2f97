/** Video tasks: the table, the hold, idempotency, fencing, the list. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Principal } from '../../src/store/keys.ts';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import type { Store } from '../../src/store/store.ts';
import {
  type NewVideo,
  VIDEO,
  type VideoChange,
  type VideoEvent,
  type VideoState,
  type VideoTask,
} from '../../src/store/videos.ts';
import { cause, funded, ok, refusal, T0 } from './support/store.ts';
import { eachStore } from './support/stores.ts';

const newVideo = (principal: Principal, id: string, more: Partial<NewVideo> = {}): NewVideo => ({
  id,
  principal,
  model: 'v',
  requestJson: '{}',
  priceNanos: 100n,
  idempotencyKey: `key-${id}`,
  bodyHash: 'hash',
  nowMs: T0,
  ...more,
});

const owned = ({ account, key }: Principal) => ({ accountId: account.id, keyId: key.id });
const lease = async (store: Store, holder = 'worker') => ok(await store.leases.acquire(VIDEO_WORKER, holder, 1000, T0)).token;

const CHANGES: Record<Exclude<VideoEvent, 'cancel'>, VideoChange> = {
  submit: { event: 'submit', channelId: 'c', upstreamModel: 'u' },
  retry: { event: 'retry', channelId: 'd', upstreamModel: 'u' },
  accept: { event: 'accept', upstreamId: 'up-1', dueAtMs: T0 + 5000 },
  poll: { event: 'poll', dueAtMs: T0 + 9000 },
  succeed: { event: 'succeed', outputUrl: 'https://example.com/v.mp4' },
  fail: { event: 'fail', error: { code: 'bad', message: 'no' } },
  lose: { event: 'lose', why: 'answer lost', dueAtMs: T0 + 60_000 },
};

/** The shortest way into each state. */
const PATHS: Record<VideoState, readonly VideoEvent[]> = {
  queued: [],
  submitting: ['submit'],
  running: ['submit', 'accept'],
  unknown: ['submit', 'lose'],
  succeeded: ['submit', 'accept', 'succeed'],
  failed: ['submit', 'fail'],
  cancelled: ['cancel'],
};

const STATES = Object.keys(VIDEO) as VideoState[];
const EVENTS = Object.keys(VIDEO.queued) as VideoEvent[];

eachStore(({ openStore, place }) => {
  test('in every state every event does what the table says, and an illegal one changes nothing', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1_000_000n);
    const token = await lease(store);
    const apply = (id: string, event: VideoEvent) =>
      event === 'cancel' ? store.videos.cancel(id, owned(owner), T0) : store.videos.change(id, CHANGES[event], token, T0);
    for (const state of STATES) {
      for (const event of EVENTS) {
        const id = `video_${state}_${event}`;
        ok(await store.videos.create(newVideo(owner, id)));
        for (const step of PATHS[state]) ok(await apply(id, step));
        const before = await store.videos.inspect(id);
        const rows = (await store.ledger.journal({ ref: id })).length;
        const changed = await apply(id, event);
        const next = VIDEO[state][event];
        if (next === null) {
          assert.equal(refusal(changed).reason, 'illegal', `${state} ${event}`);
          assert.deepEqual(await store.videos.inspect(id), before);
          assert.equal((await store.ledger.journal({ ref: id })).length, rows);
        } else assert.equal(ok(changed).state, next, `${state} ${event}`);
      }
    }
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('the price is held at creation, charged by success, refunded by failure and cancel, kept while unclear', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1000n);
    const token = await lease(store);
    const wallet = async () => (await store.accounts.find(owner.account.id))?.walletNanos;
    for (const id of ['a', 'b', 'c', 'd']) ok(await store.videos.create(newVideo(owner, id)));
    assert.equal(await wallet(), 600n);
    assert.equal((await store.spend.spend(owner.key.id, T0)).held, 400n);
    ok(await store.videos.cancel('a', owned(owner), T0));
    for (const id of ['b', 'c', 'd']) ok(await store.videos.change(id, CHANGES.submit, token, T0));
    ok(await store.videos.change('b', CHANGES.succeed, token, T0));
    ok(await store.videos.change('c', CHANGES.fail, token, T0));
    ok(await store.videos.change('d', CHANGES.lose, token, T0));
    assert.equal(await wallet(), 800n);
    assert.deepEqual(
      (await store.spend.usageByDay(owner.key.id)).map(({ requests, videos, chargedNanos }) => [requests, videos, chargedNanos]),
      [[0, 1, 100n]],
    );
    assert.deepEqual(await store.spend.spend(owner.key.id, T0), { total: 100n, hourly: 100n, daily: 100n, held: 100n });
    ok(
      await store.videos.resolve(
        'd',
        { event: 'fail', error: { code: 'operator', message: 'never arrived' } },
        cause('ticket-7'),
        T0,
      ),
    );
    assert.equal(await wallet(), 900n);
    const again = { event: 'fail', error: { code: 'operator', message: 'never arrived' } } as const;
    assert.equal(ok(await store.videos.resolve('d', again, cause('ticket-7'), T0 + 1)).updatedAtMs, T0);
    assert.equal(refusal(await store.videos.resolve('d', again, cause('ticket-70'), T0)).reason, 'illegal');
    const other = { event: 'fail', error: { code: 'operator', message: 'arrived broken' } } as const;
    assert.equal(refusal(await store.videos.resolve('d', other, cause('ticket-7'), T0)).reason, 'illegal');
    assert.equal(refusal(await store.videos.resolve('d', { event: 'succeed', outputUrl: 'x' }, cause(), T0)).reason, 'illegal');
    const kinds = (await store.ledger.journal({ ref: 'd' })).map(({ kind, by, note }) => [kind, by, note]);
    assert.deepEqual(kinds, [
      ['hold', undefined, undefined],
      ['keep', undefined, undefined],
      ['refund', 'test', 'ticket-7'],
    ]);
    assert.deepEqual(await store.requestLog.list(), []);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('a verdict of success is the same only with the same result, and is journaled with who gave it and why', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1000n);
    const token = await lease(store);
    ok(await store.videos.create(newVideo(owner, 'v')));
    for (const event of ['submit', 'lose'] as const) ok(await store.videos.change('v', CHANGES[event], token, T0));
    const resolve = (outputUrl: string) =>
      store.videos.resolve('v', { event: 'succeed', outputUrl }, { id: 'ticket', by: 'me', note: 'it came' }, T0);
    const task = ok(await resolve('https://example.com/a'));
    assert.deepEqual(ok(await resolve('https://example.com/a')), task);
    assert.equal(refusal(await resolve('https://example.com/b')).reason, 'illegal');
    const row = (await store.ledger.journal({ ref: 'v' })).at(-1);
    assert.deepEqual([row?.kind, row?.by, row?.note], ['settle', 'me', 'ticket: it came']);
    assert.equal(
      refusal(await store.videos.resolve('none', { event: 'succeed', outputUrl: 'x' }, cause(), T0)).reason,
      'not_found',
    );
  });

  test('F29: the same request is one task, whenever it comes again; another body is refused', async (t) => {
    const path = await place(t);
    const store = await openStore(t, { path });
    const owner = await funded(store, 1000n);
    const other = await funded(store, 1000n);
    const ask = (n: number, more: Partial<NewVideo> = {}) => newVideo(owner, `t${n}`, { idempotencyKey: 'same', ...more });
    const all = await Promise.all(Array.from({ length: 50 }, (_, n) => store.videos.create(ask(n))));
    assert.equal(all.filter((made) => ok(made).created).length, 1);
    assert.equal(new Set(all.map((made) => ok(made).task.id)).size, 1);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 900n);
    assert.equal(refusal(await store.videos.create(ask(51, { bodyHash: 'other' }))).reason, 'idempotency_key_reused');
    assert.equal(ok(await store.videos.earlier(ask(0)))?.id, ok(all[0] ?? assert.fail()).task.id);
    assert.equal(refusal(await store.videos.earlier(ask(0, { bodyHash: 'other' }))).reason, 'idempotency_key_reused');
    assert.equal(ok(await store.videos.earlier(ask(0, { principal: other }))), undefined);
    assert.equal(ok(await store.videos.create(newVideo(other, 'u1', { idempotencyKey: 'same' }))).created, true);
    await store.close();
    const again = await openStore(t, { path });
    assert.equal(ok(await again.videos.create(ask(52))).created, false);
    for (const bad of ['', 'x'.repeat(300), 'a\nb', 'é']) {
      assert.equal(refusal(await again.videos.create(newVideo(owner, 'z', { idempotencyKey: bad }))).reason, 'invalid');
    }
  });

  test('what cannot be paid is not created', async (t) => {
    const store = await openStore(t);
    const poor = await funded(store, 99n);
    assert.deepEqual(refusal(await store.videos.create(newVideo(poor, 'p'))), {
      reason: 'insufficient_balance',
      source: 'wallet',
    });
    const limited = await funded(store, 1000n, { limits: { daily: 200n } });
    ok(await store.videos.create(newVideo(limited, 'l1')));
    ok(await store.videos.create(newVideo(limited, 'l2')));
    assert.deepEqual(refusal(await store.videos.create(newVideo(limited, 'l3'))), {
      reason: 'spend_limit_reached',
      window: 'daily',
    });
    const off = await funded(store, 1000n);
    ok(await store.keys.change(off.key.id, { disabled: true }, cause()));
    assert.equal(refusal(await store.videos.create(newVideo(off, 'o'))).reason, 'key_not_active');
    const closed = await funded(store, 1000n);
    ok(await store.accounts.change(closed.account.id, { disabled: true }, cause()));
    assert.equal(refusal(await store.videos.create(newVideo(closed, 'c'))).reason, 'key_not_active');
    const rich = await funded(store, 1000n);
    assert.equal(refusal(await store.videos.create(newVideo(rich, 'debt', { priceNanos: -1n }))).reason, 'invalid');
    const gift = ok(await store.videos.create(newVideo(rich, 'gift', { priceNanos: 0n }))).task;
    assert.deepEqual(gift.state === 'queued' && gift.dueAtMs, T0, 'what says nothing else is due at once');
    assert.equal(refusal(await store.videos.create(newVideo(rich, 'gift', { idempotencyKey: 'another' }))).reason, 'invalid');
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('what no engine can keep of a task is refused by its name, and nothing is held for it', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1000n);
    ok(await store.videos.create(newVideo(owner, 'taken')));
    const { rows } = await store.ledger.verify();
    const words = 'must be 1 to 255 printable ASCII characters';
    const cases: readonly (readonly [field: string, Partial<NewVideo>, message: string])[] = [
      ...['', 'a b', 'é', 'x'.repeat(201)].map((id) => ['id', { id }, 'is not an id'] as const),
      ...['', 'a\nb', 'é', 'x'.repeat(256)].map((idempotencyKey) => ['idempotencyKey', { idempotencyKey }, words] as const),
      ['priceNanos', { priceNanos: -1n }, 'must not be negative'],
      ['id', { id: 'taken', idempotencyKey: 'another' }, 'is taken'],
    ];
    for (const [field, more, message] of cases)
      assert.deepEqual(refusal(await store.videos.create(newVideo(owner, 'new', more))), { reason: 'invalid', field, message });
    assert.deepEqual(await store.ledger.verify(), { rows, differences: [] });
    ok(await store.videos.create(newVideo(owner, 'x'.repeat(200), { idempotencyKey: ' '.repeat(255) })));
  });

  test('a refund goes to the wallet when the sub-account that paid is gone', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1000n, { subAccount: true });
    ok(await store.keys.transfer(owner.key.id, 300n, cause()));
    ok(await store.videos.create(newVideo(owner, 's')));
    ok(await store.keys.change(owner.key.id, { disabled: true }, cause()));
    ok(await store.videos.cancel('s', owned(owner), T0));
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, 1000n);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('words that no engine keeps as they are come back the same from each, and a verdict in them may be repeated', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1000n);
    const token = await lease(store);
    ok(await store.videos.create(newVideo(owner, 'odd')));
    ok(await store.videos.change('odd', CHANGES.submit, token, T0));
    ok(await store.videos.change('odd', { event: 'lose', why: '\ud800' }, token, T0));
    const verdict = { event: 'fail', error: { code: 'operator', message: 'a\u0000b\udc00' } } as const;
    const ticket = { id: 't\u0000\ud800', by: 'test', note: 'because' };
    for (const at of [T0, T0 + 1]) {
      const task = ok(await store.videos.resolve('odd', verdict, ticket, at));
      assert.deepEqual([task.state === 'failed' && task.error.message, task.updatedAtMs], ['a\ufffdb\ufffd', T0]);
      assert.deepEqual(await store.videos.inspect('odd'), task);
    }
  });

  test('a task of another key is as if it did not exist', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1000n);
    const stranger = await funded(store, 1000n);
    const sibling = ok(await store.keys.create({ accountId: owner.account.id, name: 'sibling' }, cause()));
    ok(await store.videos.create(newVideo(owner, 'mine')));
    for (const who of [owned(stranger), { accountId: owner.account.id, keyId: sibling.key.id }]) {
      assert.equal(await store.videos.find('mine', who), undefined);
      assert.equal(refusal(await store.videos.cancel('mine', who, T0)).reason, 'not_found');
      assert.deepEqual(ok(await store.videos.list(who, { limit: 10 })).tasks, []);
      assert.equal(refusal(await store.videos.list(who, { limit: 10, after: 'mine' })).reason, 'unknown_cursor');
    }
    for (const odd of ['', 'x'.repeat(5000), 'a\u0000b', '../x']) {
      assert.equal(await store.videos.find(odd, owned(owner)), undefined);
      const request = { ...newVideo(owner, 'none'), idempotencyKey: odd };
      assert.equal(ok(await store.videos.earlier(request)), undefined);
      assert.deepEqual(await store.videos.due(T0 - 1, 1, { inHand: [odd] }), []);
    }
  });

  test('the list is newest first and its pages meet without gap or overlap, also while tasks are created', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 100_000n);
    for (let n = 1; n <= 7; n += 1) ok(await store.videos.create(newVideo(owner, `n${n}`)));
    const ids = (tasks: readonly Pick<VideoTask, 'id'>[]) => tasks.map(({ id }) => id).join(' ');
    const first = ok(await store.videos.list(owned(owner), { limit: 3 }));
    assert.deepEqual([ids(first.tasks), first.hasMore, first.nextCursor], ['n7 n6 n5', true, 'n5']);
    ok(await store.videos.create(newVideo(owner, 'n8')));
    const second = ok(await store.videos.list(owned(owner), { limit: 3, after: 'n5' }));
    assert.deepEqual([ids(second.tasks), second.nextCursor], ['n4 n3 n2', 'n2']);
    const third = ok(await store.videos.list(owned(owner), { limit: 3, after: 'n2' }));
    assert.deepEqual([ids(third.tasks), third.hasMore, third.nextCursor], ['n1', false, undefined]);
    assert.equal(refusal(await store.videos.list(owned(owner), { limit: 3, after: 'gone' })).reason, 'unknown_cursor');
    const whole = ok(await store.videos.list(owned(owner), { limit: 8 }));
    assert.deepEqual([whole.tasks.length, whole.hasMore, whole.nextCursor], [8, false, undefined], 'a last page may be full');
    for (const [limit, size] of [
      [0, 1],
      [-5, 1],
      [2.9, 2],
      [10 ** 9, 8],
    ] as const)
      assert.equal(ok(await store.videos.list(owned(owner), { limit })).tasks.length, size, `limit ${limit}`);
    assert.equal(ids(await store.videos.all({ limit: 2 })), 'n8 n7');
    assert.deepEqual(await store.videos.all({ state: 'running' }), []);
  });

  test('of a large request its long words are cut when the task is over, and not before', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 100_000n);
    const link = `https://images.example/cat.png?${'A'.repeat(900_000)}`;
    const large = JSON.stringify({ prompt: 'a cat', input: [{ type: 'image', url: link }], seed: 7 });
    const many = JSON.stringify(Array.from({ length: 10_000 }, (_, n) => n));
    const none = 'x'.repeat(20_000);
    const requests = { large, many, none, short: '{"prompt":"a cat"}' };
    for (const [id, requestJson] of Object.entries(requests)) {
      ok(await store.videos.create({ ...newVideo(owner, id), requestJson }));
      assert.equal((await store.videos.inspect(id))?.requestJson, requestJson);
      ok(await store.videos.cancel(id, owned(owner), T0));
    }
    const kept = async (id: string): Promise<string> => (await store.videos.inspect(id))?.requestJson ?? '';
    const url = `${link.slice(0, 256)}… (${link.length} characters)`;
    assert.deepEqual(JSON.parse(await kept('large')), { prompt: 'a cat', input: [{ type: 'image', url }], seed: 7 });
    assert.deepEqual(JSON.parse(await kept('many')), { cut: `${many.slice(0, 256)}… (${many.length} characters)` });
    assert.deepEqual(JSON.parse(await kept('none')), { cut: `${none.slice(0, 256)}… (${none.length} characters)` });
    assert.equal(await kept('short'), requests.short);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('a page of tasks with large requests is read in steps, between which others have their turns, and without the requests', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 100_000n);
    const words = { prompt: 'x"\ud83d\ude00\\u0000'.repeat(100_000) };
    for (let n = 1; n <= 24; n += 1)
      ok(await store.videos.create({ ...newVideo(owner, `n${n}`), requestJson: JSON.stringify(words) }));
    let turns = 0;
    let isOver = false;
    const count = (): void => {
      turns += 1;
      if (!isOver) setImmediate(count);
    };
    setImmediate(count);
    const { tasks } = ok(await store.videos.list(owned(owner), { limit: 24 }));
    isOver = true;
    assert.equal(tasks.length, 24);
    const [newest] = tasks;
    const { requestJson, ...rest } = (await store.videos.inspect('n24')) ?? {};
    assert.deepEqual(newest, rest);
    assert.deepEqual(JSON.parse(requestJson ?? ''), words);
    assert.ok(turns >= 5, `others had ${turns} turns`);
  });

  test('F32: a worker that lost its lease can change nothing; what it left in submission becomes unknown', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 1000n);
    const old = await lease(store, 'one');
    for (const id of ['f1', 'f2']) {
      ok(await store.videos.create(newVideo(owner, id)));
      ok(await store.videos.change(id, CHANGES.submit, old, T0));
    }
    ok(await store.videos.change('f2', CHANGES.accept, old, T0));
    assert.deepEqual(await store.videos.loseAbandoned(old, T0), [], 'what it submits itself is not abandoned');
    const next = ok(await store.leases.acquire(VIDEO_WORKER, 'two', 1000, T0 + 5000)).token;
    assert.deepEqual(await store.videos.loseAbandoned(old, T0), [], 'it may not say so any more');
    assert.equal(refusal(await store.videos.change('f1', CHANGES.accept, old, T0)).reason, 'lease_lost');
    assert.deepEqual(
      (await store.videos.loseAbandoned(next, T0)).map(({ id, state }) => [id, state]),
      [['f1', 'unknown']],
    );
    assert.deepEqual(await store.videos.loseAbandoned(old, T0), []);
    assert.equal(
      refusal(await store.videos.resolve('f2', { event: 'succeed', outputUrl: 'x' }, cause(), T0)).reason,
      'illegal',
      'only what is unclear is decided by hand',
    );
    await store.leases.release(VIDEO_WORKER, next);
    assert.equal(refusal(await store.videos.change('f2', CHANGES.succeed, next, T0)).reason, 'lease_lost');
    const again = await lease(store, 'two');
    ok(await store.videos.change('f2', CHANGES.succeed, again, T0));
  });

  test('due gives what is to be looked at, the most overdue first; a retry gets an attempt of its own', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 10_000n);
    const token = await lease(store);
    const make = async (id: string, dueAtMs: number, events: readonly Exclude<VideoEvent, 'cancel'>[]) => {
      ok(await store.videos.create(newVideo(owner, id, { dueAtMs })));
      for (const event of events) ok(await store.videos.change(id, CHANGES[event], token, T0));
    };
    await make('q', T0 + 10, []);
    await make('r', T0, ['submit', 'retry', 'accept']);
    await make('k', T0, ['submit', 'lose']);
    await make('s', T0, ['submit']);
    await make('x', T0, ['submit', 'accept', 'succeed']);
    const due = async (nowMs: number, limit = 10) => (await store.videos.due(nowMs, limit)).map(({ id }) => id).join(' ');
    assert.equal(await due(T0 + 9), '');
    assert.equal(await due(T0 + 10), 'q');
    assert.equal(await due(T0 + 60_000), 'q r k');
    assert.equal(await due(T0 + 60_000, 1), 'q');
    const inHand = await store.videos.due(T0 + 60_000, 1, { inHand: ['q'] });
    assert.deepEqual(
      inHand.map(({ id }) => id),
      ['r'],
      'what is in hand takes no place from the others',
    );
    await make('late', T0 + 20_000, []);
    assert.equal(await due(T0 + 60_000), 'q r late k', 'whatever its state');
    ok(await store.videos.cancel('late', owned(owner), T0));
    const only = await store.videos.due(T0 + 60_000, 10, { states: ['running', 'unknown'] });
    assert.deepEqual(
      only.map(({ id }) => id),
      ['r', 'k'],
    );
    const retried = await store.videos.inspect('r');
    assert.deepEqual(retried?.state === 'running' && [retried.submission.attempt, retried.submission.channelId], [2, 'd']);
    ok(await store.videos.change('r', CHANGES.poll, token, T0));
    assert.equal(await due(T0 + 8000), 'q');
  });

  test('tasks of which nothing was decided are rescheduled together; what is over, and a worker without the lease, change nothing', async (t) => {
    const store = await openStore(t);
    const owner = await funded(store, 10_000n);
    const token = await lease(store);
    const make = async (id: string, events: readonly Exclude<VideoEvent, 'cancel'>[]) => {
      ok(await store.videos.create(newVideo(owner, id)));
      for (const event of events) ok(await store.videos.change(id, CHANGES[event], token, T0));
    };
    await make('queued', []);
    await make('running', ['submit', 'accept']);
    await make('unknown', ['submit', 'lose']);
    await make('done', ['submit', 'accept', 'succeed']);
    const [queued, over] = [await store.videos.inspect('queued'), await store.videos.inspect('done')];
    const rows = (await store.ledger.verify()).rows;
    const polls = ['queued', 'running', 'unknown', 'done', 'never', ''].map((id, n) => ({ id, dueAtMs: T0 + 100 + n }));
    assert.equal(ok(await store.videos.reschedule(polls, token, T0 + 7)), 3);
    for (const [id, dueAtMs] of [
      ['running', T0 + 101],
      ['unknown', T0 + 102],
    ] as const) {
      const task = await store.videos.inspect(id);
      assert.deepEqual(task !== undefined && 'polls' in task && [task.polls, task.dueAtMs, task.updatedAtMs], [
        1,
        dueAtMs,
        T0 + 7,
      ]);
    }
    // Whoever waits for a Channel sees no change.
    assert.deepEqual(await store.videos.inspect('queued'), { ...queued, dueAtMs: T0 + 100 });
    assert.deepEqual(await store.videos.inspect('done'), over);
    assert.deepEqual(await store.videos.due(T0 + 99, 1), []);
    assert.deepEqual(await store.videos.due(T0 + 101, 1, { inHand: ['queued'] }).then((due) => due.map(({ id }) => id)), [
      'running',
    ]);
    assert.deepEqual(refusal(await store.videos.reschedule(polls, token + 1, T0)), { reason: 'lease_lost' });
    assert.deepEqual(await store.ledger.verify(), { rows, differences: [] });
  });
});
