/**
 * Errors that nobody caught, in a real process: a rejection is one request's and is logged; an exception drains and ends with
 * code 1.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { type Installation, install, type Serving } from '../../support/processes.ts';

/** Loaded before the gateway; signals that it does not use itself make the two faults. */
const SABOTAGE = `
process.on('SIGWINCH', () => void Promise.reject(new Error('a canary rejection')));
process.on('SIGURG', () => setImmediate(() => { throw new Error('a canary exception'); }));
`;

async function prepared(t: TestContext): Promise<{ place: Installation; serving: Serving; answer: Promise<string> }> {
  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const folder = mkdtempSync(join(tmpdir(), 'mizu-sabotage-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const preload = join(folder, 'sabotage.mjs');
  writeFileSync(preload, SABOTAGE);
  const words = ['slowly ', 'and ', 'with ', 'care ', 'to ', 'the ', 'very ', 'end'];
  simulator.enqueue({
    times: 10,
    reply: { pieces: [{ type: 'text', text: words }], usage: { input: 1, output: 1 } },
    pace: { ms: 60 },
  });
  const place = await install(
    {
      operations: null,
      channels: [{ id: 'one', type: 'chat_completion', base_url: simulator.url, api_key: 'k', models: ['m'] }],
      models: { m: { price: { input: '1', output: '2' } } },
    },
    { NODE_OPTIONS: `--import=${preload}` },
  );
  t.after(() => place[Symbol.asyncDispose]());
  const serving = await place.serve();
  const response = await ask(serving, place, true);
  return { place, serving, answer: response.text() };
}

const ask = (serving: Serving, { key }: Installation, stream: boolean): Promise<Response> =>
  fetch(`${serving.url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', stream, messages: [{ role: 'user', content: 'hi' }] }),
  });

const faultIn = (serving: Serving) => serving.log().find(({ msg }) => msg === 'unhandled error');

test('a rejection that nobody caught is logged, and everything else goes on', async (t) => {
  const { place, serving, answer } = await prepared(t);
  serving.process.kill('SIGWINCH');
  await serving.logged('unhandled error');
  assert.equal(faultIn(serving)?.['kind'], 'rejection');
  assert.match(JSON.stringify(faultIn(serving)), /a canary rejection/);
  assert.match(await answer, /"end"[\s\S]*data: \[DONE\]\n\n$/);
  assert.equal((await ask(serving, place, false)).status, 200);
  assert.equal(await serving.stop(), 0);
});

test('an exception that nobody caught ends the process with code 1, after what was open has ended well', async (t) => {
  const { place, serving, answer } = await prepared(t);
  serving.process.kill('SIGURG');
  await serving.logged('unhandled error');
  assert.equal(faultIn(serving)?.['kind'], 'exception');
  assert.match(await answer, /"end"[\s\S]*data: \[DONE\]\n\n$/);
  assert.equal(await serving.stop('SIGCONT'), 1, 'nobody asked it to stop');
  await assert.rejects(ask(serving, place, false), 'it listens no more');
  const { out } = await place.run('logs', '--json');
  assert.equal(JSON.parse(out.trim().split('\n')[0] ?? '').status, 'success', 'and it is settled');
});
