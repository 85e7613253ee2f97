/**
 * Exchanges as they end. However many come, the page takes them in once a frame and keeps a few hundred rows; the gateway shows a sample of
 * what is too much, and both say how many were passed over.
 */
import { search, session } from './api.js';
import { button, count, frame, h, line, speak } from './dom.js';
import { COLUMNS, mark } from './exchange-rows.js';
import { FILTERS, filterForm } from './filter.js';
import { readNames } from './names.js';

const MOST_ROWS = 200;
/** Of one look of the gateway, every half a second. */
const SAMPLE = 50;
const AGAIN_MS = 2_000;

export const view = {
  async load({ get, params }) {
    const [models, channels, refused] = await Promise.all([
      get('models'),
      get('channels'),
      // A stream cannot say why it is refused.
      get('exchanges', { ...filtersOf(params), limit: 1 }).then(
        () => undefined,
        (error) => {
          if (error.kind !== 'refused') throw error;
          return error.message;
        },
      ),
      readNames(get),
    ]);
    return { models: models.data, channels: channels.data, refused };
  },

  draw({ models, channels, refused }, context) {
    const filters = filterForm(context, { models, channels, withTime: false });
    if (refused !== undefined) return [h('h1', {}, 'Live'), filters, h('p', { class: 'reason', role: 'alert' }, refused)];
    const state = h('p', { class: 'state', role: 'status' }, 'Connecting…');
    const body = h('tbody');
    const pause = button(
      'Pause',
      () => {
        tail.isPaused = !tail.isPaused;
        pause.textContent = tail.isPaused ? 'Go on' : 'Pause';
        pause.setAttribute('aria-pressed', String(tail.isPaused));
        speak(tail.isPaused ? 'Paused' : 'Going on');
        tail.tell();
      },
      { 'aria-pressed': 'false', id: 'pause' },
    );
    const tail = follow(context, body, state);
    return [
      h('div', { class: 'head' }, h('h1', {}, 'Live'), h('span', { class: 'buttons' }, state, pause)),
      filters,
      frame('Exchanges as they end', COLUMNS, body),
    ];
  },
};

function follow({ params, signal, reload }, body, state) {
  let source;
  let cursor;
  let waiting = [];
  let passed = 0;
  let seen = 0;
  let isScheduled = false;
  let isOpen = false;
  const tail = {
    isPaused: false,
    tell() {
      const lost = passed === 0 ? '' : `, ${count(passed)} passed over`;
      const how = !isOpen ? 'Connecting…' : tail.isPaused ? 'Paused' : seen === 0 ? 'Waiting for the next exchange' : 'Following';
      state.textContent = seen === 0 && passed === 0 ? how : `${how}: ${count(seen)} shown${lost}`;
    },
  };

  function paint() {
    isScheduled = false;
    if (tail.isPaused) {
      // What came meanwhile is in the log; here only the newest wait.
      passed += Math.max(0, waiting.length - MOST_ROWS);
      waiting = waiting.slice(-MOST_ROWS);
      tail.tell();
      return;
    }
    passed += Math.max(0, waiting.length - MOST_ROWS);
    const rows = waiting.slice(-MOST_ROWS);
    waiting = [];
    seen += rows.length;
    body.prepend(...rows.reverse().map((row) => line(COLUMNS, row, mark)));
    while (body.childElementCount > MOST_ROWS) body.lastElementChild.remove();
    tail.tell();
  }
  function schedule() {
    if (isScheduled) return;
    isScheduled = true;
    // A page in the background gets no frames: it takes in what came when it is looked at again.
    requestAnimationFrame(paint);
  }
  function open() {
    const asked = search({ ...filtersOf(params), limit: SAMPLE, after: cursor });
    source = new EventSource(`admin/v1/exchanges/live${asked}`);
    source.addEventListener('open', () => {
      isOpen = true;
      tail.tell();
    });
    source.addEventListener('exchanges', (event) => {
      cursor = event.lastEventId;
      waiting.push(...JSON.parse(event.data));
      if (waiting.length > 2 * MOST_ROWS) {
        passed += waiting.length - MOST_ROWS;
        waiting = waiting.slice(-MOST_ROWS);
      }
      schedule();
    });
    source.addEventListener('skipped', (event) => {
      passed += JSON.parse(event.data).count;
      schedule();
    });
    source.addEventListener('error', () => {
      source.close();
      isOpen = false;
      tail.tell();
      again();
    });
  }
  /** It goes on behind the last row; whoever is signed out, or asks for what does not exist, is told by the view. */
  function again() {
    setTimeout(async () => {
      if (signal.aborted) return;
      try {
        await session();
        if (!signal.aborted) open();
      } catch (error) {
        if (error.kind === 'signed_out') void reload();
        else again();
      }
    }, AGAIN_MS);
  }
  signal.addEventListener('abort', () => source?.close());
  open();
  return tail;
}

const filtersOf = (params) => Object.fromEntries(FILTERS.map((name) => [name, params[name]]));
