/**
 * The linearity law, sampled, over what is asked of a gateway: histories, forms, frames, headers, comments of upstreams, pages of
 * lists. `npm run test:linear` tries all of them; `MIZU_SEED` repeats a sample.
 */
import { test } from 'node:test';
import { HTTP_CASES } from '../support/linear/http-cases.ts';
import { assertLinear } from '../support/linear/growth.ts';

/** Milliseconds. */
const BUDGET_MS = 700;

const seed = Number(process.env['MIZU_SEED'] ?? Math.floor(Math.random() * 2 ** 31));

test(`linear: a sample of ${HTTP_CASES.length} cases of a gateway, seed ${seed}`, async (t) => {
  const until = performance.now() + BUDGET_MS;
  for (let state = seed; performance.now() < until; ) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    const one = HTTP_CASES[Math.floor((state / 2 ** 32) * HTTP_CASES.length)];
    if (one !== undefined) await t.test(one.name, () => assertLinear(one));
  }
});
