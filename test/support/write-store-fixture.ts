/**
 * Writes a small store with something of everything on each engine, as a process that was killed leaves it, and what can be
 * listed in it. Every later version must open it (test/store/committed-stores.test.ts). Usage, at the commit whose stores are
 * wanted: npm exec -- node test/support/write-store-fixture.ts FOLDER
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { open } from 'lmdb';
import type { Principal } from '../../src/store/keys.ts';
import { VIDEO_WORKER } from '../../src/store/leases.ts';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { openPostgresStore } from '../../src/store/postgres/open.ts';
import type { Store, StoreOptions } from '../../src/store/store.ts';
import { cause, chargeOf, entry, FakeClock, ok, T0 } from '../store/support/store.ts';
import { startServer } from './postgres.ts';
import { listedStore, listText } from './listed-store.ts';
import { misused, scriptOptions } from './script-options.ts';

const USAGE = 'node test/support/write-store-fixture.ts FOLDER';
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** The same in every run, so that a store that is written again differs only where its format does. */
function seededBytes(): StoreOptions['randomBytes'] {
  let made = 0;
  return (size) => {
    made += 1;
    return createHash('sha512').update(`fixture ${made}`).digest().subarray(0, size);
  };
}

async function fill(store: Store, clock: FakeClock): Promise<void> {
  const account = async (name: string, more: object = {}) => ok(await store.accounts.create({ name, ...more }, cause()));
  const acme = await account('acme', { creditNanos: 10n ** 12n });
  const house = await account('house', { unlimited: true, class: 'gold' });
  const closed = await account('closed', { creditNanos: 5n });
  ok(await store.accounts.credit(acme.id, 7n, cause('top-up')));
  ok(await store.accounts.credit(acme.id, -3n, { id: 'correction', by: 'ops', note: 'typed twice' }));

  const key = async (name: string, more: Partial<Parameters<Store['keys']['create']>[0]> = {}): Promise<Principal> => {
    const made = ok(await store.keys.create({ accountId: acme.id, name, secret: `sk-mizu-fixture-${name}`, ...more }, cause()));
    return { key: made.key, account: made.key.accountId === house.id ? house : acme };
  };
  const plain = await key('plain');
  const limited = await key('limited', {
    limits: { total: 10n ** 11n, hourly: 10n ** 10n, daily: 2n * 10n ** 10n },
    models: ['chat_completion', 'messages'],
    ips: ['127.0.0.0/8', '::1'],
    expiresAtMs: T0 + 10 * YEAR_MS,
  });
  const sub = await key('sub-account', { subAccount: true });
  ok(await store.keys.transfer(sub.key.id, 10n ** 9n, cause('fund-sub')));
  ok(await store.keys.transfer(sub.key.id, -1_000n, cause('take-back')));
  const free = await key('unlimited', { accountId: house.id });
  const off = await key('disabled', { subAccount: true });
  ok(await store.keys.transfer(off.key.id, 500n, cause('fund-disabled')));
  ok(await store.keys.change(off.key.id, { disabled: true }, cause('disable')));
  await key('expired', { expiresAtMs: T0 + 1 });
  await key('of-closed', { accountId: closed.id });
  ok(await store.accounts.change(closed.id, { disabled: true }, cause('close')));

  const usage = { input: 1_200, cachedInput: 800, cacheWrite5m: 10, output: 300, reasoning: 100 };
  for (const [n, owner] of [plain, limited, sub, free, plain, off].entries()) {
    const line = { item: 'input', quantity: 1_200, rate: 5_000_000_000n, per: 'million', amount: 6n * 10n ** 12n } as const;
    const attempt = { channelId: 'one', channelType: 'messages', upstreamModel: 'up', startedAtMs: T0, durationMs: 40 };
    const more = {
      usage: n % 2 === 0 ? usage : { ...usage, meters: new Map([['web_search', 2]]), serviceTier: 'priority' },
      charge: { lines: [line], total: 6_000_000n + BigInt(n), flags: ['long_context'] },
      clientRequestId: `mine-${n % 2}`,
      usageJson: '{"odd":1}',
      attempts: [{ ...attempt, upstreamStatus: 529, errorCode: 'overloaded', errorText: '水' }, attempt],
      affinity: { hit: true, target: 'one' },
      ...(n === 3 ? { status: 'error' as const, httpStatus: 502, errorCode: 'upstream_error', errorText: 'broke off' } : {}),
    };
    void store.settlements.open(entry(owner, `ex_${n}`, 0n));
    void store.settlements.settle({ entry: entry(owner, `ex_${n}`, 0n, more) });
    await store.settlements.flush();
    clock.advance(HOUR_MS / 4);
  }
  void store.settlements.settle({
    entry: entry(plain, 'ex_refused', 0n, { status: 'error', httpStatus: 429, charge: chargeOf(0n) }),
  });
  await videos(store, plain);
  await store.secrets.rotate(cause('rotate'));
  // These are open when the process is killed.
  for (const id of ['ex_open_1', 'ex_open_2']) void store.settlements.open(entry(limited, id, 0n));
  await store.settlements.flush();
}

