/** Makes the pictures of this folder: `node docs/images/make.ts`, with Chromium at /usr/bin/chromium. */
import { launch } from '../../test/support/pages/browser.ts';
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
await browser.close();
await server[Symbol.asyncDispose]();
