/**
 * What operators do over the admin API: each answer has the shape of its row, each change is journaled with who and why, and made
 * once.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { Value } from 'typebox/value';
import { ADMIN_ROUTES, type AdminRoute, type AdminRouteName } from '../../src/http/admin/routes.ts';
import type { Principal } from '../../src/store/keys.ts';
import { cause, entry, funded, ok } from '../store/support/store.ts';
import { eventually } from '../support/test-gateway.ts';
import { type AdminGateway, adminGateway, type Answer, type Asked, type Json } from './admin-gateway.ts';

/** The answer, which has the status and the shape that its row names. */
async function done(gateway: AdminGateway, name: AdminRouteName, path: string, asked: Asked = {}): Promise<Json> {
  const route: AdminRoute = ADMIN_ROUTES[name];
  const { status, json, text } = await gateway.ask(path, { method: route.method, ...asked });
  assert.equal(status, route.status ?? 200, `${path} ${text}`);
  const [error] = Value.Errors(route.response, json);
  assert.deepEqual(error, undefined, `${path} ${text}`);
  return json;
}

async function refused(answer: Promise<Answer>, status: number, code: string, param?: string): Promise<void> {
  const { status: found, json, text } = await answer;
  assert.deepEqual([found, json.error?.code, json.error?.param], [status, code, param], text);
}

test('keys are rotated and deleted, and the envelope secret rotated: each once under its Idempotency-Key', async (t) => {
  const backups = mkdtempSync(join(tmpdir(), 'mizu-admin-backup-'));
  t.after(() => rmSync(backups, { recursive: true, force: true }));
  const gateway = await adminGateway(t, { backups });
  await done(gateway, 'createAccount', 'accounts', { body: { name: 'ada', credit: '10' } });
  const old = await done(gateway, 'createKey', 'keys', {
    body: { account: 'ada', name: 'ci', models: ['fast'], subAccount: true },
  });
  await done(gateway, 'transfer', `keys/${old.id}/transfer`, { body: { amount: '4' } });
  const once = { headers: { 'idempotency-key': 'rotation' }, body: { reason: 'leaked' } };
  const fresh = await done(gateway, 'rotateKey', `keys/${old.id}/rotate`, once);
  assert.deepEqual([fresh.name, fresh.models, fresh.replaces, fresh.replacedUntilMs], ['ci', ['fast'], old.id, undefined]);
  assert.equal((await gateway.store.keys.authenticate(fresh.key, Date.now())).ok, true);
  assert.equal((await gateway.store.keys.authenticate(old.key, Date.now())).ok, false);
  assert.equal((await gateway.store.keys.balance(fresh.id))?.nanos, 4_000_000_000n);
  const again = await done(gateway, 'rotateKey', `keys/${old.id}/rotate`, once);
  assert.deepEqual([again.id, again.key], [fresh.id, undefined], 'the same key, shown once');
  assert.equal((await gateway.store.keys.list()).length, 2);
  await refused(gateway.ask(`keys/${old.id}/rotate`, { method: 'POST', body: {} }), 409, 'key_disabled');

  const late = await done(gateway, 'rotateKey', `keys/${fresh.id}/rotate`, { body: { grace: '1h' } });
  assert.ok(late.replacedUntilMs > Date.now());
  assert.equal((await gateway.store.keys.authenticate(fresh.key, Date.now())).ok, true);

  const gone = await done(gateway, 'deleteKey', `keys/${fresh.id}`, { headers: { 'x-mizu-reason': 'left' } });
  assert.deepEqual([gone.disabled, typeof gone.deletedAtMs], [true, 'number']);
  assert.equal((await gateway.store.keys.authenticate(fresh.key, Date.now())).ok, false);
  assert.equal((await done(gateway, 'showKey', `keys/${fresh.id}`)).deletedAtMs, gone.deletedAtMs);
  assert.ok((await done(gateway, 'listKeys', 'keys')).data.every(({ id }: { id: string }) => id !== fresh.id));
  await refused(gateway.ask(`keys/${fresh.id}`, { method: 'PATCH', body: { disabled: false } }), 404, 'unknown_key');
  await refused(gateway.ask(`keys/${fresh.id}`, { method: 'DELETE' }), 404, 'unknown_key');

  const backup = await done(gateway, 'backUpStore', 'store/backup', { body: { folder: 'copy' } });
  const folder = join(backups, 'copy');
  const head = await gateway.store.ledger.head();
  assert.deepEqual([backup.folder, backup.head, backup.openExchanges], [folder, `${head.seq}:${head.hash}`, 0]);
  await refused(gateway.ask('store/backup', { method: 'POST', body: { folder } }), 409, 'not_empty');
  for (const outside of ['..', '.', '', '../other', 'a/../../b', '/etc/mizu', dirname(backups), `${backups}-more`])
    await refused(gateway.ask('store/backup', { method: 'POST', body: { folder: outside } }), 400, 'outside_backups');
  writeFileSync(join(backups, 'file'), '');
  for (const impossible of ['a\0b', 'x'.repeat(300), 'x/'.repeat(5_000), 'file/below'])
    await refused(gateway.ask('store/backup', { method: 'POST', body: { folder: impossible } }), 400, 'bad_folder');

  const secret = { headers: { 'idempotency-key': 'secret' }, body: {} };
  assert.equal((await done(gateway, 'rotateSecret', 'secrets/rotate', secret)).secret, 2);
  assert.equal((await done(gateway, 'rotateSecret', 'secrets/rotate', secret)).secret, 2);
  assert.equal(gateway.store.secrets.current().id, 2);
  assert.deepEqual((await gateway.store.ledger.verify()).differences, []);
});

