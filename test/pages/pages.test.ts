/** The server's side of the pages: answers, caching, compression, security headers, escaping. */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { loadAssets } from '../../src/pages/assets.ts';
import { createPages, type Pages } from '../../src/pages/create-pages.ts';
import type { PriceList } from '../../src/pages/price-list.ts';
import type { PageRequestHeaders } from '../../src/pages/representation.ts';
import { EMPTY, HOSTILE, HOSTILE_NAME, many, SAMPLE } from '../support/pages/sample-prices.ts';

const KNOWN = ['/', '/account', '/apidocs', '/openapi.json', '/prices.json', '/favicon.ico'];

function pagesOf(list: PriceList, publicBaseUrl?: string): Pages {
  return createPages({ prices: () => list, ...(publicBaseUrl === undefined ? {} : { publicBaseUrl }) });
}

const sample = pagesOf(SAMPLE);

function get(pages: Pages, path: string, headers: PageRequestHeaders = {}, method = 'GET') {
  const answer = pages.respond(method, path, headers);
  assert.ok(answer !== undefined, `${path} is a page`);
  return answer;
}

const text = (pages: Pages, path: string) => get(pages, path).body.toString('utf8');

function assetsOf(html: string): string[] {
  return [...html.matchAll(/(?:href|src)="(assets\/[^"]+)"/g)].map(([, path]) => `/${path}`);
}

test('every page and asset has the whole set of security headers', () => {
  for (const path of [...KNOWN, ...assetsOf(text(sample, '/')), ...assetsOf(text(sample, '/apidocs'))]) {
    const { status, headers } = get(sample, path);
    assert.equal(status, 200, path);
    const policy = new Map(
      (headers['content-security-policy'] ?? '').split('; ').map((part) => {
        const [name = '', ...values] = part.split(' ');
        return [name, values.join(' ')] as const;
      }),
    );
    assert.equal(policy.get('default-src'), "'none'");
    assert.equal(policy.get('script-src'), "'self'");
    assert.equal(policy.get('style-src'), "'self'");
    assert.equal(policy.get('connect-src'), "'self'");
    assert.equal(policy.get('frame-ancestors'), "'none'");
    assert.equal(policy.get('base-uri'), "'none'");
    assert.equal(policy.get('form-action'), "'none'");
    assert.doesNotMatch(headers['content-security-policy'] ?? '', /unsafe|data:|\*|http/);
    assert.equal(headers['x-content-type-options'], 'nosniff');
    assert.equal(headers['referrer-policy'], 'no-referrer');
    assert.equal(headers['cross-origin-opener-policy'], 'same-origin');
    assert.match(headers['permissions-policy'] ?? '', /camera=\(\)/);
    assert.equal(headers['set-cookie'], undefined);
  }
});

