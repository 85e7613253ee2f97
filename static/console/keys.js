/** Keys: found, made, and what each may do. */
import { change } from './api.js';
import { button, h, id as code, link, one, table, tag, time } from './dom.js';
import { openForm, showSecret, WHY } from './dialog.js';
import { rateFields, rateMembers, rateText, spendFields, spendMembers, spendText } from './limits.js';
import { LIMIT, pages, searchForm } from './lists.js';
import { accountLink, accountOptions, forgetNames, readNames } from './names.js';

export function keyState({ disabled, expiresAtMs, deletedAtMs }) {
  if (deletedAtMs !== undefined) return tag('deleted', 'bad');
  if (disabled) return tag('disabled', 'bad');
  return expiresAtMs !== undefined && expiresAtMs <= Date.now() ? tag('expired', 'bad') : tag('active', 'good');
}

export const COLUMNS = [
  { name: 'Key', of: ({ id, name }) => link(one('key', id), name || '(unnamed)') },
  { name: 'Account', of: ({ accountId }) => accountLink(accountId) },
  { name: 'State', of: keyState },
  { name: 'Begins, ends', of: ({ prefix, last4 }) => code(`${prefix}…${last4}`) },
  {
    name: 'Spend limits',
    of: ({ limits, subAccount }) => [spendText(limits) || '–', subAccount && h('small', {}, ' sub-account')],
  },
  { name: 'Limits', of: ({ rateLimits }) => rateText(rateLimits) || '–' },
  { name: 'Models', of: ({ models }) => models?.join(', ') ?? 'all' },
  { name: 'Expires', of: ({ expiresAtMs }) => (expiresAtMs === undefined ? 'never' : time(expiresAtMs)) },
];

export const view = {
  async load({ get, params }) {
    const [page] = await Promise.all([
      get('keys', { search: params.search, account: params.account, after: params.after, limit: LIMIT }),
      readNames(get),
    ]);
    return page;
  },

  draw({ data, nextCursor }, context) {
    const { params, may } = context;
    return [
      h(
        'div',
        { class: 'head' },
        h('h1', {}, 'Keys'),
        h(
          'span',
          { class: 'buttons' },
          searchForm(context, 'name, id or last four'),
          may && button('New key', () => createKey(params.account, context), { class: 'main', id: 'new-key' }),
        ),
      ),
      table({
        caption: 'Keys',
        columns: COLUMNS,
        rows: data,
        empty:
          params.search === undefined
            ? 'There is no key yet: make an account first, then a key for it.'
            : 'No key has this in its name or id.',
      }),
      pages(context, nextCursor),
    ];
  },
};

export const list = (text) => text?.split(/[\s,]+/).filter((entry) => entry !== '');

export function createKey(account, { reload }) {
  openForm({
    title: 'New key',
    fields: [
      { name: 'account', label: 'Account', value: account, required: true },
      { name: 'name', label: 'Name', hint: 'For people.' },
      ...restrictions({}),
      { name: 'subAccount', label: 'It pays from a balance of its own', type: 'checkbox' },
      WHY,
    ],
    send: 'Create',
    submit: ({ subAccount, account: owner, ...values }, once) =>
      change('POST', 'keys', { account: owner, subAccount, ...restrictionMembers(values, {}) }, once),
    done: ({ key }) => {
      forgetNames();
      showSecret({ title: 'The new key', secret: key, done: () => void reload() });
    },
  });
  document.querySelector('dialog [name="account"]').setAttribute('list', 'dialog-accounts');
  document.querySelector('dialog form').append(accountOptions('dialog-accounts'));
}

/** Fields of what a key may do, with what is set. */
export function restrictions({ limits, rateLimits, models, ips, expiresAtMs }) {
  return [
    ...spendFields(limits),
    ...rateFields(rateLimits),
    { name: 'models', label: 'Models', value: models?.join(', '), hint: 'With commas. Empty: all.' },
    {
      name: 'ips',
      label: 'Addresses',
      value: ips?.join(', '),
      hint: 'Addresses and CIDR ranges, with commas. Empty: everywhere.',
    },
    {
      name: 'expires',
      label: 'Expires',
      value: expiresAtMs && new Date(expiresAtMs).toISOString(),
      hint: 'A time such as 2027-01-31T00:00:00Z, or from now: 45m, 12h, 30d. Empty: never.',
    },
  ];
}

/** What was emptied is taken away; what stays as it was is not sent. */
export function restrictionMembers({ name, reason, models, ips, expires, ...values }, before) {
  const orNone = (value, old) => value ?? (old === undefined ? undefined : null);
  const unchanged = before.expiresAtMs !== undefined && expires === new Date(before.expiresAtMs).toISOString();
  return {
    name,
    reason,
    limits: spendMembers(values, before.limits),
    rateLimits: rateMembers(values, before.rateLimits),
    models: orNone(list(models), before.models),
    ips: orNone(list(ips), before.ips),
    expires: unchanged ? undefined : orNone(expires, before.expiresAtMs),
  };
}
