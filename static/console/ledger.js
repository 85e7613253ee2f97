/** The journal: every move of money and every change of an operator, with who and why; holds; and the proof that it all adds up. */
import { address, button, h, id as code, link, money, section, speak, table, tag, time } from './dom.js';
import { accountLink, accountOptions, keyLink, readNames } from './names.js';

const LIMIT = 100;

export const view = {
  async load({ get, params }) {
    const { account, ref } = params;
    const head = await get('ledger/head');
    const isNewest = account === undefined && ref === undefined && params.after === undefined;
    const after = isNewest ? Math.max(0, head.seq - LIMIT) : params.after;
    const [journal, holds] = await Promise.all([
      get('ledger/journal', { account, ref, after, limit: LIMIT }).catch((error) => {
        if (error.kind !== 'refused') throw error;
        return { data: [], refused: error.message };
      }),
      get('ledger/holds'),
      readNames(get),
    ]);
    return { head, after, journal, holds: holds.data, isNewest };
  },

  draw({ head, after, journal, holds, isNewest }, context) {
    const { params } = context;
    const rows = isNewest ? [...journal.data].reverse() : journal.data;
    return [
      h('h1', {}, 'Ledger'),
      h(
        'p',
        { class: 'note' },
        'Head ',
        code(`${head.seq}:${head.hash}`),
        '. Kept elsewhere, it proves later that nothing before it was changed.',
      ),
      verification(context),
      section(
        'Journal',
        filters(context),
        journal.refused && h('p', { class: 'reason', role: 'alert' }, journal.refused),
        table({
          caption: isNewest ? 'Journal, newest first' : 'Journal, oldest first',
          columns: JOURNAL,
          rows,
          empty: 'The journal has no such row.',
        }),
        h(
          'p',
          { class: 'buttons' },
          isNewest && after > 0 && link(address('ledger', { after: Math.max(0, after - LIMIT) }), 'Earlier'),
          !isNewest &&
            params.after > 0 &&
            params.account === undefined &&
            params.ref === undefined &&
            link(address('ledger', { after: Math.max(0, params.after - LIMIT) }), 'Earlier'),
          !isNewest &&
            journal.nextCursor !== undefined &&
            link(address('ledger', { ...params, after: journal.nextCursor }), 'Later'),
          !isNewest && link('#/ledger', 'Newest'),
        ),
      ),
      section('Money set aside for videos', table({ caption: 'Holds', columns: HOLDS, rows: holds, empty: 'None is open.' })),
    ];
  },
};

const JOURNAL = [
  { name: 'Row', of: ({ seq }) => String(seq) },
  { name: 'Time, UTC', of: ({ atMs }) => time(atMs) },
  { name: 'What', of: ({ kind }) => tag(kind.replaceAll('_', ' ')) },
  { name: 'Amount', number: true, of: ({ nanos }) => (nanos === '0' ? '–' : money(dollars(nanos))) },
  { name: 'Account', of: ({ accountId }) => accountLink(accountId) },
  { name: 'Key', of: ({ keyId }) => keyLink(keyId) },
  { name: 'By', of: ({ by }) => by ?? '' },
  { name: 'Why', of: ({ note }) => h('span', { class: 'why' }, note ?? '') },
  { name: 'From', of: ({ from, nanos }) => (nanos === '0' ? '' : h('small', {}, from)) },
  { name: 'To', of: ({ to, nanos }) => (nanos === '0' ? '' : h('small', {}, to)) },
  { name: 'About', of: ({ ref }) => link(address('ledger', { ref }), code(ref)) },
];

/** Nano-dollars as text. */
function dollars(nanos) {
  const size = nanos.replace('-', '').padStart(10, '0');
  return `${nanos.startsWith('-') ? '-' : ''}${size.slice(0, -9)}.${size.slice(-9)}`;
}

const HOLDS = [
  { name: 'Task', of: ({ task }) => code(task) },
  { name: 'Account', of: ({ account }) => account },
  { name: 'Key', of: ({ key }) => keyLink(key) },
  { name: 'Amount', number: true, of: ({ amount }) => money(amount) },
  { name: 'Since', of: ({ opened }) => opened },
];

function filters({ params, go }) {
  return h(
    'form',
    {
      class: 'filters',
      'aria-label': 'Filters',
      onsubmit: (event) => {
        event.preventDefault();
        const { account, ref } = event.target.elements;
        go({ account: account.value.trim() || undefined, ref: ref.value.trim() || undefined, after: undefined });
      },
    },
    h(
      'label',
      { class: 'field' },
      h('span', {}, 'Account'),
      h('input', {
        id: 'account',
        name: 'account',
        type: 'search',
        value: params.account,
        list: 'ledger-accounts',
        autocomplete: 'off',
      }),
    ),
    h(
      'label',
      { class: 'field' },
      h('span', {}, 'About'),
      h('input', { id: 'ref', name: 'ref', type: 'search', value: params.ref, autocomplete: 'off' }),
    ),
    h('span', { class: 'buttons' }, h('button', { type: 'submit' }, 'Filter')),
    accountOptions('ledger-accounts'),
  );
}

/** It reads the whole journal, so it is asked for. */
function verification({ get, signal }) {
  const result = h('div', { role: 'status' });
  const verify = async () => {
    result.replaceChildren('Recomputing everything from the journal…');
    try {
      const { rows, differences } = await get('ledger/verify');
      if (signal.aborted) return;
      const columns = ['what', 'subject', 'expected', 'found'].map((name) => ({ name, of: (row) => row[name] }));
      result.replaceChildren(
        h(
          'p',
          {},
          differences.length === 0
            ? tag(`${rows.toLocaleString('en-US')} rows: all adds up`, 'good')
            : tag(`${differences.length} differences`, 'bad'),
        ),
        ...(differences.length === 0 ? [] : [table({ caption: 'Differences', columns, rows: differences, empty: '' })]),
      );
    } catch (error) {
      if (signal.aborted) return;
      result.replaceChildren(h('p', { class: 'reason' }, error.message));
      speak('Not verified');
    }
  };
  return h(
    'div',
    {},
    h(
      'p',
      { class: 'buttons' },
      button('Verify', () => void verify(), { id: 'verify' }),
    ),
    result,
  );
}
