/**
 * Some days of the generated year of `npm run test:faults -- year`: charges reconcile with the vendors' invoices to the last
 * billionth.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { reconcileYear } from '../../support/mixed-year.ts';

test('days of mixed traffic reconcile with an independent invoice; they differ only where a row says why', async (t) => {
  const endings = await reconcileYear(t, { days: 4, aDay: 30, seed: Number(process.env['MIZU_SEED'] ?? 20_260_101) });
  assert.deepEqual(Object.keys(endings).sort(), ['fallback', 'good', 'left', 'refused', 'reported', 'silent']);
});
