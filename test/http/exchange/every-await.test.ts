/**
 * The law of an exchange, on a sample of the faults that its runs find; all of them, on both engines: `npm run test:faults --
 * every-await`.
 */
import { test } from 'node:test';
import { CASES, discover, faultsOf, run } from '../../support/exchange-law.ts';
import { exchangeRig } from '../../support/exchange-rig.ts';

/** Of each case and durability. */
const SAMPLED = 3;
/** `MIZU_SEED=N` repeats what a failure has named. */
const seed = Number(process.env['MIZU_SEED'] ?? Date.now() % 1_000_000);

for (const durability of ['batched', 'strict'] as const) {
  test(`whatever breaks at an await: one settlement, one row, one line; ${durability}`, async (t) => {
    const rig = await exchangeRig('lmdb', durability);
    t.after(() => rig.close());
    let state = seed;
    for (const each of CASES) {
      const faults = faultsOf(await discover(rig, each));
      for (let drawn = 0; drawn < SAMPLED; drawn++) {
        // A linear congruential generator: its high bits are good enough for a sample.
        state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
        const { point, mode } = faults[Math.floor((state / 2_147_483_648) * faults.length)] ?? {
          point: { id: '' },
          mode: 'leave',
        };
        await t.test(`${each.name}: ${mode} at ${point.id} (MIZU_SEED=${seed})`, () =>
          run(rig, each, new Map([[point.id, mode]])),
        );
      }
    }
  });
}
