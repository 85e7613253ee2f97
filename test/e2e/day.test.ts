/**
 * A day in the life (`test/support/day.ts`): each history is accepted by the strict checks of its vendor, at every turn.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { liveADay } from '../support/day.ts';
import { sized } from '../support/sampled.ts';
import { upstreamForms } from '../support/upstream-forms.ts';

const TURNS = sized(100, 300);

test(`a conversation of ${TURNS} turns over every dialect and cloud, with two compactions and two lost connections`, async () => {
  const forms = upstreamForms(import.meta.filename);
  const { turns, requests, failures, compactions, reconnects, byUpstream } = await liveADay(TURNS, forms);
  assert.deepEqual([turns, failures, compactions, reconnects], [TURNS, TURNS / 10, 2, 2]);
  assert.ok(requests >= TURNS * 1.3 + 2, String(requests));
  assert.deepEqual(Object.keys(byUpstream).sort(), forms.map(({ name }) => name).sort());
  for (const count of Object.values(byUpstream)) assert.ok(count > (TURNS * 0.9) / forms.length, JSON.stringify(byUpstream));
});
