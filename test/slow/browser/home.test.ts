/** The home page in a real browser: refresh, staleness, pause, copying, keyboard, reflow, motion, accessibility. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { priceListJson } from '../../../src/pages/price-display.ts';
import { findings } from '../../support/pages/axe.ts';
import { launch, layoutShift, setVisible, skip, visit } from '../../support/pages/browser.ts';
import { EMPTY, HOSTILE, HOSTILE_NAME, LONG, many, SAMPLE } from '../../support/pages/sample-prices.ts';
import { type PagesServer, servePages } from '../../support/pages/serve-pages.ts';

let browser: Browser;
before(async () => {
  if (skip === false) browser = await launch();
});
after(() => browser?.close());

const options = { skip, timeout: 90_000 };
const READY = '.carousel.ready';

async function open(list = SAMPLE, context: BrowserContextOptions = {}, time: 'flows' | 'stands' = 'stands') {
  let current = list;
  const server = await servePages({ prices: () => current });
  const visited = await visit(browser, `${server.origin}/`, context, time);
  await visited.page.waitForSelector(current.models.length === 0 ? '.carousel[hidden]' : READY, { state: 'attached' });
  server.requests.length = 0;
  return {
    ...visited,
    server,
    setList(next: typeof list) {
      current = next;
    },
    async [Symbol.asyncDispose]() {
      await visited[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

const asked = (server: PagesServer) => server.requests.filter((path) => path === '/prices.json').length;
const stale = (page: Page) => page.locator('#stale').textContent();
const status = (page: Page) => page.locator('#checked').textContent();

async function until(condition: () => boolean | Promise<boolean>, what: string) {
  const deadline = performance.now() + 20_000;
  while (!(await condition())) {
    if (performance.now() > deadline) assert.fail(`never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const changed = {
  ...SAMPLE,
  updatedAt: '2026-11-20T12:00:10.000Z',
  models: [{ id: 'fresh-model', kind: 'text', prices: { input: '0.125', output: '3.5' } } as const, ...SAMPLE.models],
};

test('only its own assets and /prices.json are asked for, without complaint, shift or waste', options, async () => {
  await using opened = await open();
  const { page, server, urls, complaints } = opened;
  await page.clock.runFor(31_000);
  await until(() => asked(server) === 1, 'a refresh');
  await until(async () => (await status(page))?.includes('12:00:3') === true, 'it is said');
  for (const url of urls) assert.match(url, new RegExp(`^${server.origin}/(?:$|assets/|prices\\.json$|favicon\\.ico$)`));
  assert.ok(urls.length <= 16, `${urls.length} requests`);
  assert.equal(new Set(urls).size, urls.length, 'nothing is loaded twice');
  assert.deepEqual(complaints, []);
  assert.ok((await layoutShift(page)) < 0.01, `layout shift ${await layoutShift(page)}`);
});

test('what is said inside an empty field can be read, also at night', options, async () => {
  await using server = await servePages({ prices: () => SAMPLE });
  for (const colorScheme of ['light', 'dark'] as const) {
    const context = await browser.newContext({ colorScheme });
    const page = await context.newPage();
    await page.goto(server.origin);
    const [said, label] = await page.evaluate<string[]>(
      `[getComputedStyle(document.querySelector('#filter'), '::placeholder').color, getComputedStyle(document.querySelector('.filter')).color]`,
    );
    assert.equal(said, label, colorScheme);
    await context.close();
  }
});

test('prices, examples and base URL are there without JavaScript', options, async () => {
  await using server = await servePages({ prices: () => SAMPLE, publicBaseUrl: 'https://gateway.example.com' });
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(server.origin);
  assert.equal(await page.locator('#rows tr').count(), SAMPLE.models.length);
  assert.ok((await page.locator('#rows').innerText()).includes('gpt-5.5'));
  assert.ok(await page.getByText('curl https://gateway.example.com/v1/responses').isVisible());
  await page.getByText('Messages', { exact: true }).click();
  await page.getByText('Python', { exact: true }).click();
  assert.ok(await page.getByText('from anthropic import Anthropic').isVisible());
  assert.match((await page.locator('noscript').textContent()) ?? '', /Copying needs JavaScript/);
  assert.equal(await page.locator('.copy:not([disabled])').count(), 0);
  for (const dead of ['#filter', '#pause', '#rotation', '#model'])
    assert.equal(await page.locator(dead).isVisible(), false, dead);
  await page.goto(`${server.origin}/apidocs`);
  assert.equal(await page.locator('#search').isVisible(), false);
  await context.close();
});

test('rows, slides and the choice of models made in the browser are those that the server makes', options, async () => {
  for (const list of [SAMPLE, HOSTILE]) {
    await using opened = await open(EMPTY);
    const { page, setList, server } = opened;
    setList({ ...list, updatedAt: '2026-11-20T12:00:10.000Z' });
    await page.clock.runFor(31_000);
    await page.waitForSelector('#rows tr');
    const markup = (part: string) => page.locator(part).evaluate((element) => element.innerHTML.replace(/>\n\s*/g, '>').trim());
    const parts = async () => [await markup('#rows'), await markup('#slides'), await markup('#model')];
    const drawn = await parts();
    await page.goto(`${server.origin}/`);
    assert.deepEqual(drawn, await parts());
    assert.equal(await page.title(), 'Mizu: one address for every model');
  }
});

