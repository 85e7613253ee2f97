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
    none: [await plain(answering(404, 'application/json', '{}')), false, /^does not serve m, or not at this address/],
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

test('a Channel without a list is asked a question, and with --inference each; whatever fails is told in words', async (t) => {
  const asked: string[] = [];
  /** Lists as `list` does; what is asked of a model is answered by `answer`. */
  const upstream = (answer: RequestListener, models: RequestListener = answering(404, 'application/json', '{}')) =>
    listening(
      t,
      createServer((request, response) => {
        if (request.method === 'GET') return models(request, response);
        asked.push(`${request.url}`);
        answer(request, response);
      }),
    );
  const json = (status: number, value: object) => answering(status, 'application/json', JSON.stringify(value));
  const refused = (status: number, message: string) => json(status, { error: { message, type: 'x' } });
  const message = { role: 'assistant', content: 'OK' };
  const choice = { index: 0, message, finish_reason: 'stop' };
  const usage = { prompt_tokens: 9, completion_tokens: 2, total_tokens: 11 };
  const good = { id: 'c', object: 'chat.completion', created: 1, model: 'u', choices: [choice], usage };
  const kinds: Readonly<Record<string, readonly [url: string, ok: boolean, note: RegExp]>> = {
    good: [await upstream(json(200, good)), true, /^up answers: 2 output tokens$/],
    key: [await upstream(refused(401, 'no such key')), false, /^the key was refused: .*no such key/],
    credit: [await upstream(refused(402, 'pay first')), false, /^the account has no credit: .*pay first/],
    model: [await upstream(refused(404, 'no model up')), false, /^does not serve up, or not at this address: .*no model up/],
    busy: [await upstream(refused(429, 'slow down')), true, /^reached; it is limiting requests: .*slow down/],
    field: [await upstream(refused(400, 'what is that?')), false, /^refuses the request for up: .*what is that/],
    sick: [await upstream(refused(529, 'overloaded')), false, /^the upstream failed: .*overloaded/],
    page: [await upstream(answering(200, 'text/html', '<html>')), false, /^answers, but not as type chat_completion does/],
    other: [await upstream(json(200, { candidates: [] })), false, /^answers, but not as type chat_completion does/],
    empty: [await upstream(answering(200, 'text/event-stream', '')), false, /^its answer ends before anything is said/],
    moved: [await upstream(answering(307, 'text/plain', '', { location: '/' })), false, /^redirects/],
    cut: [await upstream((request) => request.socket.destroy()), false, /UND_ERR_SOCKET|ECONNRESET/],
  };
  const channel = (id: string, base_url: string) => ({
    id,
    type: 'chat_completion',
    base_url,
    api_key: 'sk-canary',
    models: { m: 'up' },
  });
  await using place = await install({
    operations: null,
    channels: [
      ...Object.entries(kinds).map(([id, [url]]) => channel(id, url)),
      channel('listed', await upstream(refused(500, 'no'), list)),
      { ...channel('film', await upstream(refused(500, 'no'))), type: 'ark_video', models: { v: 'up' } },
    ],
    models: { m: { price: { input: '1', output: '2' } }, v: { kind: 'video', price: { video: '1' } } },
  });
  const { code, out, err } = await place.run('channels', 'test', '--json');
  assert.equal(code, 1, err);
  assert.doesNotMatch(out + err, /canary/);
  const probes: { id: string; ok: boolean; note: string; model?: string }[] = JSON.parse(out);
  for (const { id, ok, note, model } of probes) {
    const [, expected, words] = kinds[id] ?? [undefined, true, id === 'listed' ? /^reached$/ : /no model list/];
    assert.deepEqual([id, ok, model], [id, expected, id in kinds && id !== 'cut' ? 'm' : undefined], note);
    assert.match(note, words, id);
  }
  assert.equal(asked.length, Object.keys(kinds).length);
  const one = await place.run('channels', 'test', 'listed', '--inference', '--json');
  assert.deepEqual([one.code, JSON.parse(one.out)[0].status], [1, 500], one.err);
  const film = await place.run('channels', 'test', 'film', '--inference');
  assert.match(film.out, /ok .*no model that answers with text, so nothing was asked/);
  const none = await place.run('channels', 'test', 'good', '--model', 'v');
  assert.deepEqual([none.code, /no model v that answers with text/.test(none.out)], [1, true], none.out);
});
