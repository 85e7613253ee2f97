/** The filters of exchanges: the log takes all of them, the live view those that are not of time. */
import { button, h } from './dom.js';
import { accountOptions, keyName, keysOf } from './names.js';

const STATUSES = [
  ['', 'any'],
  ['success', 'success'],
  ['error', 'error'],
  ['interrupted', 'interrupted'],
];
const SINCE = [
  ['', 'any time'],
  ['15m', '15 minutes'],
  ['1h', 'an hour'],
  ['24h', '24 hours'],
  ['7d', '7 days'],
  ['30d', '30 days'],
];

/** `names`: the filters that are offered; what is set stands in the address, so that it can be sent to someone. */
export function filterForm({ params, go }, { models, channels, withTime }) {
  const text = (name, label, list) =>
    field(
      label,
      h('input', {
        id: `f-${name}`,
        name,
        value: params[name],
        list: list && `l-${list}`,
        type: 'search',
        autocomplete: 'off',
        spellcheck: 'false',
      }),
    );
  const select = (name, label, options) =>
    field(
      label,
      h(
        'select',
        { id: `f-${name}`, name, onchange: (event) => send(event.target.form) },
        options.map(([value, words]) => h('option', { value, selected: value === (params[name] ?? '') }, words)),
      ),
    );
  const send = (form) => {
    const values = Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim() || undefined]));
    go({ ...values, before: undefined });
  };
  const since =
    params.since === undefined || SINCE.some(([value]) => value === params.since)
      ? SINCE
      : [...SINCE, [params.since, params.since]];
  return h(
    'form',
    {
      class: 'filters',
      'aria-label': 'Filters',
      onsubmit: (event) => {
        event.preventDefault();
        send(event.target);
      },
    },
    text('account', 'Account', 'accounts'),
    text('key', 'Key', 'keys'),
    text('model', 'Model', 'models'),
    text('channel', 'Channel', 'channels'),
    select('status', 'Status', STATUSES),
    text('code', 'Error code'),
    withTime && select('since', 'Within', since),
    h(
      'span',
      { class: 'buttons' },
      h('button', { type: 'submit' }, 'Filter'),
      button('Clear', () =>
        go({
          account: undefined,
          key: undefined,
          model: undefined,
          channel: undefined,
          status: undefined,
          code: undefined,
          since: undefined,
          before: undefined,
        }),
      ),
    ),
    accountOptions('l-accounts'),
    h(
      'datalist',
      { id: 'l-keys' },
      keysOf().map(({ id }) => h('option', { value: id }, keyName(id))),
    ),
    h(
      'datalist',
      { id: 'l-models' },
      models.map(({ id }) => h('option', { value: id })),
    ),
    h(
      'datalist',
      { id: 'l-channels' },
      channels.map(({ id }) => h('option', { value: id })),
    ),
  );
}

const field = (label, input) => h('label', { class: 'field' }, h('span', {}, label), input);
export const FILTERS = ['account', 'key', 'model', 'channel', 'status', 'code'];
