/** The Dockerfile and the systemd unit name what exists, run without rights that they need not, and agree with the defaults of the gateway. */
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { freePort, waitFor } from './support/processes.ts';

const dockerfile = readFileSync('Dockerfile', 'utf8');
const unit = readFileSync('packaging/mizu.service', 'utf8');
const dev: { devDependencies: { node: string }; engines: { node: string } } = JSON.parse(readFileSync('package.json', 'utf8'));

test('the image: two stages, one pinned Node, what it copies exists, nobody is root, and its health is asked', () => {
  const stages = [...dockerfile.matchAll(/^FROM (\S+)(?: AS (\S+))?$/gm)].map(([, image]) => image);
  assert.equal(stages.length, 2);
  assert.deepEqual(new Set(stages), new Set([`node:${dev.devDependencies.node}-bookworm-slim`]));
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap(([, words = '']) => words.split(' ').slice(0, -1));
  assert.ok(copied.includes('src') && copied.includes('package-lock.json'));
  for (const path of copied) assert.ok(existsSync(path), `${path} does not exist`);
  const ignored = readFileSync('.dockerignore', 'utf8').split('\n');
  for (const path of copied) assert.ok(ignored.includes(`!${path}`), `${path} is not in the context`);
  assert.match(dockerfile, /^RUN npm ci --omit=dev/m);
  const afterUser = dockerfile.slice(dockerfile.indexOf('\nUSER '));
  assert.match(afterUser, /^\nUSER node\n/);
  assert.doesNotMatch(afterUser, /\n(RUN|ADD|COPY) /, 'nothing is written as another user after it');
  assert.match(dockerfile, /^HEALTHCHECK [\s\S]*\/readyz/m);
  assert.match(
    dockerfile,
    /^CMD \["node", "src\/main\.ts", "serve"\]$/m,
    'Node itself is process 1, so that it gets the signals',
  );
  assert.doesNotMatch(dockerfile, /:latest|ADD http|--privileged|curl|wget|apt-get|sudo/);
  // What is set while an image is made stays in its layers.
  assert.doesNotMatch(dockerfile, /^ARG |^(ENV|LABEL) .*(KEY|TOKEN|SECRET|PASSWORD)/im);
  for (const line of dockerfile.split('\n')) assert.match(line, KNOWN_LINE, `Docker would not take: ${line}`);
});

/** Instructions in capitals, comments, and lines that go on with the one before. */
const KNOWN_LINE = /^$|^#|^(FROM|WORKDIR|COPY|RUN|ENV|USER|VOLUME|EXPOSE|STOPSIGNAL|HEALTHCHECK|CMD) \S|^ {4}\S/;

test('what the image holds, with production packages alone, serves, answers its own health check, and stops well', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-image-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const app = join(folder, 'app');
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+)$/gm)].flatMap(([, words = '']) => words.split(' ').slice(0, -1));
  for (const path of copied) cpSync(path, join(app, path), { recursive: true });
  for (const path of productionPackages()) {
    mkdirSync(dirname(join(app, path)), { recursive: true });
    symlinkSync(resolve(path), join(app, path));
  }
  const config = join(folder, 'mizu.config.json');
  writeFileSync(config, JSON.stringify({ operations: null, store: { path: './data' } }));
  const port = await freePort();
  // Links to packages keep their place: a package finds only what the image has.
  const env = { PATH: '', HOST: '127.0.0.1', PORT: String(port), MIZU_CONFIG: config, NODE_OPTIONS: '--preserve-symlinks' };
  const [program = '', ...args] = wordsOf(/^CMD (\[.*\])$/m);
  assert.equal(program, 'node');
  const gateway = spawn(process.execPath, args, { cwd: app, env, stdio: 'pipe' });
  t.after(() => gateway.kill('SIGKILL'));
  let said = '';
  for (const stream of [gateway.stdout, gateway.stderr]) stream.on('data', (text: Buffer) => (said += text.toString()));
  const [, ...probe] = wordsOf(/^ {4}CMD (\[.*\])$/m);
  const isHealthy = () => spawnSync(process.execPath, probe, { env }).status === 0;
  assert.equal(isHealthy(), false, 'nothing listens yet');
  await waitFor(
    () => said.includes('Mizu listens') || undefined,
    () => said,
  );
  assert.equal(isHealthy(), true);
  assert.equal((await fetch(`http://127.0.0.1:${port}/`, { headers: { accept: 'text/html' } })).status, 200);
  const ended = once(gateway, 'exit');
  gateway.kill(/^STOPSIGNAL (\S+)$/m.exec(dockerfile)?.[1] as NodeJS.Signals);
  assert.deepEqual((await ended)[0], 0, said);
});

function wordsOf(instruction: RegExp): string[] {
  return JSON.parse(instruction.exec(dockerfile)?.[1] ?? '[]');
}

/** The folders that `npm ci --omit=dev` makes, those within others left out. */
function productionPackages(): string[] {
  const lock: { packages: Record<string, { dev?: boolean; optional?: boolean }> } = JSON.parse(
    readFileSync('package-lock.json', 'utf8'),
  );
  return Object.entries(lock.packages)
    .filter(([path, { dev }]) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path) && dev !== true && existsSync(path))
    .map(([path]) => path);
}

test('what production needs is no development dependency', () => {
  const source = spawnSync('grep', ['-rhoE', "from '[^.n][^']*'", 'src'], { encoding: 'utf8' }).stdout;
  const names = new Set(
    [...source.matchAll(/from '((?:@[^/']+\/)?[^/':]+)[^:']*'/g)]
      .map(([, name = '']) => name)
      .filter((name) => !name.startsWith('node:')),
  );
  const { dependencies }: { dependencies: Record<string, string> } = JSON.parse(readFileSync('package.json', 'utf8'));
  for (const name of names) assert.ok(Object.hasOwn(dependencies, name), `${name} is imported by src`);
  assert.ok(names.has('undici'));
});

test('the unit: checks first, reloads by SIGHUP, stops the main process alone and waits longer than the drain', () => {
  assert.match(unit, /^ExecStartPre=.* check --config /m);
  assert.match(unit, /^ExecReload=\/bin\/kill -HUP \$MAINPID$/m);
  assert.match(unit, /^KillMode=mixed$/m);
  assert.ok(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1]) > 30);
  assert.match(unit, /^User=mizu$/m);
});

const noSystemd = spawnSync('systemd-analyze', ['--version']).status !== 0 && 'systemd-analyze is not here';

test('the unit is one that systemd takes without a word', { skip: noSystemd }, (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-unit-'));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'mizu.service');
  // The programs that it names are elsewhere on this machine.
  writeFileSync(file, unit.replaceAll('/usr/bin/node', `"${process.execPath}"`));
  const { status, stdout, stderr } = spawnSync('systemd-analyze', ['verify', '--man=no', file], { encoding: 'utf8' });
  assert.deepEqual([status, stdout, stderr], [0, '', '']);
});
