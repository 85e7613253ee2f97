/** Accounts: found, made, and each with what is left of its wallet. */
import { change } from './api.js';
import { button, h, link, money, one, table, tag } from './dom.js';
import { openForm, WHY } from './dialog.js';
import { rateFields, rateMembers, rateText } from './limits.js';
import { LIMIT, pages, searchForm } from './lists.js';
import { forgetNames } from './names.js';

const COLUMNS = [
  { name: 'Account', of: ({ id, name }) => link(one('account', id), name) },
  { name: 'Balance', number: true, of: ({ balance, unlimited }) => (unlimited ? 'without limit' : money(balance)) },
  { name: 'State', of: ({ disabled }) => (disabled ? tag('disabled', 'bad') : tag('active', 'good')) },
  { name: 'Class', of: ({ class: of }) => of },
  { name: 'Limits', of: ({ rateLimits }) => rateText(rateLimits) || '–' },
];

export const view = {
  load: ({ get, params }) => get('accounts', { search: params.search, after: params.after, limit: LIMIT }),

  draw({ data, nextCursor }, context) {
    const { params, may } = context;
    return [
      h(
        'div',
        { class: 'head' },
        h('h1', {}, 'Accounts'),
        h(
          'span',
          { class: 'buttons' },
          searchForm(context, 'name or id'),
          may && button('New account', create, { class: 'main', id: 'new-account' }),
        ),
      ),
      table({
        caption: 'Accounts',
        columns: COLUMNS,
        rows: data,
        empty:
          params.search === undefined
            ? 'There is no account yet. An account has a wallet; its keys spend from it.'
            : 'No account has this in its name or id.',
      }),
      pages(context, nextCursor),
    ];
  },
};

function create() {
  openForm({
    title: 'New account',
    fields: [
      { name: 'name', label: 'Name', required: true },
      { name: 'credit', label: 'Opening credit, $', placeholder: '0.00' },
      { name: 'class', label: 'Class', hint: 'Decides which Channels serve it. Empty: default.' },
      { name: 'unlimited', label: 'Without limit: its usage is journaled, its wallet never debited', type: 'checkbox' },
      ...rateFields(),
      WHY,
    ],
    send: 'Create',
    submit: ({ name, credit, class: of, unlimited, reason, ...values }, once) =>
      change('POST', 'accounts', { name, credit, class: of, unlimited, rateLimits: rateMembers(values), reason }, once),
    done: ({ id }) => {
      forgetNames();
      location.hash = one('account', id);
    },
  });
}