test('what the pages name exists, is ours, and needs no inline script or style', () => {
  for (const path of ['/', '/account', '/apidocs']) {
    const html = text(sample, path);
    assert.doesNotMatch(html, /<script(?![^>]*\bsrc=)|<style|\sstyle=|\son[a-z]+=/i);
    const targets = [...html.matchAll(/<(?:link|script|img)\b[^>]*\b(?:href|src)="([^"]+)"/g)];
    assert.ok(targets.length >= 2, `${path} names a style and a script`);
    for (const [, target] of targets) {
      assert.match(target ?? '', /^assets\/[\w-]+\.[0-9a-f]{16}\.(?:js|css|svg)$/);
      get(sample, `/${target}`);
    }
    assert.doesNotMatch(html, /<!--\{/);
  }
});

test('hashed assets are kept for ever, and name each other by hash', () => {
  const others: string[] = [];
  for (const path of assetsOf(text(sample, '/'))) {
    const { headers, body } = get(sample, path);
    assert.equal(headers['cache-control'], 'public, max-age=31536000, immutable');
    for (const [, other = ''] of body.toString('utf8').matchAll(/['"(]\.\/([\w.-]+\.(?:js|css|svg))/g)) others.push(other);
  }
  assert.ok(others.length > 0, 'some name another');
  for (const other of others) {
    assert.match(other, /\.[0-9a-f]{16}\./);
    get(sample, `/assets/${other}`);
  }
});

test('brotli and gzip say the same as the plain bytes, and the client chooses', () => {
  for (const path of [...KNOWN, ...assetsOf(text(sample, '/'))]) {
    const plain = get(sample, path);
    const br = get(sample, path, { 'accept-encoding': 'gzip, deflate, br' });
    const gzip = get(sample, path, { 'accept-encoding': 'gzip' });
    assert.equal(plain.headers['content-encoding'], undefined);
    for (const { headers, body } of [plain, br, gzip]) {
      assert.equal(headers['content-length'], String(body.length));
      assert.equal(headers['vary'], 'accept-encoding');
    }
    if (br.headers['content-encoding'] === 'br') assert.deepEqual(brotliDecompressSync(br.body), plain.body);
    if (gzip.headers['content-encoding'] === 'gzip') assert.deepEqual(gunzipSync(gzip.body), plain.body);
  }
  assert.equal(get(sample, '/', { 'accept-encoding': 'br' }).headers['content-encoding'], 'br');
  assert.equal(get(sample, '/', { 'accept-encoding': 'br;q=0, gzip;q=0.5' }).headers['content-encoding'], 'gzip');
  assert.equal(get(sample, '/', { 'accept-encoding': 'br;q=0.2, gzip;q=0.9' }).headers['content-encoding'], 'gzip');
  assert.equal(get(sample, '/', { 'accept-encoding': '*' }).headers['content-encoding'], 'br');
  assert.equal(get(sample, '/', { 'accept-encoding': 'identity, br;q=nonsense' }).headers['content-encoding'], undefined);
});

test('a tag that is known answers 304 without a body, in any coding and in a list', () => {
  for (const path of KNOWN) {
    const { headers } = get(sample, path, { 'accept-encoding': 'br' });
    const tag = headers['etag'] ?? '';
    for (const known of [tag, `W/${tag}`, `"x", ${tag}`, '*']) {
      const answer = get(sample, path, { 'if-none-match': known });
      assert.equal(answer.status, 304, known);
      assert.equal(answer.body.length, 0);
      assert.equal(answer.headers['content-length'], undefined);
      assert.equal(answer.headers['cache-control'], headers['cache-control']);
      assert.ok(answer.headers['etag']);
    }
    assert.equal(get(sample, path, { 'if-none-match': '"0000000000000000-br"' }).status, 200);
  }
});

test('HEAD says what GET would, without the body; other methods are refused', () => {
  for (const path of KNOWN) {
    const head = get(sample, path, { 'accept-encoding': 'gzip' }, 'HEAD');
    const full = get(sample, path, { 'accept-encoding': 'gzip' });
    assert.deepEqual([head.status, head.headers, head.body.length], [full.status, full.headers, 0]);
    const post = get(sample, path, {}, 'POST');
    assert.equal(post.status, 405);
    assert.equal(post.headers['allow'], 'GET, HEAD');
  }
});

test('F19: nothing else is a page: no traversal, no encoded path, no plain asset name, no template', () => {
  const wrong = [
    '/assets/../home.html',
    '/assets/%2e%2e/package.json',
    '/assets/home.js',
    '/assets/',
    '/assets/home.html',
    '/home.html',
    '//',
    '/apidocs/',
    '/static/home.js',
    '/examples/responses.py',
    '/__proto__',
    'constructor',
    '',
    '/\0',
  ];
  for (const path of wrong) assert.equal(sample.respond('GET', path, {}), undefined, path);
});

test('V5: the base URL comes from the configuration alone: a Host header changes no byte', () => {
  const headers: IncomingHttpHeaders = {
    host: 'evil.example',
    'x-forwarded-host': 'evil.example',
    forwarded: 'host=evil.example',
  };
  for (const path of KNOWN) {
    assert.deepEqual(sample.respond('GET', path, headers), sample.respond('GET', path, {}));
    assert.ok(!get(sample, path, headers).body.includes('evil.example'));
  }
  assert.ok(!text(sample, '/').includes('public-base-url'));
  const configured = pagesOf(SAMPLE, 'https://models.example.org/gate');
  assert.match(text(configured, '/'), /<meta name="public-base-url" content="https:\/\/models\.example\.org\/gate">/);
  assert.match(text(configured, '/apidocs'), /<span class="base">https:\/\/models\.example\.org\/gate<\/span>\/v1\/responses/);
});

test('V11: a hostile model name stays text, and is not offered for pasting', () => {
  const html = text(pagesOf(HOSTILE), '/');
  assert.ok(!html.includes('<img'));
  assert.equal(html.match(/<script/g)?.length, 1);
  assert.ok(!html.includes('<b>meter'));
  assert.ok(
    html.includes('&quot;&gt;&lt;img src=x onerror=&quot;document.title=&#39;broken&#39;&quot;&gt;&lt;script&gt;'),
    'it is shown, escaped',
  );
  assert.match(html, /<option>a{128,}|<option>your-model<\/option>/);
  assert.ok(!/<option>[^<]*&lt;/.test(html));
  const list = JSON.parse(text(pagesOf(HOSTILE), '/prices.json'));
  assert.equal(list.models[0].id, HOSTILE_NAME);
  assert.equal(Object.getOwnPropertyDescriptor(list.models[1].prices, '__proto__')?.value, '1.00');
});

test('many digits are shown whole, and what is no decimal as it stands', () => {
  const html = text(pagesOf(HOSTILE), '/');
  assert.ok(html.includes('<span class="w">123456789012345</span><span class="f">.000000000001</span>'));
  assert.ok(html.includes('<span class="f">.0000000000001234</span>'));
  assert.ok(html.includes('<span class="w">7</span><span class="f g4">.10</span>') || html.includes('<span class="w">7</span>'));
  assert.ok(html.includes('<span class="w">free</span>'));
});

test('examples name text models alone, and the same prices in another object are not compressed again', () => {
  const listOf = (...models: PriceList['models']): PriceList => ({ ...EMPTY, models });
  const vectors = { id: 'vectors', kind: 'embedding', prices: { input: '1.00' } } as const;
  assert.match(text(pagesOf(listOf(vectors)), '/'), /<option>your-model<\/option>/);
  const speaking = text(pagesOf(listOf(vectors, { ...vectors, id: 'words', kind: 'text' })), '/');
  assert.deepEqual(speaking.match(/<option>[^<]*<\/option>/g), ['<option>words</option>']);

  let list = SAMPLE;
  const pages = createPages({ prices: () => list });
  const first = get(pages, '/prices.json').body;
  list = structuredClone(SAMPLE);
  assert.equal(get(pages, '/prices.json').body, first, 'the same bytes, not the like');
  list = EMPTY;
  assert.notEqual(get(pages, '/prices.json').body, first);
});

test('modules that import each other in a circle have no digest: a start is refused and says which', (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'mizu-static-'));
  t.after(() => rmSync(folder, { recursive: true }));
  writeFileSync(join(folder, 'page.html'), '<script type="module" src="assets/a.js"></script>');
  const template = () => loadAssets(pathToFileURL(`${folder}/`)).template('page.html');
  writeFileSync(join(folder, 'a.js'), "import './b.js';");
  writeFileSync(join(folder, 'b.js'), "import './a.js';");
  assert.throws(template, /static\/a\.js imports itself through a\.js, b\.js/);
  writeFileSync(join(folder, 'b.js'), "import './c.js';");
  assert.throws(template, /static\/c\.js does not exist \(named by b\.js\)/);
});

test('zero models: a page that says so', () => {
  const html = text(pagesOf(EMPTY), '/');
  assert.match(html, /This gateway has no priced models yet\./);
  assert.ok(!html.includes('<tr role="row"><th scope="row"'));
  assert.match(html, /<option>your-model<\/option>/);
});

test('size over the wire: everything that / needs is under 60 KB, with five hundred models too', () => {
  for (const list of [SAMPLE, many(500)]) {
    const pages = pagesOf(list);
    const all = new Set(['/', ...assetsOf(text(pages, '/')), '/favicon.ico']);
    for (const path of [...all]) {
      for (const [, other] of text(pages, path).matchAll(/url\("\.\/([\w.-]+)"\)/g)) all.add(`/assets/${other}`);
    }
    let total = 0;
    for (const path of all) total += get(pages, path, { 'accept-encoding': 'br' }).body.length;
    assert.ok(total < 60_000, `${list.models.length} models: ${total} bytes in ${all.size} answers`);
  }
});

test('prices: the body of /prices.json, and every price in the HTML of the first answer', () => {
  const list = JSON.parse(text(sample, '/prices.json'));
  assert.deepEqual(
    [list.object, list.currency, list.unit, list.updated_at],
    ['price_list', 'USD', 'per_million_tokens', SAMPLE.updatedAt],
  );
  assert.deepEqual(
    list.models.map(({ id, prices }: { id: string; prices: object }) => ({ id, prices })),
    SAMPLE.models.map(({ id, prices }) => ({ id, prices })),
  );
  assert.deepEqual(list.models[0].long_context, SAMPLE.models[0]?.longContext);
  assert.deepEqual(list.models[1].service_tiers, SAMPLE.models[1]?.serviceTiers);
  assert.deepEqual(list.models[1].service_tier_long_context, SAMPLE.models[1]?.serviceTierLongContext);
  assert.equal(list.units.deep_search, 'per_thousand_calls');
  assert.deepEqual(
    [list.units.video, list.units.web_search, list.units.input],
    ['per_video', 'per_thousand_calls', 'per_million_tokens'],
  );
  const html = text(sample, '/');
  for (const { id } of SAMPLE.models) assert.ok(html.includes(`<span class="id">${id}</span>`), id);
  assert.match(html, /<p>flex tier, above 200,000 tokens<\/p>.*?<span class="w">0<\/span><span class="f">\.26</);
  assert.ok(html.includes('<span class="w">15</span><span class="f">.00</span>'));
  assert.match(get(sample, '/prices.json').headers['cache-control'] ?? '', /max-age=\d\b/);
});

test('a changed list changes page, list and tags at once; an equal one in another object changes nothing', () => {
  let list = SAMPLE;
  const pages = createPages({ prices: () => list });
  const before = [get(pages, '/').headers['etag'], get(pages, '/prices.json').headers['etag']];
  list = structuredClone(SAMPLE);
  assert.deepEqual([get(pages, '/').headers['etag'], get(pages, '/prices.json').headers['etag']], before);
  list = { updatedAt: '2026-11-21T00:00:00.000Z', models: [{ id: 'new-model', kind: 'text', prices: { input: '1' } }] };
  assert.ok(text(pages, '/').includes('new-model') && text(pages, '/prices.json').includes('new-model'));
  assert.notEqual(get(pages, '/').headers['etag'], before[0]);
  assert.notEqual(get(pages, '/prices.json').headers['etag'], before[1]);
});
