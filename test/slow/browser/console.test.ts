/**
 * The console in a real browser, on a real gateway with a day behind it: what operators do, what they see, and what is not
 * theirs.
 */
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import type { AdminRole } from '../../../src/store/admin-tokens.ts';
import { findings } from '../../support/pages/axe.ts';
import { launch, skip, type Visit, visit } from '../../support/pages/browser.ts';
import { adminGateway } from '../../admin/admin-gateway.ts';
import { openStore, realClock } from '../../store/support/store.ts';
import { type ConsoleDay, consoleDay, MARKUP } from '../../support/pages/console-day.ts';

const options = { skip, timeout: 120_000 };
const ends: (() => unknown)[] = [];
let browser: Browser;
let day: ConsoleDay;
before(async () => {
  if (skip !== false) return;
  browser = await launch();
  day = await consoleDay({ after: (end: () => unknown) => void ends.push(end) } as Pick<TestContext, 'after'>);
});
after(async () => {
  await browser?.close();
  for (const end of ends.reverse()) await end();
});

async function signedIn(
  role: AdminRole,
  view: string,
  context: BrowserContextOptions = {},
  on: Pick<ConsoleDay, 'origin' | 'tokens'> = day,
): Promise<Visit> {
  const visited = await visit(browser, `${on.origin}/console#/${view}`, context);
  const { page } = visited;
  await page.fill('#token', on.tokens[role]);
  await page.press('#token', 'Enter');
  await page.waitForSelector('#view h1');
  return visited;
}

async function go(page: Page, view: string): Promise<void> {
  const change = `document.querySelector('#view').replaceChildren(); location.hash = '#/${view}'`;
  await page.evaluate(`if (location.hash !== '#/${view}') { ${change} }`);
  await page.waitForSelector('#view h1');
}

/** Browsers complain of every 401, 503 and lost connection by themselves. */
const own = (complaints: readonly string[]) => complaints.filter((text) => !/Failed to load resource/.test(text));

test(
  'a token opens the console; it is in no address, no storage and no script’s cookie, and a wrong one is refused',
  options,
  async () => {
    await using opened = await visit(browser, `${day.origin}/console#/accounts`);
    const { page, urls, complaints } = opened;
    await page.fill('#token', 'mizu-admin-wrong');
    await page.press('#token', 'Enter');
    await page.locator('#problem', { hasText: 'no admin token' }).waitFor();
    assert.equal(await page.locator('#views').isHidden(), true);
    await page.fill('#token', day.tokens.write);
    await page.press('#token', 'Enter');
    await page.locator('h1', { hasText: 'Accounts' }).waitFor();
    assert.equal(await page.evaluate<string>('document.activeElement.tagName'), 'H1', 'whoever does not see hears where he is');
    assert.ok(urls.every((url) => url.startsWith(`${day.origin}/`) && !url.includes(day.tokens.write)));
    const kept = await page.evaluate<string>('JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])');
    assert.equal(kept, '[{},{},""]');
    assert.equal(await page.inputValue('#token'), '');
    await page.reload();
    await page.locator('h1', { hasText: 'Accounts' }).waitFor();
    await page.click('#sign-out');
    await page.waitForSelector('#sign-in:not([hidden])');
    assert.equal(await page.locator('#view').textContent(), '');
    await page.reload();
    await page.waitForSelector('#sign-in:not([hidden])');
    assert.deepEqual(own(complaints), []);
  },
);

const VIEWS = [
  'overview',
  'attention',
  'exchanges',
  'live',
  'accounts',
  'keys',
  'channels',
  'prices',
  'videos',
  'ledger',
  'gateway',
];

async function detailViews(): Promise<string[]> {
  const [account, key] = [(await day.store.accounts.list())[2], (await day.store.keys.list())[1]];
  const [failed] = await day.store.requestLog.list({ status: 'error', limit: 1 });
  return [`account/${account?.id}`, `key/${key?.id}`, `exchange/${failed?.exchangeId}`];
}

