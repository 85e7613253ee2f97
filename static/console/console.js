/** The console: who is signed in, which view is shown, and what is said while the gateway or its store is away. */
import { Failed, get, health, session, signIn, signOut } from './api.js';
import { address, button, h, speak } from './dom.js';

/**
 * Each view is a module whose `view` is `{ everyMs?, load(context) → data, draw(data, context) → nodes }`. `load` asks; `draw` asks
 * nothing. `context`: `{ id, params, may, signal, get, reload, go, view }`. A view without a `name` is reached from another one.
 */
const VIEWS = {
  overview: { name: 'Overview', module: () => import('./overview.js') },
  attention: { name: 'Attention', module: () => import('./attention.js') },
  exchanges: { name: 'Exchanges', module: () => import('./exchanges.js') },
  live: { name: 'Live', module: () => import('./live.js') },
  exchange: { of: 'exchanges', module: () => import('./exchange.js') },
  accounts: { name: 'Accounts', module: () => import('./accounts.js') },
  account: { of: 'accounts', module: () => import('./account-view.js') },
  keys: { name: 'Keys', module: () => import('./keys.js') },
  key: { of: 'keys', module: () => import('./key-view.js') },
  channels: { name: 'Channels', module: () => import('./channels.js') },
  prices: { name: 'Prices', module: () => import('./prices.js') },
  videos: { name: 'Videos', module: () => import('./videos.js') },
  ledger: { name: 'Ledger', module: () => import('./ledger.js') },
  gateway: { name: 'Gateway', module: () => import('./settings.js') },
};

const part = (id) => document.getElementById(id);
/** Who is signed in: `{ name, role }`, or undefined. */
let who;
/** What is shown: `{ key, stop, drawn }`. */
let shown;
let retry;
let failures = 0;
const FIRST_RETRY_MS = 1_000;
const LAST_RETRY_MS = 15_000;
const HEALTH_MS = 10_000;
const PATIENCE_MS = 250;

async function start() {
  try {
    entered(await session());
  } catch (error) {
    if (error.kind === 'signed_out') showSignIn('');
    else {
      part('starting')?.remove();
      awaitReturn(error, start);
    }
  }
}

function entered(found) {
  who = found;
  recovered();
  part('starting')?.remove();
  part('sign-in').hidden = true;
  part('token').value = '';
  part('who').hidden = false;
  part('who-name').textContent = who.name;
  part('who-role').textContent = who.role;
  part('views').hidden = false;
  void show();
}

function showSignIn(why) {
  leave();
  who = undefined;
  recovered();
  for (const dialog of document.querySelectorAll('dialog')) dialog.remove();
  part('starting')?.remove();
  part('view').replaceChildren();
  part('who').hidden = true;
  part('views').hidden = true;
  part('sign-in').hidden = false;
  part('problem').textContent = why;
  document.title = 'Sign in · Mizu console';
  part('token').focus();
}

part('sign-in').addEventListener('submit', async (event) => {
  event.preventDefault();
  const send = part('sign-in').querySelector('button');
  part('problem').textContent = '';
  send.disabled = true;
  try {
    entered(await signIn(part('token').value.trim()));
  } catch (error) {
    part('problem').textContent = error.kind === 'signed_out' ? 'This is no admin token of this gateway.' : error.message;
  } finally {
    send.disabled = false;
  }
});
part('sign-out').addEventListener('click', async () => {
  try {
    await signOut();
    showSignIn('');
  } catch (error) {
    if (error.kind === 'signed_out') showSignIn('');
    else speak(`Not signed out: ${error.message}`);
  }
});
part('skip').addEventListener('click', (event) => {
  event.preventDefault();
  part('main').focus();
});

function leave() {
  shown?.stop.abort();
  shown = undefined;
}

/** What the address names: `#/VIEW/ID?MEMBERS`. */
function wanted() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?', 2);
  const [view = '', id] = path.split('/', 2);
  return {
    view: Object.hasOwn(VIEWS, view) ? view : 'overview',
    id: id && decode(id),
    params: Object.fromEntries(new URLSearchParams(query)),
  };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

addEventListener('hashchange', () => who !== undefined && void show());

