/** The server's side of the console: its page and modules, what they weigh, and that nothing of it depends on who asks. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createConsole, isConsolePath } from '../../src/pages/console.ts';
import { adminGateway } from '../admin/admin-gateway.ts';

const pages = createConsole();

function get(path: string, coding = 'identity') {
  const answer = pages.respond('GET', path, { 'accept-encoding': coding });
  assert.ok(answer !== undefined && isConsolePath(path), `${path} is there`);
  return answer;
}

const STATIC = /(?:href|src|from|import)[ =]?["']\.?\/?((?:assets\/)?[\w-]+\.[0-9a-f]{16}\.(?:js|css|svg))["']/g;
const DYNAMIC = /import\(["']\.\/([\w-]+\.[0-9a-f]{16}\.js)["']\)/g;

/** The files that `path` leads to by links that `pattern` finds, each once. */
function reached(path: string, patterns: readonly RegExp[], seen = new Set<string>()): Set<string> {
  const text = get(path).body.toString('utf8');
  for (const pattern of patterns)
    for (const [, name = ''] of text.matchAll(pattern)) {
      const file = `/assets/${name.replace('assets/', '')}`;
      if (seen.has(file)) continue;
      seen.add(file);
      reached(file, patterns, seen);
    }
  return seen;
}

test('every file that the console names exists, and all of its views are among them', () => {
  const files = [...reached('/console', [STATIC, DYNAMIC])];
  for (const view of [
    'overview',
    'attention',
    'exchanges',
    'live',
    'exchange',
    'accounts',
    'account-view',
    'keys',
    'key-view',
    'channels',
  ])
    assert.ok(
      files.some((file) => file.startsWith(`/assets/${view}.`)),
      view,
    );
  for (const file of files) assert.equal(get(file).headers['cache-control'], 'public, max-age=31536000, immutable');
});

test('what is fetched for the first paint is under 100 KB, and with the overview and its plots still', () => {
  const weight = (files: Iterable<string>) => [...files].reduce((sum, file) => sum + get(file, 'br').body.length, 0);
  const first = new Set(['/console', ...reached('/console', [STATIC])]);
  assert.ok(first.size > 5 && weight(first) < 40_000, `${weight(first)} bytes`);
  const overview = [...reached('/console', [STATIC, DYNAMIC])].find((file) => file.startsWith('/assets/overview.')) ?? '';
  const plots = new Set([...first, overview, ...reached(overview, [STATIC])]);
  assert.ok([...plots].some((file) => file.startsWith('/assets/uplot.')));
  assert.ok(weight(plots) < 100_000, `${weight(plots)} bytes`);
});

test('the page has no inline script or style, and the strict policy; its name with a slash leads to it', () => {
  const { headers, body } = get('/console');
  const html = body.toString('utf8');
  assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=/i);
  assert.match(
    headers['content-security-policy'] ?? '',
    /default-src 'none'.*script-src 'self'.*require-trusted-types-for 'script'/,
  );
  assert.match(html, /<form id="sign-in" method="post"/, 'a token is never put into a query, also where no script runs');
  assert.deepEqual([get('/console/').status, get('/console/').headers['location']], [308, '../console']);
  assert.equal(pages.respond('POST', '/console', {})?.status, 405);
  for (const path of ['/console/x', '/assets/console.js', '/assets/../console.html', '/assets/home.js', '/'])
    assert.equal(pages.respond('GET', path, {}), undefined, path);
});

test('on the operations port it is there without a token, and for hosts of this machine alone', async (t) => {
  const gateway = await adminGateway(t);
  const { status, text, headers } = await gateway.ask('/console', { token: null });
  assert.deepEqual([status, headers['content-type']], [200, 'text/html; charset=utf-8']);
  assert.match(text, /Sign in/);
  assert.doesNotMatch(text, /sk-canary|fast/);
  const [, script = ''] = /src="(assets\/console\.[^"]+)"/.exec(text) ?? [];
  assert.equal((await gateway.ask(`/${script}`, { token: null })).status, 200);
  assert.equal((await gateway.ask('/console', { token: null, headers: { host: 'evil.example' } })).status, 421);
  const publicly = await fetch(`http://127.0.0.1:${gateway.running.port}/console`);
  assert.equal(publicly.status, 404, 'the public port does not have it');
});
