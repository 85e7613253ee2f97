/**
 * The files of packaging/: the rules and metrics are what promtool accepts, everything that is charted or alerted on exists,
 * configurations are valid.
 */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { parseConfig } from '../src/http/config/parse.ts';
import { createMetrics } from '../src/http/operations/metrics.ts';
import { parsePrice } from '../src/store/prices.ts';

const place = (name: string): string => fileURLToPath(new URL(`../packaging/${name}`, import.meta.url));
const textOf = (name: string): string => readFileSync(place(name), 'utf8');

const skip =
  spawnSync('promtool', ['--version']).status === 0
    ? false
    : 'needs promtool (apt-get install prometheus): rules and metrics are not checked';
if (skip !== false) console.log(`skipped: ${skip}`);

/** Everything told once, so that every metric has a sample. */
async function metricsText(): Promise<string> {
  const metrics = createMetrics({
    held: () => ({ body_bytes: 1 }),
    circuits: () => [{ channelId: 'c', model: 'm', state: 'open', openForMs: 1, recentFailures: 5 }],
    pendingSettlements: () => 1,
    storeHealthy: () => true,
    openVideos: async () => new Map([['unknown', 1]]),
    version: '1.2.3',
    processFigures: true,
  });
  metrics.requestStarted('messages');
  metrics.requestEnded('messages', 200, 'upstream_error', 1);
  metrics.attemptEnded('c', 'status_503');
  metrics.firstToken('messages', 1);
  metrics.tokenGap('messages', 1);
  const tokens = { input: 1, cached_input: 2, cache_write: 0, output: 3 };
  const answered = { channelId: 'c', seconds: 2, firstTokenSeconds: 1, affinityHit: true };
  metrics.exchanged({ model: 'm', tokens, chargedNanos: 5n, answered });
  metrics.videoEnded('m', 'succeeded', 7n);
  metrics.circuitMoved('c', 'open');
  metrics.probed('c', false);
  metrics.rateLimited('key', 'tokens');
  return await metrics.registry.metrics();
}

const namesIn = (text: string): Set<string> => new Set(text.match(/\b(?:mizu|nodejs)_[a-z0-9_]+\b/g));

test('promtool accepts the rules', { skip }, () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'rules', '--lint=all', '--lint-fatal', place('alerts.yml')]);
  assert.equal(status, 0, `${stdout}${stderr}`);
});

test('each rule fires when it should, with its words, and not while all is well', { skip }, () => {
  const cases = fileURLToPath(new URL('packaging-alerts.yml', import.meta.url));
  const { status, stdout, stderr } = spawnSync('promtool', ['test', 'rules', cases]);
  assert.equal(status, 0, `${stdout}${stderr}`);
  const tried = valuesOf(readFileSync(cases, 'utf8'), 'alertname');
  const alerts = valuesOf(textOf('alerts.yml'), '- alert');
  assert.ok(alerts.length > 10);
  for (const alert of alerts)
    assert.equal(tried.filter((name) => name === alert).length, 2, `${alert} has a case in which it fires and one in which not`);
});

test('promtool accepts the configuration of Prometheus', { skip }, () => {
  const { status, stdout, stderr } = spawnSync('promtool', [
    'check',
    'config',
    '--lint=all',
    '--lint-fatal',
    place('prometheus.yml'),
  ]);
  assert.equal(status, 0, `${stdout}${stderr}`);
});

/** The values behind `key:` at any depth, without quotes and comments. */
const valuesOf = (text: string, key: string): string[] =>
  [...text.matchAll(new RegExp(`(?:^|[{,\\s-])${key}: *'?([^'#,}\\n]+?)'?\\s*(?:#.*)?(?=[,}\\n])`, 'gm'))].map(
    ([, value = '']) => value,
  );

test('what the compose file mounts is there, what it names is declared, and its images have versions', () => {
  const text = textOf('compose.yml');
  const mounts = [...text.matchAll(/^ {6}- (\S+?):(\/\S+?)(:ro)?$/gm)].map(([, from = '', to = '']) => ({ from, to }));
  assert.ok(mounts.length >= 8);
  const [, declared = ''] = /^volumes:\n((?: {2}\w+:\n)+)/m.exec(text) ?? [];
  const volumes: readonly string[] = declared.match(/\w+/g) ?? [];
  const mine = ['../mizu.config.json'];
  for (const { from } of mounts) {
    const isThere = from.startsWith('.') ? mine.includes(from) || existsSync(place(from)) : volumes.includes(from);
    assert.ok(isThere, `${from} is mounted`);
  }
  for (const image of valuesOf(text, 'image')) assert.match(image, /^[\w/]+:v?\d+\.\d+\.\d+$/);
  assert.ok(existsSync(place(join(valuesOf(text, 'build')[0] ?? '', 'Dockerfile'))));
  const [, service] = /network_mode: service:(\w+)/.exec(text) ?? [];
  assert.match(text, new RegExp(`^  ${service}:$`, 'm'));
  assert.match(textOf('prometheus.yml'), /localhost:8081/, 'where the operations port is by default');
});