test('names full of markup are text in every view', options, async () => {
  await using opened = await signedIn('write', 'overview');
  const { page, complaints } = opened;
  // What an operator may write: the name of a token, and why.
  const change = async (path: string, body: object) => {
    const { status, text } = await day.ask(path, { body: { ...body, reason: `why ${MARKUP}` } });
    assert.ok(status < 300, `${path} ${text}`);
  };
  await change('tokens', { name: `token ${MARKUP}`, role: 'read' });
  await change('channels/openai-spare/out-of-service', {});
  let seen = 0;
  for (const view of [...VIEWS, ...(await detailViews())]) {
    await go(page, view);
    if (((await page.locator('#view').textContent()) ?? '').includes(MARKUP)) seen += 1;
    assert.equal(await page.locator('#view img, #view script').count(), 0, view);
  }
  await change('channels/openai-spare/in-service', {});
  assert.ok(seen >= 11, `${seen} views show such a name`);
  assert.deepEqual(own(complaints), []);
});

test('a read token sees every view and no writing control', options, async () => {
  await using opened = await signedIn('read', 'overview');
  const { page } = opened;
  const writing = /^(New|Back|Credit|Change|Disable|Enable|Rotate|Transfer|Delete|Test|Take|Put|Resolve|Reload|Create)/;
  for (const view of [...VIEWS, ...(await detailViews())]) {
    await go(page, view);
    const names = await page.locator('#view button').allTextContents();
    assert.deepEqual(
      names.filter((name) => writing.test(name)),
      [],
      view,
    );
  }
});

test('an account is made, credited and limited, and its key shown once; who and why stand in the journal', options, async () => {
  await using opened = await signedIn('write', 'accounts');
  const { page, complaints } = opened;
  const dialog = page.locator('dialog');
  await page.click('#new-account');
  assert.doesNotMatch(await dialog.innerText(), /\b(?:true|false|undefined|null)\b/);
  await dialog.locator('[name=name]').fill('new-team');
  await dialog.locator('[name=credit]').fill('ten');
  await dialog.locator('button[type=submit]').click();
  await dialog.locator('.reason', { hasText: 'credit' }).waitFor();
  assert.equal(await dialog.locator('[name=credit]').getAttribute('aria-invalid'), 'true');
  await dialog.locator('[name=credit]').fill('10');
  await dialog.locator('[name=requestsPerMinute]').fill('60');
  await dialog.locator('[name=reason]').fill('ticket 7');
  await dialog.locator('button[type=submit]').click();
  await page.locator('h1', { hasText: 'new-team' }).waitFor();
  await page.locator('.facts', { hasText: '$10.00' }).waitFor();
  await page.click('#credit');
  await dialog.locator('[name=amount]').fill('2.5');
  await dialog.locator('button[type=submit]').click();
  await page.locator('.facts', { hasText: '$12.50' }).waitFor();

  await page.click('#new-key');
  await dialog.locator('[name=name]').fill('ci');
  await dialog.locator('[name=daily]').fill('1');
  await dialog.locator('button[type=submit]').click();
  const secret = (await dialog.locator('.secret').textContent()) ?? '';
  assert.match(secret, /^sk-mizu-[\w-]{43}$/);
  await page.keyboard.press('Escape');
  assert.equal(await dialog.locator('.secret').isVisible(), true, 'what is shown once is not lost by a key');
  await dialog.locator('button', { hasText: 'I have kept it' }).click();
  await page.locator('td', { hasText: '$1.00/day' }).waitFor();
  assert.ok(!((await page.content()) ?? '').includes(secret));
  assert.equal((await day.store.keys.authenticate(secret, Date.now())).ok, true);

  await page.click('a:text-is("ci")');
  await page.locator('h1', { hasText: 'ci' }).waitFor();
  await page.click('#toggle');
  await dialog.locator('button[type=submit]').click();
  await page.locator('.tag', { hasText: 'disabled' }).waitFor();
  assert.equal((await day.store.keys.authenticate(secret, Date.now())).ok, false);
  await go(page, 'ledger');
  const row = page.locator('tr', { hasText: 'ticket 7' }).filter({ hasText: 'account created' });
  assert.match((await row.textContent()) ?? '', /account created.*admin:writer/);
  assert.deepEqual(own(complaints), []);
});

