/** Who may not pay or may not ask is refused in its own dialect, before anything is sent upstream, and nothing is charged. */
import assert from 'node:assert/strict';
import { before, test } from 'node:test';
import type { NewKey } from '../../../src/store/keys.ts';
import { entry } from '../../store/support/store.ts';
import { CLIENTS, type MoneyGateway, moneyGateway, type Owner, PRICE, UPSTREAM_TYPES } from '../../support/money-gateway.ts';

const MODEL = 'messages';
// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
type Json = any;

interface Case {
  readonly status: number;
  readonly code: string;
  /** Default null. */
  readonly param?: string;
  /** The bearer. */
  owner(gateway: MoneyGateway): Promise<Owner | string>;
  readonly model?: string;
}

/** A key that has spent `nanos`. */
async function spender(gateway: MoneyGateway, nanos: bigint, key: Partial<NewKey>): Promise<Owner> {
  const owner = await gateway.owner(1_000_000n, key);
  await gateway.store.settlements.settle({ entry: entry(owner, `ex_${owner.key.id}`, nanos) });
  return owner;
}

async function changed(gateway: MoneyGateway, changes: Parameters<MoneyGateway['store']['keys']['change']>[1]): Promise<Owner> {
  const owner = await gateway.owner(1_000_000n);
  const done = await gateway.store.keys.change(owner.key.id, changes, { id: `change-${owner.key.id}`, by: 'test' });
  assert.equal(done.ok, true);
  return owner;
}

const soon = () => Date.now() + 400;

const CASES: Record<string, Case> = {
  'no such key': { status: 401, code: 'unauthorized', owner: async () => 'sk-mizu-nobody' },
  'a disabled key': { status: 401, code: 'unauthorized', owner: (gateway) => changed(gateway, { disabled: true }) },
  'an expired key': {
    status: 401,
    code: 'unauthorized',
    async owner(gateway) {
      const owner = await gateway.owner(1_000_000n, { expiresAtMs: soon() });
      await new Promise((resolve) => setTimeout(resolve, 450));
      return owner;
    },
  },
  'a disabled account': {
    status: 401,
    code: 'unauthorized',
    async owner(gateway) {
      const owner = await gateway.owner(1_000_000n);
      await gateway.store.accounts.change(owner.account.id, { disabled: true }, { id: `off-${owner.key.id}`, by: 'test' });
      return owner;
    },
  },
  'an address outside the list': {
    status: 403,
    code: 'ip_not_allowed',
    owner: (gateway) => changed(gateway, { ips: ['10.0.0.0/8'] }),
  },
  'a model outside the list': {
    status: 403,
    code: 'model_not_allowed',
    param: 'model',
    owner: (gateway) => changed(gateway, { models: ['responses'] }),
  },
  'a model without a price': {
    status: 403,
    code: 'model_pricing_required',
    owner: (gateway) => gateway.owner(1_000_000n),
    model: 'unpriced',
  },
  'no such model': {
    status: 404,
    code: 'model_not_found',
    param: 'model',
    owner: (gateway) => gateway.owner(1_000_000n),
    model: 'nothing',
  },
  'an empty wallet': { status: 402, code: 'insufficient_balance', owner: (gateway) => gateway.owner(0n) },
  'a wallet in debt': { status: 402, code: 'insufficient_balance', owner: (gateway) => spender(gateway, 1_000_001n, {}) },
  'an empty sub-account beside a full wallet': {
    status: 402,
    code: 'insufficient_balance',
    owner: (gateway) => gateway.owner(1_000_000n, { subAccount: true }),
  },
  'the total limit reached': {
    status: 402,
    code: 'api_key_spend_limit_reached',
    owner: (gateway) => spender(gateway, 100n, { limits: { total: 100n } }),
  },
  'the hourly limit reached': {
    status: 402,
    code: 'api_key_spend_limit_reached',
    owner: (gateway) => spender(gateway, 101n, { limits: { hourly: 100n } }),
  },
  'the daily limit reached': {
    status: 402,
    code: 'api_key_spend_limit_reached',
    owner: (gateway) => spender(gateway, 100n, { limits: { total: 1_000n, daily: 100n } }),
  },
};

let gateway: MoneyGateway;
before(async (t) => {
  assert.ok('after' in t);
  gateway = await moneyGateway(t, {
    models: { unpriced: {}, ...Object.fromEntries(UPSTREAM_TYPES.map((type) => [type, { price: PRICE }])) },
    channels: [{ id: 'all', type: 'messages', base_url: 'SIMULATOR', api_key: 'k', models: [...UPSTREAM_TYPES, 'unpriced'] }],
  });
});

for (const [name, { status, code, param = null, owner: ownerOf, model = MODEL }] of Object.entries(CASES)) {
  test(`${name}: ${status} ${code} in every dialect, nothing sent, nothing charged`, async () => {
    const owner = await ownerOf(gateway);
    await gateway.store.settlements.flush();
    const rows = (await gateway.store.ledger.journal({ limit: 100_000 })).length;
    for (const [client, { path, ask }] of Object.entries(CLIENTS)) {
      for (const stream of [false, true]) {
        const response = await gateway.post(owner, path, ask(model, stream));
        const body: Json = await response.json();
        assert.equal(response.status, status, client);
        assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
        assert.equal(body.error.code, code, client);
        assert.equal(typeof body.error.message, 'string');
        assert.deepEqual(
          Object.keys(body).sort(),
          client === 'messages' ? ['error', 'request_id', 'type'] : ['error'],
          `the shape of ${client}`,
        );
        if (client === 'messages') continue;
        assert.deepEqual(Object.keys(body.error).sort(), ['code', 'message', 'param', 'type']);
        assert.equal(body.error.param, param, client);
      }
    }
    assert.equal(gateway.simulator.requests.length, 0);
    await gateway.store.settlements.flush();
    assert.equal((await gateway.store.ledger.journal({ limit: 100_000 })).length, rows);
    if (typeof owner !== 'string') assert.equal(gateway.store.admission.reserved(owner.key.id), 0n);
  });
}
