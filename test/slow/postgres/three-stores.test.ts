/**
 * Three processes on one database, one killed and one cut off in the middle of load: nothing is lost, doubled or submitted twice.
 */
import assert from 'node:assert/strict';
import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { openPostgresStore } from '../../../src/store/postgres/open.ts';
import { server } from '../../support/postgres.ts';
import { alive } from '../../store/support/alive.ts';
import { cuttableSocket } from '../../store/support/cuttable-socket.ts';
import { funded } from '../../store/support/store.ts';
import { onPostgres, openPlace, postgresOptions } from '../../store/support/stores.ts';

const CHILD = fileURLToPath(new URL('../../store/support/traffic-child.ts', import.meta.url));
const FUNDS = 10n ** 15n;

class Gateway {
  readonly said: string[] = [];
  readonly #child: ChildProcessByStdio<Writable, Readable, Readable>;
  #errors = '';

  constructor(t: TestContext, url: string, spool: string, token: string, name: string) {
    this.#child = spawn(process.execPath, [CHILD, url, spool, token, name], { stdio: ['pipe', 'pipe', 'pipe'] });
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.said.push(line));
    this.#child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#errors += text;
    });
    t.after(() => this.#child.kill('SIGKILL'));
  }

  count(word: string): number {
    return this.said.filter((line) => line.startsWith(`${word} `)).length;
  }

  async until(reached: () => boolean): Promise<void> {
    while (!reached()) {
      if (this.#child.exitCode !== null) throw new Error(`it ended: ${this.#errors}`);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async kill(): Promise<void> {
    const closed = once(this.#child, 'close');
    this.#child.kill('SIGKILL');
    await closed;
  }

  async stop(): Promise<void> {
    const closed = once(this.#child, 'close');
    this.#child.stdin.end();
    await closed;
    assert.equal(this.said.at(-1), 'closed', this.#errors);
  }
}

onPostgres(({ place }) => {
  test('three gateways, one killed and one cut off in the middle of load', { timeout: 60_000 }, async (t) => {
    const url = await place(t);
    const { socket } = await server();
    const line = await cuttableSocket(socket);
    t.after(() => line.close());
    const store = await openPlace(url, { process: { host: 'observer', pid: process.pid, isAlive: alive } });
    t.after(() => store.close());
    const owner = await funded(store, FUNDS);
    const folder = (): string => {
      const path = mkdtempSync(join(tmpdir(), 'mizu-spool-'));
      t.after(() => rmSync(path, { recursive: true, force: true }));
      return path;
    };
    const killedLog = folder();
    const killed = new Gateway(t, url, killedLog, owner.secret, 'killed');
    const cutUrl = url.replace(encodeURIComponent(socket), encodeURIComponent(line.folder));
    const cut = new Gateway(t, cutUrl, folder(), owner.secret, 'cut');
    const steady = new Gateway(t, url, folder(), owner.secret, 'steady');
    const all = [killed, cut, steady];
    await Promise.all(all.map((one) => one.until(() => one.count('settled') >= 40)));

    await killed.kill();
    line.cut();
    const before = steady.count('settled');
    // It notices, lets nobody in, and keeps what it had running on its disk.
    await cut.until(() => cut.count('refused') >= 3);
    await steady.until(() => steady.count('settled') >= before + 40);
    assert.equal(cut.count('unauthorized'), 0);
    line.heal();
    const healed = cut.count('settled');
    await cut.until(() => cut.count('settled') >= healed + 20);
    await Promise.all([cut.stop(), steady.stop()]);

    // What the killed one had logged comes to light with the next process of its machine.
    const machine = { host: 'killed', pid: process.pid, isAlive: alive };
    const next = await openPostgresStore({ ...postgresOptions(url, { process: machine }), spoolPath: killedLog });
    await next.close();

    // The killed one was on another machine, as far as this one can tell: it is dead when it has been silent for long enough.
    const open = async () => (await store.settlements.closeInterrupted()).length + (await openCount(url));
    while ((await open()) > 0) await new Promise((resolve) => setTimeout(resolve, 50));

    assert.deepEqual((await store.ledger.verify()).differences, []);
    const rows = new Map((await everyRow(store.requestLog)).map((row) => [row.exchangeId, row]));
    const said = all.flatMap((one) => one.said);
    for (const text of said) {
      const [what = '', id = '', nanos = ''] = text.split(' ');
      if (what === 'settled') {
        assert.deepEqual([rows.get(id)?.status, rows.get(id)?.charge?.total], ['success', BigInt(nanos)], text);
      } else if (what === 'opened') assert.ok(rows.has(id), text);
    }
    const submissions = said.filter((text) => text.startsWith('submitted '));
    assert.equal(new Set(submissions).size, submissions.length, 'a task was submitted twice');
    const spent = (await store.spend.spend(owner.key.id, Date.now())).total;
    const held = (await store.ledger.holds({ state: 'held' })).reduce((sum, { nanos }) => sum + nanos, 0n);
    assert.equal((await store.accounts.find(owner.account.id))?.walletNanos, FUNDS - spent - held);
    const interrupted = [...rows.values()].filter(({ status }) => status === 'interrupted').length;
    t.diagnostic(`${rows.size} exchanges, ${interrupted} interrupted; ${submissions.length} tasks submitted, none twice`);
  });
});

async function openCount(url: string): Promise<number> {
  const { admin } = await server();
  const name = new URLSearchParams(url.slice(url.indexOf('?'))).get('application_name');
  const [row] = await admin(`SELECT count(*)::int AS open FROM ${name}.open_exchanges`);
  return Number(row?.['open']);
}

async function everyRow(log: Awaited<ReturnType<typeof openPlace>>['requestLog']) {
  const rows = [];
  for (let after = 0; ; ) {
    const page = await log.list({ after, limit: 1_000 });
    rows.push(...page);
    const last = page.at(-1);
    if (last === undefined) return rows;
    after = last.seq;
  }
}
