/**
 * The package as `npm pack` makes it, in an empty folder: its command serves. Its dependencies are links to those that are
 * installed here, so that nothing is downloaded; the package itself lies below node_modules, where Node runs JavaScript only.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import { startSimulator } from '../../../src/simulator/simulator.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const run = promisify(execFile);

test('npm pack makes a package that serves from below node_modules, and tells an old Node what to do', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-pack-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: ROOT, maxBuffer: 1 << 24 });
  const [packed] = JSON.parse(stdout.slice(stdout.indexOf('['))) as readonly { filename: string }[];
  assert.ok(packed);
  const modules = join(folder, 'node_modules');
  mkdirSync(join(modules, 'mizu'), { recursive: true });
  await run('tar', ['-xzf', join(folder, packed.filename), '-C', join(modules, 'mizu'), '--strip-components=1']);
  const installed = realpathSync(join(ROOT, 'node_modules'));
  for (const name of readdirSync(installed))
    if (!name.startsWith('.') && name !== 'mizu') symlinkSync(join(installed, name), join(modules, name));
  const manifest: { bin: { mizu: string } } = JSON.parse(readFileSync(join(modules, 'mizu/package.json'), 'utf8'));
  const entry = join(modules, 'mizu', manifest.bin.mizu);

  const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.19.0' } });`;
  const old = run(process.execPath, ['--input-type=module', '-e', `${pretend} await import('${pathToFileURL(entry)}');`]);
  await assert.rejects(old, (error: Error & { stderr?: string }) => {
    assert.equal(error.stderr, 'mizu: this is Node 20.19.0, and Mizu needs Node 24 or newer: https://nodejs.org\n');
    return true;
  });

  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const channel = { id: 'mine', type: 'chat_completion', base_url: simulator.url, api_key: `\${UPSTREAM_KEY}`, models: ['m'] };
  const file = {
    listen: { port: 0 },
    operations: { port: 0 },
    warm_up_ms: 0,
    channels: [channel],
    models: { m: { price: { input: '1', output: '2' } } },
  };
  writeFileSync(join(folder, 'mizu.config.json'), JSON.stringify(file));
  const env = { ...process.env, UPSTREAM_KEY: 'k' };
  const mizu = async (...args: string[]) => (await run(process.execPath, [entry, ...args], { cwd: folder, env })).stdout.trim();
  await mizu('accounts', 'create', 'me', '--credit', '5');
  const key = await mizu('keys', 'create', '--account', 'me');

  const serving = spawn(process.execPath, [entry, 'serve'], { cwd: folder, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const ended = once(serving, 'exit');
  t.after(() => serving.kill('SIGKILL'));
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    const read = (chunk: Buffer): void => {
      said += chunk.toString();
      const found = /Mizu listens on (http:\S+)/.exec(said)?.[1];
      if (found !== undefined) resolve(found);
    };
    serving.stdout.on('data', read);
    serving.stderr.on('data', read);
    serving.once('exit', () => reject(new Error(said)));
  });
  const answer = await fetch(`${url}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  });
  const body: { choices: { message: { content: string } }[] } = JSON.parse(await answer.text());
  assert.equal(answer.status, 200);
  assert.ok((body.choices[0]?.message.content.length ?? 0) > 0);
  assert.equal((await fetch(`${url}/`)).status, 200, 'its pages are in it');
  serving.kill('SIGTERM');
  assert.deepEqual(await ended, [0, null], said);
});