test('a name that turns the direction of its words is shown with what turns it', options, async () => {
  const account = await day.store.accounts.create({ name: 'x\u202eevil' }, { id: 'turned', by: 'test' });
  assert.ok(account.ok);
  await using opened = await signedIn('read', 'accounts');
  const { page } = opened;
  await go(page, `account/${account.value.id}`);
  await page.locator('h1', { hasText: 'x\\u202eevil' }).waitFor();
});

test('a change whose answer was lost is sent again and made once', options, async () => {
  await using opened = await signedIn('write', 'accounts');
  const { page } = opened;
  const [account] = await day.store.accounts.list();
  await go(page, `account/${account?.id}`);
  const balance = async () => Number((await day.ask(`accounts/${account?.id}`)).json.balance);
  const before = await balance();
  let isLost = true;
  await page.route('**/credit', async (route) => {
    if (!isLost) return route.continue();
    isLost = false;
    await route.fetch();
    await route.abort();
  });
  await page.click('#credit');
  const dialog = page.locator('dialog');
  await dialog.locator('[name=amount]').fill('1');
  await dialog.locator('button[type=submit]').click();
  await dialog.locator('.reason', { hasText: 'sending it again does it once' }).waitFor();
  await dialog.locator('button[type=submit]').click();
  await dialog.waitFor({ state: 'detached' });
  assert.equal((await balance()).toFixed(6), (before + 1).toFixed(6));
});

test('a Channel is taken out and put back, and tested', options, async () => {
  await using opened = await signedIn('write', 'channels');
  const { page } = opened;
  await page.click('#out-openai-main');
  const dialog = page.locator('dialog');
  await dialog.locator('[name=reason]').fill('it is slow');
  await dialog.locator('button[type=submit]').click();
  const row = page.locator('tr', { hasText: 'openai-main' });
  await row.locator('.tag', { hasText: 'out of service' }).waitFor();
  assert.match((await row.textContent()) ?? '', /by admin:writer since .*: it is slow/);
  await go(page, 'attention');
  await page.locator('.alerts', { hasText: 'openai-main, by admin:writer: it is slow' }).waitFor();
  await go(page, 'channels');
  await page.click('#in-openai-main');
  await dialog.locator('button[type=submit]').click();
  await row.locator('.tag', { hasText: 'in service' }).waitFor();
  await page.click('#test-openai-main');
  await row.locator('small', { hasText: 'Test: fails' }).waitFor();
});

test('what one request cost is explained line by line, with every attempt in the upstream’s words', options, async () => {
  const rows = await day.store.requestLog.list({ status: 'success', limit: 500 });
  const retried = rows.find(({ attempts }) => attempts.length > 1);
  await using opened = await signedIn('read', 'exchanges');
  const { page } = opened;
  await page.fill('#request', retried?.requestId ?? '');
  await page.press('#request', 'Enter');
  await page.locator('h1:text-is("Exchange")').waitFor();
  const amounts = await page.locator('td[data-name=Amount]').allTextContents();
  const nano = (text: string) => Math.round(Number(text.replace(/[$,]/g, '')) * 1e9);
  const sum = amounts.map(nano).reduce((a, b) => a + b, 0);
  assert.equal(sum, nano((await page.locator('.sum .money').textContent()) ?? ''));
  assert.equal(BigInt(sum), retried?.charge?.total);
  assert.equal(await page.locator('.attempts > li').count(), 2);
  assert.match(
    (await page.locator('.attempts pre').first().textContent()) ?? '',
    /"overloaded_error","message":"Overloaded <img/,
  );
  await go(page, 'exchange/req_nowhere');
  await page.locator('.problem', { hasText: 'there is no request req_nowhere' }).waitFor();
});

