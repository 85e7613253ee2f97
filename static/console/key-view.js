/** One key: what it may do, and what is done with it. */
import { change, path } from './api.js';
import { address, button, facts, h, id as code, link, money, time } from './dom.js';
import { openForm, showSecret, WHY } from './dialog.js';
import { keyState, restrictionMembers, restrictions } from './keys.js';
import { rateText, spendText } from './limits.js';
import { accountLink, forgetNames, readNames } from './names.js';

export const view = {
  async load({ get, id }) {
    const key = await get(path('keys', id));
    const [balances] = await Promise.all([
      key.subAccount ? get('balances', { account: key.accountId }) : { data: [] },
      readNames(get),
    ]);
    return { key, balance: balances.data.find((row) => row.key === key.id)?.balance };
  },

  draw({ key, balance }, context) {
    const { id, name, accountId, models, ips, limits, rateLimits, expiresAtMs, createdAtMs, deletedAtMs, prefix, last4 } = key;
    return [
      h(
        'div',
        { class: 'head' },
        h('h1', {}, name || '(unnamed key)'),
        context.may && deletedAtMs === undefined && actions(key, context),
      ),
      facts([
        ['State', keyState(key)],
        ['Account', accountLink(accountId)],
        ['Pays from', balance === undefined ? 'the account’s wallet' : ['its own balance ', money(balance)]],
        ['Spend limits', spendText(limits) || 'none'],
        ['Limits', rateText(rateLimits) || 'none'],
        ['Models', models?.join(', ') ?? 'all'],
        ['Addresses', ips?.join(', ') ?? 'everywhere'],
        ['Made', time(createdAtMs)],
        ['Deleted', deletedAtMs && time(deletedAtMs)],
        ['Expires', expiresAtMs === undefined ? 'never' : time(expiresAtMs)],
        ['Begins, ends', code(`${prefix}…${last4}`)],
        ['Id', code(id)],
      ]),
      h(
        'p',
        { class: 'links' },
        link(address('overview', { key: id, from: '30d' }), 'Its usage'),
        link(address('exchanges', { key: id }), 'Its exchanges'),
        link(address('live', { key: id }), 'Follow it'),
      ),
    ];
  },
};

function actions(key, { reload }) {
  const { id, name, disabled, subAccount } = key;
  const title = name || id;
  const done = () => {
    forgetNames();
    void reload();
  };
  const patch = (members, once) => change('PATCH', path('keys', id), members, once);
  const edit = () =>
    openForm({
      title: `Change ${title}`,
      fields: [{ name: 'name', label: 'Name', value: name }, ...restrictions(key), WHY],
      send: 'Change',
      submit: (values, once) => patch(restrictionMembers(values, key), once),
      done,
    });
  const rotate = () =>
    openForm({
      title: `Rotate ${title}`,
      intro: 'A new key with the same rights takes its place. Without a time of grace the old one is refused at once.',
      fields: [
        {
          name: 'grace',
          label: 'The old key works for another',
          placeholder: '12h',
          hint: 'Such as 45m, 12h, 30d. Empty: it ends now.',
        },
        WHY,
      ],
      send: 'Rotate',
      isDanger: true,
      submit: (values, once) => change('POST', path('keys', id, 'rotate'), values, once),
      done: (made) => {
        forgetNames();
        showSecret({
          title: 'The new key',
          secret: made.key,
          done: () => {
            location.hash = `#/key/${encodeURIComponent(made.id)}`;
          },
        });
      },
    });
  const toggle = () =>
    openForm({
      title: disabled ? `Enable ${title}` : `Disable ${title}`,
      intro: disabled ? 'It is served again.' : 'It is refused from now on. What runs goes on to its end.',
      fields: [WHY],
      send: disabled ? 'Enable' : 'Disable',
      isDanger: !disabled,
      submit: (values, once) => patch({ disabled: !disabled, ...values }, once),
      done,
    });
  const transfer = () =>
    openForm({
      title: `Transfer to ${title}`,
      intro: 'From the account’s wallet to the key’s own balance. A negative amount goes back.',
      fields: [{ name: 'amount', label: 'Amount, $', required: true }, WHY],
      send: 'Transfer',
      submit: (values, once) => change('POST', path('keys', id, 'transfer'), values, once),
      done,
    });
  const remove = () =>
    openForm({
      title: `Delete ${title}`,
      intro: 'It is refused for good. Its exchanges stay in the log, and what it spent in the ledger.',
      fields: [WHY],
      typed: title,
      send: 'Delete',
      isDanger: true,
      submit: (values, once) => change('DELETE', path('keys', id), values, once),
      done: () => {
        forgetNames();
        location.hash = '#/keys';
      },
    });
  return h(
    'span',
    { class: 'buttons' },
    button('Change', edit, { id: 'change' }),
    disabled || button('Rotate', rotate, { id: 'rotate' }),
    subAccount && button('Transfer', transfer, { id: 'transfer' }),
    button(disabled ? 'Enable' : 'Disable', toggle, { id: 'toggle' }),
    button('Delete', remove, { id: 'delete' }),
  );
}
