/**
 * A store that takes no writes and says nothing, since another process holds its lock and was stopped, and a gateway that is to
 * end.
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { install } from '../../support/processes.ts';
import { ask, channel, MODELS } from '../../support/test-gateway.ts';

/** Opens the table that every store has and keeps the lock of a transaction. */
const HOLDER = `const { open } = require(process.argv[1]);
const root = open({ path: process.argv[2], noSubdir: false, maxDbs: 64, overlappingSync: false });
const meta = root.openDB({ name: 'meta' });
root.transactionSync(() => {
  require('node:fs').writeSync(1, 'held');
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 600_000);
});`;

test('SIGTERM ends it, what was answered meanwhile is in the ledger after the next start', async (t) => {
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const operations = { host: '127.0.0.1', port: 0 };
  await using here = await install({ channels: [channel(simulator.url)], models: MODELS, drain_ms: 500, operations });
  const serving = await here.serve();
  const post = () =>
    fetch(`${serving.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': here.key, 'content-type': 'application/json' },
      body: JSON.stringify(ask()),
    });
  assert.equal((await post()).status, 200);
  const lmdb = createRequire(import.meta.url).resolve('lmdb');
  const holder = spawn(process.execPath, ['-e', HOLDER, lmdb, join(here.folder, 'data')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => holder.kill('SIGKILL'));
  assert.equal(String(await once(holder.stdout, 'data')), 'held');
  for (let n = 0; n < 5; n++) assert.equal((await post()).status, 200);
  const began = performance.now();
  serving.process.kill('SIGTERM');
  const [code, signal] = await once(serving.process, 'close');
  assert.deepEqual([code, signal], [null, 'SIGKILL']);
  assert.ok(performance.now() - began < 60_000);
  assert.ok(serving.log().some(({ msg }) => String(msg).startsWith('the store does not close')));
  holder.kill('SIGKILL');
  await once(holder, 'exit');
  const next = await here.serve();
  assert.equal(await next.stop('SIGTERM'), 0);
  const { out } = await here.run('logs', '--json');
  assert.equal(out.split('\n').filter((line) => line.includes('"success"')).length, 6);
  assert.match((await here.run('ledger', 'verify')).out, /no difference/);
});