test('the log is filtered, paged, and says what a filter names in vain', options, async () => {
  await using opened = await signedIn('read', 'exchanges');
  const { page } = opened;
  const rows = page.locator('tbody tr');
  assert.equal(await rows.count(), 100);
  const first = await rows.first().textContent();
  await page.click('a:text-is("Older")');
  await page.locator('a:text-is("Newest")').waitFor();
  assert.notEqual(await rows.first().textContent(), first);
  await page.selectOption('#f-status', 'error');
  await page.waitForURL(/status=error/);
  await page.locator('a:text-is("Newest")').waitFor({ state: 'detached' });
  await page.fill('#f-model', 'gpt-5.2');
  await page.press('#f-model', 'Enter');
  await page.waitForURL(/model=gpt-5\.2/);
  // The address is there before the view begins to load: the rows of before may still stand.
  await page.locator('td[data-name=Model]').filter({ hasNotText: 'gpt-5.2' }).first().waitFor({ state: 'detached' });
  await page.waitForSelector('#view:not([aria-busy])');
  const count = await rows.count();
  assert.ok(count > 0 && count < 40);
  assert.equal(await page.locator('td[data-name=Model]', { hasText: 'gpt-5.2' }).count(), count);
  await page.fill('#f-account', 'nobody');
  await page.press('#f-account', 'Enter');
  await page.locator('[role=alert]', { hasText: 'nobody' }).waitFor();
  await page.click('button:text-is("Clear")');
  await page.locator('a:text-is("Older")').waitFor();
});