test('of rotations of one key that come at once one replaces it, and the others are told that it is done', async (t) => {
  const gateway = await adminGateway(t);
  await done(gateway, 'createAccount', 'accounts', { body: { name: 'ada', credit: '10' } });
  const old = await done(gateway, 'createKey', 'keys', { body: { account: 'ada', limits: { total: '1' } } });
  const rotate = (headers?: Record<string, string>) =>
    gateway.ask(`keys/${old.id}/rotate`, { method: 'POST', body: {}, ...(headers === undefined ? {} : { headers }) });
  const answers = await Promise.all(Array.from({ length: 5 }, () => rotate()));
  assert.deepEqual(answers.map(({ status }) => status).sort(), [201, 409, 409, 409, 409]);
  assert.equal((await gateway.store.keys.list()).filter(({ disabled }) => !disabled).length, 1, 'one key has that limit');
  for (const { status, json } of answers) if (status === 409) assert.equal(json.error.code, 'key_disabled');

  const next = answers.find(({ status }) => status === 201)?.json.id;
  const same = await Promise.all(
    Array.from({ length: 3 }, () =>
      gateway.ask(`keys/${next}/rotate`, { method: 'POST', body: {}, headers: { 'idempotency-key': 'once' } }),
    ),
  );
  assert.deepEqual(
    same.map(({ status }) => status),
    [201, 201, 201],
  );
  assert.equal(new Set(same.map(({ json }) => json.id)).size, 1);
  assert.equal(same.filter(({ json }) => json.key !== undefined).length, 1, 'shown once');
  assert.equal((await gateway.store.keys.list()).length, 3);
});

test('a sub-account goes along with its key where the wallet is overdrawn, too', async (t) => {
  const gateway = await adminGateway(t);
  await done(gateway, 'createAccount', 'accounts', { body: { name: 'ada', credit: '10' } });
  const old = await done(gateway, 'createKey', 'keys', { body: { account: 'ada', subAccount: true } });
  await done(gateway, 'transfer', `keys/${old.id}/transfer`, { body: { amount: '4' } });
  await done(gateway, 'creditAccount', 'accounts/ada/credit', { body: { amount: '-7' } });
  const fresh = await done(gateway, 'rotateKey', `keys/${old.id}/rotate`, { body: { reason: 'leaked' } });
  assert.equal((await gateway.store.keys.authenticate(fresh.key, Date.now())).ok, true, 'it is shown');
  assert.equal((await gateway.store.keys.balance(fresh.id))?.nanos, 4_000_000_000n);
  assert.equal((await done(gateway, 'showAccount', 'accounts/ada')).balance, '-1.00');
  assert.deepEqual((await gateway.store.ledger.verify()).differences, []);
});