test('refreshes every 30 seconds while visible and online, not while hidden, offline or paused', options, async () => {
  await using opened = await open();
  const { page, server, setList } = opened;
  await page.clock.runFor(29_000);
  assert.equal(asked(server), 0);
  setList(changed);
  await page.clock.runFor(1_500);
  await page.locator('#rows').getByText('fresh-model').waitFor();
  assert.equal(await page.locator('.slide .id').first().textContent(), 'fresh-model', 'the carousel has the new prices too');
  assert.equal(await page.locator('.slide.current .id').textContent(), 'gpt-5.5', 'and keeps its place');
  assert.equal(asked(server), 1);
  assert.match((await page.locator('#updated').textContent()) ?? '', /12:00:10 UTC/);

  await setVisible(page, false);
  await page.clock.runFor(300_000);
  assert.equal(asked(server), 1, 'hidden: silent');
  await setVisible(page, true);
  await until(() => asked(server) === 2, 'seen again: at once');
  await until(async () => (await status(page))?.includes('checked at 12:05') === true, 'answered');

  await page.context().setOffline(true);
  await page.clock.runFor(300_000);
  assert.equal(asked(server), 2, 'offline: silent');
  assert.match((await stale(page)) ?? '', /out of date since 12:05:\d\d UTC: this browser is offline/);
  await page.context().setOffline(false);
  await until(() => asked(server) === 3, 'online again: at once');
  await until(async () => (await stale(page)) === '', 'recovered');

  await page.getByRole('button', { name: 'Pause updates' }).click();
  await page.clock.runFor(300_000);
  assert.equal(asked(server), 3, 'paused: silent');
  assert.match((await status(page)) ?? '', /updates are paused/);
  await setVisible(page, false);
  await setVisible(page, true);
  assert.equal(asked(server), 3, 'paused stays paused');
  await page.getByRole('button', { name: 'Resume updates' }).click();
  await until(() => asked(server) === 4, 'resumed: at once');
});

test('a failed refresh keeps the prices, warns since when, and recovers', options, async () => {
  await using opened = await open();
  const { page, server, complaints } = opened;
  const rows = await page.locator('#rows').innerHTML();
  const old = priceListJson({ ...SAMPLE, updatedAt: '2020-01-01T00:00:00.000Z', models: [] });
  const bad: readonly [string, RegExp, number, string, string][] = [
    ['a 500', /answered 500/, 500, 'application/json', '{"error":{}}'],
    ['HTML', /no price list/, 200, 'text/html', '<!doctype html><title>Sign in</title>'],
    ['a list of something else', /no price list/, 200, 'application/json', '{"object":"list","data":[]}'],
    [
      'a price that is a number',
      /no price list/,
      200,
      'application/json',
      '{"object":"price_list","currency":"USD","updated_at":"2026-11-21T00:00:00Z","models":[{"id":"x","kind":"text","prices":{"input":1}}]}',
    ],
    ['an older list', /an older list/, 200, 'application/json', old],
  ];
  for (const [name, reason, code, type, body] of bad) {
    server.intercept = (request, response) => {
      if (request.url !== '/prices.json') return false;
      response.writeHead(code, { 'content-type': type, 'cache-control': 'no-store' }).end(body);
      return true;
    };
    await page.clock.runFor(30_500);
    await until(async () => reason.test((await stale(page)) ?? ''), `${name} is warned of`);
    assert.match((await stale(page)) ?? '', /out of date since 12:0\d:\d\d UTC/, name);
    assert.equal(await page.locator('#rows').innerHTML(), rows, name);
    server.intercept = () => false;
    await page.getByRole('button', { name: 'Try now' }).click();
    await until(async () => (await stale(page)) === '', `${name}: recovered`);
  }
  assert.ok((await layoutShift(page)) < 0.02, `layout shift ${await layoutShift(page)}`);
  assert.deepEqual(
    complaints.filter((text) => !text.includes('500')),
    [],
  );
});