test(
  'the live view at 1,000 exchanges a second keeps two hundred rows, and its page is idle most of the time',
  options,
  async (t) => {
    await using opened = await signedIn('read', 'live');
    const { page, complaints } = opened;
    await page.locator('.state', { hasText: 'Waiting' }).waitFor();
    const devtools = await page.context().newCDPSession(page);
    // Processor time of the page's thread, which others on the machine do not lengthen.
    await devtools.send('Performance.enable', { timeDomain: 'threadTicks' });
    const busySeconds = async (): Promise<number> => {
      const { metrics } = await devtools.send('Performance.getMetrics');
      return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? Number.NaN;
    };
    const [startedAtMs, busyBefore] = [performance.now(), await busySeconds()];
    for (let added = 0; added < 5_000; ) {
      const due = Math.floor(performance.now() - startedAtMs) - added;
      if (due > 0) await day.add(due);
      added += due;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    const seconds = (performance.now() - startedAtMs) / 1_000;
    const share = ((await busySeconds()) - busyBefore) / seconds;
    t.diagnostic(`${Math.round(share * 100)} % of a core`);
    assert.ok(share < 0.25, `${share} of a core`);
    await page.locator('.state', { hasText: 'passed over' }).waitFor();
    const shown = await page.locator('tbody tr').count();
    assert.ok(shown > 100 && shown <= 200, `${shown} rows`);
    await page.click('#pause');
    await page.locator('.state', { hasText: 'Paused' }).waitFor();
    const newest = await page.locator('tbody tr').first().textContent();
    await day.add(3);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    assert.equal(await page.locator('tbody tr').first().textContent(), newest);
    assert.deepEqual(own(complaints), []);
  },
);

test('while the gateway or its store is away it says so, keeps what it showed, and comes back by itself', options, async () => {
  await using opened = await signedIn('write', 'accounts');
  const { page, complaints } = opened;
  const banner = page.locator('#banner');
  await page.route('**/admin/v1/**', (route) => route.abort());
  await page.evaluate("location.hash = '#/keys'");
  await banner.locator('p', { hasText: 'does not answer' }).waitFor();
  await page.unroute('**/admin/v1/**');
  await page.locator('h1', { hasText: 'Keys' }).waitFor();
  assert.equal(await banner.isHidden(), true);
  const refusal = {
    status: 503,
    contentType: 'application/json',
    body: '{"error":{"code":"store_unavailable","message":"the store is away"}}',
  };
  await go(page, 'channels');
  await page.route('**/admin/v1/channels', (route) => route.fulfill(refusal));
  await banner.locator('p', { hasText: 'The store is away' }).waitFor({ timeout: 15_000 });
  assert.equal(await page.locator('h1', { hasText: 'Channels' }).isVisible(), true, 'what was shown stays');
  await page.unroute('**/admin/v1/channels');
  await banner.waitFor({ state: 'hidden', timeout: 20_000 });
  await page.route('**/admin/v1/channels', (route) => route.fulfill(refusal));
  await banner.locator('p', { hasText: 'The store is away' }).waitFor({ timeout: 20_000 });
  await page.evaluate("location.hash = '#/exchange/req_nowhere'");
  await page.locator('.problem', { hasText: 'there is no request' }).waitFor();
  assert.equal(await banner.isHidden(), true, 'a refusal is an answer');
  await page.unroute('**/admin/v1/channels');
  // A gateway that started again knows no session.
  await page.context().clearCookies();
  await page.evaluate("location.hash = '#/prices'");
  await page.locator('#problem', { hasText: 'session has ended' }).waitFor();
  await page.fill('#token', day.tokens.read);
  await page.press('#token', 'Enter');
  await page.locator('h1', { hasText: 'Prices' }).waitFor();
  assert.deepEqual(own(complaints), []);
});

test('a gateway that restarts: the console waits, asks for the token again and goes on where one was', options, async (t) => {
  const store = await openStore(t, { clock: realClock });
  const stopped: (() => unknown)[] = [];
  const first = await adminGateway({ after: (end: () => unknown) => void stopped.push(end) }, { store });
  const { port, tokens } = first;
  const on = { origin: `http://127.0.0.1:${port}`, tokens };
  await using opened = await signedIn('read', 'channels', {}, on);
  const { page } = opened;
  for (const end of stopped) await end();
  const banner = page.locator('#banner');
  await banner.locator('p', { hasText: 'does not answer' }).waitFor({ timeout: 20_000 });
  assert.equal(await page.locator('h1', { hasText: 'Channels' }).isVisible(), true);
  await adminGateway(t, { store, tokens, file: { operations: { port } } });
  await page.locator('#problem', { hasText: 'session has ended' }).waitFor({ timeout: 30_000 });
  assert.equal(await banner.isHidden(), true);
  await page.fill('#token', tokens.read);
  await page.press('#token', 'Enter');
  await page.locator('h1', { hasText: 'Channels' }).waitFor();
});

test(
  'a gateway that was upgraded: the files of the older console are gone, and the page loads the new one where one was',
  options,
  async () => {
    await using opened = await signedIn('read', 'accounts');
    const { page } = opened;
    let isOlder = true;
    await page.route('**/assets/keys.*.js', (route) => (isOlder ? route.fulfill({ status: 404, body: '' }) : route.continue()));
    await page.route('**/console', (route) => {
      if (!route.request().isNavigationRequest())
        return route.fulfill({ contentType: 'text/html', body: '<script src="assets/console.0123456789abcdef.js">' });
      isOlder = false;
      return route.continue();
    });
    await page.evaluate("self.isOlder = true; location.hash = '#/keys'");
    await page.locator('h1', { hasText: 'Keys' }).waitFor();
    assert.equal(await page.evaluate('self.isOlder'), undefined);
  },
);

test('while the store is copied the console goes on, and what it changes meanwhile is kept', options, async (t) => {
  const backups = mkdtempSync(join(tmpdir(), 'mizu-console-backup-'));
  t.after(() => rmSync(backups, { recursive: true, force: true }));
  const gateway = await adminGateway(t, { backups });
  const on = { origin: `http://127.0.0.1:${gateway.port}`, tokens: gateway.tokens };
  await using opened = await signedIn('write', 'accounts', {}, on);
  const { page, complaints } = opened;
  let copies = 0;
  let isOver = false;
  const copying = (async () => {
    for (; !isOver; copies += 1) {
      const { status, text } = await gateway.ask('store/backup', { body: { folder: join(backups, String(copies)) } });
      assert.equal(status, 201, text);
    }
  })();
  for (const name of ['first', 'second', 'third']) {
    await page.click('#new-account');
    const dialog = page.locator('dialog');
    await dialog.locator('[name=name]').fill(name);
    await dialog.locator('button[type=submit]').click();
    await dialog.waitFor({ state: 'detached' });
    await go(page, 'accounts');
    await page.locator('tbody th', { hasText: name }).waitFor();
  }
  isOver = true;
  await copying;
  assert.ok(copies > 0);
  assert.equal((await gateway.store.accounts.list()).length, 3);
  assert.equal(await page.locator('#banner').isHidden(), true);
  assert.deepEqual(own(complaints), []);
});

test(
  'the store is backed up, and the head of the copy is shown to be kept; the folder is named where it may not be',
  options,
  async (t) => {
    const backups = mkdtempSync(join(tmpdir(), 'mizu-console-backup-'));
    t.after(() => rmSync(backups, { recursive: true, force: true }));
    const gateway = await adminGateway(t, { backups });
    const on = { origin: `http://127.0.0.1:${gateway.port}`, tokens: gateway.tokens };
    await using opened = await signedIn('write', 'gateway', {}, on);
    const { page, complaints } = opened;
    await page.click('#back-up');
    const dialog = page.locator('dialog');
    assert.match(await dialog.locator('[name=folder]').inputValue(), /^\d{4}-\d\d-\d\d-\d{4}$/);
    await dialog.locator('[name=folder]').fill('../elsewhere');
    await dialog.locator('button[type=submit]').click();
    await dialog.locator('.reason', { hasText: `backups are made below ${backups}` }).waitFor();
    await dialog.locator('[name=folder]').fill('today');
    await dialog.locator('button[type=submit]').click();
    const { seq, hash } = await gateway.store.ledger.head();
    assert.equal(await dialog.locator('.secret').textContent(), `${seq}:${hash}`);
    await dialog.locator('.note', { hasText: join(backups, 'today') }).waitFor();
    await dialog.locator('button', { hasText: 'I have kept it' }).click();
    assert.ok(existsSync(join(backups, 'today', 'data.mdb')));
    assert.deepEqual(own(complaints), []);
  },
);

test('a gateway that nobody used yet says what comes next', options, async (t) => {
  const empty = await consoleDay(t, { requests: 0, hours: 1 }, { file: {} });
  await using opened = await signedIn('write', 'overview', {}, empty);
  const { page, complaints } = opened;
  for (const [view, words] of [
    ['overview', 'Nothing was asked in this time'],
    ['exchanges', 'Nothing was asked yet'],
    ['accounts', 'There is no account yet'],
    ['keys', 'There is no key yet'],
    ['videos', 'No video was asked for yet'],
  ] as const) {
    await go(page, view);
    await page.locator('.empty', { hasText: words }).waitFor();
  }
  assert.deepEqual(own(complaints), []);
});

test('dialogs by the keyboard: focus goes in, stays, and comes back; what cannot be undone wants its name', options, async () => {
  await using opened = await signedIn('write', 'gateway');
  const { page } = opened;
  await page.focus('#new-token');
  await page.keyboard.press('Enter');
  await page.waitForSelector('dialog[open]');
  assert.equal(await page.evaluate('document.activeElement.name'), 'name');
  await page.keyboard.press('Escape');
  await page.waitForSelector('dialog', { state: 'detached' });
  assert.equal(await page.evaluate('document.activeElement.id'), 'new-token');
  await page.click('[aria-label="Delete reader"]');
  const dialog = page.locator('dialog');
  await dialog.getByLabel('Type reader to confirm').fill('reade');
  await dialog.locator('button[type=submit]').click();
  await dialog.locator('.reason', { hasText: 'not reader' }).waitFor();
  assert.ok((await day.store.adminTokens.list()).some(({ name }) => name === 'reader'));
});

for (const width of [360, 768, 1440])
  for (const colorScheme of ['light', 'dark'] as const) {
    test(`axe finds nothing, and nothing overflows: ${width} px, ${colorScheme}`, { skip, timeout: 300_000 }, async () => {
      await using opened = await visit(browser, `${day.origin}/console`, { viewport: { width, height: 900 }, colorScheme });
      const { page } = opened;
      await page.waitForSelector('#sign-in:not([hidden])');
      assert.deepEqual(await findings(page), []);
      await page.fill('#token', day.tokens.write);
      await page.press('#token', 'Enter');
      await page.waitForSelector('#view h1');
      for (const view of [...VIEWS, ...(await detailViews())]) {
        await go(page, view);
        assert.deepEqual(await findings(page), [], view);
        const [seen, whole] = await page.evaluate<[number, number]>(
          '[document.documentElement.clientWidth, document.documentElement.scrollWidth]',
        );
        assert.equal(whole, seen, view);
      }
      await go(page, 'accounts');
      await page.click('#new-account');
      assert.deepEqual(await findings(page), [], 'a dialog');
    });
  }
