/** Two gateways whose hosts have one name, and pids of their own: as two containers are. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { onPostgres } from '../../store/support/stores.ts';
import { noPidNamespaces, PID_NAMESPACE } from '../../support/pid-namespace.ts';
import { install, waitFor } from '../../support/processes.ts';
import { server } from '../../support/postgres.ts';

const TASKS = 12;

onPostgres(() => {
  test('F32: neither takes the other for dead: one works on videos all the time, and no task is lost by that', {
    skip: noPidNamespaces,
    timeout: 120_000,
  }, async (t) => {
    const simulator = await startSimulator({ video: { queueMs: 20, runMs: 40 } });
    t.after(() => simulator.close());
    const film = { type: 'ark_video', base_url: `${simulator.url}/api/v3`, api_key: 'k', models: ['film'] };
    await using installed = await install({
      listen: { host: '127.0.0.1', port: 0 },
      operations: null,
      log: { level: 'info' },
      store: { path: './data', url: await (await server()).createDatabase() },
      channels: [{ id: 'ark', ...film, options: { poll_interval_ms: 100 } }],
      models: { film: { kind: 'video', price: { video: '0.01' } } },
    });
    const place = { command: PID_NAMESPACE };
    const gateways = [await installed.serveAt(place), await installed.serveAt(place)];
    const headers = { authorization: `Bearer ${installed.key}`, 'content-type': 'application/json' };
    for (let made = 0; made < TASKS; made += 1) {
      const url = `${gateways[made % 2]?.url}/v1/videos`;
      const body = JSON.stringify({ model: 'film', prompt: `film ${made}` });
      const answer = await fetch(url, { method: 'POST', headers: { ...headers, 'idempotency-key': `${made}` }, body });
      assert.equal(answer.status, 202, await answer.text());
      // Longer in all than the lease is renewed twice in.
      await new Promise((next) => setTimeout(next, 1_000));
    }
    const states = async (): Promise<string[]> =>
      JSON.parse((await installed.run('videos', 'list', '--json')).out).map(({ state }: { state: string }) => state);
    const open = ['queued', 'submitting', 'running'];
    const ended = await waitFor(
      async () => {
        const found = await states();
        return found.some((state) => open.includes(state)) ? undefined : found;
      },
      () => 'tasks are still under way',
    );
    assert.deepEqual(ended, Array(TASKS).fill('succeeded'));
    for (const { text } of gateways) assert.doesNotMatch(text(), /the lease of the video worker is lost/);
  });
});
