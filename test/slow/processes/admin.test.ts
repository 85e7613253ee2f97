/**
 * The admin API of a gateway with workers: the primary serves it, and what it changes holds in every worker and after a restart.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { freePort, install, waitFor } from '../../support/processes.ts';

const simulator = await startSimulator();
test.after(() => simulator.close());

// biome-ignore lint/suspicious/noExplicitAny: tests read what they expect
type Json = any;

test('with workers: read and change over the primary, a Channel out of service in all of them and after a restart', async () => {
  const port = await freePort();
  await using place = await install({
    operations: { port },
    channels: [{ id: 'one', type: 'chat_completion', base_url: simulator.url, api_key: 'k', models: ['m'] }],
    models: { m: { price: { input: '1', output: '2' } } },
  });
  const token = (await place.run('admin-tokens', 'create', 'ops', '--role', 'write')).out.trim();
  let serving = await place.serve('--workers', '2');
  const listening = () => (serving.text().split('Mizu listens').length > 2 ? true : undefined);
  await waitFor(listening, () => serving.text());

  const ask = async (path: string, body?: object): Promise<{ status: number; json: Json }> => {
    const answer = await fetch(`http://127.0.0.1:${port}/admin/v1/${path}`, {
      headers: {
        authorization: `Bearer ${token}`,
        'content-type': 'application/json',
        'idempotency-key': `${path} 1`.replaceAll(' ', '-'),
      },
      ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
    });
    return { status: answer.status, json: await answer.json() };
  };
  const say = async (): Promise<number> => {
    const answer = await fetch(`${serving.url}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${place.key}`, 'content-type': 'application/json', connection: 'close' },
      body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
    });
    await answer.text();
    return answer.status;
  };
  const all = async (): Promise<string> => [...new Set(await Promise.all(Array.from({ length: 20 }, say)))].join();
  const becomes = (wanted: string) =>
    waitFor(
      async () => ((await all()) === wanted ? true : undefined),
      () => `never ${wanted} alone`,
    );

  assert.equal(await all(), '200');
  const page = await fetch(`http://127.0.0.1:${port}/console`);
  assert.deepEqual(
    [page.status, page.headers.get('content-type')],
    [200, 'text/html; charset=utf-8'],
    'the primary has the console',
  );
  const { json: credited } = await ask('accounts/tests/credit', { amount: '1' });
  assert.equal((await ask('accounts/tests/credit', { amount: '1' })).json.balance, credited.balance, 'once');
  const rows = async () => (await ask('exchanges?limit=1000')).json.data.length;
  await waitFor(
    async () => ((await rows()) === 20 ? true : undefined),
    () => 'the rows of all workers never came',
  );

  assert.equal((await ask('channels/one/out-of-service', { reason: 'a drill' })).json.state, 'out_of_service');
  await becomes('503');
  assert.equal(await serving.stop(), 0);
  serving = await place.serve('--workers', '2');
  await waitFor(listening, () => serving.text());
  assert.equal(await all(), '503', 'from the first request on');
  assert.equal((await place.run('channels', 'in-service', 'one')).code, 0);
  await becomes('200');

  assert.equal((await ask('config/reload', {})).status, 200);
  await serving.logged('configuration reloaded', 2);
  assert.equal((await fetch(`http://127.0.0.1:${port}/admin/v1/accounts`)).status, 401);
  assert.equal(await serving.stop(), 0);
  assert.match((await place.run('ledger', 'verify')).out, /no difference/);
});
