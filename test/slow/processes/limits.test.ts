/** Limits by time with several worker processes: they count as one, also when one of them dies with requests under way. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Agent, request } from 'undici';
import { heldUpstream } from '../../support/held-upstream.ts';
import { freePort, install, type Serving, waitFor } from '../../support/processes.ts';

/** Every request on a connection of its own, so that both workers get some. */
async function ask(serving: Serving, key: string, headersTimeout = 300_000): Promise<number> {
  const dispatcher = new Agent({ pipelining: 0, headersTimeout });
  const { statusCode, body } = await request(`${serving.url}/v1/chat/completions`, {
    method: 'POST',
    dispatcher,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  });
  await body.text();
  await dispatcher.close();
  return statusCode;
}

test('two workers count as one: requests a minute, requests at once, and what a worker that is killed was answering', async (t) => {
  const behind = await heldUpstream(t, { input: 3, output: 2 });
  const port = await freePort();
  await using place = await install({
    operations: { port },
    channels: [{ id: 'one', type: 'chat_completion', base_url: behind.url, api_key: 'k', models: ['m'] }],
    models: { m: { price: { input: '1', output: '2' } } },
  });
  const limited = async (...limits: string[]): Promise<string> =>
    (await place.run('keys', 'create', '--account', 'tests', ...limits)).out.trim();
  const [perMinute, atOnce] = [await limited('--requests-per-minute', '20'), await limited('--max-concurrency', '4')];
  const serving = await place.serve('--workers', '2');
  const operations = `http://127.0.0.1:${port}`;
  const pids = (): Promise<number[]> =>
    waitFor(
      async () => {
        const health = await fetch(`${operations}/healthz`);
        const report: { workers?: { pid: number }[] } = JSON.parse(await health.text());
        return health.status === 200 ? report.workers?.map(({ pid }) => pid) : undefined;
      },
      () => `two workers never were ready: ${serving.text()}`,
    );
  await pids();

  const statuses = await Promise.all(Array.from({ length: 60 }, () => ask(serving, perMinute)));
  const served = statuses.filter((status) => status === 200).length;
  assert.deepEqual(new Set(statuses), new Set([200, 429]));
  // What drains while they are asked is a third a second.
  assert.ok(served >= 20 && served <= 24, `${served} were served`);
  const metrics = await (await fetch(`${operations}/metrics`)).text();
  assert.match(metrics, new RegExp(`^mizu_rate_limited_total\\{scope="key",limit="requests"\\} ${60 - served}$`, 'm'));

  // One after another is never too many, whichever worker gets it.
  const single = await limited('--max-concurrency', '1');
  for (let n = 0; n < 40; n++) assert.equal(await ask(serving, single), 200, `request ${n}`);

  behind.holds = true;
  const open = Array.from({ length: 4 }, () => ask(serving, atOnce).catch(() => 0));
  await waitFor(
    () => (behind.held.length === 4 ? true : undefined),
    () => `${behind.held.length} arrived`,
  );
  assert.deepEqual(await Promise.all([ask(serving, atOnce), ask(serving, atOnce)]), [429, 429]);
  // Connections go to the workers about in turn, so that each is answering some. With both killed, the port would be another one.
  const [first = 0] = await pids();
  process.kill(first, 'SIGKILL');
  behind.holds = false;
  await waitFor(
    // Node may hand a connection to a worker that has just died: nobody answers on it.
    async () => ((await ask(serving, atOnce, 2_000).catch(() => 0)) === 200 ? true : undefined),
    () => `the places of dead workers stay taken: ${serving.text()}`,
  );
  behind.release();
  assert.deepEqual(new Set(await Promise.all(open)), new Set([0, 200]));
  assert.equal(await serving.stop(), 0);
});
