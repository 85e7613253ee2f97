/** Who may use the admin API: tokens, roles, sessions of browsers, pages and hosts of others, and what failing sign-ins cost. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ADMIN_ROUTES, type AdminRoute } from '../../src/http/admin/routes.ts';
import { cause, ok } from '../store/support/store.ts';
import { eventually } from '../support/test-gateway.ts';
import { adminGateway, send } from './admin-gateway.ts';
import { sized } from '../support/sampled.ts';

const paths = Object.values<AdminRoute>(ADMIN_ROUTES).map(({ method, path }) => ({
  method,
  path: path.replaceAll(/\{\w+\}/g, 'x'),
}));

test('without a token everything below the prefix is 401, unknown paths too; what was open stays open', async (t) => {
  const gateway = await adminGateway(t);
  for (const { method, path } of [...paths, { method: 'GET', path: 'nothing/there' }, { method: 'PUT', path: '' }]) {
    const { status, json, headers } = await gateway.ask(path, { method, token: null });
    assert.deepEqual(
      [status, json.error.code, headers['www-authenticate']],
      [401, 'unauthorized', 'Bearer'],
      `${method} ${path}`,
    );
  }
  for (const path of ['/metrics', '/healthz', '/channels'])
    assert.equal((await gateway.ask(path, { token: null })).status, 200, path);
  assert.equal((await gateway.ask('/nothing', { token: null })).status, 404);
});

test('a token of the wrong form, another one, or one in the query is none', async (t) => {
  const gateway = await adminGateway(t);
  for (const authorization of [
    '',
    'Bearer',
    `Basic ${gateway.tokens.write}`,
    gateway.tokens.write,
    `Bearer ${gateway.tokens.write}x`,
  ])
    assert.equal((await gateway.ask('accounts', { token: null, headers: { authorization } })).status, 401, authorization);
  for (const name of ['token', 'access_token', 'authorization', 'key'])
    assert.equal((await gateway.ask(`accounts?${name}=${gateway.tokens.write}`, { token: null })).status, 401, name);
  const both = await gateway.ask(`accounts?token=${gateway.tokens.write}`);
  assert.deepEqual([both.status, both.json.error.code], [400, 'invalid_request'], 'nor is it ignored');
  assert.equal((await gateway.ask('accounts', { headers: { authorization: `bearer ${gateway.tokens.read}` } })).status, 200);
});

test('a read token reads everything and changes nothing', async (t) => {
  const gateway = await adminGateway(t);
  const before = (await gateway.store.ledger.head()).seq;
  for (const { method, path } of paths) {
    if (path === 'exchanges/live') continue;
    const body = method === 'POST' || method === 'PATCH' ? { body: {} } : {};
    const { status, json, text } = await gateway.ask(path, { method, token: gateway.tokens.read, ...body });
    if (method === 'GET') assert.ok([200, 404].includes(status), `${path} ${status}`);
    else assert.deepEqual([status, json.error?.code], [403, 'forbidden'], `${method} ${path} ${text}`);
  }
  assert.equal((await gateway.store.ledger.head()).seq, before);
});

test('a token that is deleted is refused from then on, sessions of it too', async (t) => {
  const gateway = await adminGateway(t);
  const { secret } = ok(await gateway.store.adminTokens.create({ name: 'gone', role: 'read' }, cause()));
  const signedIn = await gateway.ask('session', { token: null, body: { token: secret } });
  const cookie = String(signedIn.headers['set-cookie']).split(';', 1)[0] ?? '';
  assert.equal((await gateway.ask('session', { token: null, headers: { cookie } })).json.name, 'gone');
  assert.equal((await gateway.ask('tokens/gone', { method: 'DELETE' })).status, 200);
  assert.equal((await gateway.ask('accounts', { token: secret })).status, 401);
  assert.equal((await gateway.ask('session', { token: null, headers: { cookie } })).status, 401);
  assert.equal((await gateway.ask('tokens/gone', { method: 'DELETE' })).status, 404);
});

test('a browser signs in once: its cookie is for this path alone, for no script, for no other site, and ends when it signs out', async (t) => {
  const gateway = await adminGateway(t);
  const origin = `http://127.0.0.1:${gateway.port}`;
  const signedIn = await gateway.ask('session', { token: null, body: { token: gateway.tokens.read }, headers: { origin } });
  assert.deepEqual([signedIn.status, signedIn.json], [200, { name: 'reader', role: 'read' }]);
  const set = String(signedIn.headers['set-cookie']);
  assert.match(set, /^mizu_session=[\w-]{43}; Path=\/admin\/v1\/; Max-Age=43200; HttpOnly; SameSite=Strict$/);
  const cookie = set.split(';', 1)[0] ?? '';
  const headers = { cookie: `other=1; ${cookie}`, origin };
  assert.equal((await gateway.ask('accounts', { token: null, headers })).status, 200);
  assert.equal(
    (await gateway.ask('accounts', { token: null, headers, body: { name: 'x' } })).status,
    403,
    'its role is the token’s',
  );
  const out = await gateway.ask('session', { token: null, method: 'DELETE', headers });
  assert.match(String(out.headers['set-cookie']), /^mizu_session=; .*Max-Age=0/);
  assert.equal((await gateway.ask('accounts', { token: null, headers })).status, 401);
  assert.equal((await gateway.ask('session', { token: null, body: { token: 'mizu-admin-wrong' } })).status, 401);
});

test('pages of other addresses and other hosts are refused, whatever they send', async (t) => {
  const gateway = await adminGateway(t);
  const body = { token: gateway.tokens.write };
  for (const headers of [
    { origin: 'https://evil.example' },
    { origin: 'null' },
    { origin: `http://127.0.0.1:${gateway.port + 1}` },
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
  ] as Record<string, string>[]) {
    const asked = [gateway.ask('accounts', { headers }), gateway.ask('accounts', { headers, body: { name: 'evil' } })];
    for (const { status, json } of await Promise.all([...asked, gateway.ask('session', { headers, body, token: null })]))
      assert.deepEqual([status, json.error.code], [403, 'foreign_origin'], JSON.stringify(headers));
  }
  for (const host of ['evil.example', `evil.example:${gateway.port}`, 'localhost.evil.example'])
    assert.equal((await gateway.ask('accounts', { headers: { host } })).status, 421, host);
  assert.deepEqual(await gateway.store.accounts.list(), []);
});

const ATTEMPTS = sized(800, 10_000);

test('failing sign-ins are slowed and logged, and hold up nobody who has a token', async (t) => {
  const gateway = await adminGateway(t);
  const counts = new Map<number, number>();
  let left = ATTEMPTS;
  const attack = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const { status } = await send(gateway.port, '/admin/v1/session', { body: { token: `mizu-admin-${left}` } });
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
  };
  const attackers = Promise.all(Array.from({ length: 100 }, attack));
  await eventually(() => (counts.get(429) ?? 0) > 100, 'refusals');
  const started = performance.now();
  assert.equal((await gateway.ask('accounts')).status, 200);
  assert.ok(performance.now() - started < 5_000);
  await attackers;
  assert.deepEqual([...counts.keys()].sort(), [401, 429]);
  assert.equal((counts.get(401) ?? 0) + (counts.get(429) ?? 0), ATTEMPTS);
  const lines = gateway.logLines.filter(({ msg }) => msg === 'failing sign-ins of the admin API');
  assert.ok(lines.length >= 1 && lines.length < 50, `${lines.length} lines`);
  assert.doesNotMatch(JSON.stringify(gateway.logLines), /mizu-admin-\d/);
});
