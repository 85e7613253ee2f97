/**
 * A small month of the generator that `bench/month.ts` makes a million of: each view answers, with the figures that the month
 * has, and it goes on where it stopped.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { consoleViews, fillMonth, MonthClock, monthExchange, monthGateway, monthOwners, viewMs } from '../support/month.ts';
import { eachStore, openPlace } from '../store/support/stores.ts';

const EXCHANGES = 1_500;
/**
 * A view of a million rows takes no longer than that (docs/console.md): of these few in processor time, which others on the
 * machine do not lengthen.
 */
const MOST_MS = 300;

eachStore(({ place }) => {
  test('a month of exchanges goes on where it stopped, and every view of the console is quick and right', async (t) => {
    const path = await place(t);
    const clock = new MonthClock();
    const first = await openPlace(path, { clock });
    await fillMonth(first, clock, await monthOwners(first, 5), 500);
    await first.close();
    const store = await openPlace(path, { clock });
    t.after(() => store.close());
    const owners = await monthOwners(store, 5);
    await fillMonth(store, clock, owners, EXCHANGES);
    const entries = Array.from({ length: EXCHANGES }, (_, n) => monthExchange(owners, 'month', n));
    const gateway = await monthGateway(t, store);
    const asked = async (path: string) => (await gateway.ask(path)).json;

    const views = Object.entries(consoleViews(owners, EXCHANGES));
    for (const [view, paths] of views) {
      const times: number[] = [];
      for (let look = 0; look < 3; look += 1) {
        const before = process.cpuUsage();
        await viewMs(gateway, paths);
        const { user, system } = process.cpuUsage(before);
        times.push((user + system) / 1_000);
      }
      assert.ok(Math.min(...times) < MOST_MS, `${view}: ${times.map(Math.round).join(', ')} ms`);
    }

    const { total } = await asked('overview?from=40d');
    const failed = entries.filter(({ status }) => status === 'error');
    assert.deepEqual([total.requests, total.errors], [EXCHANGES, failed.length]);
    const every = async (filter: string): Promise<string[]> => {
      const ids: string[] = [];
      for (let before = ''; ; ) {
        const { data, nextCursor } = await asked(`exchanges?limit=1000&${filter}${before}`);
        ids.push(...data.map(({ exchangeId }: { exchangeId: string }) => exchangeId));
        if (nextCursor === undefined) return ids;
        before = `&before=${nextCursor}`;
      }
    };
    const found = (fits: (entry: (typeof entries)[number]) => boolean): string[] =>
      entries
        .filter(fits)
        .map(({ exchangeId }) => exchangeId)
        .reverse();
    const [owner] = owners;
    assert.deepEqual(
      await every('code=rate_limited'),
      found(({ errorCode }) => errorCode === 'rate_limited'),
    );
    assert.deepEqual(
      await every('channel=seldom'),
      found(({ attempts }) => attempts[0]?.channelId === 'seldom'),
    );
    assert.deepEqual(
      await every('status=error&model=model-0'),
      found(({ status, model }) => status === 'error' && model === 'model-0'),
    );
    assert.deepEqual(
      await every(`key=${owner?.key.id}`),
      found(({ keyId }) => keyId === owner?.key.id),
    );
    assert.deepEqual(
      await every(''),
      found(() => true),
    );
  });
});
