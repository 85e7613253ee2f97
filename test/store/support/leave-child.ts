/**
 * A process of its own that opens one exchange, which the log syncs, opens and settles `COUNT` others, and is killed in the next
 * turn of its event loop: else time stands still in it, so that what is left of them is in the settlement log alone. Usage: node
 * leave-child.ts PLACE TOKEN COUNT
 */
import { alive } from './alive.ts';
import { entry, FakeClock, ok, T0 } from './store.ts';
import { openPlace } from './stores.ts';

const [, , place = '', token = '', count = ''] = process.argv;
const SYNC_MS = 10;
const clock = new FakeClock();
const store = await openPlace(place, {
  clock,
  process: { host: 'test', pid: process.pid, isAlive: alive },
});
const owner = ok(await store.keys.authenticate(token, T0));
const cut = store.settlements.open(entry(owner, 'ex_cut', 0n), true);
clock.advance(SYNC_MS);
await cut;
for (let n = 0; n < Number(count); n += 1) {
  const row = entry(owner, `ex_${n}`, 7n, {
    usage: { input: n, meters: new Map([['web_search', n]]) },
    errorText: 'ü\n水\ud800',
  });
  void store.settlements.open(row);
  void store.settlements.settle({ entry: row });
}
setImmediate(() => process.kill(process.pid, 'SIGKILL'));