test('an answer that never comes is given up after ten seconds, and asked for again later', options, async () => {
  await using opened = await open();
  const { page, server } = opened;
  let closed = 0;
  server.intercept = (request, response) => {
    if (request.url !== '/prices.json') return false;
    response.on('close', () => {
      closed += 1;
    });
    return true;
  };
  await page.clock.runFor(30_500);
  await until(() => asked(server) === 1, 'asked');
  await page.clock.runFor(9_000);
  assert.equal(await stale(page), '');
  await page.clock.runFor(1_500);
  await until(async () => /no answer within 10 seconds/.test((await stale(page)) ?? ''), 'given up');
  await until(() => closed === 1, 'the request is aborted');
  assert.equal(asked(server), 1, 'never two at once');
  server.intercept = () => false;
  await page.clock.runFor(30_500);
  await until(async () => (await stale(page)) === '', 'recovered by itself');
});

test('sorts exactly, keeps the order over a refresh, and filters', options, async () => {
  await using opened = await open();
  const { page, setList } = opened;
  const ids = () => page.locator('#rows tr:not([hidden]) .id').allTextContents();
  const output = page.getByRole('button', { name: 'Output', exact: true });
  await output.click();
  assert.deepEqual((await ids()).slice(0, 3), ['deepseek-v4', 'gpt-5-mini', 'claude-haiku-4-5']);
  await output.click();
  assert.deepEqual((await ids()).slice(0, 2), ['o3-pro', 'claude-opus-4-8']);
  assert.deepEqual((await ids()).slice(-2), ['text-embedding-3-small', 'seedance-2'], 'without a price: last');
  assert.equal(await page.locator('th[aria-sort="descending"]').count(), 1);
  await page.getByRole('searchbox', { name: 'Filter' }).fill('GPT text');
  assert.deepEqual(await ids(), ['gpt-5.5', 'gpt-5-mini']);
  assert.equal(await page.locator('#shown').textContent(), '2 of 10 models');
  setList({
    ...changed,
    models: [{ id: 'gpt-9', kind: 'text', prices: { output: '99999999999999999999.1' } }, ...changed.models],
  });
  await page.clock.runFor(30_500);
  await until(async () => (await ids())[0] === 'gpt-9', 'refreshed in the same order and filter');
  assert.deepEqual(await ids(), ['gpt-9', 'gpt-5.5', 'gpt-5-mini']);
  await page.getByRole('searchbox', { name: 'Filter' }).fill('no such thing');
  assert.equal(await page.locator('#empty').textContent(), 'No model matches.');
});

test(
  'a refresh offers the models that are priced now, and keeps the one that was chosen while there is one',
  options,
  async () => {
    await using opened = await open();
    const { page, setList } = opened;
    const named = async () => new Set(await page.locator('.model').allTextContents());
    await page.locator('#model').selectOption('claude-haiku-4-5');
    setList(changed);
    await page.clock.runFor(31_000);
    await page.locator('#model option', { hasText: 'fresh-model' }).waitFor({ state: 'attached' });
    assert.equal(await page.locator('#model').inputValue(), 'claude-haiku-4-5');
    const left = changed.models.filter(({ id }) => id !== 'claude-haiku-4-5');
    setList({ ...changed, updatedAt: '2026-11-20T12:00:20.000Z', models: left });
    await page.clock.runFor(31_000);
    await until(
      async () => (await page.locator('#model').inputValue()) === 'fresh-model',
      'the first of the models that are left',
    );
    assert.deepEqual(await named(), new Set(['fresh-model']));
  },
);

