/** What was asked, failed and charged: plots by the hour, and who and what it was. */
import { address, count, duration, figures, h, link, money, section, share, table } from './dom.js';
import { letGo, plot } from './plot.js';
import { accountName, keyName, keysOf, readNames } from './names.js';

const HOUR_MS = 3_600_000;
const HOUR = { by: 'hour', ms: HOUR_MS, msOf: ({ hour }) => hour };
/** The hours of a month would be thinner than a line. */
const DAY = { by: 'day', ms: 24 * HOUR_MS, msOf: ({ day }) => Date.parse(day) };
/** By name: its words, and the step of its plots. */
const RANGES = { '24h': ['24 hours', HOUR], '7d': ['7 days', HOUR], '30d': ['30 days', DAY] };
const MOST_ROWS = 12;
/** Groups of the tables: of each its name for the query and how its rows are named. */
const GROUPS = [
  { by: 'model', title: 'Models', nameOf: (row) => row.model || '(refused)' },
  { by: 'channel', title: 'Channels', nameOf: (row) => row.channel || '(none asked)' },
  { by: 'key', title: 'Keys', nameOf: ({ key }) => keyTitle(key) },
];
const FILTERS = ['account', 'key', 'model', 'channel'];

function keyTitle(id) {
  const account = keysOf().find((key) => key.id === id)?.accountId;
  return id === '' ? '(no key)' : account === undefined ? keyName(id) : `${accountName(account)} / ${keyName(id)}`;
}

export const view = {
  everyMs: 30_000,

  async load({ get, params }) {
    const from = Object.hasOwn(RANGES, params.from ?? '') ? params.from : '24h';
    const [, step] = RANGES[from];
    const filter = Object.fromEntries(FILTERS.map((name) => [name, params[name]]));
    const [byTime, byCode, ...groups] = await Promise.all([
      get('overview', { from, ...filter, by: step.by }),
      get('overview', { from, ...filter, by: 'code' }),
      ...GROUPS.map(({ by }) => get('overview', { from, ...filter, by })),
      readNames(get),
    ]);
    return { from, filter, step, byTime, byCode, groups: groups.slice(0, GROUPS.length) };
  },

  draw({ from, filter, step, byTime, byCode, groups }, context) {
    letGo(document);
    const { total } = byTime;
    const given = FILTERS.filter((name) => filter[name] !== undefined);
    return [
      h('div', { class: 'head' }, h('h1', {}, 'Overview'), ranges(from, context)),
      given.length > 0 &&
        h(
          'p',
          { class: 'chips' },
          given.map((name) =>
            h(
              'button',
              { type: 'button', class: 'chip', id: `without-${name}`, onclick: () => context.go({ [name]: undefined }) },
              `${name}: ${name === 'key' ? keyTitle(filter.key) : filter[name]} `,
              h('span', { 'aria-hidden': 'true' }, '×'),
              h('span', { class: 'sr' }, ' remove'),
            ),
          ),
        ),
      figures([
        ['Requests', count(total.requests)],
        ['Errors', count(total.errors), total.requests > 0 ? ` ${share(total.errors, total.requests)}` : undefined],
        ['Charged', money(total.charge)],
        ['First token, median', duration(total.firstTokenP50Ms)],
        ['First token, p95', duration(total.firstTokenP95Ms)],
        ['Read from caches', share(total.cachedInputTokens, inputOf(total))],
      ]),
      total.requests === 0
        ? h('p', { class: 'empty' }, 'Nothing was asked in this time. ', link('#/channels', 'Are the Channels in service?'))
        : [
            plots(byTime, step, context.signal),
            GROUPS.map((group, index) => section(group.title, groupTable(group, groups[index].data, context))),
            codes(byCode.data, from, filter),
            steps(byTime, step),
          ],
    ];
  },
};

const inputOf = ({ inputTokens, cachedInputTokens, cacheWriteTokens }) => inputTokens + cachedInputTokens + cacheWriteTokens;

function ranges(from, { go }) {
  return h(
    'div',
    { class: 'choices' },
    h(
      'fieldset',
      {},
      h('legend', { class: 'sr' }, 'Time'),
      Object.entries(RANGES).map(([key, [text]]) =>
        h(
          'label',
          {},
          h('input', {
            type: 'radio',
            name: 'from',
            id: `from-${key}`,
            value: key,
            checked: key === from,
            onchange: () => go({ from: key }),
          }),
          text,
        ),
      ),
    ),
  );
}

