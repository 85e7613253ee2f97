/** The request log by model, Channel, status and account, whatever words its rows hold. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { RequestLogEntry, RequestLogQuery } from '../../src/store/request-log.ts';
import { entry, funded, T0 } from './support/store.ts';
import { eachStore } from './support/stores.ts';

eachStore(({ openStore }) => {
  test('the log is filtered by model, Channel, status and account, and paged', async (t) => {
    const store = await openStore(t);
    const [one, two] = [await funded(store, 1_000n), await funded(store, 1_000n)];
    const asked = (...ids: string[]) =>
      ids.map((channelId) => ({ channelId, channelType: 'chat', upstreamModel: 'u', startedAtMs: T0, durationMs: 1 }));
    const settle = async (owner: typeof one, id: string, more: Partial<RequestLogEntry>): Promise<void> => {
      await store.settlements.settle({ entry: entry(owner, id, 1n, more) });
      await store.settlements.flush();
    };
    const evil = { status: 'error', errorCode: 'x', errorText: '\u0000\ud800"\\' } as const;
    await settle(one, 'a', { channelId: 'c1', attempts: asked('c2', 'c1'), model: 'm1' });
    await settle(two, 'b', { ...evil, attempts: asked('c1') });
    await settle(two, 'c', { attempts: asked('c1', 'c2'), channelId: 'c2' });
    await settle(two, 'd', { channelId: 'c1' });
    const ids = async (query: RequestLogQuery) =>
      (await store.requestLog.list(query)).map(({ exchangeId }) => exchangeId).join('');
    assert.equal(await ids({ channelId: 'c1' }), 'dba');
    assert.equal(await ids({ channelId: 'c1', limit: 2 }), 'db');
    assert.equal(await ids({ channelId: 'c1', after: 0, limit: 1 }), 'a');
    assert.equal(await ids({ channelId: 'c1', above: 1 }), 'db');
    assert.equal(await ids({ above: 2, before: 4 }), 'c');
    assert.equal(await ids({ after: 1, above: 2 }), 'cd');
    assert.equal(await ids({ channelId: 'c2' }), 'c');
    assert.equal(await ids({ channelId: 'c' }), '');
    await settle(two, 'e', { ...evil, attempts: [] });
    assert.equal(await ids({ channelId: '' }), '', 'a row without a Channel is in no place of its index');
    assert.equal(await ids({ code: '' }), '');
    assert.equal(await ids({ model: 'm1' }), 'a');
    assert.equal(await ids({ status: 'error', channelId: 'c1' }), 'b');
    assert.equal(await ids({ accountId: two.account.id, channelId: 'c1' }), 'db');
  });
});
