/**
 * Makes the pictures of this folder: `node docs/images/make.ts`, with Chromium at /usr/bin/chromium. Those of the console show a generated day
 * (`test/support/pages/console-day.ts`).
 */
import { launch } from '../../test/support/pages/browser.ts';
import { consoleDay, PLAIN } from '../../test/support/pages/console-day.ts';
import { SAMPLE } from '../../test/support/pages/sample-prices.ts';
import { servePages } from '../../test/support/pages/serve-pages.ts';

const PICTURES = [
  { name: 'home-light', path: '/', colorScheme: 'light', width: 1440, height: 1420 },
  { name: 'home-dark', path: '/', colorScheme: 'dark', width: 1440, height: 1420 },
  { name: 'home-narrow', path: '/', colorScheme: 'light', width: 360, height: 1500 },
  { name: 'apidocs-light', path: '/apidocs', colorScheme: 'light', width: 1440, height: 1100 },
] as const;

const server = await servePages({ prices: () => SAMPLE, publicBaseUrl: 'https://gateway.example.com' });
const browser = await launch();
for (const { name, path, colorScheme, width, height } of PICTURES) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme, reducedMotion: 'reduce' });
  await page.clock.setFixedTime(new Date('2026-11-20T12:03:10Z'));
  await page.goto(`${server.origin}${path}`);
  await page.waitForSelector('.copy:not([disabled])');
  await page.screenshot({ path: `docs/images/${name}.png` });
  await page.close();
}
const ends: (() => unknown)[] = [];
const day = await consoleDay({ after: (end: () => unknown) => void ends.push(end) }, {}, { world: PLAIN });
const retried = (await day.store.requestLog.list({ status: 'success', limit: 500 })).find(({ attempts }) => attempts.length > 1);
const CONSOLE = [
  { name: 'console-overview', view: 'overview', colorScheme: 'light', width: 1440, height: 900 },
  { name: 'console-exchange', view: `exchange/${retried?.exchangeId}`, colorScheme: 'light', width: 1440, height: 900 },
  { name: 'console-channels', view: 'channels', colorScheme: 'dark', width: 1440, height: 620 },
  { name: 'console-narrow', view: 'overview', colorScheme: 'dark', width: 360, height: 900 },
] as const;
for (const { name, view, colorScheme, width, height } of CONSOLE) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme, reducedMotion: 'reduce' });
  await page.goto(`${day.origin}/console#/${view}`);
  await page.fill('#token', day.tokens.write);
  await page.press('#token', 'Enter');
  await page.waitForSelector('#view h1');
  await page.waitForTimeout(500);
  await page.screenshot({ path: `docs/images/${name}.png` });
  await page.close();
}
for (const end of ends.reverse()) await end();
await browser.close();
await server[Symbol.asyncDispose]();