test('in the Kubernetes file labels are selected, ports and volumes named, and what is mounted is declared', () => {
  const text = textOf('kubernetes/mizu.yaml');
  const [, service = '', set = ''] = text.split(/^---\n/m);
  assert.deepEqual([valuesOf(service, 'kind')[0], valuesOf(set, 'kind')[0]], ['Service', 'StatefulSet']);
  assert.equal(new Set(valuesOf(text, 'app')).size, 1);
  assert.equal(valuesOf(set, 'serviceName')[0], valuesOf(service, 'name')[0]);
  const named = [...set.matchAll(/name: ([\w-]+), containerPort/g)].map(([, name = '']) => name);
  for (const port of [
    ...valuesOf(service, 'targetPort'),
    ...[...set.matchAll(/(?:path: \/readyz, |tcpSocket: \{ )port: ([\w-]+)/g)].map(([, name = '']) => name),
  ])
    assert.ok(named.includes(port), `port ${port}`);
  const mounted = [...set.matchAll(/\{ name: ([\w-]+), mountPath/g)].map(([, name = '']) => name);
  const [, declared = ''] = /^ {6}volumes:\n([\s\S]*)/m.exec(set) ?? [];
  const volumes = [...declared.matchAll(/(?:- | {8})name: ([\w-]+)$/gm)].map(([, name = '']) => name);
  assert.ok(mounted.length === 4 && mounted.every((name) => volumes.includes(name)), `${mounted} of ${volumes}`);
});

test('promtool accepts the metrics', { skip }, async () => {
  const { status, stdout, stderr } = spawnSync('promtool', ['check', 'metrics'], { input: await metricsText() });
  const complaints = `${stdout}${stderr}`.split('\n').filter((line) => line.startsWith('mizu_'));
  assert.deepEqual(complaints, []);
  // 3: complaints about metrics of the process, whose names are its library's.
  assert.ok(status === 0 || status === 3, `${stdout}${stderr}`);
});

test('every metric of the rules and the dashboard exists, and every one of ours is documented', async () => {
  const text = await metricsText();
  const exist = namesIn(text);
  for (const file of ['alerts.yml', 'grafana/mizu.json'])
    assert.deepEqual(
      [...namesIn(textOf(file))].filter((name) => !exist.has(name)),
      [],
      file,
    );
  const documented = readFileSync(fileURLToPath(new URL('../docs/operating.md', import.meta.url)), 'utf8');
  const ours = [...text.matchAll(/^# TYPE (mizu_\w+) /gm)].map(([, name = '']) => name);
  assert.deepEqual(
    ours.filter((name) => !documented.includes(`\`${name}\``)),
    [],
  );
});

test('the dashboard is one: panels do not overlap, each asks something', () => {
  const { panels } = JSON.parse(textOf('grafana/mizu.json')) as {
    panels: { title: string; gridPos: { x: number; y: number; w: number; h: number }; targets: { expr: string }[] }[];
  };
  const taken = new Set<string>();
  for (const { title, gridPos, targets } of panels) {
    assert.ok(
      targets.every(({ expr }) => expr !== ''),
      title,
    );
    for (let x = gridPos.x; x < gridPos.x + gridPos.w; x += 1)
      for (let y = gridPos.y; y < gridPos.y + gridPos.h; y += 1) {
        assert.ok(x < 24 && !taken.has(`${x} ${y}`), title);
        taken.add(`${x} ${y}`);
      }
  }
});

test('the configuration of the Kubernetes file is valid', () => {
  const [, block = ''] = /mizu\.config\.json: \|\n((?: {4}.*\n)+)/.exec(textOf('kubernetes/mizu.yaml')) ?? [];
  const config = parseConfig(block.replaceAll(/^ {4}/gm, ''), {
    env: { UPSTREAM_API_KEY: 'sk-test' },
    readFile: () => '',
    parsePrice,
    path: '/etc/mizu/mizu.config.json',
    revision: 1,
    nowMs: 0,
  });
  assert.equal(config.storePath, '/var/lib/mizu');
  assert.deepEqual(
    [...config.channels].map(({ id }) => id),
    ['openai'],
  );
});
