/** Admission and settlement on LMDB, durable: processor time of this process, its threads included, a request at 32 in flight. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLmdbStore } from '../../src/store/lmdb/open.ts';
import { median, type Row, spread } from '../harness/statistics.ts';

const LANES = 32;
const REQUESTS = 8192;
/** Node's compilers work on this code for some fifty thousand requests: a share of every figure before, and of none after. */
const WARM_ROUNDS = 6;

export async function admission(rounds: number): Promise<Row[]> {
  const path = mkdtempSync(join(tmpdir(), 'mizu-bench-store-'));
  const store = await openLmdbStore({
    path,
    clock: {
      now: () => Date.now(),
      after(ms, callback) {
        const timer = setTimeout(callback, ms);
        return () => clearTimeout(timer);
      },
    },
    randomBytes,
    process: { host: 'bench', pid: process.pid, isAlive: () => true },
  });
  try {
    const cause = (id: string) => ({ id, by: 'bench' });
    const account = await store.accounts.create({ name: 'bench' }, cause('account'));
    if (!account.ok) throw new Error('the account was refused');
    await store.accounts.credit(account.value.id, 10n ** 15n, cause('credit'));
    const key = await store.keys.create({ accountId: account.value.id, name: 'bench' }, cause('key'));
    if (!key.ok) throw new Error('the key was refused');
    const { secret, key: record } = key.value;
    let count = 0;
    const one = async (): Promise<void> => {
      const nowMs = Date.now();
      const principal = await store.keys.authenticate(secret, nowMs);
      if (!principal.ok) throw new Error('the key is unknown');
      const admitted = await store.admission.admit(principal.value, 100n, nowMs);
      if (!admitted.ok) throw new Error('not admitted');
      const exchange = {
        exchangeId: `ex_${(count++).toString(16).padStart(32, '0')}`,
        requestId: `req_${count.toString(16).padStart(32, '0')}`,
        accountId: account.value.id,
        keyId: record.id,
        endpoint: 'messages',
        model: 'bench',
        stream: true,
        startedAtMs: nowMs,
      };
      void store.settlements.open(exchange);
      const charge = { lines: [], total: 5n, flags: [] };
      const entry = {
        ...exchange,
        status: 'success' as const,
        durationMs: 1,
        attempts: [],
        charge,
        usage: { input: 3, output: 4 },
      };
      void store.settlements.settle({ entry, reservation: admitted.value });
    };
    const micros: number[] = [];
    for (let round = 0; round < WARM_ROUNDS + rounds; round++) {
      const before = process.cpuUsage();
      for (let done = 0; done < REQUESTS; done += LANES) {
        await Promise.all(Array.from({ length: LANES }, one));
        await new Promise((resolve) => setImmediate(resolve));
      }
      await store.settlements.flush();
      const { user, system } = process.cpuUsage(before);
      if (round >= WARM_ROUNDS) micros.push((user + system) / REQUESTS);
    }
    const { differences } = await store.ledger.verify();
    if (differences.length > 0) throw new Error('the ledger does not balance');
    return [
      {
        suite: 'admission',
        name: 'authenticate, admit, open and settle',
        unit: 'µs of processor time a request',
        subject: median(micros),
        spread: spread(micros),
        goal: 15,
        goalIs: 'subject',
      },
    ];
  } finally {
    await store.close();
    rmSync(path, { recursive: true, force: true });
  }
}
