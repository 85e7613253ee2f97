/**
 * How many settlements a second one database takes from several processes: each offers its share at a steady pace, admitted with
 * a warm cache, opened and settled, and the queue must not grow. Prints one JSON line. Needs a PostgreSQL server's binaries.
 * Usage: node bench/settlements.ts [processes] [requests a second, in all] [seconds] [keys, each with an account]
 */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { openPostgresStore } from '../src/store/postgres/open.ts';
import { numberOption, scriptOptions } from '../test/support/script-options.ts';
import { percentile } from './harness/statistics.ts';
import { startServer } from '../test/support/postgres.ts';
import { alive } from '../test/store/support/alive.ts';
import { entry, funded, ok } from '../test/store/support/store.ts';
import { postgresOptions } from '../test/store/support/stores.ts';

interface Report {
  readonly settled: number;
  readonly seconds: number;
  readonly cpuSeconds: number;
  readonly mostPending: number;
  readonly p50: number;
  readonly p99: number;
  readonly spooled: boolean;
}

const self = { process: { host: 'bench', pid: process.pid, isAlive: alive } };

async function work(url: string, secrets: readonly string[], perSecond: number, seconds: number): Promise<Report> {
  const problems: string[] = [];
  const store = await openPostgresStore(postgresOptions(url, { ...self, onProblem: ({ what }) => problems.push(what) }));
  const [waits, all]: [number[], PromiseLike<unknown>[]] = [[], []];
  let mostPending = 0;
  const cpu = process.cpuUsage();
  const start = performance.now();
  for (let n = 0; n < perSecond * seconds; ) {
    const due = Math.min(((performance.now() - start) / 1000) * perSecond, perSecond * seconds);
    for (; n < due; n += 1) {
      const owner = ok(await store.keys.authenticate(secrets[n % secrets.length] ?? '', Date.now()));
      const reservation = ok(await store.admission.admit(owner, 1_000n, Date.now()));
      const row = entry(owner, `b-${process.pid}-${n}`, 777n, { usage: { input: 1_200, output: 345 } });
      void store.settlements.open(row);
      const began = performance.now();
      all.push(store.settlements.settle({ entry: row, reservation }).then(() => waits.push(performance.now() - began)));
    }
    mostPending = Math.max(mostPending, store.settlements.pending);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  await store.settlements.flush();
  await Promise.all(all);
  const elapsed = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(cpu);
  await store.close();
  waits.sort((a, b) => a - b);
  const at = (share: number): number => Math.round(percentile(waits, share) * 10) / 10;
  return {
    settled: waits.length,
    seconds: elapsed,
    cpuSeconds: (user + system) / 1e6,
    mostPending,
    p50: at(0.5),
    p99: at(0.99),
    spooled: problems.length > 0,
  };
}

async function child(): Promise<void> {
  const [, , , url = '', secrets = '', perSecond = '0', seconds = '0'] = process.argv;
  const report = await work(url, secrets.split(','), Number(perSecond), Number(seconds));
  process.send?.(report);
  process.disconnect?.();
}

async function main(): Promise<void> {
  const usage = 'node bench/settlements.ts [PROCESSES [OFFERED [SECONDS [KEYS]]]]';
  const { positionals } = scriptOptions(usage, { allowPositionals: true });
  const [processes = 2, perSecond = 1_000, seconds = 10, keys = 1] = positionals.map((word) => numberOption(usage, 'each', word));
  // As an operator runs it: every commit waits for the disk.
  const server = await startServer({
    settings: { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on', autovacuum: 'on', shared_buffers: '128MB' },
  });
  try {
    const url = await server.createDatabase();
    const store = await openPostgresStore(postgresOptions(url, self));
    const secrets: string[] = [];
    for (let n = 0; n < keys; n += 1)
      secrets.push((await funded(store, 10n ** 15n, { limits: { total: 10n ** 15n, daily: 10n ** 15n } })).secret);
    const before = await server.admin('SELECT pg_current_wal_lsn() AS at');
    const children = Array.from({ length: processes }, () =>
      fork(fileURLToPath(import.meta.url), ['child', url, secrets.join(','), String(perSecond / processes), String(seconds)]),
    );
    const reports = await Promise.all(children.map(reportOf));
    const settled = reports.reduce((sum, one) => sum + one.settled, 0);
    const wal = await server.admin(`SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '${before[0]?.['at']}')::text AS bytes`);
    const size = await server.admin('SELECT pg_database_size(current_database())::text AS bytes', url.split('/').at(-1));
    const { rows, differences } = await store.ledger.verify();
    const left = (await store.accounts.list()).reduce((sum, { walletNanos }) => sum + walletNanos, 0n);
    const spent = BigInt(keys) * 10n ** 15n - left;
    console.log(
      JSON.stringify({
        processes,
        keys,
        offered: perSecond,
        settledPerSecond: Math.round(settled / Math.max(...reports.map((one) => one.seconds))),
        pendingAtMost: Math.max(...reports.map(({ mostPending }) => mostPending)),
        waitMs: { p50: Math.max(...reports.map(({ p50 }) => p50)), p99: Math.max(...reports.map(({ p99 }) => p99)) },
        cpuMicrosecondsEach: Math.round((reports.reduce((sum, one) => sum + one.cpuSeconds, 0) / settled) * 1e6),
        walBytesEach: Math.round(Number(wal[0]?.['bytes']) / settled),
        diskBytesEach: Math.round(Number(size[0]?.['bytes']) / settled),
        journalRows: rows,
        differences: differences.length,
        spentIsRight: spent === BigInt(settled) * 777n,
        problems: reports.some(({ spooled }) => spooled),
      }),
    );
    await store.close();
  } finally {
    await server.stop();
  }
}

async function reportOf(worker: ChildProcess): Promise<Report> {
  const [message]: unknown[] = await once(worker, 'message');
  if (typeof message !== 'object' || message === null || !('settled' in message)) throw new Error('a worker said nothing');
  return message as Report;
}

await (process.argv[2] === 'child' ? child() : main());
