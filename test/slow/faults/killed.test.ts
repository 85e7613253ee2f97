/**
 * The law of an exchange where its process is killed (`kill -9`) at each point that its runs find: the next process that opens
 * the store closes it once, nothing stays reserved, the ledger adds up, and what was answered under `strict` durability is paid
 * for.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { hostname } from 'node:os';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { test } from 'node:test';
import { openStoreAt } from '../../../src/store/open-store.ts';
import type { EngineName } from '../../support/engines.ts';
import { CASES, type Case, connect, succeeded } from '../../support/exchange-law.ts';
import { newPlace, type Place } from '../../support/exchange-rig.ts';
import { figure } from '../../support/figures.ts';
import type { Started } from './support/killed-child.ts';

const CHILD = fileURLToPath(new URL('./support/killed-child.ts', import.meta.url));
type Durability = 'batched' | 'strict';
/** What differs in where its awaits are; the dialects of a text do not. */
const KILLED = ['chat, whole', 'messages, as a stream', 'a turn of a WebSocket', 'an embedding', 'two pictures'];
const cases = CASES.filter(({ name }) => KILLED.includes(name));
const noServer = existsSync('/usr/lib/postgresql') ? false : 'no PostgreSQL server: install the package postgresql';
/** A PostgreSQL that is on the same machine as its client is batched no differently than LMDB: the spool is a file. */
const RUNS: readonly (readonly [EngineName, Durability])[] = [
  ['lmdb', 'batched'],
  ['lmdb', 'strict'],
  ['postgres', 'strict'],
];

interface Life {
  readonly started: Started;
  /** What the client has when it ends, with or without the answer's end. */
  readonly said: string;
  /** Empty where it was killed. */
  readonly points: readonly string[];
  readonly wasKilled: boolean;
}

/** One process for one request. */
async function live(each: Case, engine: EngineName, durability: Durability, place: Place, point?: string): Promise<Life> {
  const words = [CHILD, engine, durability, JSON.stringify(place), ...(point === undefined ? [] : [point])];
  const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  const exit = new Promise<NodeJS.Signals | null>((resolve) => child.on('exit', (_code, signal) => resolve(signal)));
  child.stdin.on('error', () => undefined);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const first = await lines.next();
  assert.equal(first.done, false, 'the gateway of the law did not start');
  const started: Started = JSON.parse(first.value);
  // A connection that breaks off has said nothing.
  const client = await connect(started.url, each, started.secret).catch(() => undefined);
  const said = (await client?.send().done.catch(() => '')) ?? '';
  client?.close();
  child.stdin.end();
  const last = await lines.next();
  return { started, said, points: last.done === true ? [] : JSON.parse(last.value), wasKilled: (await exit) === 'SIGKILL' };
}

for (const [engine, durability] of RUNS) {
  const skip = engine === 'postgres' && noServer;
  test(`F30: killed at an await: closed once, nothing reserved, the sums are right; ${engine}, ${durability}`, {
    skip,
  }, async (t) => {
    const place = await newPlace(engine);
    let kills = 0;
    let unpaid = 0;
    for (const each of cases) {
      const { points } = await live(each, engine, durability, place);
      assert.ok(points.length > 5, `${each.name}: ${points.length} points`);
      for (const point of points)
        await t.test(`${each.name}: killed at ${point}`, async () => {
          const { started, said, wasKilled } = await live(each, engine, durability, place, point);
          // A poll of the clock may come once more or less often: such a point is not always reached.
          kills += wasKilled ? 1 : 0;
          const store = await openStoreAt(place.store, {
            clock: { now: Date.now, after: () => () => undefined },
            randomBytes: (size) => randomBytes(size),
            process: { host: hostname(), pid: process.pid, isAlive: () => false },
            localPath: place.local,
          });
          try {
            const rows = await store.requestLog.list({ keyId: started.keyId });
            assert.ok(rows.length <= each.exchanges, `${rows.length} rows`);
            assert.equal(new Set(rows.map(({ exchangeId }) => exchangeId)).size, rows.length);
            assert.equal(store.admission.reserved(started.keyId), 0n);
            assert.deepEqual((await store.ledger.verify()).differences, []);
            const paid = rows.filter(({ status, charge }) => status === 'success' && (charge?.total ?? 0n) > 0n).length;
            if (!succeeded(each, said)) return;
            if (durability === 'strict') assert.equal(paid, each.exchanges, 'what was answered is paid for');
            else unpaid += paid < each.exchanges ? 1 : 0;
          } finally {
            await store.close();
          }
        });
    }
    figure(
      t,
      `killed at an await, ${engine}, ${durability}`,
      `${kills} kills; ${unpaid} answers ended in the turn of a kill and were not paid`,
    );
  });
}