/** Every hour, or day, of the time has its place, also one without requests. */
function plots({ fromMs, toMs, data }, { by, ms: stepMs, msOf }, signal) {
  const rows = new Map(data.map((row) => [msOf(row), row]));
  const firstMs = Math.floor(fromMs / stepMs) * stepMs;
  const begins = Array.from({ length: Math.ceil((toMs - firstMs) / stepMs) }, (_, index) => firstMs + index * stepMs);
  const times = begins.map((ms) => ms / 1000);
  const values = (of, none = 0) => begins.map((ms) => (rows.has(ms) ? of(rows.get(ms)) : none));
  const most = (list) => Math.max(0, ...list.map((value) => value ?? 0));
  const charged = values(({ charge }) => Number(charge));
  const requests = values((row) => row.requests);
  const errors = values((row) => row.errors);
  const p50 = values(({ firstTokenP50Ms = null }) => firstTokenP50Ms, null);
  const p95 = values(({ firstTokenP95Ms = null }) => firstTokenP95Ms, null);
  const common = { times, stepSeconds: stepMs / 1000, signal };
  const bars = (title, name, list, colour, text) =>
    plot({
      ...common,
      title,
      summary: `at most ${text(most(list))} ${by === 'day' ? 'a' : 'an'} ${by}`,
      text,
      isWhole: text === short,
      series: [{ name, values: list, colour, bars: true }],
    });
  return h(
    'div',
    { class: 'plots' },
    bars('Charged', 'charged', charged, '--d5', dollars),
    bars('Requests', 'requests', requests, '--d5', short),
    bars('Errors', 'errors', errors, '--warn', short),
    plot({
      ...common,
      title: 'First token',
      summary: `median and p95; at most ${duration(most(p95))}`,
      text: duration,
      series: [
        { name: 'p95', values: p95, colour: '--hard' },
        { name: 'median', values: p50, colour: '--sea' },
      ],
    }),
  );
}

const short = (value) => new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 }).format(value);
const dollars = (value) => `$${value >= 1000 ? short(value) : value.toLocaleString('en-US', { maximumSignificantDigits: 3 })}`;

const NUMBERS = [
  { name: 'Requests', number: true, of: (row) => count(row.requests) },
  {
    name: 'Errors',
    number: true,
    of: (row) =>
      row.errors === 0
        ? '0'
        : h('span', { class: 'warn' }, count(row.errors), h('small', {}, ` ${share(row.errors, row.requests)}`)),
  },
  { name: 'Input tokens', number: true, of: (row) => count(inputOf(row)) },
  { name: 'Output tokens', number: true, of: (row) => count(row.outputTokens) },
  { name: 'First token p50', number: true, of: (row) => duration(row.firstTokenP50Ms) },
  { name: 'p95', number: true, of: (row) => duration(row.firstTokenP95Ms) },
  { name: 'Charged', number: true, of: (row) => money(row.charge) },
];

function groupTable({ by, title, nameOf }, data, { params }) {
  const sorted = [...data].sort((a, b) => Number(b.charge) - Number(a.charge) || b.requests - a.requests);
  const named = {
    name: title.slice(0, -1),
    of: (row) => (row[by] === '' ? nameOf(row) : link(address('overview', { ...params, [by]: row[by] }), nameOf(row))),
  };
  return [
    table({ caption: `By ${by}`, columns: [named, ...NUMBERS], rows: sorted.slice(0, MOST_ROWS), empty: 'None.' }),
    sorted.length > MOST_ROWS && h('p', { class: 'note' }, `The ${MOST_ROWS} that cost most, of ${count(sorted.length)}.`),
  ];
}

function codes(data, from, filter) {
  const failed = data.filter(({ code }) => code !== undefined && code !== '').sort((a, b) => b.requests - a.requests);
  if (failed.length === 0) return undefined;
  const columns = [
    { name: 'Code', of: ({ code }) => link(address('exchanges', { ...filter, code, since: from }), code) },
    { name: 'Requests', number: true, of: (row) => count(row.requests) },
  ];
  return section(
    'Why requests failed',
    table({ caption: 'By error code', columns, rows: failed, empty: 'None.' }),
    h('p', { class: 'note' }, link(address('exchanges', { ...filter, status: 'error', since: from }), 'Look at them one by one')),
  );
}

/** What the plots show, to be read. */
function steps({ data }, { by, msOf }) {
  const title = by === 'day' ? 'Day, UTC' : 'Hour, UTC';
  const shown = by === 'day' ? 10 : 16;
  const columns = [{ name: title, of: (row) => new Date(msOf(row)).toISOString().slice(0, shown).replace('T', ' ') }, ...NUMBERS];
  const rows = [...data].sort((a, b) => msOf(b) - msOf(a)).slice(0, 200);
  const details = h('details', {}, h('summary', {}, 'The plots as a table'));
  details.addEventListener('toggle', () => {
    if (details.open && details.childElementCount === 1)
      details.append(table({ caption: `By ${by}`, columns, rows, empty: 'None.' }));
  });
  return details;
}
