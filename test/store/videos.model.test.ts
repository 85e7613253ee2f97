/** Video tasks against a model: creates, duplicates, worker steps, cancels, operators, lost leases, restarts, in any order. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import type { Principal } from '../../src/store/keys.ts';
import type { Store } from '../../src/store/store.ts';
import { VIDEO, type VideoChange, type VideoState } from '../../src/store/videos.ts';
import { cause, FakeClock, funded, ok } from './support/store.ts';
import { eachStore, openPlace } from './support/stores.ts';

const PRICE = 100n;
const START = 550n;
const TASKS = 6;

interface Model {
  readonly tasks: Map<string, { state: VideoState; submissions: number }>;
  wallet: bigint;
  spent: bigint;
}

interface Real {
  readonly path: string;
  readonly clock: FakeClock;
  store: Store;
  readonly owner: Principal;
  token: number;
  generation: number;
}

type Run = (model: Model, real: Real) => Promise<void>;

class Step implements fc.AsyncCommand<Model, Real> {
  readonly #name: string;
  readonly #run: Run;
  constructor(name: string, run: Run) {
    this.#name = name;
    this.#run = run;
  }
  check(): boolean {
    return true;
  }
  run(model: Model, real: Real): Promise<void> {
    return this.#run(model, real);
  }
  toString(): string {
    return this.#name;
  }
}

const idOf = (n: number): string => `video_${n}`;

/** The same request several times at once: one task, one hold. */
const create = (n: number, copies: number): Step =>
  new Step(`create ${n} ×${copies}`, async (model, { store, owner, clock }) => {
    const request = {
      principal: owner,
      model: 'v',
      requestJson: '{}',
      priceNanos: PRICE,
      idempotencyKey: `k${n}`,
      bodyHash: `h${n}`,
      nowMs: clock.now(),
    };
    const fresh = !model.tasks.has(idOf(n));
    const affordable = !fresh || model.wallet >= PRICE;
    const all = await Promise.all(
      Array.from({ length: copies }, (_, copy) =>
        // Which of them comes first is not the caller's to say: all that may create the task ask for the same id.
        store.videos.create({ ...request, id: fresh ? idOf(n) : `${idOf(n)}-${copy}` }),
      ),
    );
    assert.equal(
      all.every((made) => made.ok === affordable),
      true,
    );
    assert.equal(all.filter((made) => made.ok && made.value.created).length, fresh && affordable ? 1 : 0);
    const other = await store.videos.create({ ...request, id: `${idOf(n)}-other`, bodyHash: 'other', priceNanos: 10n ** 15n });
    assert.equal(other.ok, false);
    if (!fresh || !affordable) return;
    model.tasks.set(idOf(n), { state: 'queued', submissions: 0 });
    model.wallet -= PRICE;
  });

const changed = (model: Model, id: string, event: keyof (typeof VIDEO)['queued'], legal: boolean): void => {
  const task = model.tasks.get(id);
  const next = task === undefined ? null : VIDEO[task.state][event];
  assert.equal(legal, next !== null);
  if (task === undefined || next === null) return;
  task.state = next;
  if (event === 'submit') task.submissions += 1;
  if (event === 'succeed') model.spent += PRICE;
  if (event === 'fail' || event === 'cancel') model.wallet += PRICE;
};

const work = (n: number, change: VideoChange): Step =>
  new Step(`${change.event} ${n}`, async (model, { store, token, clock }) => {
    changed(model, idOf(n), change.event, (await store.videos.change(idOf(n), change, token, clock.now())).ok);
  });

/** Nothing is decided of any task: those that wait for something are rescheduled, and none changes its state. */
const reschedule = new Step('reschedule', async (model, { store, token, clock }) => {
  const polls = Array.from({ length: TASKS }, (_, n) => ({ id: idOf(n), dueAtMs: 7 }));
  const polled = [...model.tasks.values()].filter(({ state }) => VIDEO[state].poll !== null);
  assert.equal(ok(await store.videos.reschedule(polls, token, clock.now())), polled.length);
});

const cancel = (n: number): Step =>
  new Step(`cancel ${n}`, async (model, { store, owner, clock }) => {
    const result = await store.videos.cancel(idOf(n), { accountId: owner.account.id, keyId: owner.key.id }, clock.now());
    changed(model, idOf(n), 'cancel', result.ok);
  });

