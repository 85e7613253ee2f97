/** What gateways on one store tell each other of their limits, as both engines keep it. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ForeignCount, LimitCount } from '../../src/store/limit-counts.ts';
import { eachStore, openPlace } from './support/stores.ts';

const count = (bucket: string, more: Partial<LimitCount> = {}): LimitCount => ({
  bucket,
  since: 1,
  requests: 2,
  tokens: 300,
  inFlight: 1,
  requestsPerMinute: 60,
  tokensPerMinute: 1_000_000_000,
  ...more,
});
const without = (rows: readonly ForeignCount[]): object[] =>
  rows.map(({ ageMs, ...row }) => {
    assert.ok(ageMs >= 0 && ageMs < 30_000);
    return row;
  });
const sorted = (rows: object[]): string[] => rows.map((row) => JSON.stringify(row, Object.keys(row).sort())).sort();

eachStore(({ openStore, place }) => {
  test('each member reads what the others wrote last, over all processes, and nothing of its own', async (t) => {
    const path = await place(t);
    const [one, two] = [await openPlace(path), await openPlace(path)];
    t.after(() => Promise.all([one.close(), two.close()]));
    assert.deepEqual(await one.limitCounts.exchange('a', [count('key:1'), count('model:\u00e9 "m"', { since: 7 })]), []);
    const { tokensPerMinute: _tokens, ...unlimited } = count('key:2', { requests: -3, tokens: -4, inFlight: 0 });
    const seen = await two.limitCounts.exchange('b', [unlimited]);
    assert.deepEqual(
      sorted(without(seen)),
      sorted([
        { member: 'a', ...count('key:1') },
        { member: 'a', ...count('model:\u00e9 "m"', { since: 7 }) },
      ]),
    );
    assert.deepEqual(sorted(without(await one.limitCounts.exchange('a', []))), sorted([{ member: 'b', ...unlimited }]));
    const { requestsPerMinute: _requests, ...changed } = count('key:1', { since: 2, requests: 9, inFlight: 0 });
    await one.limitCounts.exchange('a', [changed]);
    const again = without(await two.limitCounts.exchange('b', []));
    assert.ok(sorted(again).includes(sorted([{ member: 'a', ...changed }])[0] ?? ''), JSON.stringify(again));
    assert.equal(again.length, 2);
    assert.deepEqual((await one.ledger.verify()).differences, []);
  });

  test('members that write at once are all there in the end, and many counts are one exchange', async (t) => {
    const store = await openStore(t);
    const many = Array.from({ length: 3_000 }, (_, n) => count(`key:${n}`));
    await Promise.all(['a', 'b', 'c'].map((member) => store.limitCounts.exchange(member, many)));
    assert.equal((await store.limitCounts.exchange('d', [])).length, 9_000);
  });
});
