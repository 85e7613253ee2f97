/** The Dockerfile and the systemd unit name what exists, run without rights that they need not, and agree with the defaults of the gateway. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { test } from 'node:test';

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
  assert.doesNotMatch(dockerfile, /:latest|ADD http|--privileged/);
});

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
