/**
 * A PostgreSQL server of the tests' own: fresh data, a private socket, no TCP port, run as an unprivileged user. Started at most
 * once in a process and ended with it, also when that is killed. Where the binaries are missing, tests skip and say so.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { skipped } from './engines.ts';

const ROOT = '/usr/lib/postgresql';

/** The folder of the newest server's binaries, or undefined. */
function binaries(): string | undefined {
  if (!existsSync(ROOT)) return undefined;
  const versions = readdirSync(ROOT).sort((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(ROOT, version, 'bin')).find((bin) => existsSync(join(bin, 'initdb')));
}

/** The user that runs the server when we are root, which PostgreSQL refuses to be. */
function unprivileged(): { readonly uid: number; readonly gid: number } | undefined {
  if (process.getuid?.() !== 0) return undefined;
  for (const user of ['postgres', 'nobody']) {
    try {
      const id = (flag: string) =>
        Number(execFileSync('id', [flag, user], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }));
      return { uid: id('-u'), gid: id('-g') };
    } catch (error) {
      if (!(error instanceof Error)) throw error;
    }
  }
  throw new Error('there is no unprivileged user to run PostgreSQL');
}

/** Why tests on PostgreSQL must be skipped, or false. */
export const noPostgres: string | false =
  skipped('postgres') || (binaries() === undefined ? `no PostgreSQL server in ${ROOT}: install the package postgresql` : false);

export interface Server {
  /** The folder of its socket. */
  readonly socket: string;
  /** The address of a database of it. */
  url(database: string, user?: string): string;
  /** A new and empty database; resolves with its address. */
  createDatabase(): Promise<string>;
  /** One statement as the superuser. */
  admin(sql: string, database?: string): Promise<readonly Record<string, unknown>[]>;
  stop(): Promise<void>;
  /** Starts it again on the same data. */
  start(): Promise<void>;
}

export interface ServerOptions {
  /** Lines of `postgresql.conf`. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Lines that come before the rest of `pg_hba.conf`: who must prove what. */
  readonly access?: readonly string[];
  /** PEM texts: the server speaks TLS. */
  readonly certificate?: { readonly cert: string; readonly key: string };
  /** Data that is there already, such as a base backup; owned by the unprivileged user. */
  readonly data?: string;
}

let shared: Promise<Server> | undefined;
let made = 0;

/** The one server of this process. */
export function server(): Promise<Server> {
  shared ??= startServer();
  return shared;
}

export async function startServer({ settings = {}, access = [], certificate, data }: ServerOptions = {}): Promise<Server> {
  const bin = binaries();
  if (bin === undefined) throw new Error(String(noPostgres));
  const identity = unprivileged();
  const folder = mkdtempSync(join(tmpdir(), 'mizu-pg-'));
  chmodSync(folder, 0o755);
  if (identity !== undefined) chownSync(folder, identity.uid, identity.gid);
  const directory = data ?? join(folder, 'data');
  if (data === undefined) {
    const args = ['-D', directory, '-U', 'mizu', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'];
    execFileSync(join(bin, 'initdb'), args, { ...identity, stdio: 'ignore', cwd: folder });
  }
  if (access.length > 0) {
    const rules = join(directory, 'pg_hba.conf');
    writeFileSync(rules, `${access.join('\n')}\n${readFileSync(rules, 'utf8')}`);
  }
  if (certificate !== undefined) {
    const [cert, key] = [join(directory, 'server.crt'), join(directory, 'server.key')];
    writeFileSync(cert, certificate.cert);
    writeFileSync(key, certificate.key, { mode: 0o600 });
    if (identity !== undefined) for (const file of [cert, key]) chownSync(file, identity.uid, identity.gid);
  }
  const all = {
    ...(certificate === undefined ? {} : { ssl: 'on' }),
    listen_addresses: '',
    unix_socket_directories: folder,
    // Tests end backends and clients, not the machine: what the disk has is not theirs to check.
    fsync: 'off',
    synchronous_commit: 'off',
    full_page_writes: 'off',
    max_connections: '100',
    shared_buffers: '32MB',
    autovacuum: 'off',
    ...settings,
  };
  const args = ['-D', directory, ...Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])];
  let child: ChildProcess | undefined;

  const start = async (): Promise<void> => {
    // The shell ends the server when our end of its standard input closes: also when this process is killed.
    const script = '"$0" "$@" >server.log 2>&1 & pid=$!; cat >/dev/null; kill -INT $pid; wait $pid';
    child = spawn('/bin/sh', ['-c', script, join(bin, 'postgres'), ...args], {
      ...identity,
      cwd: folder,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    child.unref();
    if (child.stdin !== null && 'unref' in child.stdin && typeof child.stdin.unref === 'function') child.stdin.unref();
    await ready();
  };
  const stop = async (): Promise<void> => {
    if (child === undefined) return;
    const ended = new Promise((resolve) => child?.once('exit', resolve));
    child.ref();
    child.stdin?.end();
    await ended;
    child = undefined;
  };
  const port = settings['port'] === undefined ? '' : `:${settings['port']}`;
  const url = (database: string, user = 'mizu'): string => `postgres://${user}@${encodeURIComponent(folder)}${port}/${database}`;
  const admin = async (sql: string, database = 'postgres') => {
    const client = new Client({ connectionString: url(database) });
    await client.connect();
    try {
      return (await client.query<Record<string, unknown>>(sql)).rows;
    } finally {
      await client.end();
    }
  };
  const ready = async (): Promise<void> => {
    for (let tries = 0; ; tries += 1) {
      try {
        await admin('SELECT 1');
        return;
      } catch (error) {
        if (tries > 400) throw error;
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
    }
  };

  await start();
  process.once('exit', () => {
    child?.stdin?.destroy();
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    socket: folder,
    url,
    async createDatabase() {
      made += 1;
      const name = `test_${process.pid}_${made}`;
      await admin(`CREATE DATABASE ${name}`);
      return url(name);
    },
    admin,
    stop,
    start,
  };
}
