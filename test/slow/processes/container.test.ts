/**
 * The steps of the Dockerfile, in empty folders in place of images: what it copies is there, what it runs succeeds, what it
 * starts serves, and its health check tells a gateway that serves from none. No container runs.
 */
import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';
import { startSimulator } from '../../../src/simulator/simulator.ts';
import { command } from '../../support/command.ts';
import { freePort, waitFor } from '../../support/processes.ts';

const run = promisify(execFile);
const DOCKERFILE = readFileSync('Dockerfile', 'utf8');
const IGNORED = readFileSync('.dockerignore', 'utf8').split('\n');

interface Step {
  readonly name: string;
  readonly words: string;
}

function stepsOf(text: string): Step[] {
  const lines = text
    .replaceAll(/^#.*\n/gm, '')
    .replaceAll(/\\\n\s*/g, '')
    .split('\n')
    .filter(Boolean);
  return lines.map((line) => ({ name: line.slice(0, line.indexOf(' ')), words: line.slice(line.indexOf(' ') + 1) }));
}

/** An image as a folder: absolute paths of the image lie beneath it. */
class Image {
  readonly root: string;
  readonly env: Record<string, string> = {};
  #workdir = '/';

  constructor(folder: string) {
    this.root = mkdtempSync(join(folder, 'image-'));
  }

  /** The folders that the Dockerfile names, in a text, as they are here. */
  located(text: string): string {
    return text.replaceAll(/(?<![\w/])\/(?:app|etc\/mizu|var\/lib\/mizu)\b/g, (path) => join(this.root, path));
  }

  get workdir(): string {
    return join(this.root, this.#workdir);
  }

  /** With what npm needs to know of this machine. */
  variables(more: Record<string, string> = {}): NodeJS.ProcessEnv {
    return { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH'] ?? ''}`, ...this.env, ...more };
  }

  async take({ name, words }: Step, stages: ReadonlyMap<string, Image>): Promise<void> {
    if (name === 'WORKDIR') {
      this.#workdir = words;
      mkdirSync(this.workdir, { recursive: true });
    }
    if (name === 'ENV') {
      for (const [, key = '', value = ''] of words.matchAll(/(\S+?)=(\S+)/g)) this.env[key] = this.located(value);
    }
    if (name === 'COPY') this.#copy(words.split(' '), stages);
    if (name === 'RUN') {
      // The user of the image does not exist here.
      const script = this.located(words).replaceAll('node:node', `${process.getuid?.()}:${process.getgid?.()}`);
      await run('bash', ['-ec', script], { cwd: this.workdir, env: this.variables(), timeout: 900_000 });
    }
  }

  #copy(words: readonly string[], stages: ReadonlyMap<string, Image>): void {
    const from = words[0]?.startsWith('--from=') ? stages.get(words[0].slice('--from='.length)) : undefined;
    const paths = words.filter((word) => !word.startsWith('--'));
    const to = join(this.workdir, paths.at(-1) ?? '');
    for (const path of paths.slice(0, -1)) {
      if (from === undefined) assert.ok(IGNORED.includes(`!${path.replace('./', '')}`), `${path} is not sent to the builder`);
      const source = from === undefined ? path : join(from.root, path);
      const isIntoFolder = paths.length > 2 || paths.at(-1)?.endsWith('/');
      cpSync(source, isIntoFolder ? join(to, basename(path)) : to, { recursive: true });
    }
  }
}

test('the Dockerfile’s steps in empty folders make a gateway that serves, and its health check works', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-container-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const { devDependencies }: { devDependencies: { node: string } } = JSON.parse(readFileSync('package.json', 'utf8'));
  const stages = new Map<string, Image>();
  let image = new Image(folder);
  const last = new Map<string, string>();
  for (const step of stepsOf(DOCKERFILE)) {
    last.set(step.name, step.words);
    if (step.name === 'FROM') {
      const [, version, stage = ''] = /^node:([\d.]+)-\S+(?: AS (\S+))?$/.exec(step.words) ?? [];
      assert.equal(version, devDependencies.node, 'the image has the Node that the tests run');
      image = new Image(folder);
      stages.set(stage, image);
    } else await image.take(step, stages);
  }
  assert.equal(last.get('USER'), 'node');

  const simulator = await startSimulator();
  t.after(() => simulator.close());
  const channel = { id: 'one', type: 'chat_completion', base_url: simulator.url, api_key: 'sk-up', models: ['m'] };
  const configPath = image.located('/etc/mizu/mizu.config.json');
  const store = { path: image.located('/var/lib/mizu') };
  const models = { m: { price: { input: '1', output: '2' } } };
  writeFileSync(configPath, JSON.stringify({ store, operations: { port: 0 }, channels: [channel], models, warm_up_ms: 0 }));
  assert.equal((await command(['accounts', 'create', 'me', '--credit', '5', '--config', configPath])).code, 0);
  const key = (await command(['keys', 'create', '--account', 'me', '--config', configPath])).out.trim();

  const port = String(await freePort());
  const [program = '', ...args] = JSON.parse(last.get('CMD') ?? '[]') as readonly string[];
  // The tests stay on loopback.
  const env = image.variables({ HOST: '127.0.0.1', PORT: port });
  const serving = spawn(program, args, { cwd: image.workdir, env, stdio: 'ignore' });
  const exited = once(serving, 'exit');
  t.after(() => serving.kill('SIGKILL'));
  const [, check = '[]'] = /CMD (\[.*\])$/.exec(last.get('HEALTHCHECK') ?? '') ?? [];
  const [checker = '', ...how] = JSON.parse(check) as readonly string[];
  const isHealthy = (): Promise<boolean> =>
    run(checker, how, { cwd: image.workdir, env }).then(
      () => true,
      () => false,
    );
  await waitFor(
    async () => (await isHealthy()) || undefined,
    () => 'it never was healthy',
  );
  const answer = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'hi' }] }),
  });
  assert.deepEqual([answer.status, /"finish_reason":\s*"stop"/.test(await answer.text())], [200, true]);
  serving.kill(last.get('STOPSIGNAL') as NodeJS.Signals);
  assert.deepEqual(await exited, [0, null]);
  assert.equal(await isHealthy(), false);
});
