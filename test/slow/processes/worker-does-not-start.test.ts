/** Workers that do not come as far as to listen: each ends and says why, and is tried again where others serve. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { freePort, install, type Installation, type Serving, waitFor } from '../../support/processes.ts';

const FILE = {
  operations: null,
  channels: [{ id: 'one', type: 'chat_completion', base_url: 'http://127.0.0.1:9', api_key: 'k', models: ['m'] }],
  models: { m: { price: { input: '1', output: '2' } } },
};

/** Resolves once so many processes have said that they listen. */
const listeners = (serving: Serving, count: number): Promise<true> =>
  waitFor(
    () => (serving.text().split('Mizu listens').length > count ? true : undefined),
    () => serving.text(),
  );

const workersOf = ({ process: { pid } }: Serving): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);

async function withMistakes(): Promise<{ place: Installation; serving: Serving }> {
  // A port of its own: with any free one, workers that come when none is left listen elsewhere.
  const place = await install(FILE, { PORT: String(await freePort()) });
  const serving = await place.serve('--workers', '2');
  await listeners(serving, 2);
  place.configure('{ "channels": 5 }');
  await serving.logged('the new configuration is refused; the old one stays', 2);
  return { place, serving };
}

test('workers that die while the file has mistakes are tried again each second, and come back once it is mended', async () => {
  const { place, serving } = await withMistakes();
  await using _installed = place;
  for (const pid of workersOf(serving)) process.kill(pid, 'SIGKILL');
  await serving.logged('a worker exited; starting another', 4);
  place.configure(FILE);
  await listeners(serving, 4);
  assert.equal((await fetch(`${serving.url}/readyz`)).status, 200);
  assert.equal(workersOf(serving).length, 2);
  assert.equal(await serving.stop(), 0);
});

test('a renewal (SIGUSR2) while the file has mistakes is told at once, and the old workers stay', async () => {
  const { place, serving } = await withMistakes();
  await using _installed = place;
  const before = workersOf(serving);
  serving.process.kill('SIGUSR2');
  await serving.logged('a new worker did not start; the old ones stay');
  assert.deepEqual(workersOf(serving), before);
  assert.equal((await fetch(`${serving.url}/readyz`)).status, 200);
  assert.equal(await serving.stop(), 0);
});

test('a store that does not open ends a gateway with workers, with its reason', async () => {
  await using place = await install(FILE);
  place.configure({ ...FILE, store: { path: join(place.folder, 'mizu.config.json') } });
  const words = ['src/main.ts', 'serve', '--workers', '2', '--config', place.configPath];
  const env = { PATH: process.env['PATH'] ?? '', PORT: '0' };
  const { status, stderr } = spawnSync(process.execPath, words, { env, encoding: 'utf8', timeout: 40_000 });
  assert.equal(status, 1, stderr);
  assert.match(stderr, /^mizu: unavailable: the store cannot be opened/m);
  assert.match(stderr, /"no worker could start"/);
});
