/** Two gateways on one store, which do not see each other's reservations: how far 64 clients can take one balance below zero. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type Simulator, startSimulator } from '../../../src/simulator/simulator.ts';
import type { Store } from '../../../src/store/store.ts';
import { GatewayProcess } from '../crash/gateway-process.ts';
import { funded, openStore } from '../../store/support/store.ts';
import { CLIENTS, PRICE } from '../../support/money-gateway.ts';

const PROCESSES = 2n;
const CLIENT_COUNT = 64;
/** `max_tokens` 50 and an input of one token, as admission estimates them. */
const ESTIMATE = 1n * 5_000n + 50n * 25_000n;
const charge = (output: number): bigint => 3n * 5_000n + BigInt(output) * 25_000n;

interface Setting {
  readonly simulator: Simulator;
  readonly store: Store;
  readonly urls: readonly string[];
}

async function setting(t: TestContext): Promise<Setting> {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-race-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const store = await openStore(t, { path: join(folder, 'data') });
  const parts = {
    channels: [{ id: 'one', type: 'messages', base_url: simulator.url, api_key: 'k', models: ['m'] }],
    models: { m: { price: PRICE } },
  };
  const gateways = Array.from({ length: Number(PROCESSES) }, () => GatewayProcess.on(folder, parts));
  t.after(() => Promise.all(gateways.map((gateway) => gateway.kill('SIGTERM'))));
  return { simulator, store, urls: await Promise.all(gateways.map((gateway) => gateway.listening())) };
}

for (const [name, output, balances] of [
  ['charges within their estimates', 40, 8n],
  ['charges above their estimates', 400, 8n],
] as const) {
  test(`64 clients, two processes, ${name}: the documented bound, every answer paid once`, { timeout: 60_000 }, async (t) => {
    const { simulator, store, urls } = await setting(t);
    simulator.enqueue({
      reply: { pieces: [{ type: 'text', text: 'good morning' }], usage: { input: 3, output } },
      pace: { firstMs: 50 },
      times: 10_000,
    });
    const funds = balances * ESTIMATE + 7n;
    const { account, secret } = await funded(store, funds);
    let answered = 0;
    const codes = new Set<string>();
    const client = async (_: unknown, n: number): Promise<void> => {
      for (;;) {
        const { path, ask } = CLIENTS.messages;
        const response = await fetch(`${urls[n % urls.length]}${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: `Bearer ${secret}` },
          body: JSON.stringify(ask('m', true)),
        });
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
    const wallet = async (): Promise<bigint> => (await store.accounts.find(account.id))?.walletNanos ?? 0n;
    const expected = funds - BigInt(answered) * charge(output);
    for (let tries = 0; tries < 500 && (await wallet()) !== expected; tries++)
      await new Promise((resolve) => setTimeout(resolve, 10));
    const left = await wallet();
    assert.equal(left, expected, 'every answer is paid once');
    assert.deepEqual([...codes], ['402 insufficient_balance']);
    assert.equal(simulator.requests.length, answered, 'what was refused was not sent');
    // Each process may have the whole balance in flight by its estimates, and one request more.
    const inFlight = PROCESSES * (funds / ESTIMATE + 1n);
    const excess = charge(output) > ESTIMATE ? charge(output) - ESTIMATE : 0n;
    const bound = (PROCESSES - 1n) * funds + PROCESSES * ESTIMATE + inFlight * excess;
    assert.ok(left >= -bound, `${left} nano-dollars are left, the bound is ${-bound}`);
    assert.deepEqual((await store.ledger.verify()).differences, []);
    t.diagnostic(
      `${answered} answers for a balance of ${balances} estimates: ${left} nano-dollars are left, the bound is ${-bound}`,
    );
  });
}
