/** Workers where the system makes no further process: too many of them, no memory or descriptor left, or the program is gone. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { install, waitFor } from '../../support/processes.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());

/** With each signal the program is gone, or there again. */
const GONE_AND_BACK = `
  import cluster from 'node:cluster';
  const { execPath } = process;
  if (cluster.isPrimary)
    process.on('SIGWINCH', () => {
      process.execPath = process.execPath === execPath ? '/nowhere/node' : execPath;
      console.log('The program is at ' + process.execPath);
    });`;

test('a worker that cannot be started, as a successor or in place of a dead one, is tried again, and the others serve on', async () => {
  await using place = await install(
    {
      operations: null,
      channels: [{ id: 'one', type: 'chat_completion', base_url: simulator.url, api_key: 'k', models: ['m'] }],
      models: { m: { price: { input: '1', output: '2' } } },
    },
    { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(GONE_AND_BACK)}` },
  );
  const serving = await place.serve('--workers', '2');
  const listen = (count: number) =>
    waitFor(
      () => (serving.text().split('Mizu listens').length > count ? true : undefined),
      () => serving.text(),
    );
  await listen(2);
  const move = async (to: string): Promise<void> => {
    serving.process.kill('SIGWINCH');
    await waitFor(
      () => (serving.text().includes(`The program is at ${to}`) ? true : undefined),
      () => serving.text(),
    );
  };
  const pid = String(serving.process.pid);
  const workers = (): string[] => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  const isServed = async (): Promise<void> => {
    const { status } = await fetch(`${serving.url}/v1/models`, { headers: { authorization: `Bearer ${place.key}` } });
    assert.equal(status, 200);
  };
  const old = workers();
  assert.equal(old.length, 2);

  await move('/nowhere/node');
  serving.process.kill('SIGUSR2');
  await serving.logged('a new worker did not start; the old ones stay');
  assert.deepEqual(workers(), old);
  process.kill(Number(old[0]), 'SIGKILL');
  await serving.logged('a worker could not be started', 3);
  await isServed();

  await move(process.execPath);
  await listen(3);
  assert.equal(workers().length, 2);
  await isServed();
  serving.process.kill('SIGUSR2');
  await serving.logged('workers renewed');
  assert.equal(await serving.stop(), 0);
});
