/**
 * The admin API under attack: every member of every route with values that nobody means. Each is answered in its own words, none
 * is a failure of the gateway, and whoever may only read changes nothing.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { get, request, type IncomingMessage } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { TObject, TSchema } from 'typebox';
import { ADMIN_ROUTES, type AdminRoute, type AdminRouteName } from '../../src/http/admin/routes.ts';
import { cause, entry, funded, ok } from '../store/support/store.ts';
import { type AdminGateway, adminGateway, type Answer, type Asked, type Json } from './admin-gateway.ts';

/** One of so many attacks is made; `MIZU_CASES=all` makes each, in two minutes. */
const EVERY = process.env['MIZU_CASES'] === 'all' ? 1 : 61;
const SEED = Number(process.env['MIZU_SEED'] ?? Date.now());

const WRONG: readonly Json[] = [
  ...[null, true, 0, -1, 1.5, 1e308, 2 ** 53, '', ' ', '\u0000', 'a\u0000b', '\ud800', '٣', '-0', '1e400', 'NaN', '9'.repeat(64)],
  ...[
    'x'.repeat(257),
    'x'.repeat(2_500),
    'x'.repeat(9_999),
    '水'.repeat(700),
    '水'.repeat(9_999),
    'x'.repeat(100_000),
    '../../etc/passwd',
    '%2e%2e%2f',
    "'; DROP TABLE accounts; --",
  ],
  ...[
    '<img src=x onerror=alert(1)>',
    '\r\nset-cookie: a=b',
    '__proto__',
    'constructor',
    'hasOwnProperty',
    '0000-00-00',
    '99999d',
  ],
  ...['2026-02-30', '+275760-09-13', '1:', ':', '1:2', `1:${'f'.repeat(64)}`, '9007199254740993', '18446744073709551616'],
  ...[[], {}, [[]], [null], { toString: 1 }, ['x'.repeat(2_000)], Array.from({ length: 10_001 }, () => 'x'), { daily: {} }],
];

/** What would do, of each member that a request must have. */
const RIGHT: Readonly<Record<string, Json>> = {
  ...{ account: 'ada', name: 'n', amount: '1', folder: 'f', role: 'read', failed: 'x', id: 'a' },
};

interface Attack {
  readonly what: string;
  readonly path: string;
  readonly asked: Asked;
}

function attacksOn(name: AdminRouteName, ids: Readonly<Record<string, string>>): Attack[] {
  const { method, path, request }: AdminRoute<TObject> = ADMIN_ROUTES[name];
  const right = (member: string): Json => (member === 'id' ? (ids[path.split('/', 1)[0] ?? ''] ?? 'a') : (RIGHT[member] ?? 'x'));
  const members = Object.keys(request.properties as Record<string, TSchema>);
  const inPath = new Set([...path.matchAll(/\{(\w+)\}/g)].map(([, member = '']) => member));
  const hasBody = method === 'POST' || method === 'PATCH';
  return [...members, 'reason', 'nothing'].flatMap((member) =>
    WRONG.flatMap((wrong): Attack[] => {
      const of = (one: string): Json => (one === member ? wrong : right(one));
      if (inPath.has(member) && (typeof wrong !== 'string' || !wrong.isWellFormed())) return [];
      const place = path.replaceAll(/\{(\w+)\}/g, (_, one: string) => encodeURIComponent(of(one)));
      const given = Object.fromEntries(
        [...new Set([...(request.required ?? []), member])].filter((one) => !inPath.has(one)).map((one) => [one, of(one)]),
      );
      const what = `${method} ${path} ${member}=${JSON.stringify(wrong)?.slice(0, 60)}`;
      // Longer heads than Node reads are refused before anybody looks at them.
      const fits = (target: string): boolean => target.length < 8_000;
      if (hasBody) return fits(place) ? [{ what, path: place, asked: { method, body: given } }] : [];
      const query = new URLSearchParams(
        Object.entries(given).map(([one, value]) => [one, typeof value === 'string' ? value : JSON.stringify(value)]),
      );
      return fits(`${place}?${query}`) ? [{ what, path: `${place}?${query}`, asked: { method } }] : [];
    }),
  );
}

