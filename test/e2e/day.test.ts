/**
 * A day in the life (`test/support/day.ts`): each history is accepted by the strict checks of its vendor, at every one of 300
 * turns.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { liveADay } from '../support/day.ts';
import { upstreamForms } from '../support/upstream-forms.ts';

test('a conversation of 300 turns over every dialect and cloud, with two compactions and two lost connections', async () => {
  const forms = upstreamForms(import.meta.filename);
  const { turns, requests, failures, compactions, reconnects, byUpstream } = await liveADay(300, forms);
  assert.deepEqual([turns, failures, compactions, reconnects], [300, 30, 2, 2]);
  assert.ok(requests >= 300 + 60 + 30 + 2, String(requests));
  assert.deepEqual(Object.keys(byUpstream).sort(), forms.map(({ name }) => name).sort());
  for (const count of Object.values(byUpstream)) assert.ok(count > 270 / forms.length, JSON.stringify(byUpstream));
});
