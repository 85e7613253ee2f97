/** Many clients on one nearly empty balance: how far it can go below zero is bounded, and the bound is the documented one. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLIENTS, type MoneyGateway, moneyGateway, type Owner } from '../../support/money-gateway.ts';

const CLIENT_COUNT = 64;

/** Each client asks until it is refused for money. Returns how many answers there were and what the refusals said. */
async function race(gateway: MoneyGateway, owner: Owner): Promise<{ answered: number; codes: Set<string> }> {
  let answered = 0;
  const codes = new Set<string>();
  const client = async (): Promise<void> => {
    for (let tries = 0; tries < 20; tries++) {
      const { path, ask } = CLIENTS.messages;
      const response = await gateway.post(owner, path, ask('messages', true));
      const text = await response.text();
      if (response.status !== 200) {
        codes.add(`${response.status} ${JSON.parse(text).error.code}`);
        return;
      }
      assert.match(text, /message_stop/);
      answered += 1;
    }
  };
  await Promise.all(Array.from({ length: CLIENT_COUNT }, client));
  return { answered, codes };
}

const reply = (output: number) => ({
  reply: { pieces: [{ type: 'text', text: 'good morning' } as const], usage: { input: 3, output } },
  pace: { firstMs: 5 },
  times: 10_000,
});
const charge = (output: number): bigint => 3n * 5_000n + BigInt(output) * 25_000n;
/** `max_tokens` 50 and an input of one token, as admission estimates them. */
const ESTIMATE = 1n * 5_000n + 50n * 25_000n;

test('F28: 64 clients, charges within their estimates: at most one charge below zero, every answer paid once', async (t) => {
  const gateway = await moneyGateway(t);
  gateway.simulator.enqueue(reply(40));
  const funds = 20n * charge(40) + 7n;
  const owner = await gateway.owner(funds);
  const { answered, codes } = await race(gateway, owner);
  const rows = await gateway.settled(owner, answered);
  assert.deepEqual([...codes], ['402 insufficient_balance']);
  assert.ok(rows.every(({ charge: paid }) => paid?.total === charge(40)));
  const left = await gateway.wallet(owner);
  assert.equal(left, funds - BigInt(answered) * charge(40));
  assert.ok(left > -charge(40), `${left} nano-dollars are left`);
  assert.ok(answered >= 1 && answered <= 21, `${answered} answers`);
  assert.equal(gateway.simulator.requests.length, answered, 'what was refused was not sent');
  assert.equal(gateway.store.admission.reserved(owner.key.id), 0n);
  t.diagnostic(`${answered} answers for a balance of 20, ${left} nano-dollars left`);
});

test('F28: 64 clients, charges above their estimates: below zero by no more than one charge and the excess of those in flight', async (t) => {
  const gateway = await moneyGateway(t);
  gateway.simulator.enqueue(reply(400));
  const funds = 10n * ESTIMATE;
  const owner = await gateway.owner(funds);
  const { answered } = await race(gateway, owner);
  await gateway.settled(owner, answered);
  const left = await gateway.wallet(owner);
  assert.equal(left, funds - BigInt(answered) * charge(400));
  // In flight are at most as many as the balance admits by their estimates.
  const inFlight = funds / ESTIMATE + 1n;
  assert.ok(left >= -(charge(400) + inFlight * (charge(400) - ESTIMATE)), `${left} nano-dollars are left`);
});

test('F28, F35: 64 clients on one limit of a key: the same bound for each window', async (t) => {
  for (const window of ['total', 'hourly', 'daily'] as const) {
    await t.test(window, async (tt) => {
      const gateway = await moneyGateway(tt);
      gateway.simulator.enqueue(reply(40));
      const limit = 10n * charge(40);
      const owner = await gateway.owner(10n ** 12n, { limits: { [window]: limit } });
      const { answered, codes } = await race(gateway, owner);
      await gateway.settled(owner, answered);
      assert.deepEqual([...codes], ['402 api_key_spend_limit_reached']);
      const spent = (await gateway.store.spend.spend(owner.key.id, Date.now()))[window];
      assert.ok(spent < limit + charge(40) && spent >= charge(40), `${spent} of ${limit}`);
    });
  }
});

test('a limited key that asks for everything holds up no other key of its account', async (t) => {
  const gateway = await moneyGateway(t);
  const owner = await gateway.owner(1_000_000_000n, { limits: { daily: 10_000_000n } });
  const other = await gateway.store.keys.create({ accountId: owner.account.id, name: 'other' }, { id: 'other', by: 'test' });
  assert.ok(other.ok);
  gateway.simulator.enqueue({ reply: { pieces: [{ type: 'text', text: 'a b c d e f' }] }, pace: { ms: 100 } });
  const greedy = { ...CLIENTS.messages.ask('messages', true), max_tokens: 10 ** 12 };
  const open = await gateway.post(owner, CLIENTS.messages.path, greedy);
  assert.equal(open.status, 200);
  const again = await gateway.post(owner, CLIENTS.messages.path, greedy);
  assert.equal(again.status, 402, 'of the key itself nothing is left');
  await again.text();
  const beside = await gateway.post(other.value.secret, CLIENTS.messages.path, CLIENTS.messages.ask('messages', false));
  assert.equal(beside.status, 200, await beside.text());
  await open.text();
  await gateway.settled(owner, 1);
});