async function videos(store: Store, owner: Principal): Promise<void> {
  const token = ok(await store.leases.acquire(VIDEO_WORKER, 'w', 1_000, T0)).token;
  for (const state of ['queued', 'submitting', 'running', 'succeeded', 'failed', 'cancelled', 'unknown', 'resolved']) {
    const id = `vid_${state}`;
    const video = { id, principal: owner, model: 'video', requestJson: '{"prompt":"水"}', priceNanos: 11n, nowMs: T0 };
    ok(await store.videos.create({ ...video, idempotencyKey: `k-${state}`, bodyHash: 'h', dueAtMs: T0 + 50 * YEAR_MS }));
    const step = async (change: Parameters<Store['videos']['change']>[1]) =>
      ok(await store.videos.change(id, change, token, T0 + 1));
    const ofKey = { accountId: owner.account.id, keyId: owner.key.id };
    if (state === 'cancelled') ok(await store.videos.cancel(id, ofKey, T0 + 1));
    if (state === 'queued' || state === 'cancelled') continue;
    await step({ event: 'submit', channelId: 'videos', upstreamModel: 'up' });
    if (state === 'running') await step({ event: 'accept', upstreamId: 'up-1', dueAtMs: T0 + 50 * YEAR_MS });
    if (state === 'succeeded')
      await step({ event: 'succeed', outputUrl: 'https://example.com/v.mp4', detailsJson: '{"seconds":5}' });
    if (state === 'failed') await step({ event: 'fail', error: { code: 'refused', message: 'no' } });
    if (state === 'unknown' || state === 'resolved') await step({ event: 'lose', why: 'cut off' });
    const verdict = { event: 'fail', error: { code: 'operator', message: 'never came' } } as const;
    if (state === 'resolved') ok(await store.videos.resolve(id, verdict, cause('ticket-7'), T0 + 2));
  }
}

/** In a process of its own, which is killed with the store open. */
async function fillAndDie(place: string, listPath: string): Promise<void> {
  const clock = new FakeClock();
  const options = { clock, randomBytes: seededBytes(), process: { host: 'fixture', pid: 1, isAlive: () => true } };
  const store = place.startsWith('postgres://')
    ? await openPostgresStore({ ...options, url: place, spoolPath: mkdtempSync(join(tmpdir(), 'mizu-spool-')) })
    : await openLmdbStore({ ...options, path: place, ballastBytes: 0, freeSpaceFloor: 0 });
  await fill(store, clock);
  writeFileSync(listPath, listText(await listedStore(store)));
  process.kill(process.pid, 'SIGKILL');
}

function runChild(place: string, listPath: string): void {
  const ran = spawnSync(process.execPath, [process.argv[1] ?? '', '--fill', place, listPath], { stdio: 'inherit' });
  if (ran.signal !== 'SIGKILL') throw new Error(`the store was not filled: exit code ${ran.status}`);
}

async function write(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const temporary = mkdtempSync(join(tmpdir(), 'mizu-fixture-'));
  const lmdb = join(temporary, 'lmdb');
  runChild(lmdb, join(folder, 'lmdb.json'));
  const root = open({ path: lmdb, noSubdir: false, maxDbs: 64 });
  mkdirSync(join(temporary, 'compact'));
  await root.backup(join(temporary, 'compact'), true);
  await root.close();
  writeFileSync(join(folder, 'data.mdb.gz'), gzipSync(readFileSync(join(temporary, 'compact', 'data.mdb')), { level: 9 }));

  const server = await startServer();
  runChild(server.url('postgres'), join(folder, 'postgres.json'));
  const dump = [
    '--no-owner',
    '--no-privileges',
    '--inserts',
    '--rows-per-insert=50',
    '-h',
    server.socket,
    '-U',
    'mizu',
    'postgres',
  ];
  // Lines with a backslash are for psql alone.
  const sql = execFileSync('pg_dump', dump, { encoding: 'utf8' }).replaceAll(/^\\.*\n/gm, '');
  writeFileSync(join(folder, 'postgres.sql'), sql);
  await server.stop();
  rmSync(temporary, { recursive: true, force: true });
}

const { values, positionals } = scriptOptions(USAGE, { options: { fill: { type: 'boolean' } }, allowPositionals: true });
const [first, second] = positionals;
if (first === undefined) misused(USAGE, 'where to?');
else if (values.fill === true) await fillAndDie(first, second ?? '');
else await write(first);
