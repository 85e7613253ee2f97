/** Machines that share a database and differ in the time of day. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { storeClock } from '../../../src/cli/store-clock.ts';
import type { Principal } from '../../../src/store/keys.ts';
import { adjustable, systemClock } from '../../../src/streams/clock.ts';
import { clean, open, until } from '../support/postgres-store.ts';
import { entry, funded, ok, realClock, refusal } from '../support/store.ts';
import { onPostgres } from '../support/stores.ts';

onPostgres(({ place }) => {
  test('a clock that is far from the database’s is told once, with how far it is, and again after it was right', async (t) => {
    let aheadMs = 0;
    let beats = 0;
    const problems: string[] = [];
    await open(
      t,
      await place(t),
      {
        clock: { ...realClock, now: () => Date.now() + aheadMs },
        processTtlMs: 60,
        onProblem: ({ what }) => problems.push(what),
      },
      {
        onQuery(name) {
          if (name === 'owner_beat') beats += 1;
        },
      },
    );
    const beatTwice = async (): Promise<void> => {
      const before = beats;
      await until(() => beats >= before + 3);
    };
    await beatTwice();
    assert.deepEqual(problems, []);
    aheadMs = -4 * 60_000;
    await beatTwice();
    assert.deepEqual(problems, [], 'windows bear with as much');
    aheadMs = 5 * 3_600_000;
    await beatTwice();
    aheadMs = 0;
    await beatTwice();
    aheadMs = -24 * 3_600_000;
    await beatTwice();
    const told = problems.map((what) =>
      /^clock_differs: this machine's clock is (\d+) s (ahead of|behind) the database's; /.exec(what),
    );
    assert.deepEqual(
      told.map((found) => found?.slice(1)),
      [
        ['18000', 'ahead of'],
        ['86400', 'behind'],
      ],
    );
  });

  test('gateways whose clocks are days apart keep one limit by the day, and one that is put right goes on with it', async (t) => {
    const url = await place(t);
    const problems: string[] = [];
    const gateway = async (offMs: number) => {
      const { store, machine, clock, beat } = await openFarOff(t, url, offMs, 60, problems);
      const spend = async (owner: Principal, id: string, nanos: bigint): Promise<boolean> => {
        const admitted = await store.admission.admit(owner, 1n, clock.now());
        if (!admitted.ok) return false;
        await store.settlements.settle({ entry: entry(owner, id, nanos) });
        return true;
      };
      return { store, machine, clock, spend, beat };
    };
    const [behind, ahead] = [await gateway(-26 * 3_600_000), await gateway(50 * 3_600_000)];
    const owner = await funded(ahead.store, 1_000n, { limits: { daily: 100n } });
    let spent = 0;
    for (let n = 0; n < 14; n += 1) if (await (n % 2 === 0 ? ahead : behind).spend(owner, `far-${n}`, 10n)) spent += 1;
    // What the other settled last may not have been heard of yet.
    assert.ok(spent === 10 || spent === 11, `${spent} times`);
    assert.equal((await behind.store.spend.spend(owner.key.id, behind.clock.now())).daily, 10n * BigInt(spent));

    // A step of NTP in the middle of it.
    for (const one of [behind, ahead]) one.machine.offMs = 0;
    await Promise.all([behind.beat(3), ahead.beat(3)]);
    for (const { clock } of [behind, ahead]) assert.ok(Math.abs(clock.now() - Date.now()) < 60_000);
    assert.equal(await behind.spend(owner, 'right', 10n), false);
    assert.deepEqual(
      problems.map(
        (what) => /^clock_differs: this machine's clock is (\d+) s (ahead of|behind) .* go by the database's$/.exec(what)?.[2],
      ),
      ['behind', 'ahead of'],
    );
    await clean(ahead.store);
  });

  test('a machine’s clock that jumps changes nothing, before the next heartbeat either: windows, leases and ends of keys', async (t) => {
    const url = await place(t);
    const problems: string[] = [];
    const { store: jumping, machine, clock, beat } = await openFarOff(t, url, 0, 3_000, problems);
    const steady = await open(t, url, { clock: realClock });
    ok(await steady.leases.acquire('job', 'steady', 15_000, Date.now()));
    const owner = await funded(steady, 1_000n, { limits: { daily: 100n } });
    await steady.settlements.settle({ entry: entry(owner, 'before', 100n) });

    for (const offMs of [800 * 86_400_000, -3 * 86_400_000, 60_000]) {
      machine.offMs = offMs;
      assert.ok(Math.abs(clock.now() - Date.now()) < 5_000 && Number.isSafeInteger(clock.now()), `${offMs}`);
      assert.equal(refusal(await jumping.leases.acquire('job', 'jumping', 15_000, clock.now())).reason, 'held');
      assert.equal((await jumping.admission.admit(owner, 1n, clock.now())).ok, false, 'the limit of the day is reached');
      await beat(2);
    }
    assert.deepEqual(
      problems.map((what) => /^clock_differs: this machine's clock is (\d+) s (ahead of|behind)/.exec(what)?.slice(1)),
      [[`${800 * 86_400}`, 'ahead of']],
      'it is told of all the same, once until it is right',
    );
    await clean(steady);
  });
});

/** A store of a machine whose clock is so far off; `beat` waits for as many more heartbeats. */
async function openFarOff(t: TestContext, url: string, offMs: number, processTtlMs: number, problems: string[]) {
  const machine = { offMs };
  const clock = storeClock(adjustable({ ...systemClock, now: () => Date.now() + machine.offMs }));
  let beats = 0;
  const told = { onProblem: ({ what }: { what: string }) => void problems.push(what) };
  const store = await open(
    t,
    url,
    { clock, processTtlMs, ...told },
    {
      onQuery(name) {
        if (name === 'owner_beat') beats += 1;
      },
    },
  );
  const beat = async (times: number): Promise<void> => {
    const before = beats;
    await until(() => beats >= before + times);
  };
  return { store, machine, clock, beat };
}
