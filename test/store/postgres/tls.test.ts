/**
 * TLS to the database: each `sslmode` against servers with a good, a foreign and an expired certificate, and against one without.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { openPostgresStore } from '../../../src/store/postgres/open.ts';
import { StoreError } from '../../../src/store/store-error.ts';
import { CA, EXPIRED_CERT, EXPIRED_KEY, GOOD_CERT, GOOD_KEY } from '../../support/certificates.ts';
import { type Server, startServer } from '../../support/postgres.ts';
import { freePort } from '../../support/processes.ts';
import { onPostgres, postgresOptions } from '../support/stores.ts';

/** The certificate is that of `localhost` and 127.0.0.1; 127.0.0.2 is this machine too, under a name that it does not have. */
const [NAMED, UNNAMED] = ['127.0.0.1', '127.0.0.2'];

interface Listening {
  readonly server: Server;
  readonly port: number;
}

onPostgres(() => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-tls-'));
  const ca = join(folder, 'ca.pem');
  const servers = new Map<string, Listening>();

  /** With a certificate only TLS gets in. */
  const listen = async (certificate?: { readonly cert: string; readonly key: string }): Promise<Listening> => {
    const port = await freePort();
    const settings: Record<string, string> = { listen_addresses: `${NAMED},${UNNAMED}`, port: String(port) };
    const access = ['hostssl all all 127.0.0.0/8 trust', 'hostnossl all all 127.0.0.0/8 reject'];
    const server = await startServer({
      settings,
      access: certificate === undefined ? ['host all all 127.0.0.0/8 trust'] : access,
      ...(certificate === undefined ? {} : { certificate }),
    });
    return { server, port };
  };

  before(async () => {
    writeFileSync(ca, CA);
    servers.set('a good', await listen({ cert: GOOD_CERT, key: GOOD_KEY }));
    servers.set('an expired', await listen({ cert: EXPIRED_CERT, key: EXPIRED_KEY }));
    servers.set('no', await listen());
  });
  after(async () => {
    await Promise.all([...servers.values()].map(({ server }) => server.stop()));
    rmSync(folder, { recursive: true, force: true });
  });

  /** How it went: the code of the refusal, or whether the line is encrypted. */
  async function tried(name: string, host: string, query: string): Promise<string> {
    const found = servers.get(name);
    assert.ok(found);
    const url = `postgres://mizu@${host}:${found.port}/postgres${query}`;
    try {
      const store = await openPostgresStore(postgresOptions(url));
      const rows = await found.server.admin(
        `SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'mizu'`,
      );
      await store.close();
      return rows.map(({ ssl }) => (ssl === true ? 'encrypted' : 'plain')).join();
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      assert.doesNotMatch(error.message, /mizu@|BEGIN/);
      return error.code;
    }
  }

  const CASES: readonly (readonly [server: string, host: string, query: string, outcome: string])[] = [
    ['a good', NAMED, '?sslmode=verify-full&sslrootcert=CA', 'encrypted'],
    ['a good', 'localhost', '?sslmode=verify-full&sslrootcert=CA', 'encrypted'],
    ['a good', UNNAMED, '?sslmode=verify-full&sslrootcert=CA', 'untrusted'],
    ['a good', UNNAMED, '?sslmode=verify-ca&sslrootcert=CA', 'encrypted'],
    ['a good', UNNAMED, '?sslmode=require&sslrootcert=CA', 'encrypted'],
    ['a good', NAMED, '?sslmode=require', 'encrypted'],
    ['a good', NAMED, '?sslmode=verify-full', 'untrusted'],
    ['a good', NAMED, '', 'access_denied'],
    ['a good', NAMED, '?sslmode=disable', 'access_denied'],
    ['a good', NAMED, '?sslmode=verify-ca', 'bad_url'],
    ['a good', NAMED, '?sslmode=prefer', 'bad_url'],
    ['a good', NAMED, '?sslmode=allow', 'bad_url'],
    ['a good', NAMED, '?sslmode=verify-ful&sslrootcert=CA', 'bad_url'],
    ['a good', NAMED, '?sslrootcert=CA', 'bad_url'],
    ['a good', NAMED, '?sslmode=verify-full&sslrootcert=/none.pem', 'bad_url'],
    ['an expired', NAMED, '?sslmode=verify-full&sslrootcert=CA', 'untrusted'],
    ['an expired', NAMED, '?sslmode=verify-ca&sslrootcert=CA', 'untrusted'],
    ['an expired', NAMED, '?sslmode=require', 'encrypted'],
    ['no', NAMED, '?sslmode=require', 'untrusted'],
    ['no', NAMED, '?sslmode=verify-full&sslrootcert=CA', 'untrusted'],
    ['no', NAMED, '', 'plain'],
  ];
  for (const [server, host, query, outcome] of CASES) {
    test(`a server with ${server} certificate at ${host}${query}: ${outcome}`, async () => {
      assert.equal(await tried(server, host, query.replace('=CA', `=${encodeURIComponent(ca)}`)), outcome);
    });
  }
});