test('accounts and keys: made, shown, searched, limited, disabled; amounts are exact', async (t) => {
  const gateway = await adminGateway(t);
  const limits = { requestsPerMinute: 60, maxConcurrency: null };
  const ada = await done(gateway, 'createAccount', 'accounts', {
    body: { name: 'ada', credit: '13.500000001', rateLimits: limits },
  });
  assert.deepEqual([ada.balance, ada.rateLimits], ['13.500000001', { requestsPerMinute: 60 }]);
  assert.equal((await done(gateway, 'creditAccount', 'accounts/ada/credit', { body: { amount: '-1' } })).balance, '12.500000001');
  assert.deepEqual((await done(gateway, 'showAccount', `accounts/${ada.id}`)).name, 'ada');
  assert.equal(
    (await done(gateway, 'changeAccount', 'accounts/ada', { body: { class: 'gold', rateLimits: { requestsPerMinute: null } } }))
      .class,
    'gold',
  );
  const body = {
    account: 'ada',
    name: 'ci',
    models: ['fast'],
    ips: ['10.0.0.0/8'],
    limits: { daily: '1.5' },
    expires: '30d',
    subAccount: true,
  };
  const key = await done(gateway, 'createKey', 'keys', { body });
  assert.match(key.key, /^sk-mizu-[\w-]{43}$/);
  assert.deepEqual([key.limits, key.models, key.digest], [{ daily: '1.50' }, ['fast'], undefined]);
  assert.equal((await gateway.store.keys.authenticate(key.key, Date.now())).ok, true);
  assert.equal((await done(gateway, 'transfer', `keys/${key.id}/transfer`, { body: { amount: '3' } })).balance, '3.00');
  assert.deepEqual((await done(gateway, 'balances', 'balances')).data.length, 2);
  const changed = await done(gateway, 'changeKey', `keys/${key.id}`, {
    body: {
      name: 'builds',
      limits: { daily: null, total: '9' },
      models: null,
      expires: null,
      rateLimits: { tokensPerMinute: 5 },
    },
  });
  assert.deepEqual(
    [changed.limits, changed.models, changed.expiresAtMs, changed.name],
    [{ total: '9.00' }, undefined, undefined, 'builds'],
  );
  assert.equal((await done(gateway, 'changeKey', `keys/${key.id}`, { body: { disabled: true } })).disabled, true);
  for (let n = 0; n < 5; n += 1) await done(gateway, 'createKey', 'keys', { body: { account: 'ada', name: `key ${n}` } });
  const first = await done(gateway, 'listKeys', 'keys?limit=2&search=KEY%20');
  assert.deepEqual(
    first.data.map(({ name }: Json) => name),
    ['key 0', 'key 1'],
  );
  const second = await done(gateway, 'listKeys', `keys?limit=2&search=key%20&after=${first.nextCursor}`);
  assert.deepEqual(
    second.data.map(({ name }: Json) => name),
    ['key 2', 'key 3'],
  );
  const last = await done(gateway, 'listKeys', `keys?limit=2&search=key%20&after=${second.nextCursor}`);
  assert.deepEqual([last.data.length, last.nextCursor], [1, undefined]);
  assert.equal((await done(gateway, 'listAccounts', 'accounts?search=nobody')).data.length, 0);
  assert.deepEqual((await done(gateway, 'spend', 'spend?account=ada')).data, []);
  assert.deepEqual((await done(gateway, 'verifyLedger', 'ledger/verify')).differences, []);
});

test('who and why stand in the journal, from the header or the body', async (t) => {
  const gateway = await adminGateway(t);
  await done(gateway, 'createAccount', 'accounts', { body: { name: 'ada' }, headers: { 'x-mizu-reason': 'ticket 7' } });
  await done(gateway, 'creditAccount', 'accounts/ada/credit', {
    body: { amount: '1', reason: 'Rechnung für 水' },
    headers: { 'x-mizu-reason': 'weaker' },
  });
  await done(gateway, 'changeAccount', 'accounts/ada', { body: { disabled: true, reason: '<script>alert(1)</script>' } });
  await done(gateway, 'takeOut', 'channels/a/out-of-service', { body: { reason: 'it is slow' } });
  const { data } = await done(gateway, 'ledgerJournal', 'ledger/journal?limit=100');
  assert.deepEqual(
    data.slice(-4).map(({ kind, by, note }: Json) => [kind, by, note]),
    [
      ['account_created', 'admin:writer', 'ticket 7'],
      ['credit', 'admin:writer', 'Rechnung für 水'],
      ['account_changed', 'admin:writer', '{"disabled":true,"reason":"<script>alert(1)</script>"}'],
      ['channel_out_of_service', 'admin:writer', 'it is slow'],
    ],
  );
  const page = await done(gateway, 'ledgerJournal', 'ledger/journal?limit=2');
  assert.equal(page.nextCursor, String(page.data[1].seq));
  const head = await done(gateway, 'ledgerHead', 'ledger/head');
  assert.equal(head.hash, data.at(-1).hash);
  assert.deepEqual((await done(gateway, 'verifyLedger', `ledger/verify?head=${head.seq}:${head.hash}`)).differences, []);
});

