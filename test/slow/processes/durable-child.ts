/**
 * Makes one durable change and says so on standard output. `planted` says so before the promise has resolved: what the tracer
 * must catch. Usage: node durable-child.ts PATH TOKEN honest|planted task|settlement NAME
 */
import { openLmdbStore } from '../../../src/store/lmdb/open.ts';
import { alive } from '../../store/support/alive.ts';
import { entry, ok, options } from '../../store/support/store.ts';

const [, , path = '', token = '', manner = '', what = '', name = ''] = process.argv;
const store = await openLmdbStore(options(path, { process: { host: 'test', pid: process.pid, isAlive: alive } }));
const principal = ok(await store.keys.authenticate(token, Date.now()));

// The store's own timers keep no process alive.
const alone = setInterval(() => undefined, 1_000);
const change =
  what === 'settlement'
    ? store.settlements.settle({ entry: entry(principal, name, 5n) })
    : store.videos.create({
        id: name,
        principal,
        model: 'v',
        requestJson: '{}',
        priceNanos: 11n,
        idempotencyKey: name,
        bodyHash: 'h',
        nowMs: Date.now(),
      });
if (manner === 'honest') await change;
process.stdout.write(`acknowledged ${name}\n`);
await change;
await store.close();
clearInterval(alone);
