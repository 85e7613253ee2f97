/** Workers that live and do nothing, here because their processes were stopped: killed and replaced, in service and in a drain. */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { freePort, install, waitFor } from '../../support/processes.ts';
import { ask, channel, MODELS } from '../../support/test-gateway.ts';

const KILLED = 'a worker lives and says nothing: it is killed';

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

async function twoWorkers(t: TestContext) {
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const port = await freePort();
  const file = {
    channels: [channel(simulator.url)],
    models: MODELS,
    drain_ms: 500,
    operations: { port },
    worker_silence_ms: 5_000,
  };
  const here = await install(file);
  t.after(() => here[Symbol.asyncDispose]());
  const serving = await here.serve('--workers', '2');
  /** The processes of both, as soon as both are well. */
  const pids = (): Promise<number[]> =>
    waitFor(
      async () => {
        const report = await fetch(`http://127.0.0.1:${port}/healthz`);
        const { workers }: { workers: { pid: number }[] } = JSON.parse(await report.text());
        return report.status === 200 ? workers.map(({ pid }) => pid) : undefined;
      },
      () => `two workers never were well: ${serving.text()}`,
    );
  const [stopped = 0, other = 0] = await pids();
  const stop = (pid: number): void => {
    // One that nobody killed would outlive a test that fails.
    t.after(() => isAlive(pid) && process.kill(pid, 'SIGKILL'));
    process.kill(pid, 'SIGSTOP');
  };
  return { here, serving, pids, stop, stopped, other, killed: () => serving.log().filter(({ msg }) => msg === KILLED) };
}

test('F30: a worker that was stopped is replaced, and nobody else is; a renewal gets past one, too', async (t) => {
  const { here, serving, pids, stop, stopped, other, killed } = await twoWorkers(t);
  stop(stopped);
  await serving.logged(KILLED);
  await serving.logged('a worker exited; starting another');
  const [one = 0, two = 0] = await pids();
  assert.deepEqual([one, two].includes(other), true);
  assert.deepEqual(
    killed().map(({ pid }) => pid),
    [stopped],
  );
  const answer = await fetch(`${serving.url}/v1/messages`, {
    method: 'POST',
    headers: { 'x-api-key': here.key, 'content-type': 'application/json' },
    body: JSON.stringify(ask()),
  });
  assert.equal(answer.status, 200);
  stop(other);
  serving.process.kill('SIGUSR2');
  await serving.logged('workers renewed');
  assert.ok((await pids()).every((pid) => pid !== other && pid !== stopped));
  assert.equal(await serving.stop(), 0);
});

test('F39: SIGTERM ends a group of which one worker was stopped', async (t) => {
  const { serving, stop, stopped, killed } = await twoWorkers(t);
  stop(stopped);
  assert.equal(await serving.stop(), 0);
  assert.equal(killed().length, 1);
});

test('who was handed to a worker that hangs, or dies, is answered by another; where there is none the connection ends', async (t) => {
  const { here, serving, pids, stop, stopped } = await twoWorkers(t);
  const ask = async (): Promise<number> => {
    const headers = { authorization: `Bearer ${here.key}`, connection: 'close' };
    return (await fetch(`${serving.url}/v1/models`, { headers, signal: AbortSignal.timeout(30_000) })).status;
  };
  stop(stopped);
  assert.deepEqual(await Promise.all([ask(), ask(), ask(), ask()]), [200, 200, 200, 200]);
  assert.ok((await pids()).every((pid) => pid !== stopped));
  for (const pid of await pids()) stop(pid);
  const ends = await Promise.allSettled([ask(), ask(), ask(), ask()]);
  for (const end of ends) assert.doesNotMatch(String(end.status === 'rejected' && end.reason), /timeout/i);
});
