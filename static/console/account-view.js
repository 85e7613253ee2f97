/** One account: its wallet, its limits and its keys. */
import { change, path } from './api.js';
import { address, button, facts, h, id as code, link, money, section, table, tag } from './dom.js';
import { openForm, WHY } from './dialog.js';
import { COLUMNS, createKey } from './keys.js';
import { rateFields, rateMembers, rateText } from './limits.js';
import { forgetNames } from './names.js';

export const view = {
  async load({ get, id }) {
    const account = await get(path('accounts', id));
    const [keys, balances] = await Promise.all([
      get('keys', { account: account.id, limit: 1000 }),
      get('balances', { account: account.id }),
    ]);
    return { account, keys: keys.data, subAccounts: balances.data.filter(({ key }) => key !== undefined) };
  },

  draw({ account, keys, subAccounts }, context) {
    const { id, name, unlimited, disabled, balance, rateLimits } = account;
    return [
      h('div', { class: 'head' }, h('h1', {}, name), context.may && actions(account, context)),
      facts([
        ['Balance', unlimited ? ['without limit; used so far ', money(balance)] : money(balance)],
        ['State', disabled ? tag('disabled', 'bad') : tag('active', 'good')],
        ['Class', account.class],
        ['Limits', rateText(rateLimits) || 'none'],
        ['Id', code(id)],
        [
          'Sub-accounts',
          subAccounts.length === 0
            ? undefined
            : subAccounts.map(({ key, balance: own }) => h('div', {}, code(key), ' ', money(own))),
        ],
      ]),
      h(
        'p',
        { class: 'links' },
        link(address('overview', { account: name, from: '30d' }), 'Its usage'),
        link(address('exchanges', { account: name }), 'Its exchanges'),
        link(address('ledger', { account: name }), 'Its journal'),
      ),
      section(
        'Keys',
        context.may &&
          h(
            'p',
            { class: 'buttons' },
            button('New key', () => createKey(name, context), { id: 'new-key' }),
          ),
        table({
          caption: 'Keys of the account',
          columns: COLUMNS.filter(({ name: column }) => column !== 'Account'),
          rows: keys,
          empty: 'It has no key yet.',
        }),
      ),
    ];
  },
};

function actions({ id, name, unlimited, disabled, rateLimits, class: of }, { reload }) {
  const done = () => {
    forgetNames();
    void reload();
  };
  const patch = (members, once) => change('PATCH', path('accounts', id), members, once);
  const credit = () =>
    openForm({
      title: `Credit ${name}`,
      intro: 'Added to the wallet. A negative amount is a correction; both stand in the journal for ever.',
      fields: [{ name: 'amount', label: 'Amount, $', required: true, placeholder: '25.00' }, WHY],
      send: 'Credit',
      submit: (values, once) => change('POST', path('accounts', id, 'credit'), values, once),
      done,
    });
  const edit = () =>
    openForm({
      title: `Change ${name}`,
      fields: [
        { name: 'class', label: 'Class', value: of, required: true, hint: 'Decides which Channels serve it.' },
        { name: 'unlimited', label: 'Without limit', type: 'checkbox', value: unlimited },
        ...rateFields(rateLimits),
        WHY,
      ],
      send: 'Change',
      submit: (values, once) =>
        patch(
          {
            class: values.class,
            unlimited: values.unlimited,
            rateLimits: rateMembers(values, rateLimits),
            reason: values.reason,
          },
          once,
        ),
      done,
    });
  const toggle = () =>
    openForm({
      title: disabled ? `Enable ${name}` : `Disable ${name}`,
      intro: disabled ? 'Its keys are served again.' : 'All of its keys are refused from now on. What runs goes on to its end.',
      fields: [WHY],
      send: disabled ? 'Enable' : 'Disable',
      isDanger: !disabled,
      submit: (values, once) => patch({ disabled: !disabled, ...values }, once),
      done,
    });
  return h(
    'span',
    { class: 'buttons' },
    button('Credit', credit, { class: 'main', id: 'credit' }),
    button('Change', edit, { id: 'change' }),
    button(disabled ? 'Enable' : 'Disable', toggle, { id: 'toggle' }),
  );
}