test('the examples follow protocol, language and model; copying is seen and heard', options, async () => {
  await using opened = await open(SAMPLE, { permissions: ['clipboard-read', 'clipboard-write'] });
  const { page, server } = opened;
  await page.getByText('Chat completions', { exact: true }).click();
  await page.locator('#model').selectOption('claude-haiku-4-5');
  const copy = page.getByRole('button', { name: 'Copy Chat completions, curl' });
  assert.equal(await page.locator('.example:visible').count(), 1);
  await copy.click();
  const text = await page.evaluate<string>('navigator.clipboard.readText()');
  assert.ok(text.startsWith(`curl ${server.origin}/v1/chat/completions \\\n`), text);
  assert.ok(text.includes('"model": "claude-haiku-4-5"'));
  assert.equal(await page.locator('#spoken').textContent(), 'Copied Chat completions, curl.');
  assert.ok(await page.getByRole('button', { name: 'Copied Chat completions, curl' }).isVisible());
  await page.clock.runFor(2_100);
  assert.ok(await copy.isVisible());
  await page.getByRole('button', { name: 'Copy the base URL' }).click();
  assert.equal(await page.evaluate<string>('navigator.clipboard.readText()'), server.origin);
});

test('copying falls back where there is no clipboard, and says so where nothing works', options, async () => {
  await using opened = await open();
  const { page } = opened;
  await page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })");
  await page.getByRole('button', { name: 'Copy the base URL' }).click();
  await until(async () => (await page.locator('#spoken').textContent()) === 'Copied the base URL.', 'copied by selection');
  await page.evaluate('document.execCommand = () => false');
  await page.clock.runFor(2_100);
  await page.getByRole('button', { name: 'Copy the base URL' }).click();
  await until(async () => /Not copied/.test((await page.locator('#spoken').textContent()) ?? ''), 'said');
});

async function reasonAt(page: Page) {
  const frame = page.frames().at(-1) ?? page.mainFrame();
  await frame.waitForFunction("document.getElementById('copy-reason').textContent !== ''");
  assert.equal(await frame.locator('.copy:not([disabled])').count(), 0, 'every copy button is disabled');
  assert.equal(await frame.locator('.copy').first().getAttribute('aria-describedby'), 'copy-reason');
  return frame.locator('#copy-reason').textContent();
}

test(
  'copying is off, with the reason, in a frame and in an opaque origin; a configured base URL is always safe',
  options,
  async () => {
    await using server = await servePages({ prices: () => SAMPLE });
    await using configured = await servePages({ prices: () => SAMPLE, publicBaseUrl: 'https://gateway.example.com' });
    const context = await browser.newContext();
    // The policy would keep every frame out; here it is taken away, as an old proxy might.
    await context.route('**/*', async (route) => {
      if (new URL(route.request().url()).pathname === '/outer') {
        const source = new URL(route.request().url()).searchParams.get('page') ?? '';
        return route.fulfill({ contentType: 'text/html', body: `<iframe ${source} width=800 height=600></iframe>` });
      }
      const answer = await route.fetch();
      const { 'content-security-policy': _policy, 'x-frame-options': _frame, ...headers } = answer.headers();
      return route.fulfill({
        response: answer,
        headers: { ...headers, 'access-control-allow-origin': '*', 'cross-origin-resource-policy': 'cross-origin' },
      });
    });
    const page = await context.newPage();
    const outer = (attributes: string) => `${server.origin}/outer?page=${encodeURIComponent(attributes)}`;
    await page.goto(outer('src="/"'));
    assert.match((await reasonAt(page)) ?? '', /inside a frame/);
    await page.goto(outer('src="/" sandbox="allow-scripts"'));
    assert.match((await reasonAt(page)) ?? '', /no origin of its own/);
    await page.goto(outer(`src="${configured.origin}/"`));
    const frame = page.frames().at(-1) ?? page.mainFrame();
    await frame.waitForSelector('.copy:not([disabled])');
    assert.equal(await frame.locator('.address .base').textContent(), 'https://gateway.example.com');
    await context.close();
  },
);

