/** The API docs in a real browser: search, deep links, languages, copying, reflow, accessibility. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { findings } from '../../support/pages/axe.ts';
import { launch, layoutShift, skip, visit } from '../../support/pages/browser.ts';
import { SAMPLE } from '../../support/pages/sample-prices.ts';
import { servePages } from '../../support/pages/serve-pages.ts';

let browser: Browser;
before(async () => {
  if (skip === false) browser = await launch();
});
after(() => browser?.close());

const options = { skip, timeout: 90_000 };

async function open(hash = '', context: BrowserContextOptions = {}) {
  const server = await servePages({ prices: () => SAMPLE });
  const visited = await visit(browser, `${server.origin}/apidocs${hash}`, context);
  await visited.page.waitForSelector('.copy:not([disabled])', { state: 'attached' });
  return {
    ...visited,
    server,
    async [Symbol.asyncDispose]() {
      await visited[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

test('only its own assets, no complaints, no shift', options, async () => {
  await using opened = await open();
  const { page, urls, complaints, server } = opened;
  for (const url of urls) assert.match(url, new RegExp(`^${server.origin}/(?:apidocs$|assets/|favicon\\.ico$)`));
  assert.deepEqual(complaints, []);
  assert.ok((await layoutShift(page)) < 0.01, `layout shift ${await layoutShift(page)}`);
});

test('search hides what does not match; a deep link into the hidden ends it', options, async () => {
  await using opened = await open();
  const { page } = opened;
  await page.getByRole('searchbox').fill('idempotency-key');
  assert.ok(await page.locator('#create-video').isVisible());
  assert.ok(!(await page.locator('#create-response').isVisible()));
  assert.match((await page.locator('#found').textContent()) ?? '', /^\d+ of \d+ entries$/);
  await page.getByRole('navigation', { name: 'Contents' }).getByRole('link', { name: 'Create a message' }).click();
  assert.ok(await page.locator('#create-message').isVisible());
  assert.equal(await page.getByRole('searchbox').inputValue(), '');
  await page.getByRole('searchbox').fill('zzz nothing');
  assert.ok(await page.getByText('Nothing matches.').isVisible());
});

test('a deep link shows its heading below the bar that stays', options, async () => {
  await using opened = await open('#edit-image');
  const { page } = opened;
  const heading = await page.locator('#edit-image h3').boundingBox();
  const bar = await page.locator('.language').boundingBox();
  assert.ok(
    heading !== null && bar !== null && heading.y >= bar.y + bar.height - 1 && heading.y < 400,
    JSON.stringify({ heading, bar }),
  );
});

test('one language at a time, remembered on the next visit; copying gives the text that is seen', options, async () => {
  await using opened = await open('', { permissions: ['clipboard-read', 'clipboard-write'] });
  const { page, server } = opened;
  await page.getByText('Go', { exact: true }).click();
  const block = page.locator('#create-message .example:visible');
  assert.equal(await block.count(), 1);
  await block.getByRole('button').click();
  const text = await page.evaluate<string>('navigator.clipboard.readText()');
  assert.ok(text.startsWith('package main\n') && text.includes(`"${server.origin}/v1/messages"`), text);
  await page.reload();
  assert.ok(await page.locator('#create-message [data-language="go"]').isVisible());
  assert.ok(await page.locator('#codex .example').first().isVisible(), 'agents have no language');
});

test('reflow at 320 px and at 200% zoom; axe finds nothing in either scheme', options, async () => {
  await using opened = await open();
  const { page } = opened;
  for (const [colorScheme, width] of [
    ['light', 1280],
    ['dark', 320],
    ['light', 640],
  ] as const) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 800 });
    const sideways = await page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');
    assert.equal(sideways, 0, `${width} px`);
    if (width !== 640) assert.deepEqual(await findings(page), [], `${colorScheme} ${width}`);
  }
});