/** The poller and an operator and a client, all at once on one task: the table lets at most one of each kind through. */
const race = (n: number): Step =>
  new Step(`race ${n}`, async (model, { store, owner, token, clock }) => {
    const id = idOf(n);
    const before = model.tasks.get(id)?.state;
    const results = await Promise.all([
      store.videos.change(id, { event: 'succeed', outputUrl: 'u' }, token, clock.now()),
      store.videos.change(id, { event: 'fail', error: { code: 'c', message: 'm' } }, token, clock.now()),
      store.videos.resolve(id, { event: 'succeed', outputUrl: 'u' }, cause(), clock.now()),
      store.videos.cancel(id, { accountId: owner.account.id, keyId: owner.key.id }, clock.now()),
    ]);
    const ended = ['succeeded', 'failed', 'cancelled'];
    assert.equal(results.filter(({ ok: done }) => done).length, before === undefined || ended.includes(before) ? 0 : 1);
    const state = (await store.videos.inspect(id))?.state;
    const task = model.tasks.get(id);
    if (task === undefined || state === undefined || state === before) return;
    task.state = state;
    if (state === 'succeeded') model.spent += PRICE;
    else model.wallet += PRICE;
  });

/** The process dies and another takes over: what was in submission is unclear, and the old lease can write no more. */
const takeOver = new Step('take over', async (model, real) => {
  await real.store.close();
  real.store = await openPlace(real.path, { clock: real.clock });
  real.clock.advance(10_000);
  const old = real.token;
  real.generation += 1;
  real.token = ok(await real.store.leases.acquire(VIDEO_WORKER, `worker ${real.generation}`, 1000, real.clock.now())).token;
  const lost = await real.store.videos.loseAbandoned(real.token, real.clock.now());
  const expected = [...model.tasks].filter(([, { state }]) => state === 'submitting');
  assert.deepEqual(lost.map(({ id }) => id).sort(), expected.map(([id]) => id).sort());
  for (const [, task] of expected) task.state = 'unknown';
  const stale = await real.store.videos.change(idOf(0), { event: 'poll', dueAtMs: 1 }, old, real.clock.now());
  assert.equal(!stale.ok && stale.refusal.reason, 'lease_lost');
});

const compare = new Step('compare', async (model, { store, owner, clock }) => {
  const all = await store.videos.all();
  assert.deepEqual(
    new Map(all.map(({ id, state }) => [id, state])),
    new Map([...model.tasks].map(([id, { state }]) => [id, state])),
  );
  assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, model.wallet);
  const spend = await store.spend.spend(owner.key.id, clock.now());
  assert.equal(spend.total, model.spent);
  assert.equal(model.wallet + spend.total + spend.held, START);
  assert.ok([...model.tasks.values()].every(({ submissions }) => submissions <= 1));
  assert.deepEqual((await store.ledger.verify()).differences, []);
});

const task = fc.nat(TASKS - 1);
const change: fc.Arbitrary<VideoChange> = fc.constantFrom<VideoChange[]>(
  { event: 'submit', channelId: 'c', upstreamModel: 'u' },
  { event: 'submit', channelId: 'c', upstreamModel: 'u' },
  { event: 'accept', upstreamId: 'up', dueAtMs: 5 },
  { event: 'poll', dueAtMs: 6 },
  { event: 'succeed', outputUrl: 'https://x' },
  { event: 'fail', error: { code: 'c', message: 'm' } },
  { event: 'lose', why: 'lost' },
);

eachStore(({ makePlace, dropPlace, histories }) => {
  test('F30, F45: each task is held once, settled xor refunded xor kept, and never submitted twice', async () => {
    const steps = [
      fc.tuple(task, fc.integer({ min: 1, max: 4 })).map((args) => create(...args)),
      fc.tuple(task, change).map((args) => work(...args)),
      fc.tuple(task, change).map((args) => work(...args)),
      task.map(cancel),
      fc.constant(reschedule),
      task.map(race),
      fc.constant(takeOver),
      fc.constant(compare),
    ];
    await fc.assert(
      fc.asyncProperty(fc.commands(steps, { maxCommands: 60, size: '+1' }), async (commands) => {
        const path = await makePlace();
        const clock = new FakeClock();
        const store = await openPlace(path, { clock });
        const owner = await funded(store, START);
        const token = ok(await store.leases.acquire(VIDEO_WORKER, 'worker 0', 1000, clock.now())).token;
        const real: Real = { path, clock, store, owner, token, generation: 0 };
        const model: Model = { tasks: new Map(), wallet: START, spent: 0n };
        try {
          await fc.asyncModelRun(() => ({ model, real }), [...commands]);
          await compare.run(model, real);
        } finally {
          await real.store.close();
          await dropPlace(path);
        }
      }),
      { numRuns: histories },
    );
  });
});
