/** SIGUSR2 where a start takes long: a new worker waits for what never comes, or the gateway itself does not serve yet. */
import assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { install, waitFor } from '../../support/processes.ts';
import { channel, MODELS } from '../../support/test-gateway.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());

/** A worker hangs at its start while the file is there, and a minute of the primary is half a second. */
const hangsWhile = (file: string): string => `
  import cluster from 'node:cluster';
  import { existsSync } from 'node:fs';
  const { setTimeout: after } = globalThis;
  if (cluster.isPrimary) globalThis.setTimeout = (fire, ms, ...rest) => after(fire, ms === 60_000 ? 500 : ms, ...rest);
  else if (existsSync(${JSON.stringify(file)})) for (;;);`;

test('an operator is told, a further SIGUSR2 ends it, who died meanwhile is replaced, and the next renewal is one', async (t) => {
  const file = join(tmpdir(), `mizu-hang-${process.pid}`);
  t.after(() => rmSync(file, { force: true }));
  await using place = await install(
    { operations: null, channels: [channel(simulator.url)], models: MODELS },
    { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(hangsWhile(file))}` },
  );
  const serving = await place.serve('--workers', '2');
  const workers = (): string[] => {
    const pid = String(serving.process.pid);
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ');
  };
  const listen = (count: number) =>
    waitFor(
      () => (serving.text().split('Mizu listens').length > count ? true : undefined),
      () => serving.text(),
    );
  await listen(2);
  const old = workers();
  writeFileSync(file, '');
  serving.process.kill('SIGUSR2');
  await serving.logged('a new worker does not listen yet: a further SIGUSR2 ends it, and the old ones stay');
  assert.equal(workers().length, 3);
  serving.process.kill('SIGUSR2');
  await serving.logged('a new worker did not start; the old ones stay');
  assert.deepEqual(workers(), old);

  serving.process.kill('SIGUSR2');
  await serving.logged('a new worker does not listen yet: a further SIGUSR2 ends it, and the old ones stay', 2);
  process.kill(Number(old[0]), 'SIGKILL');
  await serving.logged('a worker exited while its successor was starting');
  rmSync(file);
  serving.process.kill('SIGUSR2');
  await listen(3);
  assert.equal(workers().length, 2);
  serving.process.kill('SIGUSR2');
  await serving.logged('workers renewed');
  assert.ok(workers().every((pid) => !old.includes(pid)));
  assert.equal(await serving.stop(), 0);
});

/** A signal reaches the primary as soon as it hears any. */
const EARLY = `
  import cluster from 'node:cluster';
  const hears = (name) => {
    if (name !== 'SIGHUP' || !cluster.isPrimary) return;
    process.off('newListener', hears);
    setImmediate(() => process.kill(process.pid, 'SIGUSR2'));
  };
  process.on('newListener', hears);`;

test('a SIGUSR2 while the gateway starts ends nothing', async () => {
  await using place = await install(
    { operations: null, channels: [channel(simulator.url)], models: MODELS },
    { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(EARLY)}` },
  );
  for (const workers of [[], ['--workers', '2']]) {
    const serving = await place.serve(...workers);
    assert.equal(await serving.stop(), 0);
  }
});
