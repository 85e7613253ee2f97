/** `mizu channels test` against every kind of upstream that an operator may have configured. */
import assert from 'node:assert/strict';
import { createServer, type RequestListener, type Server } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type TestContext, test } from 'node:test';
import { CA, EXPIRED_CERT, EXPIRED_KEY, GOOD_CERT, GOOD_KEY } from '../support/certificates.ts';
import { freePort, install } from '../support/processes.ts';

type Listener = Pick<Server, 'listen' | 'address' | 'close' | 'closeAllConnections'>;

async function listening(t: TestContext, server: Listener, scheme = 'http'): Promise<string> {
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    server.close();
    server.closeAllConnections();
  });
  return `${scheme}://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const answering =
  (status: number, type: string, text: string, headers: Record<string, string> = {}): RequestListener =>
  (request, response) => {
    request.resume();
    response.writeHead(status, { 'content-type': type, ...headers }).end(text);
  };
const list = answering(200, 'application/json', '{"data":[]}');

test('every kind of upstream is named for what it is; one that fails makes the exit code 1', async (t) => {
  const plain = (handler: RequestListener) => listening(t, createServer(handler));
  const tls = (cert: string, key: string) => listening(t, createTlsServer({ cert, key }, list), 'https');
  const html = '<html><h1>Welcome</h1></html>';
  const drawn = '{"data":[{"id":"painter-2"}]}';
  const kinds: Readonly<Record<string, readonly [url: string, ok: boolean, note: RegExp, more?: object]>> = {
    good: [await plain(list), true, /^reached$/],
    none: [await plain(answering(404, 'application/json', '{}')), true, /no model list/],
    limited: [await plain(answering(429, 'application/json', '{}')), true, /limiting/],
    page: [await plain(answering(200, 'text/html; charset=utf-8', html)), false, /web page: is base_url right/],
    moved: [await plain(answering(302, 'text/html', '', { location: '/login' })), false, /redirects/],
    key: [await plain(answering(401, 'application/json', '{}')), false, /key was refused/],
    credit: [await plain(answering(402, 'application/json', '{}')), false, /no credit/],
    sick: [await plain(answering(500, 'application/json', '{}')), false, /upstream failed/],
    nobody: [`http://127.0.0.1:${await freePort()}`, false, /^ECONNREFUSED: nothing listens/],
    cut: [await plain((request) => request.socket.destroy()), false, /UND_ERR_SOCKET|ECONNRESET/],
    trusted: [await tls(GOOD_CERT, GOOD_KEY), true, /^reached$/, { options: { ca: CA } }],
    untrusted: [await tls(GOOD_CERT, GOOD_KEY), false, /authority is not trusted: see options\.ca/],
    expired: [await tls(EXPIRED_CERT, EXPIRED_KEY), false, /CERT_HAS_EXPIRED/, { options: { ca: CA } }],
    router: [
      await plain(answering(200, 'application/json', drawn)),
      true,
      /^reached$/,
      { type: 'openrouter_image', models: { m: 'painter-2' } },
    ],
    mapping: [
      await plain(answering(200, 'application/json', drawn)),
      false,
      /not in its list: painter-9/,
      { type: 'openrouter_image', models: { m: 'painter-9' } },
    ],
  };
  await using place = await install({
    operations: null,
    channels: Object.entries(kinds).map(([id, [base_url, , , more]]) => ({
      ...{ id, type: 'chat_completion', base_url, api_key: 'sk-canary', models: ['m'] },
      ...more,
    })),
    models: { m: { price: { input: '1', output: '2' } } },
  });
  const { code, out, err } = await place.run('channels', 'test', '--json');
  assert.equal(code, 1, err);
  assert.doesNotMatch(out + err, /canary/);
  const probes: { id: string; ok: boolean; note: string }[] = JSON.parse(out);
  assert.equal(probes.length, Object.keys(kinds).length);
  for (const { id, ok, note } of probes) {
    const [, expected, words] = kinds[id] ?? [];
    assert.equal(ok, expected, `${id}: ${note}`);
    assert.match(note, words ?? /^$/, id);
  }
  const one = await place.run('channels', 'test', 'good');
  assert.equal(one.code, 0);
  assert.match(one.out, /good +ok +200/);
});
