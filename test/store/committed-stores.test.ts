/**
 * The stores that older commits wrote, killed with exchanges open: each is opened, holds what it held, serves a request, and adds
 * up.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { basename, join } from 'node:path';
import { test } from 'node:test';
import type { Store } from '../../src/store/store.ts';
import { listedStore, listText } from '../support/listed-store.ts';
import { CLIENTS, moneyGateway } from '../support/money-gateway.ts';
import { alive } from './support/alive.ts';
import { FIXTURES, placeOf } from './support/committed.ts';
import { T0 } from './support/store.ts';
import { eachStore, openPlace } from './support/stores.ts';

/** What is listed now of what was listed then: what was open is closed as interrupted, and all else is as it was. */
async function assertHeld(store: Store, fixture: string, engine: string): Promise<void> {
  const then = JSON.parse(readFileSync(join(fixture, `${engine}.json`), 'utf8'));
  const now = JSON.parse(listText(await listedStore(store)));
  const interrupted = now.log.splice(0, now.log.length - then.log.length);
  assert.deepEqual(
    interrupted.map(({ exchangeId, status }: { exchangeId: string; status: string }) => [exchangeId, status]).sort(),
    [
      ['ex_open_1', 'interrupted'],
      ['ex_open_2', 'interrupted'],
    ],
  );
  assert.equal(now.journal.splice(then.journal.length).length, 2);
  assert.deepEqual(now, then);
}

const YEAR_MS = 365 * 24 * 3_600_000;

const verified = async (store: Store) => assert.deepEqual((await store.ledger.verify()).differences, []);

const thisProcess = { host: hostname(), pid: process.pid, isAlive: alive };

eachStore((engine) => {
  for (const fixture of FIXTURES) {
    test(`a store of an older commit opens and holds what it held: ${basename(fixture)}`, async (t) => {
      const store = await openPlace(await placeOf(engine, fixture, t), { process: thisProcess });
      t.after(() => store.close());
      await verified(store);
      await assertHeld(store, fixture, engine.name);
      const refused = async (name: string) => {
        const found = await store.keys.authenticate(`sk-mizu-fixture-${name}`, T0 + 1);
        return found.ok ? 'accepted' : found.refusal.reason;
      };
      const found = await Promise.all(['plain', 'disabled', 'expired', 'of-closed'].map(refused));
      assert.deepEqual(found, ['accepted', 'disabled', 'expired', 'account_disabled']);
      const [settled] = await store.requestLog.find('ex_1');
      assert.ok(settled);
      assert.equal((await store.settlements.settle({ entry: settled })).settled, false);
      await verified(store);
    });

    test(`a store of an older commit serves requests and adds up: ${basename(fixture)}`, async (t) => {
      const store = await openPlace(await placeOf(engine, fixture, t), { process: thisProcess });
      // Closes the store after the test, and verifies it before.
      const gateway = await moneyGateway(t, JSON.parse(readFileSync(join(fixture, 'mizu.config.json'), 'utf8')), store);
      const names = ['plain', 'limited', 'sub-account', 'unlimited'];
      for (const name of names) {
        const { path, ask } = CLIENTS.messages;
        const answer = await gateway.post(`sk-mizu-fixture-${name}`, path, ask('messages', name === 'limited'));
        assert.deepEqual([answer.status, (await answer.text()).includes('message')], [200, true], name);
      }
      await store.settlements.flush();
      const charges = (await store.ledger.journal()).filter(({ kind, atMs }) => kind === 'charge' && atMs > T0 + YEAR_MS / 2);
      assert.equal(charges.length, names.length);
    });
  }
});