function sound({ what }: Attack, { status, json, text }: Answer): void {
  // The store is well: an id that it cannot look up is the asker's mistake, and no reason to alarm anybody.
  const isRefused = status < 500 || (status === 503 && json.error?.code !== 'store_unavailable');
  assert.ok(isRefused, `${what}: ${status} ${text.slice(0, 200)}`);
  if (status >= 400)
    assert.deepEqual(
      [typeof json.error?.code, typeof json.error?.message],
      ['string', 'string'],
      `${what}: ${text.slice(0, 200)}`,
    );
}

async function attacked(
  t: TestContext,
): Promise<{ readonly gateway: AdminGateway; readonly ids: Readonly<Record<string, string>> }> {
  const backups = mkdtempSync(join(tmpdir(), 'mizu-attack-'));
  t.after(() => rmSync(backups, { recursive: true, force: true }));
  const gateway = await adminGateway(t, { backups });
  const { key } = await funded(gateway.store, 10n ** 12n);
  await gateway.ask('accounts', { body: { name: 'ada', credit: '5' } });
  return { gateway, ids: { keys: key.id, channels: 'a', videos: 'video_1', exchanges: 'ex_1' } };
}

const NAMES = Object.keys(ADMIN_ROUTES).filter((name): name is AdminRouteName => name !== 'followExchanges');

test('values that nobody means are refused in words, or do what they say; the gateway fails at none', async (t) => {
  const { gateway, ids } = await attacked(t);
  const all = NAMES.flatMap((name) => attacksOn(name, ids));
  const chosen = all.filter((_, at) => (at + SEED) % EVERY === 0);
  assert.ok(all.length > 5_000 && chosen.length > 100);
  const waiting = chosen.values();
  const attacker = async (): Promise<void> => {
    for (const attack of waiting) sound(attack, await gateway.ask(attack.path, attack.asked));
  };
  await Promise.all(Array.from({ length: 8 }, attacker));
  assert.deepEqual(
    gateway.logLines.filter(({ level }) => level === 'error'),
    [],
  );
  assert.deepEqual((await gateway.store.ledger.verify()).differences, []);
});

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'];

test('whoever may only read changes nothing by any method, with a token or the cookie of a session', async (t) => {
  const { gateway, ids } = await attacked(t);
  const signedIn = await gateway.ask('session', { token: null, body: { token: gateway.tokens.read } });
  const cookie = String(signedIn.headers['set-cookie']).split(';', 1)[0] ?? '';
  const before = (await gateway.store.ledger.head()).seq;
  const paths = Object.values<AdminRoute>(ADMIN_ROUTES).map(({ path }) =>
    path.replaceAll(/\{(\w+)\}/g, () => ids[path.split('/', 1)[0] ?? ''] ?? 'ada'),
  );
  for (const path of new Set([...paths, 'openapi.json']))
    for (const method of METHODS) {
      if (path === 'exchanges/live' && method === 'GET') continue;
      const as = method === 'PUT' ? { token: null, headers: { cookie } } : { token: gateway.tokens.read };
      const body = method === 'POST' || method === 'PATCH' ? { body: { reason: 'mine' } } : {};
      const { status, text } = await gateway.ask(path, { method, ...as, ...body });
      const isReading = method === 'GET' || method === 'HEAD';
      assert.ok(
        isReading ? [200, 404, 405].includes(status) : [403, 404, 405].includes(status),
        `${method} ${path} ${status} ${text}`,
      );
      if (method === 'HEAD') assert.equal(text, '', path);
    }
  assert.equal((await gateway.store.ledger.head()).seq, before);
});

