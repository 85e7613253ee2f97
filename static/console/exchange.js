/** One exchange: what it cost line by line, and every attempt with the upstream's own words. */
import { path } from './api.js';
import { count, duration, facts, h, id as code, link, money, section, table, tag, time } from './dom.js';
import { STATUS_KINDS } from './exchange-rows.js';
import { accountLink, keyLink, readNames } from './names.js';

const PER = { million: 'million', thousand: 'thousand', piece: 'piece' };
const BASIS = {
  reported: 'The counts are the upstream’s own.',
  estimated: 'At least one count is the gateway’s estimate.',
  admission: 'Nobody could count it: it is what was set aside for it.',
  none: 'It cost nothing.',
};

export const view = {
  async load({ get, id }) {
    const [{ data }] = await Promise.all([get(path('exchanges', id)), readNames(get)]);
    return data;
  },

  draw(rows) {
    return rows.map((row, index) => [
      index === 0 ? h('h1', {}, 'Exchange') : h('h2', {}, 'Another of the same id'),
      summary(row),
      section('Charge', charge(row)),
      section(row.attempts.length === 1 ? 'The attempt' : `${row.attempts.length} attempts`, attempts(row)),
      row.usageJson !== undefined &&
        h('details', {}, h('summary', {}, 'What the upstream’s usage said beyond this'), words(row.usageJson)),
    ]);
  },
};

function summary(row) {
  const { usage } = row;
  return [
    facts([
      [
        'Status',
        [
          tag(row.errorCode ?? row.status, STATUS_KINDS[row.status]),
          row.httpStatus === undefined ? '' : ` HTTP ${row.httpStatus}`,
          row.clientGone ? ', the client left' : '',
        ],
      ],
      ['Exchange', code(row.exchangeId)],
      ['Request', code(row.requestId)],
      ['The client’s id', row.clientRequestId && code(row.clientRequestId)],
      ['Account', accountLink(row.accountId)],
      ['Key', keyLink(row.keyId)],
      ['End user', row.endUser],
      ['Address', row.ip],
      ['Model', [code(row.model || '–'), row.servedModel === undefined ? '' : [' answered by ', code(row.servedModel)]]],
      ['Endpoint', [row.endpoint, row.stream ? ', streamed' : '']],
      ['Effort', row.effort],
      ['Began', [time(row.startedAtMs), ' UTC']],
      ['First output', row.firstOutputMs === undefined ? undefined : duration(row.firstOutputMs)],
      ['Duration', duration(row.durationMs)],
      ['Usage', usage && usageText(usage)],
      [
        'Affinity',
        row.affinity && (row.affinity.hit ? `went to ${row.affinity.target} again` : `was bound to ${row.affinity.target}`),
      ],
    ]),
    row.errorText !== undefined && [h('h2', {}, 'Why it failed'), words(row.errorText)],
  ];
}

/** `cachedInput` → `cached input`. */
const usageText = (usage) =>
  Object.entries(usage)
    .filter(([, value]) => typeof value === 'number' && value > 0)
    .map(([name, value]) => `${count(value)} ${name.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)}`)
    .join(', ');

const words = (text) => h('pre', { tabindex: 0 }, text);

const rateOf = ({ rate, per, multiplier }) => [
  `$${rate}`,
  h('small', {}, ` / ${PER[per] ?? per}${multiplier === undefined ? '' : ` × ${multiplier}`}`),
];

function charge({ explained }) {
  const { lines, flags, basis, total, attempt, model } = explained;
  const columns = [
    {
      name: 'What',
      of: ({ item, billedAs, model: own }) => [
        item.replaceAll('_', ' '),
        billedAs && h('small', {}, ` at the rate of ${billedAs.replaceAll('_', ' ')}`),
        own && h('small', {}, ` of ${own}`),
      ],
    },
    { name: 'Count', number: true, of: ({ quantity }) => count(quantity) },
    { name: '', of: () => '×' },
    { name: 'Rate', number: true, of: rateOf },
    { name: '', of: () => '=' },
    { name: 'Amount', number: true, of: ({ amount }) => `$${amount}` },
  ];
  return [
    h(
      'p',
      { class: 'sum' },
      money(total),
      h('small', {}, ` ${BASIS[basis] ?? basis} At the price of `, code(model || 'no model'), '.'),
    ),
    lines.length > 0 && table({ caption: 'Lines of the charge', columns, rows: lines, empty: '' }),
    attempt !== undefined &&
      h(
        'p',
        { class: 'note' },
        `Usage of attempt ${attempt.number} of ${attempt.of}, `,
        link(`#/channels`, attempt.channelId),
        `, ${attempt.upstreamModel}.`,
      ),
    flags.map(({ flag, meaning }) => h('p', { class: 'note' }, tag(flag), ` ${meaning}`)),
  ];
}

function attempts({ attempts: all }) {
  if (all.length === 0) return h('p', { class: 'empty' }, 'No upstream was asked.');
  return h(
    'ol',
    { class: 'attempts' },
    all.map((attempt) =>
      h(
        'li',
        {},
        h(
          'p',
          {},
          h('strong', {}, attempt.channelId),
          ' ',
          code(attempt.upstreamModel),
          ' ',
          attempt.errorCode === undefined ? tag('answered', 'good') : tag(attempt.errorCode, 'bad'),
        ),
        facts([
          ['Upstream’s status', attempt.upstreamStatus],
          ['Began', time(attempt.startedAtMs)],
          ['Duration', duration(attempt.durationMs)],
          ['Upstream’s request', attempt.upstreamRequestId && code(attempt.upstreamRequestId)],
          ['Fallback model', attempt.model],
        ]),
        attempt.errorText !== undefined && words(attempt.errorText),
      ),
    ),
  );
}
