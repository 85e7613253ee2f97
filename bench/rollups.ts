/**
 * What the sums by hour cost and what they are worth, on LMDB or, with `postgres`, on a server that is started for it: processor time of a
 * settlement with and without them, and the time of the queries of a console over a month. Prints one JSON line.
 * Usage: node bench/rollups.ts [lmdb|postgres] [exchanges of the month] [keys]
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Principal } from '../src/store/keys.ts';
import { RollupChanges, type UsageDimension, type UsageFilters } from '../src/store/rollups.ts';
import type { Store } from '../src/store/store.ts';
import { startServer } from '../test/support/postgres.ts';
import { numberOption, scriptOptions } from '../test/support/script-options.ts';
import { entry, FakeClock, funded, T0 } from '../test/store/support/store.ts';
import { openPlace } from '../test/store/support/stores.ts';

const MONTH_MS = 30 * 86_400_000;
const HOUR_MS = 3_600_000;
const IN_FLIGHT = 384;

const attempt = (n: number) => ({
  ...{ channelId: `channel-${n % 4}`, channelType: 'chat', upstreamModel: 'u', startedAtMs: T0, durationMs: 900 },
});

/** The `n`th exchange: keys, models and Channels in every combination, one of fifty failed. */
async function settle(store: Store, owners: readonly Principal[], name: string, n: number): Promise<void> {
  const owner = owners[n % owners.length];
  if (owner === undefined) return;
  const attempts = [attempt(Math.floor(n / 7))];
  const failed = n % 50 === 0 ? ({ status: 'error', errorCode: 'upstream_error' } as const) : {};
  const more = {
    attempts,
    model: `model-${n % 5}`,
    usage: { input: 1_200, output: 345 },
    firstOutputMs: 200 + (n % 900),
    ...failed,
  };
  void store.settlements.settle({ entry: entry(owner, `${name}-${n}`, 777n, more) });
  if (n % IN_FLIGHT === IN_FLIGHT - 1) await store.settlements.flush();
}

/** Processor time of one settlement in microseconds, in turns: with the sums and without them. The least of several counts. */
async function cost(store: Store, owners: readonly Principal[]): Promise<{ readonly with: number; readonly without: number }> {
  const add = RollupChanges.prototype.exchange;
  const least = { with: Number.POSITIVE_INFINITY, without: Number.POSITIVE_INFINITY };
  for (let turn = 0; turn < 10; turn += 1) {
    for (const which of ['with', 'without'] as const) {
      RollupChanges.prototype.exchange = which === 'with' ? add : () => undefined;
      const before = process.cpuUsage();
      const count = IN_FLIGHT * 12;
      for (let n = 0; n < count; n += 1) await settle(store, owners, `${which}-${turn}`, n);
      await store.settlements.flush();
      const { user, system } = process.cpuUsage(before);
      if (turn > 1) least[which] = Math.min(least[which], (user + system) / count);
    }
  }
  RollupChanges.prototype.exchange = add;
  return least;
}

const usage = 'node bench/rollups.ts [lmdb|postgres] [EXCHANGES [KEYS]]';
const { positionals } = scriptOptions(usage, { allowPositionals: true });
const engine = positionals[0] === 'postgres' ? 'postgres' : 'lmdb';
const [exchanges = 1_000_000, keys = 20] = positionals.slice(1).map((word) => numberOption(usage, 'each', word));
const server = engine === 'postgres' ? await startServer({}) : undefined;
const place = server === undefined ? mkdtempSync(join(tmpdir(), 'mizu-rollups-')) : await server.createDatabase();
const clock = new FakeClock();
const store = await openPlace(place, { clock });
try {
  const owners: Principal[] = [];
  for (let n = 0; n < keys; n += 1) owners.push(await funded(store, 10n ** 15n));
  const processor = await cost(store, owners);
  for (let n = 0; n < exchanges; n += 1) {
    await settle(store, owners, 'month', n);
    if (n % IN_FLIGHT === IN_FLIGHT - 1) clock.advance((MONTH_MS / exchanges) * IN_FLIGHT);
  }
  await store.settlements.flush();
  const ms: Record<string, number> = {};
  const ask = async (name: string, by: readonly UsageDimension[], filters: UsageFilters = {}): Promise<void> => {
    const times: number[] = [];
    for (let run = 0; run < 3; run += 1) {
      const began = performance.now();
      await store.usageByHour({ fromMs: T0 - HOUR_MS, toMs: clock.now() }, filters, by);
      times.push(performance.now() - began);
    }
    ms[name] = Math.round(Math.min(...times) * 10) / 10;
  };
  await ask('whole', []);
  for (const by of ['hour', 'day', 'model', 'channel', 'account', 'key', 'code'] as const) await ask(by, [by]);
  await ask('hour, model, channel', ['hour', 'model', 'channel']);
  await ask('hour of a model', ['hour'], { model: 'model-1' });
  await ask('hour and model of a key', ['hour', 'model'], { keyId: owners[0]?.key.id ?? '' });
  console.log(JSON.stringify({ engine, exchanges, keys, processorMicroseconds: processor, queryMs: ms }));
} finally {
  await store.close();
  await server?.stop();
  if (server === undefined) rmSync(place, { recursive: true, force: true });
}
