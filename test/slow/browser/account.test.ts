/**
 * The account page in a real browser: the key stays in the tab, figures are exact, refusals are said, nothing of a name is
 * markup.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { findings } from '../../support/pages/axe.ts';
import { launch, skip, visit } from '../../support/pages/browser.ts';
import { SAMPLE } from '../../support/pages/sample-prices.ts';
import { answerUsage, SAMPLE_KEY } from '../../support/pages/sample-usage.ts';
import { servePages } from '../../support/pages/serve-pages.ts';

let browser: Browser;
before(async () => {
  if (skip === false) browser = await launch();
});
after(() => browser?.close());

const options = { skip, timeout: 90_000 };

async function open(context: BrowserContextOptions = {}) {
  const server = await servePages({ prices: () => SAMPLE });
  const state: { problem?: number } = {};
  server.intercept = (request, response) => answerUsage(request, response, state.problem);
  const visited = await visit(browser, `${server.origin}/account`, context);
  return {
    ...visited,
    server,
    state,
    async [Symbol.asyncDispose]() {
      await visited[Symbol.asyncDispose]();
      await server[Symbol.asyncDispose]();
    },
  };
}

async function signIn(page: Page, key = SAMPLE_KEY): Promise<void> {
  await page.fill('#key', key);
  await page.press('#key', 'Enter');
}

async function rows(page: Page, count: number): Promise<void> {
  await page.locator(`#times tr:first-child:nth-last-child(${count})`).waitFor();
}

test('nothing is asked before a key is given, and the key goes nowhere but to the gateway', options, async () => {
  await using opened = await open();
  const { page, server, urls, complaints } = opened;
  for (const url of urls) assert.match(url, new RegExp(`^${server.origin}/(?:account|assets/|favicon\\.ico$)`));
  await signIn(page);
  await page.waitForSelector('#usage:not([hidden])');
  assert.equal(await page.locator('#balance').textContent(), '$873.25');
  assert.equal(await page.evaluate<string>('document.activeElement.id'), 'usage');
  assert.ok(urls.every((url) => !url.includes(SAMPLE_KEY)));
  const kept = await page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
  assert.equal(kept, '[{},{},""]');
  assert.deepEqual(complaints, []);
  await page.click('#forget');
  assert.equal(await page.inputValue('#key'), '');
  assert.equal(await page.locator('#usage').isHidden(), true);
  await page.reload();
  assert.equal(await page.locator('#usage').isHidden(), true);
});

test('the sums are exact, by day, by hour and by model', options, async () => {
  await using opened = await open();
  const { page, complaints } = opened;
  await signIn(page);
  await page.waitForSelector('#usage:not([hidden])');
  // Seven days: 1 to 5 dollars and 1 and 2 again, with 7 thousandths and a billionth for each.
  assert.match((await page.locator('#sums').textContent()) ?? '', /\$18\.126000007.*Requests298/s);
  assert.deepEqual(await page.locator('#models th').allTextContents(), [
    'claude-sonnet-5',
    '<img src=x onerror=alert(1)>',
    'a-model-with-a-name-that-is-much-longer-than-any-column',
    '(refused)',
  ]);
  assert.equal(await page.locator('#times tr').count(), 7);
  await page.check('[name="period"][value="1"]', { force: true });
  await rows(page, 4);
  assert.equal(await page.locator('#times th').first().textContent(), '11:00');
  assert.equal(await page.locator('#plot i').count(), 24);
  await page.check('[name="period"][value="30"]', { force: true });
  await rows(page, 30);
  assert.equal(await page.locator('main img').count(), 0);
  assert.deepEqual(complaints, []);
});

test('a refusal is said in words, and an away gateway keeps what was shown', options, async () => {
  await using opened = await open();
  const { page, state, server } = opened;
  await signIn(page, 'sk-wrong');
  await page.locator('#problem', { hasText: 'does not know that key' }).waitFor();
  await signIn(page);
  await page.waitForSelector('#usage:not([hidden])');
  state.problem = 503;
  await page.click('#again');
  await page.locator('#problem', { hasText: 'HTTP 503 (request req_sample)' }).waitFor();
  assert.equal(await page.locator('#usage').isVisible(), true);
  server.intercept = (request) => {
    request.socket.destroy();
    return true;
  };
  await page.click('#again');
  await page.locator('#problem', { hasText: 'cannot be reached' }).waitFor();
});

for (const width of [360, 768, 1440])
  for (const colorScheme of ['light', 'dark'] as const) {
    test(`axe finds nothing, and nothing overflows: ${width} px, ${colorScheme}`, options, async () => {
      await using opened = await open({ viewport: { width, height: 900 }, colorScheme });
      const { page } = opened;
      assert.deepEqual(await findings(page), []);
      await signIn(page);
      await page.waitForSelector('#usage:not([hidden])');
      assert.deepEqual(await findings(page), []);
      const [seen, whole] = await page.evaluate<[number, number]>(
        '[document.documentElement.clientWidth, document.documentElement.scrollWidth]',
      );
      assert.equal(whole, seen);
    });
  }