async function show() {
  const { view, id, params } = wanted();
  leave();
  const stop = new AbortController();
  const mine = { stop, drawn: false };
  shown = mine;
  const { signal } = stop;
  menu(view);
  // A view that is there at once shows no sign of loading.
  const patience = setTimeout(
    () => part('view').replaceChildren(h('p', { class: 'loading', role: 'status' }, 'Loading…')),
    PATIENCE_MS,
  );
  signal.addEventListener('abort', () => clearTimeout(patience));
  const context = {
    ...{ view, id, params, signal, may: who.role === 'write' },
    get: (path, query) => get(path, query, signal),
    go: (query) => {
      location.hash = address(id === undefined ? view : `${view}/${encodeURIComponent(id)}`, { ...params, ...query });
    },
    reload: () => load(),
  };
  let definition;
  async function load() {
    part('view').setAttribute('aria-busy', 'true');
    try {
      definition ??= (await VIEWS[view].module()).view;
      const data = await definition.load(context);
      if (signal.aborted) return;
      clearTimeout(patience);
      redraw(definition, data, context, mine);
      recovered();
    } catch (error) {
      if (signal.aborted) return;
      clearTimeout(patience);
      if (!(error instanceof Failed)) {
        if (definition !== undefined) throw error;
        // A module that cannot be read is a gateway that is away, or another version of it.
        if (await isOfOlderVersion()) location.reload();
        else if (!signal.aborted) awaitReturn(new Failed('away', 'The gateway does not answer.'), load, mine);
      } else if (error.kind === 'signed_out')
        showSignIn('The session has ended: it lasts twelve hours, and no longer than its token or the gateway’s process.');
      else if (error.kind === 'away' || error.kind === 'store' || error.kind === 'busy') awaitReturn(error, load, mine);
      else {
        // Whoever refuses is there.
        recovered();
        part('view').replaceChildren(problem(error, load));
      }
    } finally {
      if (!signal.aborted) part('view').removeAttribute('aria-busy');
    }
  }
  await load();
  if (definition?.everyMs === undefined || signal.aborted) return;
  const timer = setInterval(() => {
    const isBusy = document.visibilityState === 'hidden' || document.querySelector('dialog') !== null || retry !== undefined;
    if (!isBusy) void load();
  }, definition.everyMs);
  signal.addEventListener('abort', () => clearInterval(timer));
}

/** Whether the gateway has another console than this one by now: files are named by what is in them. */
async function isOfOlderVersion() {
  const own = document.querySelector('script[src]').getAttribute('src');
  const page = await fetch('console', { cache: 'no-store' }).catch(() => undefined);
  return page?.ok === true && !(await page.text()).includes(own);
}

/** What had the focus keeps it where it is there again. */
function redraw(definition, data, context, mine) {
  const focused = document.activeElement?.id;
  part('view').replaceChildren(...[definition.draw(data, context)].flat(9).filter((node) => node));
  const heading = part('view').querySelector('h1');
  document.title = `${heading?.textContent ?? 'Console'} · Mizu console`;
  if (mine.drawn) {
    if (focused && document.activeElement === document.body) part(focused)?.focus();
  } else if (heading !== null) {
    heading.tabIndex = -1;
    heading.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
  mine.drawn = true;
}

function problem(error, again) {
  return h(
    'div',
    { class: 'problem', role: 'alert' },
    h('h1', {}, 'This cannot be shown'),
    h('p', {}, error.message),
    button('Try again', () => void again()),
  );
}

function menu(view) {
  const current = VIEWS[view].of ?? view;
  const links = Object.entries(VIEWS)
    .filter(([, { name }]) => name !== undefined)
    .map(([key, { name }]) => h('a', { href: `#/${key}`, 'aria-current': key === current ? 'page' : undefined }, name));
  part('views').replaceChildren(...links);
}

const WAITING = {
  away: 'The gateway does not answer. What is shown may be old.',
  store: 'The store is away: nothing can be read or changed until it is back.',
  busy: 'The gateway slows sign-ins at the moment.',
};

/** Says so, and tries again: after a second, then less and less often. What was shown stays. */
function awaitReturn(error, again, mine) {
  clearTimeout(retry);
  if (mine !== undefined && !mine.drawn) part('view').replaceChildren(h('p', { class: 'empty' }, 'Nothing to show yet.'));
  part('banner').hidden = false;
  part('banner-text').textContent = WAITING[error.kind] ?? error.message;
  document.body.classList.add('stale');
  const waitMs = Math.min(FIRST_RETRY_MS * 2 ** failures, LAST_RETRY_MS);
  failures += 1;
  const now = () => {
    clearTimeout(retry);
    retry = undefined;
    if (mine === undefined || !mine.stop.signal.aborted) void again();
  };
  retry = setTimeout(now, waitMs);
  part('banner-retry').onclick = now;
}

function recovered() {
  clearTimeout(retry);
  retry = undefined;
  failures = 0;
  part('banner').hidden = true;
  document.body.classList.remove('stale');
}

async function watchHealth() {
  const found = document.visibilityState === 'hidden' ? null : await health();
  if (found !== null) {
    const text =
      found === undefined
        ? 'no answer'
        : found.status === 'ok'
          ? 'in service'
          : `not ready: ${found.reasons?.join(', ') ?? found.status}`;
    if (part('health').textContent !== text) part('health').textContent = text;
    part('health').className = `whole ${found?.status === 'ok' ? 'good' : 'bad'}`;
  }
  setTimeout(watchHealth, HEALTH_MS);
}

void start();
void watchHealth();
