/**
 * A month of exchanges on LMDB or PostgreSQL: what the sums by hour and the index of the log's filters cost a settlement, what a
 * live tail of 1,000 exchanges a second costs each of them, and how long each view of the console takes (of ten looks the median
 * and the worst). Prints one JSON line. With `--at` the month is kept at that place, and a run that was stopped goes on where it
 * was. Usage: node bench/month.ts [lmdb|postgres] [--exchanges N] [--keys N] [--at FOLDER|postgres://…]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { followExchanges } from '../src/cli/exchanges.ts';
import { jsonText } from '../src/http/admin/json-text.ts';
import type { Principal } from '../src/store/keys.ts';
import { LogIndexChanges } from '../src/store/lmdb/log-places.ts';
import { RollupChanges } from '../src/store/rollups.ts';
import type { Store } from '../src/store/store.ts';
import { systemClock } from '../src/streams/clock.ts';
import { consoleViews, fillMonth, MonthClock, monthExchange, monthGateway, monthOwners, viewMs } from '../test/support/month.ts';
import { startServer } from '../test/support/postgres.ts';
import { numberOption, scriptOptions } from '../test/support/script-options.ts';
import { openPlace } from '../test/store/support/stores.ts';
import { median } from './harness/statistics.ts';

const IN_FLIGHT = 384;
/** Exchanges between two looks of a live tail. */
const A_LOOK = 500;
/** At each view. */
const LOOKS = 10;

/** What a server has that nobody configured, where those of the tests are smaller. */
const AS_INSTALLED = { autovacuum: 'on', shared_buffers: '128MB' };

async function settleMany(store: Store, owners: readonly Principal[], name: string, count: number): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    void store.settlements.settle({ entry: monthExchange(owners, name, n) });
    if (n % IN_FLIGHT === IN_FLIGHT - 1) await store.settlements.flush();
  }
  await store.settlements.flush();
}

const cpuSince = (before: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(before);
  return user + system;
};

/** Turns of which none is counted, and those that are. */
const [WARM_TURNS, TURNS] = [4, 60];

/**
 * What each part adds to the processor time of a settlement, microseconds: with and without it by turns, the median of the
 * differences. A machine that others use makes every turn slower, but neighbours alike.
 */
async function parts(store: Store, owners: readonly Principal[]): Promise<Record<string, number>> {
  const [sum, enter] = [RollupChanges.prototype.exchange, LogIndexChanges.prototype.enter];
  const without: Record<string, () => void> = {
    whole: () => undefined,
    sums: () => {
      RollupChanges.prototype.exchange = () => undefined;
    },
    'filter index': () => {
      LogIndexChanges.prototype.enter = () => undefined;
    },
  };
  const wholes: number[] = [];
  const added: Record<string, number[]> = { sums: [], 'filter index': [] };
  for (let turn = 0; turn < WARM_TURNS + TURNS; turn += 1) {
    const took: Record<string, number> = {};
    for (const [part, leaveOut] of Object.entries(without)) {
      leaveOut();
      const before = process.cpuUsage();
      const count = IN_FLIGHT * 6;
      await settleMany(store, owners, `cost-${part}-${turn}`, count);
      took[part] = cpuSince(before) / count;
      RollupChanges.prototype.exchange = sum;
      LogIndexChanges.prototype.enter = enter;
    }
    if (turn < WARM_TURNS) continue;
    const whole = took['whole'] ?? 0;
    wholes.push(whole);
    for (const [part, list] of Object.entries(added)) list.push(whole - (took[part] ?? 0));
  }
  const rounded = (list: number[]): number => Math.round(median(list) * 100) / 100;
  return {
    settlement: rounded(wholes),
    sums: rounded(added['sums'] ?? []),
    'filter index': rounded(added['filter index'] ?? []),
  };
}

/**
 * Processor time of a tail that is looked at twice a second, microseconds for each of 1,000 exchanges a second: the mean of
 * several looks.
 */
async function tail(store: Store, owners: readonly Principal[], more: object): Promise<number> {
  const gone = new AbortController();
  // The next look follows at once: what waits between two of them is not measured.
  const clock = { ...systemClock, setTimeout: (fire: () => void) => systemClock.setTimeout(fire, 0) };
  const context = { clock, store: () => Promise.resolve(store) };
  const looks = followExchanges(context, { limit: 50, ...more }, gone.signal);
  const [warm, looked] = [20, 60];
  let sum = 0;
  await looks.next();
  for (let look = 0; look < warm + looked; look += 1) {
    await settleMany(store, owners, `tail-${JSON.stringify(more)}-${look}`, A_LOOK);
    const before = process.cpuUsage();
    const { value } = await looks.next();
    jsonText(value);
    if (look >= warm) sum += cpuSince(before);
  }
  gone.abort();
  return Math.round((sum / looked / A_LOOK) * 100) / 100;
}

async function main(): Promise<void> {
  const usage = 'node bench/month.ts [lmdb|postgres] [--exchanges N] [--keys N] [--at FOLDER|postgres://…]';
  const { positionals, values } = scriptOptions(usage, {
    allowPositionals: true,
    options: {
      exchanges: { type: 'string', default: '1000000' },
      keys: { type: 'string', default: '20' },
      at: { type: 'string' },
    },
  });
  const engine = positionals[0] === 'postgres' ? 'postgres' : 'lmdb';
  const exchanges = numberOption(usage, 'exchanges', values.exchanges);
  const server = engine === 'postgres' && values.at === undefined ? await startServer({ settings: AS_INSTALLED }) : undefined;
  const folder = engine === 'lmdb' && values.at === undefined ? mkdtempSync(join(tmpdir(), 'mizu-month-')) : undefined;
  const place = values.at ?? folder ?? (await server?.createDatabase()) ?? '';
  const clock = new MonthClock();
  const store = await openPlace(place, { clock });
  const ends: (() => unknown)[] = [];
  const t = { after: (end: () => unknown) => void ends.unshift(end) };
  try {
    const owners = await monthOwners(store, numberOption(usage, 'keys', values.keys));
    await fillMonth(store, clock, owners, exchanges);
    const gateway = await monthGateway(t, store);
    const ms: Record<string, { readonly median: number; readonly worst: number }> = {};
    for (const [view, asked] of Object.entries(consoleViews(owners, exchanges))) {
      const times: number[] = [];
      for (let look = 0; look < LOOKS; look += 1) times.push(await viewMs(gateway, asked));
      ms[view] = { median: Math.round(median(times)), worst: Math.round(Math.max(...times)) };
    }
    const slowest = (of: 'median' | 'worst') => Math.max(...Object.values(ms).map((view) => view[of]));
    const tails = {
      all: await tail(store, owners, {}),
      'of a model': await tail(store, owners, { model: 'model-1' }),
      'of successes': await tail(store, owners, { status: 'success' }),
    };
    const microseconds = { ...(await parts(store, owners)), tails };
    console.log(
      JSON.stringify({
        engine,
        exchanges,
        slowestViewMs: { median: slowest('median'), worst: slowest('worst') },
        viewMs: ms,
        microseconds,
      }),
    );
  } finally {
    for (const end of ends) await end();
    await store.close();
    await server?.stop();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}

await main();