test('an Idempotency-Key makes a change once, for one request of one token', async (t) => {
  const gateway = await adminGateway(t);
  const once = { 'idempotency-key': 'order-1' };
  const create = () => done(gateway, 'createAccount', 'accounts', { body: { name: 'ada', credit: '5' }, headers: once });
  const [made, again] = await Promise.all([create(), create()]);
  assert.equal(made.id, again.id);
  const credit = (amount: string, key = 'order-2') =>
    gateway.ask('accounts/ada/credit', { body: { amount }, headers: { 'idempotency-key': key } });
  const all = await Promise.all(Array.from({ length: 10 }, () => credit('1')));
  assert.deepEqual(
    all.map(({ json }) => json.balance),
    Array.from({ length: 10 }, () => '6.00'),
  );
  assert.equal(all.filter(({ headers }) => headers['idempotency-replayed'] === 'true').length, 9);
  await refused(credit('2'), 409, 'idempotency_key_reused');
  await refused(
    gateway.ask('keys', { body: { account: 'ada' }, headers: { 'idempotency-key': 'order-2' } }),
    409,
    'idempotency_key_reused',
  );
  const key = () => done(gateway, 'createKey', 'keys', { body: { account: 'ada' }, headers: { 'idempotency-key': 'k' } });
  const { key: secret, ...shown } = await key();
  assert.ok(secret);
  assert.deepEqual(await key(), shown, 'the same key, and its secret no more');
  assert.equal((await gateway.store.keys.list()).length, 1);
  for (const wrong of ['', 'a b', 'x'.repeat(65), 'é']) await refused(credit('1', wrong), 400, 'invalid_request');
  const other = ok(await gateway.store.adminTokens.create({ name: 'other', role: 'write' }, cause())).secret;
  const { json } = await gateway.ask('accounts/ada/credit', {
    body: { amount: '1' },
    headers: { 'idempotency-key': 'order-2' },
    token: other,
  });
  assert.equal(json.balance, '7.00', 'another token, another key');
});

