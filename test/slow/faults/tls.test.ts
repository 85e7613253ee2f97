/**
 * E4 14: an upstream whose TLS is wrong in every way that there is. The client is told of a failed upstream in its own dialect
 * and of nothing else, the operator reads the reason, the next Channel answers, and no connection is left.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createServer as createTlsServer, type TlsOptions } from 'node:tls';
import { CA, EXPIRED_CERT, EXPIRED_KEY, GOOD_CERT, GOOD_KEY } from '../../support/certificates.ts';
import { eventually, testGateway } from '../../support/test-gateway.ts';
import { bodyOf, CLIENTS, endingOf, GOOD, PATHS, STREAM_HEAD, WHOLE } from './support/rig.ts';

interface Pair {
  readonly cert: string;
  readonly key: string;
}

/** Signed by itself; undefined where there is no openssl. */
function selfSigned(name: string): Pair | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-tls-'));
  const [cert, key] = [join(folder, 'cert'), join(folder, 'key')];
  const algorithm = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=DNS:${name}`];
  const { status } = spawnSync('openssl', ['req', '-x509', ...algorithm, '-days', '2', ...subject, '-keyout', key, '-out', cert]);
  const pair = status === 0 ? { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') } : undefined;
  rmSync(folder, { recursive: true });
  return pair;
}

interface Upstream {
  readonly server: Server;
  /** Trusted by the Channel beside the system's. */
  readonly ca?: string;
  readonly scheme?: 'http';
}

const good: Pair = { cert: GOOD_CERT, key: GOOD_KEY };

function speaking(options: TlsOptions): Server {
  return createTlsServer(options, (socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('data', (data) => {
      const isStream = /"stream":\s*true/.test(String(data));
      const whole = `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${WHOLE.messages.length}\r\n\r\n${WHOLE.messages}`;
      const frames = GOOD.messages.map((frame) => `${Buffer.byteLength(frame).toString(16)}\r\n${frame}\r\n`).join('');
      socket.end(isStream ? `${STREAM_HEAD}${frames}0\r\n\r\n` : whole);
    });
  });
}

const raw = (play: (socket: Socket) => void): Server =>
  createServer((socket) => {
    socket.on('error', () => socket.destroy());
    play(socket);
  });

/** Undefined where this machine cannot make it. The pattern is what the operator reads. */
const FAULTS: Readonly<Record<string, { readonly reason: RegExp; make(): Upstream | undefined }>> = {
  'an expired certificate': {
    reason: /CERT_HAS_EXPIRED/,
    make: () => ({ server: speaking({ cert: EXPIRED_CERT, key: EXPIRED_KEY }), ca: CA }),
  },
  'an authority that nobody trusts': {
    reason: /UNABLE_TO_VERIFY|SELF_SIGNED|self.signed/i,
    make: () => ({ server: speaking(good) }),
  },
  'a certificate signed by itself': {
    reason: /SELF_SIGNED/,
    make() {
      const pair = selfSigned('localhost');
      return pair === undefined ? undefined : { server: speaking({ ...pair }) };
    },
  },
  'a certificate of another host': {
    reason: /ALTNAME_INVALID/,
    make() {
      const pair = selfSigned('other.example');
      return pair === undefined ? undefined : { server: speaking({ ...pair }), ca: pair.cert };
    },
  },
  'a version that is too old': {
    reason: /EPROTO|ERR_SSL|protocol version/i,
    make: () => ({
      server: speaking({ ...good, minVersion: 'TLSv1.1', maxVersion: 'TLSv1.1', ciphers: 'ALL:@SECLEVEL=0' }),
      ca: CA,
    }),
  },
  'no cipher in common': {
    reason: /EPROTO|ERR_SSL|handshake failure/i,
    make: () => ({ server: speaking({ ...good, maxVersion: 'TLSv1.2', ciphers: 'NULL-SHA256:@SECLEVEL=0' }), ca: CA }),
  },
  'a reset in the handshake': {
    reason: /ECONNRESET|UND_ERR_SOCKET/,
    make: () => ({ server: raw((socket) => socket.once('data', () => socket.resetAndDestroy())), ca: CA }),
  },
  'an end in the handshake': {
    reason: /ECONNRESET|UND_ERR_SOCKET/,
    make: () => ({ server: raw((socket) => socket.once('data', () => socket.end())), ca: CA }),
  },
  'silence in the handshake': {
    reason: /UND_ERR_CONNECT_TIMEOUT/,
    make: () => ({ server: raw((socket) => socket.resume()), ca: CA }),
  },
  'plain HTTP where TLS was meant': {
    reason: /EPROTO|ERR_SSL|wrong version/i,
    make: () => ({ server: createHttpServer((_request, response) => response.end('{}')), ca: CA }),
  },
  'TLS where plain HTTP was meant': {
    reason: /UND_ERR_SOCKET|ECONNRESET|HPE_|Parse Error|EPIPE|closed/i,
    make: () => ({ server: speaking(good), scheme: 'http' }),
  },
};

async function listening(t: TestContext, server: Server): Promise<{ port: number; open: Set<Socket> }> {
  const open = new Set<Socket>();
  server.on('connection', (socket) => {
    open.add(socket);
    socket.once('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, open };
}

const price = { price: { input: '1', output: '2' } };
const LEAKS = /127\.0\.0\.1|localhost|CERT|SSL|ECONN|UND_ERR|other\.example|sk-upstream/i;

for (const [name, { reason, make }] of Object.entries(FAULTS)) {
  test(`F14: TLS: ${name}`, async (t) => {
    const upstream = make();
    if (upstream === undefined) {
      t.skip('openssl cannot make certificates here');
      return;
    }
    const { port, open } = await listening(t, upstream.server);
    const second = await listening(t, speaking(good));
    const channel = (id: string, url: string, changes: object) => ({
      ...{ id, type: 'messages', base_url: url, api_key: 'sk-upstream-canary' },
      ...{ timeouts: { connect_ms: 400, first_data_ms: 2000, idle_ms: 2000 }, ...changes },
    });
    const options = upstream.ca === undefined ? {} : { options: { ca: upstream.ca } };
    await using gateway = await testGateway({
      health: { failures: 1000 },
      channels: [
        channel('wrong', `${upstream.scheme ?? 'https'}://127.0.0.1:${port}`, { models: ['alone', 'both'], ...options }),
        channel('right', `https://127.0.0.1:${second.port}`, { models: ['both'], priority: 1, options: { ca: CA } }),
      ],
      models: { alone: price, both: price },
    });
    for (const client of CLIENTS) {
      for (const stream of [true, false]) {
        const alone = await gateway.post(PATHS[client], bodyOf(client, 'alone', stream));
        const text = await alone.text();
        assert.equal(alone.status, 502, text);
        assert.doesNotMatch(text, LEAKS);
        const row = gateway.store.settled.at(-1);
        assert.match(`${row?.errorText} ${row?.attempts[0]?.errorText}`, reason);
        assert.notEqual(row?.errorCode, 'internal_error');
        assert.equal(row?.charge?.total ?? 0n, 0n);
        const both = await gateway.post(PATHS[client], bodyOf(client, 'both', stream));
        const answer = await both.text();
        assert.equal(both.status, 200, answer);
        if (stream) assert.equal(endingOf(client, answer), 'success');
      }
    }
    await eventually(() => open.size === 0, `no connection is left (${open.size})`);
    assert.equal(gateway.store.held.size, 0);
  });
}
