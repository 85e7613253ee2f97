/** What operators keep in the store beside accounts and keys: journaled, once for each cause, seen by every process. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { CLAIM_MS } from '../../src/store/controls.ts';
import { cause, FakeClock, ok, refusal } from './support/store.ts';
import { eachStore, openPlace } from './support/stores.ts';

eachStore(({ openStore, place }) => {
  test('an admin token is known by its secret until it is deleted; the store holds only its digest', async (t) => {
    const store = await openStore(t);
    const { token, secret } = ok(await store.adminTokens.create({ name: 'ops', role: 'write' }, cause()));
    assert.match(secret, /^mizu-admin-[A-Za-z0-9_-]{43}$/);
    assert.deepEqual([token.name, token.role, token.last4], ['ops', 'write', secret.slice(-4)]);
    assert.deepEqual(await store.adminTokens.authenticate(secret), token);
    assert.deepEqual(await store.adminTokens.list(), [token]);
    for (const wrong of ['', 'ops', `${secret}x`, secret.slice(0, -1), secret.toUpperCase(), 'x'.repeat(10_000)])
      assert.equal(await store.adminTokens.authenticate(wrong), undefined, wrong.slice(0, 50));
    const [record] = await store.controls.list('admin_token');
    assert.doesNotMatch(JSON.stringify(record), new RegExp(secret.slice(11, 40)));
    const kept = await store.ledger.journal();
    assert.doesNotMatch(
      JSON.stringify(kept, (_, v: unknown) => String(v)),
      new RegExp(secret.slice(11, 40)),
    );
    ok(await store.adminTokens.delete('ops', cause()));
    assert.equal(await store.adminTokens.authenticate(secret), undefined);
    assert.deepEqual(await store.adminTokens.list(), []);
    const [made, gone] = (await store.ledger.journal()).slice(-2);
    assert.match(`${made?.kind} ${made?.state}`, /^admin_token_created \{"id":"ops","role":"write","digest":"[0-9a-f]{64}"\}$/);
    assert.equal(`${gone?.kind} ${gone?.state}`, 'admin_token_deleted {"id":"ops"}');
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });

  test('a token that makes no sense, or is there already, is refused and nothing is changed', async (t) => {
    const store = await openStore(t);
    for (const name of ['', ' x', 'a\nb', 'x'.repeat(129)])
      assert.equal(refusal(await store.adminTokens.create({ name, role: 'read' }, cause())).reason, 'invalid', name);
    const again = cause();
    ok(await store.adminTokens.create({ name: '<b>水</b>', role: 'read' }, again));
    assert.equal(refusal(await store.adminTokens.create({ name: '<b>水</b>', role: 'write' }, cause())).reason, 'taken');
    // Its secret is not known any more.
    assert.equal(refusal(await store.adminTokens.create({ name: '<b>水</b>', role: 'read' }, again)).reason, 'cause_reused');
    assert.equal(refusal(await store.adminTokens.delete('nobody', cause())).reason, 'not_found');
    assert.deepEqual(
      (await store.adminTokens.list()).map(({ name, role }) => [name, role]),
      [['<b>水</b>', 'read']],
    );
  });

  test('a change of a control is made once for its cause, and each process sees it', async (t) => {
    const where = await place(t);
    const [one, other] = [await openPlace(where), await openPlace(where)];
    t.after(() => Promise.all([one.close(), other.close()]));
    const take = { kind: 'channel', id: 'a', journalKind: 'channel_out_of_service' } as const;
    const put = { ...take, journalKind: 'channel_in_service' } as const;
    const why = cause();
    assert.deepEqual(ok(await one.controls.change({ ...take, text: '{"by":"x"}' }, why)), { isRepeated: false });
    assert.deepEqual(await other.controls.list('channel'), [{ kind: 'channel', id: 'a', text: '{"by":"x"}' }]);
    assert.deepEqual(ok(await other.controls.change({ ...take, text: '{"by":"y"}' }, why)), { isRepeated: true });
    const another = { ...take, id: 'b', text: '{}' };
    assert.equal(refusal(await other.controls.change(another, why)).reason, 'cause_reused');
    assert.equal(refusal(await one.controls.change({ ...take, text: '{}' }, cause())).reason, 'taken');
    ok(await other.controls.change(put, cause()));
    assert.deepEqual(await one.controls.list('channel'), []);
    assert.equal(refusal(await one.controls.change(put, cause())).reason, 'not_found');
    assert.deepEqual((await one.ledger.verify()).differences, []);
  });

  test('the name of a request is claimed once, by one process of several, and is free again after a week', async (t) => {
    const clock = new FakeClock();
    const where = await place(t);
    const [one, other] = [await openPlace(where, { clock }), await openPlace(where, { clock })];
    t.after(() => Promise.all([one.close(), other.close()]));
    const first = await Promise.all([one.controls.claim('t:1', 'aa'), other.controls.claim('t:1', 'aa')]);
    assert.deepEqual(first.sort(), ['new', 'same']);
    assert.equal(await other.controls.claim('t:1', 'bb'), 'other');
    assert.equal(await other.controls.claim('t:2', 'bb'), 'new');
    clock.advance(CLAIM_MS + 1);
    assert.equal(await one.controls.claim('t:1', 'bb'), 'new');
  });
});
