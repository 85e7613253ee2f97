/**
 * Debian's Chromium for the tests of the pages, driven by playwright-core. Where it is not installed the tests skip and say so.
 */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';

const CHROMIUM = '/usr/bin/chromium';

/** For `test(name, { skip })`. */
export const skip = existsSync(CHROMIUM) ? false : `browser tests need Chromium at ${CHROMIUM} (apt-get install chromium)`;
if (skip !== false) console.log(`skipped: ${skip}`);

/** A fresh profile each time; nothing but what a test asks for goes over the network. */
export function launch(): Promise<Browser> {
  return chromium.launch({
    executablePath: CHROMIUM,
    args: [
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

export interface Visit extends AsyncDisposable {
  readonly page: Page;
  /** Errors of the console and of scripts, violations of the policy, as they happened. */
  readonly complaints: string[];
  /** Every URL that the page asked for. */
  readonly urls: string[];
}

/**
 * Opens `url` with the clock under the test's hand. Where time `stands`, the page's passes by `runFor` alone, however slow the
 * machine is.
 */
export async function visit(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
  time: 'flows' | 'stands' = 'flows',
): Promise<Visit> {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  const urls: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('request', (request) => urls.push(request.url()));
  await page.exposeFunction('complainOfPolicy', (text: string) => complaints.push(text));
  await page.addInitScript(
    'addEventListener("securitypolicyviolation", (event) => complainOfPolicy("policy: " + event.violatedDirective + " " + event.blockedURI));' +
      'self.shifts = []; new PerformanceObserver((list) => { for (const entry of list.getEntries()) if (!entry.hadRecentInput) shifts.push(entry.value); })' +
      '.observe({ type: "layout-shift", buffered: true });',
  );
  const start = new Date('2026-11-20T12:00:00Z');
  if (time === 'stands') {
    // It flows until it is stopped, and goes to no time that has passed.
    await page.clock.install({ time: start.getTime() - 3_600_000 });
    await page.clock.pauseAt(start);
  } else await page.clock.install({ time: start });
  await page.goto(url);
  return {
    page,
    complaints,
    urls,
    async [Symbol.asyncDispose]() {
      await context.close();
    },
  };
}

/** Makes the page believe that it is hidden or seen. */
export async function setVisible(page: Page, visible: boolean): Promise<void> {
  await page.evaluate(
    `Object.defineProperty(document, 'visibilityState', { configurable: true, get: () => '${visible ? 'visible' : 'hidden'}' });` +
      "document.dispatchEvent(new Event('visibilitychange'));",
  );
}

/** The sum of the shifts that no input of the reader caused. */
export function layoutShift(page: Page): Promise<number> {
  return page.evaluate<number>('shifts.reduce((sum, value) => sum + value, 0)');
}
