/** The memory law at a size where a fault shows: what one key keeps, in every way in which something is kept. */
import { test } from 'node:test';
import { attacks } from '../../support/memory-attacks.ts';
import { obeysMemoryLaw } from '../../support/memory-law.ts';
import { figure } from '../../support/figures.ts';

const MIB = 1024 * 1024;

for (const attack of attacks(12)) {
  test(`F47: memory: ${attack.name}`, async (t) => {
    const { held, rss } = await obeysMemoryLaw(attack);
    const claim = `${attack.name}: held and resident for a bound of ${attack.bound / MIB} MiB`;
    figure(t, claim, `${Math.max(0, Math.round(held / MIB))} MiB, ${Math.max(0, Math.round(rss / MIB))} MiB`);
  });
}