test('what makes no sense is named, and changes nothing', async (t) => {
  const gateway = await adminGateway(t);
  await done(gateway, 'createAccount', 'accounts', { body: { name: 'ada' } });
  const { id } = await done(gateway, 'createKey', 'keys', { body: { account: 'ada' } });
  const before = (await gateway.store.ledger.head()).seq;
  const post = (path: string, body: unknown) => gateway.ask(path, { method: 'POST', body });
  const patch = (path: string, body: unknown) => gateway.ask(path, { method: 'PATCH', body });
  for (const text of ['{', '[]', '"x"', 'null', '{"name":"x"', '\u0000', `{"name":${'['.repeat(600)}${']'.repeat(600)}}`])
    await refused(post('accounts', text), 400, 'invalid_request');
  await refused(post('accounts', {}), 400, 'invalid_request', 'name');
  await refused(post('accounts', { name: 'x', nmae: 1 }), 400, 'invalid_request', 'nmae');
  await refused(post('accounts', { name: 'x', __proto__x: {} }), 400, 'invalid_request', '__proto__x');
  await refused(post('accounts', { name: 7 }), 400, 'invalid_request', 'name');
  await refused(post('accounts', { name: 'x', credit: 5 }), 400, 'invalid_request', 'credit');
  await refused(post('accounts', { name: 'x', credit: '1e3' }), 400, 'invalid_request', 'credit');
  await refused(post('accounts', { name: 'a\u0000b' }), 400, 'invalid', 'name');
  await refused(
    post('accounts', { name: 'x', rateLimits: { requestsPerMinute: 0 } }),
    400,
    'invalid_request',
    'rateLimits.requestsPerMinute',
  );
  await refused(post('accounts', { name: 'x', rateLimits: { perMinute: 1 } }), 400, 'invalid_request', 'rateLimits.perMinute');
  await refused(post('accounts', { name: 'x', reason: 'y'.repeat(1_001) }), 400, 'invalid_request', 'reason');
  await refused(post('accounts', { name: 'ada' }), 409, 'name_taken');
  await refused(patch('accounts/ada', {}), 400, 'invalid_request');
  await refused(patch('accounts/ada', { account: 'other' }), 400, 'invalid_request', 'account');
  await refused(post('keys', { account: 'ada', limits: { total: '0' } }), 400, 'invalid', 'limits.total');
  await refused(post('keys', { account: 'ada', models: ['nope'] }), 400, 'invalid', 'models');
  await refused(post('keys', { account: 'ada', expires: '2020-01-01' }), 400, 'invalid_request', 'expires');
  await refused(post('keys', { account: 'nobody' }), 404, 'unknown_account');
  for (const path of ['accounts/nobody', 'keys/key_x', 'exchanges/ex_x', 'videos/video_x'])
    assert.equal((await gateway.ask(path)).status, 404, path);
  await refused(post(`keys/${id}/transfer`, { amount: '1' }), 409, 'no_sub_account');
  await refused(post('channels/nope/out-of-service', {}), 404, 'unknown_channel');
  await refused(post('channels/nope/test', {}), 404, 'unknown_channel');
  await refused(post('channels/a/in-service', {}), 409, 'already_in_service');
  await refused(post('videos/video_x/resolve', {}), 400, 'invalid_request', 'succeeded');
  await refused(post('videos/video_x/resolve', { failed: 'x' }), 404, 'unknown_video');
  await refused(gateway.ask('accounts?limit=0'), 400, 'invalid_request', 'limit');
  await refused(gateway.ask('accounts?limit=x'), 400, 'invalid_request', 'limit');
  await refused(gateway.ask('accounts?limit=1&limit=2'), 400, 'invalid_request', 'limit');
  await refused(gateway.ask('exchanges?since=yesterday'), 400, 'invalid_request', 'since');
  await refused(gateway.ask('overview?by=moon'), 400, 'invalid_request', 'by[0]');
  await refused(gateway.ask('ledger/verify?head=5'), 400, 'invalid_request', 'head');
  await refused(post('accounts?name=x', {}), 400, 'invalid_request');
  await refused(
    gateway.ask('accounts', { body: 'name=x', headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
    415,
    'unsupported_media_type',
  );
  await refused(post('accounts', { name: 'x'.repeat(2_000_000) }), 413, 'request_too_large');
  await refused(gateway.ask('accounts', { method: 'PUT' }), 405, 'method_not_allowed');
  await refused(gateway.ask('nothing'), 404, 'not_found');
  await refused(gateway.ask('accounts/%E0%A4%A'), 404, 'not_found');
  assert.equal((await gateway.store.ledger.head()).seq, before);
});

test('credit that all accounts together cannot hold is a mistake of whoever typed it, not a store that is away', async (t) => {
  const gateway = await adminGateway(t);
  await done(gateway, 'createAccount', 'accounts', { body: { name: 'typed', credit: '9000000000' } });
  await done(gateway, 'createAccount', 'accounts', { body: { name: 'ada' } });
  const much = gateway.ask('accounts/ada/credit', { method: 'POST', body: { amount: '9000000000' } });
  assert.equal((await much).headers['retry-after'], undefined);
  await refused(much, 409, 'amount_out_of_range');
  const second = { name: 'second', credit: '9000000000' };
  await refused(gateway.ask('accounts', { method: 'POST', body: second }), 409, 'amount_out_of_range');
  await refused(gateway.ask('accounts/second'), 404, 'unknown_account');
  await done(gateway, 'creditAccount', 'accounts/typed/credit', { body: { amount: '-9000000000' } });
  await done(gateway, 'creditAccount', 'accounts/ada/credit', { body: { amount: '9000000000' } });
});

test('names full of markup come back as they are, as JSON and nothing else', async (t) => {
  const gateway = await adminGateway(t);
  const name = `"><img src=x onerror=alert(1)> ${'&'}lt; ../..%2f`;
  await done(gateway, 'createAccount', 'accounts', { body: { name } });
  const { headers, json } = await gateway.ask(`accounts/${encodeURIComponent(name)}`);
  assert.deepEqual(
    [json.name, headers['content-type'], headers['x-content-type-options']],
    [name, 'application/json', 'nosniff'],
  );
});

test('a Channel is taken out of service on every gateway of the store, also on those that start later, and put back', async (t) => {
  const gateway = await adminGateway(t);
  const weights = () => gateway.running.gateway.config.current().channels.map(({ weight }) => weight);
  assert.deepEqual(weights(), [1]);
  const out = await done(gateway, 'takeOut', 'channels/a/out-of-service', { body: { reason: 'slow' } });
  assert.deepEqual([out.state, out.outOfService.by, out.outOfService.reason], ['out_of_service', 'admin:writer', 'slow']);
  await refused(gateway.ask('channels/a/out-of-service', { body: {} }), 409, 'already_out_of_service');
  await eventually(() => weights()[0] === 0, 'the gateway follows');
  const later = await adminGateway(t, { store: gateway.store, tokens: gateway.tokens });
  assert.equal(later.running.gateway.config.current().channels[0]?.weight, 0);
  const { data } = await done(gateway, 'listChannels', 'channels');
  assert.deepEqual([data[0].state, data[0].weight, data[0].running, data[0].circuits], ['out_of_service', 1, 0, []]);
  assert.equal((await done(gateway, 'models', 'models')).data[0].channels[0].state, 'out_of_service');
  assert.equal((await done(gateway, 'putBack', 'channels/a/in-service', { body: {} })).state, 'in_service');
  await eventually(() => weights()[0] === 1, 'the gateway follows');
  await eventually(() => later.running.gateway.config.current().channels[0]?.weight === 1, 'the other one follows, too');
  const probe = await done(gateway, 'testChannel', 'channels/a/test', { body: {} });
  assert.deepEqual([probe.id, probe.ok], ['a', false]);
  assert.equal((await done(gateway, 'testChannels', 'channels/test', { body: {} })).data.length, 1);
});

const ATTEMPT = {
  channelId: 'a',
  channelType: 'messages',
  upstreamModel: 'u',
  startedAtMs: 1,
  durationMs: 1,
  errorCode: 'upstream_error',
};

async function settled(gateway: AdminGateway, owner: Principal, count: number, from = 0): Promise<void> {
  for (let n = from; n < from + count; n += 1) {
    const isError = n % 5 === 0;
    const more = { model: n % 2 === 0 ? 'fast' : 'slow', channelId: n % 2 === 0 ? 'a' : 'b', usage: { input: 3, output: 2 } };
    const failed = isError
      ? ({ status: 'error', errorCode: 'upstream_error', httpStatus: 502, attempts: [ATTEMPT] } as const)
      : { firstOutputMs: 40 };
    void gateway.store.settlements.settle({ entry: entry(owner, `ex_${n}`, 1_500n, { ...more, ...failed }) });
  }
  await gateway.store.settlements.flush();
}

test('exchanges: filtered, paged, one whole with its attempts and charge; the overview sums them up', async (t) => {
  const gateway = await adminGateway(t);
  const owner = await funded(gateway.store, 10n ** 12n);
  await settled(gateway, owner, 40);
  const ids = ({ data }: Json): string[] => data.map(({ exchangeId }: Json) => exchangeId);
  const first = await done(gateway, 'listExchanges', 'exchanges?limit=3');
  assert.deepEqual(ids(first), ['ex_39', 'ex_38', 'ex_37']);
  assert.deepEqual([first.data[0].charge, first.data[0].inputTokens, first.data[0].keyId], ['0.0000015', 3, owner.key.id]);
  assert.deepEqual(ids(await done(gateway, 'listExchanges', `exchanges?limit=2&before=${first.nextCursor}`)), ['ex_36', 'ex_35']);
  const filtered = await done(gateway, 'listExchanges', 'exchanges?model=fast&status=error&limit=3');
  assert.deepEqual(ids(filtered), ['ex_30', 'ex_20', 'ex_10']);
  assert.deepEqual(ids(await done(gateway, 'listExchanges', `exchanges?model=fast&status=error&before=${filtered.nextCursor}`)), [
    'ex_0',
  ]);
  assert.equal((await done(gateway, 'listExchanges', `exchanges?key=${owner.key.id}&channel=b`)).data.length, 20);
  assert.equal(
    (await done(gateway, 'listExchanges', `exchanges?account=${owner.account.id}&since=2020-01-01&until=2021-01-01`)).data.length,
    0,
  );
  const { data } = await done(gateway, 'showExchange', 'exchanges/req_ex_7');
  assert.deepEqual([data[0].exchangeId, data[0].charge.total], ['ex_7', '1500']);

  const all = await done(gateway, 'overview', 'overview?by=model');
  assert.deepEqual([all.total.requests, all.total.errors, all.total.charge], [40, 8, '0.00006']);
  assert.deepEqual(
    all.data.map(({ model, requests, errors }: Json) => [model, requests, errors]),
    [
      ['fast', 20, 4],
      ['slow', 20, 4],
    ],
  );
  const byKey = await done(gateway, 'overview', `overview?by=hour,key,code&key=${owner.key.id}&from=2h`);
  assert.deepEqual(
    byKey.data.map(({ code }: Json) => code),
    ['', 'upstream_error'],
  );
  assert.deepEqual((await done(gateway, 'overview', 'overview')).data, []);
});

test('a look at the log is bounded: a page says how far it looked, and the next one goes on there', async (t) => {
  const gateway = await adminGateway(t);
  const owner = await funded(gateway.store, 1n);
  for (let n = 1; n <= 3_000; n += 1) {
    const more = n === 7 ? { channelId: 'rare' } : { channelId: 'common' };
    void gateway.store.settlements.settle({ entry: entry(owner, `ex_${n}`, 0n, more) });
  }
  await gateway.store.settlements.flush();
  const found: string[] = [];
  let before = '';
  let pages = 0;
  do {
    const page = await done(
      gateway,
      'listExchanges',
      `exchanges?channel=rare&limit=1${before === '' ? '' : `&before=${before}`}`,
    );
    found.push(...page.data.map(({ exchangeId }: Json) => exchangeId));
    assert.ok(page.nextCursor === undefined || before === '' || Number(page.nextCursor) < Number(before), 'it goes on');
    before = page.nextCursor ?? '';
    pages += 1;
  } while (before !== '' && pages < 100);
  assert.deepEqual(found, ['ex_7']);
  const whole = await done(gateway, 'listExchanges', 'exchanges?limit=1000&channel=common');
  assert.deepEqual([whole.data.length, whole.data[0].exchangeId, whole.nextCursor], [1000, 'ex_3000', '2001']);
});

test('a look of the live tail shows the newest rows up to its limit, and says how many it passed over', async (t) => {
  const gateway = await adminGateway(t);
  const owner = await funded(gateway.store, 1n);
  for (let n = 1; n <= 30; n += 1) {
    const more = n % 2 === 0 ? { status: 'error' as const } : {};
    void gateway.store.settlements.settle({ entry: entry(owner, `ex_${n}`, 0n, more) });
  }
  await gateway.store.settlements.flush();
  const first = async (query: string): Promise<[number, string[]]> => {
    const controller = new AbortController();
    const answer = await fetch(`http://127.0.0.1:${gateway.port}/admin/v1/exchanges/live?after=0&${query}`, {
      headers: { authorization: `Bearer ${gateway.tokens.read}` },
      signal: controller.signal,
    });
    let text = '';
    for await (const chunk of answer.body ?? []) {
      text += Buffer.from(chunk).toString('utf8');
      if (/event: exchanges\ndata: .*\n\n/.test(text)) break;
    }
    controller.abort();
    const rows: Json = JSON.parse(/event: exchanges\ndata: (.*)/.exec(text)?.[1] ?? '[]');
    return [Number(/"count":(\d+)/.exec(text)?.[1] ?? 0), rows.map(({ exchangeId }: Json) => exchangeId)];
  };
  assert.deepEqual(await first('limit=2'), [28, ['ex_29', 'ex_30']]);
  assert.deepEqual(await first('limit=2&status=error'), [13, ['ex_28', 'ex_30']], 'what does not fit was not passed over');
  assert.equal((await first('limit=1000'))[1].length, 30);
});

test('the live tail shows what comes, in order, in batches, and what a filter chooses', async (t) => {
  const gateway = await adminGateway(t);
  const owner = await funded(gateway.store, 10n ** 12n);
  await settled(gateway, owner, 3);
  const headers = { authorization: `Bearer ${gateway.tokens.read}` };
  const asked = get({ host: '127.0.0.1', port: gateway.port, path: '/admin/v1/exchanges/live?status=success', headers });
  const [response] = await once(asked, 'response');
  t.after(() => asked.destroy());
  assert.deepEqual([response.statusCode, response.headers['content-type']], [200, 'text/event-stream']);
  let text = '';
  response.setEncoding('utf8');
  response.on('data', (chunk: string) => {
    text += chunk;
  });
  await eventually(() => text.includes(': connected'), 'the beginning');
  await settled(gateway, owner, 7, 3);
  await eventually(() => text.includes('ex_9'), 'the rows');
  const rows = [...text.matchAll(/^event: exchanges\ndata: (.*)$/gm)].flatMap(([, data = '']): Json[] => JSON.parse(data));
  assert.deepEqual(
    rows.map(({ exchangeId }) => exchangeId),
    ['ex_3', 'ex_4', 'ex_6', 'ex_7', 'ex_8', 'ex_9'],
  );
  const [error] = Value.Errors(ADMIN_ROUTES.followExchanges.response, rows[0]);
  assert.equal(error, undefined);
  assert.match(text, /^id: \d+$/m);
});

test('the configuration: checked as a start would, reloaded where it is valid, and the old one stays where it is not', async (t) => {
  const gateway = await adminGateway(t);
  const checked = await done(gateway, 'checkConfig', 'config/check');
  assert.deepEqual([checked.valid, checked.channels[0].id], [true, 'a']);
  assert.doesNotMatch(JSON.stringify(checked), /canary/);
  await done(gateway, 'reloadConfig', 'config/reload', { body: {} });
  assert.equal(gateway.reloads(), 1);
  gateway.file = { channels: [{ id: 'a', type: 'nonsense' }] };
  assert.deepEqual((await done(gateway, 'checkConfig', 'config/check')).problems[0].path, 'channels[0].type');
  await refused(gateway.ask('config/reload', { body: {} }), 409, 'invalid_config');
  assert.equal(gateway.reloads(), 1);
});

test('films: listed, shown, decided; a replica changes none and shows all', async (t) => {
  const gateway = await adminGateway(t, { file: { node: { role: 'replica' } } });
  const principal = await funded(gateway.store, 10n ** 10n);
  const video = {
    id: 'video_1',
    principal,
    model: 'v',
    requestJson: '{}',
    bodyHash: 'h',
    idempotencyKey: 'i',
    nowMs: Date.now(),
  };
  ok(await gateway.store.videos.create({ ...video, priceNanos: 250_000_000n }));
  assert.equal((await done(gateway, 'listVideos', 'videos?state=queued')).data[0].price, '0.25');
  assert.equal((await done(gateway, 'showVideo', 'videos/video_1')).state, 'queued');
  assert.equal((await done(gateway, 'ledgerHolds', 'ledger/holds')).data[0].amount, '0.25');
  await refused(gateway.ask('videos/video_1/resolve', { body: { failed: 'lost' } }), 503, 'video_primary_required');
  await done(gateway, 'createAccount', 'accounts', { body: { name: 'still possible' } });
});

test('admin tokens are made, listed and deleted; the OpenAPI document has every route', async (t) => {
  const gateway = await adminGateway(t);
  const made = await done(gateway, 'createToken', 'tokens', { body: { name: 'dashboards', role: 'read' } });
  assert.equal((await gateway.ask('overview', { token: made.token })).status, 200);
  assert.deepEqual(
    (await done(gateway, 'listTokens', 'tokens')).data.map(({ name }: Json) => name),
    ['dashboards', 'reader', 'writer'],
  );
  await refused(gateway.ask('tokens', { body: { name: 'dashboards', role: 'write' } }), 409, 'taken');
  await refused(gateway.ask('tokens', { body: { name: 'x', role: 'root' } }), 400, 'invalid_request', 'role');
  await done(gateway, 'deleteToken', 'tokens/dashboards', { method: 'DELETE' });
  const { json } = await gateway.ask('openapi.json', { token: gateway.tokens.read });
  const operations = Object.values<object>(json.paths).flatMap((path) => Object.values<Json>(path));
  assert.deepEqual(operations.map(({ operationId }) => operationId).sort(), Object.keys(ADMIN_ROUTES).sort());
  assert.equal(json.paths['/admin/v1/accounts'].post.requestBody.content['application/json'].schema.required[0], 'name');
});