test('the real policy keeps the page out of frames', options, async () => {
  await using server = await servePages({ prices: () => SAMPLE });
  server.intercept = (request, response) => {
    if (request.url !== '/outer') return false;
    response.writeHead(200, { 'content-type': 'text/html' }).end('<iframe src="/"></iframe>');
    return true;
  };
  const page = await browser.newPage();
  await page.goto(`${server.origin}/outer`);
  await page.waitForLoadState('load');
  assert.equal(await page.frames().at(-1)?.locator('.carousel').count(), 0);
  await page.close();
});

test('the carousel: rotation, hover, focus, hidden page, labels, live region', options, async () => {
  await using opened = await open(SAMPLE, { reducedMotion: 'no-preference' });
  const { page } = opened;
  const current = () => page.locator('.slide.current .id').textContent();
  const live = () => page.locator('#slides').getAttribute('aria-live');
  const rotation = page.locator('#rotation');
  assert.deepEqual([await rotation.textContent(), await live()], ['Stop rotation', 'off']);
  await page.clock.runFor(6_100);
  assert.equal(await current(), 'gpt-5-mini');
  await page.locator('#slides').hover();
  await page.clock.runFor(20_000);
  assert.equal(await current(), 'gpt-5-mini', 'held by hover');
  await page.mouse.move(0, 0);
  await page.clock.runFor(6_100);
  assert.equal(await current(), 'claude-opus-4-8');
  await setVisible(page, false);
  await page.clock.runFor(20_000);
  await setVisible(page, true);
  assert.equal(await current(), 'claude-opus-4-8', 'held while hidden');
  await page.getByRole('button', { name: 'Copy the base URL' }).focus();
  await page.keyboard.press('Tab');
  assert.equal(await page.evaluate<string>('document.activeElement.id'), 'rotation', 'the control comes first');
  assert.deepEqual([await rotation.textContent(), await live()], ['Start rotation', 'polite'], 'stopped by focus');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  assert.equal(await current(), 'gpt-5-mini');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Space');
  assert.equal(await current(), 'claude-opus-4-8');
  await page.locator('h1').click();
  await page.clock.runFor(20_000);
  assert.equal(await current(), 'claude-opus-4-8', 'focus gone: it does not start by itself');
  await rotation.click();
  await page.mouse.move(0, 0);
  assert.deepEqual([await rotation.textContent(), await live()], ['Stop rotation', 'off']);
  await page.clock.runFor(6_100);
  assert.equal(await current(), 'claude-haiku-4-5');
  const slide = page.locator('.slide').nth(3);
  assert.deepEqual(
    [await slide.getAttribute('role'), await slide.getAttribute('aria-roledescription'), await slide.getAttribute('aria-label')],
    ['group', 'slide', '4 of 8'],
  );
});

test('with reduced motion the carousel starts still', options, async () => {
  await using opened = await open();
  const { page } = opened;
  assert.equal(await page.locator('#rotation').textContent(), 'Start rotation');
  assert.equal(await page.locator('#slides').getAttribute('aria-live'), 'polite');
  await page.clock.runFor(29_000);
  assert.equal(await page.locator('.slide.current .id').textContent(), 'gpt-5.5');
});

test('everything can be reached and used with the keyboard alone, in order, and focus is seen', options, async () => {
  await using opened = await open();
  const { page } = opened;
  const order: string[] = [];
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate<{ name: string; outlined: boolean } | null>(`(() => {
      const element = document.activeElement;
      if (element === document.body) return null;
      const target = element.type === 'radio' ? element.parentElement : element;
      const style = getComputedStyle(target);
      return { name: element.id || element.value || element.textContent.trim(), outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 };
    })()`);
    if (stop === null) break;
    assert.ok(stop.outlined, `focus on ${stop.name} is seen`);
    order.push(stop.name);
  }
  const expected = ['Skip to the prices', 'rotation', 'filter', 'pause', 'Model', 'Output', 'responses', 'curl', 'model'];
  let last = -1;
  for (const name of expected) {
    const at = order.indexOf(name);
    assert.ok(at > last, `${name} follows in ${order.join(' | ')}`);
    last = at;
  }
  await page.locator('[value="responses"]').focus();
  await page.keyboard.press('ArrowRight');
  assert.ok(await page.getByRole('button', { name: 'Copy Chat completions, curl' }).isVisible());
});

