/** Alerts of the ledger: a balance or a spend limit under its threshold is told once a crossing, by a line and a count. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { parseConfig } from '../../../src/http/config/parse.ts';
import { ConfigError } from '../../../src/http/config/config-error.ts';
import { LedgerAlerts } from '../../../src/http/exchange/ledger-alerts.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import type { NewKey, Principal } from '../../../src/store/keys.ts';
import { parsePrice } from '../../../src/store/prices.ts';
import type { Store } from '../../../src/store/store.ts';
import { cause, entry, funded, ok, openStore } from '../../store/support/store.ts';
import { createFakeClock } from '../../support/fake-clock.ts';

const configOf = (ledger: object) =>
  parseConfig(JSON.stringify({ ledger }), {
    env: {},
    readFile: () => '',
    parsePrice,
    path: '/x/mizu.json',
    revision: 1,
    nowMs: 0,
  });

interface Rig {
  readonly store: Store;
  readonly owner: Principal;
  readonly lines: string[];
  readonly counted: string[];
  spend(nanos: bigint, owner?: Principal): Promise<void>;
}

async function rig(t: TestContext, ledger: object, nanos: bigint, key: Partial<NewKey> = {}): Promise<Rig> {
  const store = await openStore(t);
  const owner = await funded(store, nanos, key);
  const lines: string[] = [];
  const counted: string[] = [];
  const config = configOf(ledger);
  const alerts = new LedgerAlerts({
    ...{ store, clock: createFakeClock(Date.now()), config: () => config },
    log: createLogger('warn', { write: (line: string) => void lines.push(line) }),
    metrics: { ledgerAlert: (what) => void counted.push(what) },
  });
  let made = 0;
  return {
    ...{ store, owner, lines, counted },
    async spend(amount, who = owner) {
      await store.settlements.settle({ entry: entry(who, `ex_${++made}`, amount) });
      alerts.charged(who);
      alerts.charged(who);
      await alerts.look();
    },
  };
}

const DOLLAR = 1_000_000_000n;

test('a balance under a dollar is told once, and again when it has recovered and fallen', async (t) => {
  const { store, owner, lines, counted, spend } = await rig(t, {}, 3n * DOLLAR);
  await spend(DOLLAR);
  await spend(DOLLAR);
  assert.deepEqual(counted, [], 'a dollar is not under a dollar');
  await spend(1n);
  await spend(DOLLAR / 2n);
  assert.deepEqual(counted, ['balance']);
  const { msg, account_id, balance, threshold } = JSON.parse(lines[0] ?? '');
  assert.deepEqual([msg, account_id, balance, threshold], ['a balance is low', owner.account.id, '0.999999999', '1.00']);
  ok(await store.accounts.credit(owner.account.id, 5n * DOLLAR, cause()));
  await spend(1n);
  await spend(5n * DOLLAR);
  assert.deepEqual(counted, ['balance', 'balance']);
  assert.equal(lines.length, 2);
});

test('an account may have a threshold of its own, by name or id; null tells of none', async (t) => {
  const { owner, counted, spend } = await rig(t, { alert_balance: null }, DOLLAR);
  await spend(DOLLAR / 2n);
  assert.deepEqual(counted, []);
  const own = await rig(t, { alert_balance: null, alert_accounts: { [owner.account.name]: '2' } }, 3n * DOLLAR);
  await own.spend(2n * DOLLAR);
  assert.deepEqual(own.counted, [], 'another account');
});

test('a spend limit of which less than a tenth is left is told for each window', async (t) => {
  const limits = { total: 100n * DOLLAR, daily: 10n * DOLLAR };
  const { owner, lines, counted, spend } = await rig(t, {}, 1000n * DOLLAR, { limits });
  await spend(9n * DOLLAR);
  assert.deepEqual(counted, []);
  await spend(1n);
  await spend(1n);
  assert.deepEqual(counted, ['daily']);
  const { msg, key_id, window, limit, left } = JSON.parse(lines[0] ?? '');
  assert.deepEqual(
    [msg, key_id, window, limit, left],
    ['a spend limit is nearly reached', owner.key.id, 'daily', '10.00', '0.999999999'],
  );
  const over = await rig(t, {}, 1000n * DOLLAR, { limits: { daily: DOLLAR } });
  await over.spend(3n * DOLLAR);
  assert.equal(JSON.parse(over.lines[0] ?? '').left, '0.00', 'nothing is left, and not less');
  const off = await rig(t, { alert_window: 0 }, 1000n * DOLLAR, { limits });
  await off.spend(9_999_999_999n);
  assert.deepEqual(off.counted, []);
});

test('thresholds that are no amounts are refused by their path', () => {
  assert.throws(
    () => configOf({ alert_balance: '-1', alert_accounts: { ada: '1e3' } }),
    (error) => {
      assert.ok(error instanceof ConfigError);
      assert.deepEqual(error.problems.map(({ path }) => path).sort(), ['ledger.alert_accounts.ada', 'ledger.alert_balance']);
      return true;
    },
  );
});
