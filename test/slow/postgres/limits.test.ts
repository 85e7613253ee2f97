/** Two whole gateways on one database: what a key has taken of its limits on one of them is taken on the other. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { codecs } from '../../../src/codecs/registry.ts';
import { parseConfig } from '../../../src/http/config/parse.ts';
import { fixedConfig } from '../../../src/http/config/source.ts';
import { createLogger } from '../../../src/http/operations/logger.ts';
import { startGateway } from '../../../src/http/start.ts';
import { chargeFor } from '../../../src/store/charge.ts';
import { parsePrice } from '../../../src/store/prices.ts';
import type { Store } from '../../../src/store/store.ts';
import { systemClock } from '../../../src/streams/clock.ts';
import { heldUpstream } from '../../support/held-upstream.ts';
import { funded } from '../../store/support/store.ts';
import { onPostgres, openPlace } from '../../store/support/stores.ts';

async function gatewayOn(ends: AsyncDisposableStack, place: string, upstreamUrl: string) {
  const store = await openPlace(place);
  ends.defer(() => store.close());
  const file = {
    listen: { port: 0 },
    operations: null,
    channels: [{ id: 'a', type: 'chat_completion', base_url: upstreamUrl, api_key: 'k', models: ['m'] }],
    models: { m: { price: { input: '1', output: '2' } } },
  };
  const options = { env: {}, readFile: () => '', parsePrice, path: '/tmp/mizu.config.json', revision: 1, nowMs: Date.now() };
  let rounds = 0;
  const limitCounts: Store['limitCounts'] = {
    async exchange(member, counts) {
      const others = await store.limitCounts.exchange(member, counts);
      rounds += 1;
      return others;
    },
  };
  const running = await startGateway({
    config: fixedConfig(parseConfig(JSON.stringify(file), options)),
    store: { ...store, limitCounts },
    codecs,
    clock: systemClock,
    mint: (prefix) => `${prefix}${randomBytes(16).toString('hex')}`,
    random: Math.random,
    chargeFor,
    log: createLogger('silent', { write: () => undefined }),
    processFigures: false,
  });
  ends.defer(async () => {
    running.cut();
    await running.stop();
  });
  const ask = async (secret: string): Promise<number> => {
    const response = await fetch(`http://127.0.0.1:${running.port}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    });
    await response.text();
    return response.status;
  };
  /** It has said all that it counted until now, and has heard all that others had said until now. */
  const exchanged = async (): Promise<void> => {
    // The next one that ends may have begun already.
    const wanted = rounds + 2;
    await until(async () => rounds >= wanted, 'the counts are not exchanged');
  };
  return { store, ask, exchanged };
}

const PATIENCE_MS = 30_000;

async function until(reached: () => Promise<boolean>, what: string): Promise<void> {
  const started = performance.now();
  while (!(await reached())) {
    if (performance.now() - started > PATIENCE_MS) throw new Error(what);
    await new Promise((next) => setTimeout(next, 100));
  }
}

onPostgres(({ makePlace, dropPlace }) => {
  test('two gateways count as one once they have told each other: requests, tokens, and requests at once', {
    timeout: 120_000,
  }, async (t) => {
    // Last in, first out, and all of them whatever fails: the gateways stop, their stores close, and then the place is dropped.
    const ends = new AsyncDisposableStack();
    t.after(() => ends.disposeAsync());
    const url = await makePlace();
    ends.defer(() => dropPlace(url));
    const behind = await heldUpstream(t, { input: 400, output: 600 });
    const [one, two] = [await gatewayOn(ends, url, behind.url), await gatewayOn(ends, url, behind.url)];
    const owner = (rateLimits: object) => funded(one.store, 10n ** 12n, { rateLimits });

    const { secret: perMinute } = await owner({ requestsPerMinute: 2 });
    assert.deepEqual([await one.ask(perMinute), await one.ask(perMinute), await one.ask(perMinute)], [200, 200, 429]);
    await one.exchanged();
    await two.exchanged();
    assert.equal(await two.ask(perMinute), 429);

    const { secret: tokens } = await owner({ tokensPerMinute: 500 });
    assert.equal(await one.ask(tokens), 200);
    await until(async () => (await two.ask(tokens)) === 429, 'the tokens of the other are not seen');

    const { secret: atOnce } = await owner({ maxConcurrency: 1 });
    behind.holds = true;
    const open = one.ask(atOnce);
    await until(async () => behind.held.length === 1, 'it never arrived');
    await one.exchanged();
    await two.exchanged();
    assert.equal(await two.ask(atOnce), 429);
    behind.release();
    assert.equal(await open, 200);
    await until(async () => (await two.ask(atOnce)) === 200, 'the place stays taken');
  });
});
