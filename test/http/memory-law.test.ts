/**
 * A small sample of the memory law (`npm run test:faults -- memory` has all of it, at a size where a fault shows): the refusals
 * hold.
 */
import { test } from 'node:test';
import { attacks } from '../support/memory-attacks.ts';
import { obeysMemoryLaw } from '../support/memory-law.ts';
import { drawn } from '../support/sampled.ts';

const SAMPLE = /JSON values|never finished/;

const sample = attacks(2).filter(({ name }) => SAMPLE.test(name));
for (const attack of drawn(sample, 1, 'memory')) {
  test(`F47: memory: ${attack.name} (a sample)`, async () => {
    await obeysMemoryLaw(attack);
  });
}
