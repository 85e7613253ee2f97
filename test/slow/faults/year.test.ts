/** A whole year of generated traffic against an independent invoice: every modifier, failures, leavers and fallbacks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reconcileYear } from '../../support/mixed-year.ts';

test('a year of mixed traffic reconciles with an independent invoice; they differ only where a row says why', async (t) => {
  const endings = await reconcileYear(t, { days: 365, aDay: 24, seed: Number(process.env['MIZU_SEED'] ?? 20_260_101) });
  assert.ok(Object.values(endings).every((times) => times > 100));
});
