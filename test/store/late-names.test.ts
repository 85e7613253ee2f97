/** A late settlement takes the row of the interrupted exchange: the row is found by the names that it has now. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { entry, FakeClock, funded } from './support/store.ts';
import { eachStore } from './support/stores.ts';

eachStore(({ openStore, place }) => {
  test('what settles late says everything anew, and is found by its own id, its request id and the client’s, until it is pruned', async (t) => {
    const path = await place(t);
    const clock = new FakeClock();
    const first = await openStore(t, { path, clock });
    const owner = await funded(first, 1_000n);
    void first.settlements.open(entry(owner, 'late', 0n, { requestId: 'req_1' }));
    await first.close();
    const store = await openStore(t, { path, clock });
    const [interrupted] = await store.requestLog.find('req_1');
    assert.equal(interrupted?.status, 'interrupted');

    const words = { model: 'other', requestId: 'req_2', clientRequestId: 'mine', errorText: 'e' };
    const settled = store.settlements.settle({ entry: entry(owner, 'late', 7n, words) });
    await store.settlements.flush();
    assert.equal((await settled).settled, true);
    for (const id of ['late', 'req_2', 'mine']) {
      const found = await store.requestLog.find(id);
      assert.deepEqual(
        found.map(({ seq, status, model, errorText, charge }) => [seq, status, model, errorText, charge?.total]),
        [[interrupted.seq, 'success', 'other', 'e', 7n]],
        id,
      );
    }
    assert.deepEqual(await store.requestLog.find('req_1'), []);
    assert.equal(await store.requestLog.prune(clock.now() + 1), 1);
    assert.deepEqual(await store.requestLog.find('mine'), []);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });
});
