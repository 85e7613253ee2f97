/** Several processes on one store: killed at random points, alive beside each other, seeing each other's changes. */
import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { Principal } from '../../src/store/keys.ts';
import type { Store } from '../../src/store/store.ts';
import { alive } from './support/alive.ts';
import { cause, funded, ok } from './support/store.ts';
import { eachStore } from './support/stores.ts';

const CHILD = fileURLToPath(new URL('./support/load-child.ts', import.meta.url));
const FUNDS = 10n ** 15n;
const mine = { process: { host: 'test', pid: process.pid, isAlive: alive } };

class Load {
  readonly said: string[] = [];
  #errors = '';
  readonly #child: ChildProcessByStdio<null, Readable, Readable>;
  readonly #lines: ReturnType<typeof createInterface>;

  constructor(t: TestContext, path: string, secret: string, name: string) {
    this.#child = spawn(process.execPath, [CHILD, path, secret, name], { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#lines = createInterface({ input: this.#child.stdout });
    this.#lines.on('line', (line) => this.said.push(line));
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text;
    });
    t.after(() => this.#child.kill('SIGKILL'));
  }

  /** Resolves when it has said `count` things. */
  async sayings(count: number): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = (): void => {
      if (this.said.length >= count) resolve();
    };
    this.#lines.on('line', look);
    this.#child.once('exit', () => reject(new Error(`the load ended early: ${this.#errors}`)));
    look();
    await promise;
  }

  /** What it said on standard error by its end. */
  async ended(): Promise<string> {
    await once(this.#child, 'close');
    return this.#errors;
  }

  async kill(): Promise<void> {
    // Until it is reaped its pid still answers, so its end is awaited, not only the end of its output.
    const ended = Promise.all([once(this.#lines, 'close'), once(this.#child, 'exit')]);
    this.#child.kill('SIGKILL');
    await ended;
  }
}

const ORDER = ['queued', 'submitting', 'running', 'succeeded', 'failed'];

/** Everything that the killed process was told is on disk is there, once; nothing else is wrong. */
async function check(store: Store, owner: Principal, said: readonly string[]): Promise<void> {
  assert.deepEqual((await store.ledger.verify()).differences, []);
  const states = new Map<string, string>();
  for (const line of said) {
    const [what = '', id = '', value = ''] = line.split(' ');
    if (what === 'settled') {
      const rows = await store.requestLog.find(id);
      assert.deepEqual(
        rows.map(({ status, charge }) => [status, charge?.total]),
        [['success', BigInt(value)]],
        line,
      );
    } else if (what === 'opened') assert.equal((await store.requestLog.find(id)).length, 1, line);
    else if (what === 'task') states.set(id, value);
  }
  for (const [id, state] of states) {
    const task = await store.videos.inspect(id);
    if (task !== undefined && ORDER.indexOf(task.state) >= ORDER.indexOf(state)) continue;
    await setImmediate();
    const later = (await store.videos.inspect(id))?.state;
    assert.fail(`${id} was ${state}, is ${task?.state}, and ${later} in the next turn`);
  }
  const charged = (await store.spend.spend(owner.key.id, Date.now())).total;
  const held = (await store.ledger.holds({ state: 'held' })).reduce((sum, { nanos }) => sum + nanos, 0n);
  assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, FUNDS - charged - held);
}

eachStore(({ openStore, place }) => {
  test('F30: killed at five random points, the store has everything that was acknowledged, once', async (t) => {
    const path = await place(t);
    const first = await openStore(t, { path, ...mine });
    const owner = await funded(first, FUNDS);
    await first.close();
    const said: string[] = [];
    let interrupted = 0;
    for (let round = 1; round <= 5; round += 1) {
      const load = new Load(t, path, owner.secret, `r${round}`);
      await load.sayings(2 + Math.floor(Math.random() * 400));
      await load.kill();
      said.push(...load.said);
      const store = await openStore(t, { path, ...mine });
      interrupted += (await store.requestLog.list({ status: 'interrupted', limit: 1000 })).length;
      await check(store, owner, said);
      await store.close();
    }
    t.diagnostic(`5 kills, ${said.length} acknowledged changes, ${interrupted} interrupted exchanges seen`);
    assert.ok(said.length > 10);
  });

  test('F32: two processes work beside each other; when one is killed the exchanges of the other are left alone', async (t) => {
    const path = await place(t);
    const store = await openStore(t, { path, ...mine });
    const owner = await funded(store, FUNDS);
    const [one, two] = [new Load(t, path, owner.secret, 'one'), new Load(t, path, owner.secret, 'two')];
    await Promise.all([one.sayings(100), two.sayings(100)]);
    await one.kill();
    const closed = await store.settlements.closeInterrupted();
    assert.ok(closed.every(({ exchangeId }) => exchangeId.startsWith('one-')));
    await two.sayings(two.said.length + 50);
    await two.kill();
    await store.settlements.closeInterrupted();
    await check(store, owner, [...one.said, ...two.said]);
  });

  test('a change made in one process counts in another at once', async (t) => {
    const path = await place(t);
    const store = await openStore(t, { path, ...mine });
    const owner = await funded(store, FUNDS);
    const load = new Load(t, path, owner.secret, 'other');
    await load.sayings(20);
    assert.ok((await store.spend.spend(owner.key.id, Date.now())).total > 0n);
    ok(await store.keys.change(owner.key.id, { disabled: true }, cause()));
    // The other process's next task is refused, which ends it with an error of its own.
    assert.match(await load.ended(), /key_not_active/);
    assert.deepEqual((await store.ledger.verify()).differences, []);
  });
});