test('a live tail ends with its token, with its session, and for a client that asks for its head alone', async (t) => {
  const { gateway } = await attacked(t);
  const { secret } = ok(await gateway.store.adminTokens.create({ name: 'gone', role: 'read' }, cause()));
  const signedIn = await gateway.ask('session', { token: null, body: { token: gateway.tokens.read } });
  const cookie = String(signedIn.headers['set-cookie']).split(';', 1)[0] ?? '';
  const follow = async (headers: Record<string, string>, method = 'GET'): Promise<IncomingMessage> => {
    const asked = request({ host: '127.0.0.1', port: gateway.port, path: '/admin/v1/exchanges/live', method, headers });
    t.after(() => asked.destroy());
    asked.end();
    const [response]: IncomingMessage[] = await once(asked, 'response');
    assert.ok(response);
    response.resume();
    return response;
  };
  const ended = (response: IncomingMessage) => once(response, 'end', { signal: AbortSignal.timeout(10_000) });
  const [byToken, bySession] = [await follow({ authorization: `Bearer ${secret}` }), await follow({ cookie })];
  const other = await follow({ authorization: `Bearer ${gateway.tokens.read}` });
  const head = await follow({ authorization: `Bearer ${gateway.tokens.read}` }, 'HEAD');
  assert.deepEqual([head.statusCode, head.headers['content-type']], [200, 'text/event-stream']);
  await ended(head);
  await gateway.ask('tokens/gone', { method: 'DELETE' });
  await ended(byToken);
  await gateway.ask('session', { token: null, method: 'DELETE', headers: { cookie } });
  await ended(bySession);
  assert.equal(other.readableEnded, false, 'whoever may still read goes on');
});

test('of what asks to sign in only as much is read as a token may be: nobody knows yet who sends it', async (t) => {
  const { gateway } = await attacked(t);
  for (const token of ['x'.repeat(10_000), 'x'.repeat(900_000)]) {
    const { status, json } = await gateway.ask('session', { token: null, body: { token } });
    assert.deepEqual([status, json.error.code], [413, 'request_too_large']);
  }
});

test('only so many live tails are open at once, and one that is closed makes room', async (t) => {
  const { gateway } = await attacked(t);
  const headers = { authorization: `Bearer ${gateway.tokens.read}` };
  const follow = async () => {
    const asked = get({ host: '127.0.0.1', port: gateway.port, path: '/admin/v1/exchanges/live', headers, agent: false });
    t.after(() => asked.destroy());
    const [response]: IncomingMessage[] = await once(asked, 'response');
    return { asked, status: response?.statusCode };
  };
  const tails = await Promise.all(Array.from({ length: 80 }, follow));
  const statuses = tails.map(({ status }) => status ?? 0).sort((a, b) => a - b);
  assert.deepEqual(statuses, [...Array.from({ length: 64 }, () => 200), ...Array.from({ length: 16 }, () => 409)]);
  for (const { asked } of tails) asked.destroy();
  for (let tries = 0; (await follow()).status !== 200; tries += 1) assert.ok(tries < 100);
});

test('a live tail that goes on behind a row that is not there, as after a restore, shows what comes', async (t) => {
  const { gateway } = await attacked(t);
  const owner = await funded(gateway.store, 10n ** 12n);
  const headers = { authorization: `Bearer ${gateway.tokens.read}` };
  const path = `/admin/v1/exchanges/live?after=${Number.MAX_SAFE_INTEGER}`;
  const asked = get({ host: '127.0.0.1', port: gateway.port, path, headers });
  t.after(() => asked.destroy());
  const [response]: IncomingMessage[] = await once(asked, 'response');
  const settle = setInterval(() => {
    void gateway.store.settlements.settle({ entry: entry(owner, `ex_${performance.now()}`, 1n) });
  }, 50);
  t.after(() => clearInterval(settle));
  let text = '';
  for await (const chunk of response?.setEncoding('utf8') ?? []) {
    text += chunk;
    if (text.includes('event: exchanges')) break;
  }
  assert.match(text, /event: exchanges/);
});

test('many changes at once under one Idempotency-Key: one is made, and the others are it or are refused', async (t) => {
  const { gateway } = await attacked(t);
  const later = await adminGateway(t, { store: gateway.store, tokens: gateway.tokens });
  const amounts = Array.from({ length: 40 }, (_, n) => String(1 + (n % 4)));
  const answers = await Promise.all(
    amounts.map((amount, n) =>
      (n % 2 === 0 ? gateway : later).ask('accounts/ada/credit', { body: { amount }, headers: { 'idempotency-key': 'once' } }),
    ),
  );
  const made = amounts.filter((_, n) => answers[n]?.status === 200);
  assert.equal(new Set(made).size, 1, 'of one request alone');
  assert.equal(made.length, 10);
  assert.ok(answers.every(({ status }) => status === 200 || status === 409));
  const { json } = await gateway.ask('accounts/ada');
  assert.equal(json.balance, `${5 + Number(made[0])}.00`);
});
