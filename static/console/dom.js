/** Elements made by hand: words are always text, so nothing that a name holds becomes markup. */
import { search } from './api.js';
import { nanosOf, usd } from './money.js';

/**
 * @param {string} tag
 * @param {Record<string, unknown>} attributes `onclick` and the like are listeners; false and undefined are left out
 * @param {...unknown} children nodes, texts, lists of them; null and undefined are left out
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  const shown = children.flat(9).filter((child) => child !== null && child !== undefined && child !== false);
  element.append(...shown.map((child) => (typeof child === 'string' ? inItsOrder(child) : child)));
  return element;
}

/** Characters that turn the direction of what follows: a name with one would read as another name. */
const TURNS = /[\u202a-\u202e\u2066-\u2069]/g;

function inItsOrder(text) {
  return text.replace(TURNS, (character) => `\\u${character.charCodeAt(0).toString(16)}`);
}

/** Said to those who do not see. */
export function speak(text) {
  document.getElementById('spoken').textContent = text;
}

/**
 * A table that scrolls sideways where it must. `columns`: `{ name, of(row) → node or text, number? }`; the first is the row's head.
 * @param {{ caption: string, columns: readonly object[], rows: readonly object[], empty: string, mark?: (row: object) => string | undefined }} table
 */
export function table({ caption, columns, rows, empty, mark }) {
  if (rows.length === 0) return h('p', { class: 'empty' }, empty);
  return frame(
    caption,
    columns,
    h(
      'tbody',
      {},
      rows.map((row) => line(columns, row, mark)),
    ),
  );
}

/** A table around a body that is filled later. */
export function frame(caption, columns, body) {
  const head = columns.map(({ name, number }) => h('th', { scope: 'col', class: number && 'number' }, name));
  return h(
    'div',
    { class: 'wide', tabindex: 0, role: 'region', 'aria-label': caption },
    h('table', {}, h('caption', { class: 'sr' }, caption), h('thead', {}, h('tr', {}, head)), body),
  );
}

export function line(columns, row, mark = () => undefined) {
  const cells = columns.map(({ name, of, number }, index) =>
    h(index === 0 ? 'th' : 'td', { 'data-name': name, class: number && 'number', scope: index === 0 && 'row' }, of(row)),
  );
  return h('tr', { class: mark(row) }, cells);
}

/** Facts under each other; those without a value are left out. */
export function facts(entries) {
  return h(
    'dl',
    { class: 'facts' },
    entries
      .filter(([, value]) => value !== undefined && value !== null && value !== '')
      .map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', {}, value))),
  );
}

/** Large figures beside each other. */
export function figures(entries) {
  return h(
    'dl',
    { class: 'figures' },
    entries.map(([name, value, more]) => h('div', {}, h('dt', {}, name), h('dd', {}, value, more && h('small', {}, more)))),
  );
}

export const link = (href, ...words) => h('a', { href }, ...words);
export const button = (text, onclick, more = {}) => h('button', { type: 'button', onclick, ...more }, text);
export const tag = (text, kind = '') => h('span', { class: `tag ${kind}` }, text);
export const id = (text) => h('code', { class: 'code' }, text);
export const section = (title, ...content) => h('section', {}, h('h2', {}, title), content);

/** Like a sounding: the fraction is set lower and smaller. @param {string} text decimal dollars */
export function money(text) {
  const [whole, fraction] = usd(nanosOf(text)).split('.');
  const sign = whole.startsWith('−') ? '−' : '';
  return h('span', { class: 'money' }, `${sign}$${whole.slice(sign.length)}`, h('span', { class: 'f' }, `.${fraction}`));
}

export const plainMoney = (text) => `$${usd(nanosOf(text))}`.replace('$−', '−$');
export const count = (value) => (value ?? 0).toLocaleString('en-US');
export const share = (part, whole) => (whole === 0 ? '–' : `${((100 * part) / whole).toFixed(part * 10 < whole ? 2 : 1)} %`);

/** @param {number | undefined} ms */
export function duration(ms) {
  if (ms === undefined) return '–';
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 3_600_000) return `${(ms / 60_000).toFixed(1)} min`;
  return ms < 172_800_000 ? `${(ms / 3_600_000).toFixed(1)} h` : `${(ms / 86_400_000).toFixed(0)} days`;
}

/** UTC, as the log and the journal have it; in a row without the year. */
export function time(ms, isShort = false) {
  const text = new Date(ms).toISOString();
  return h('time', { datetime: text, title: isShort && text }, `${text.slice(isShort ? 5 : 0, 10)} ${text.slice(11, 19)}`);
}

/** `#/exchanges?status=error`; members without a value are left out. */
export const address = (view, query = {}) => `#/${view}${search(query)}`;
export const one = (view, name) => `#/${view}/${encodeURIComponent(name)}`;