test('reflow: at 320 px, and at 1280 px with 200% zoom and text, nothing scrolls sideways', options, async () => {
  for (const list of [SAMPLE, HOSTILE, LONG]) {
    for (const viewport of [
      { width: 320, height: 640 },
      { width: 640, height: 450 },
    ]) {
      await using opened = await open(list, { viewport, deviceScaleFactor: viewport.width === 640 ? 2 : 1 });
      const { page } = opened;
      const wide = () => page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
      assert.equal(await wide(), 0, `${viewport.width} px`);
      const cut = await page.evaluate<string[]>(
        "[...document.querySelectorAll('#rows td, #rows th, .slide.current dd')].filter((box) => box.scrollWidth > box.clientWidth + 1).map((box) => box.textContent)",
      );
      assert.deepEqual(cut, [], `${viewport.width} px: cut`);
    }
  }
});

test('a name that is written from right to left stays before its kind', options, async () => {
  const models = ['\u202Eturned', 'מודל-2'].map((id) => ({ id, kind: 'text', prices: { input: '1' } }) as const);
  await using opened = await open({ ...SAMPLE, models });
  const gaps = await opened.page.evaluate<number[]>(
    "[...document.querySelectorAll('#rows .id')].map((id) => id.nextElementSibling.getBoundingClientRect().left - id.getBoundingClientRect().right)",
  );
  assert.equal(gaps.length, 2);
  for (const gap of gaps) assert.ok(gap > 0, `${gap} px`);
});

test('a model name full of markup stays a name', options, async () => {
  await using opened = await open(HOSTILE);
  const { page, complaints, setList } = opened;
  assert.equal(await page.locator('#rows .id').first().textContent(), HOSTILE_NAME);
  setList({ ...HOSTILE, updatedAt: '2026-11-20T12:00:10.000Z', models: [...HOSTILE.models].reverse() });
  await page.clock.runFor(30_500);
  await until(async () => (await page.locator('#rows .id').last().textContent()) === HOSTILE_NAME, 'redrawn');
  assert.equal(await page.locator('#rows img, #rows script, #rows b b').count(), 0);
  assert.equal(await page.title(), 'Mizu: one address for every model');
  assert.deepEqual(complaints, []);
});

test('no models, and five hundred', options, async () => {
  await using none = await open(EMPTY);
  assert.ok(await none.page.getByText('no priced models yet').isVisible());
  assert.deepEqual(none.complaints, []);
  none.setList({ ...many(500), updatedAt: '2026-11-20T12:00:10.000Z' });
  await none.page.clock.runFor(30_500);
  await until(async () => (await none.page.locator('#rows tr').count()) === 500, 'all are shown');
  await none.page.getByRole('searchbox', { name: 'Filter' }).fill('model-499');
  assert.equal(await none.page.locator('#rows tr:visible').count(), 1);
});

test('axe finds nothing, light or dark, wide or narrow, fresh or stale', options, async () => {
  // Axe waits for timers of the page.
  await using opened = await open(SAMPLE, {}, 'flows');
  const { page, server } = opened;
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme });
    for (const width of [1280, 360]) {
      await page.setViewportSize({ width, height: 800 });
      assert.deepEqual(await findings(page), [], `${colorScheme} ${width}`);
    }
    server.intercept = (request, response) => {
      if (request.url !== '/prices.json') return false;
      response.writeHead(503).end();
      return true;
    };
    await page.clock.runFor(30_500);
    await until(async () => (await stale(page)) !== '', 'stale');
    assert.deepEqual(await findings(page), [], `${colorScheme} stale`);
    server.intercept = () => false;
    await page.getByRole('button', { name: 'Try now' }).click();
    await until(async () => (await stale(page)) === '', 'recovered');
  }
});
