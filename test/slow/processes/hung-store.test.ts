/**
 * A store that takes no writes and says nothing, since another process holds its lock and was stopped, and a gateway that is to
 * end.
 */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { holdLock } from '../../support/lock-holder.ts';
import { install } from '../../support/processes.ts';
import { ask, channel, MODELS } from '../../support/test-gateway.ts';

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
  const giveBack = await holdLock(t, join(here.folder, 'data'));
  for (let n = 0; n < 5; n++) assert.equal((await post()).status, 200);
  const began = performance.now();
  serving.process.kill('SIGTERM');
  const [code, signal] = await once(serving.process, 'close');
  assert.deepEqual([code, signal], [null, 'SIGKILL']);
  assert.ok(performance.now() - began < 60_000);
  assert.ok(serving.log().some(({ msg }) => String(msg).startsWith('the store does not close')));
  await giveBack();
  const next = await here.serve();
  assert.equal(await next.stop('SIGTERM'), 0);
  const { out } = await here.run('logs', '--json');
  assert.equal(out.split('\n').filter((line) => line.includes('"success"')).length, 6);
  assert.match((await here.run('ledger', 'verify')).out, /no difference/);
});
