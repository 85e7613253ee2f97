/** The gateway itself: its health, its configuration file, and who may use the console. */
import { change, health, path } from './api.js';
import { button, count, facts, h, id as code, section, speak, table, tag, time } from './dom.js';
import { openForm, showSecret, WHY } from './dialog.js';

export const view = {
  async load({ get }) {
    const [tokens, check, found] = await Promise.all([get('tokens'), get('config/check'), health()]);
    return { tokens: tokens.data, check, found };
  },

  draw({ tokens, check, found }, context) {
    const { may } = context;
    return [
      h('h1', {}, 'Gateway'),
      section('Health', found === undefined ? h('p', { class: 'empty' }, 'It does not say.') : healthOf(found)),
      section(
        'Configuration file',
        checked(check),
        may &&
          h(
            'p',
            { class: 'buttons' },
            button('Reload', () => reloadConfig(context), { id: 'reload' }),
          ),
      ),
      may &&
        section(
          'Envelope secret',
          h('p', { class: 'note' }, 'Encrypted reasoning and signatures travel in envelopes that are sealed with it.'),
          h('p', { class: 'buttons' }, button('Rotate', rotateSecret, { id: 'rotate-secret' })),
        ),
      may &&
        section(
          'Backup',
          h('p', { class: 'note' }, 'A copy of the store as it is at one moment, verified, on the machine of the gateway.'),
          h('p', { class: 'buttons' }, button('Back up', backUp, { id: 'back-up' })),
        ),
      section(
        'Admin tokens',
        h('p', { class: 'note' }, 'A token of the role read sees everything here and changes nothing.'),
        table({
          caption: 'Admin tokens',
          columns: [
            ...TOKENS,
            ...(may
              ? [
                  {
                    name: 'Do',
                    of: (token) => button('Delete', () => remove(token, context), { 'aria-label': `Delete ${token.name}` }),
                  },
                ]
              : []),
          ],
          rows: tokens,
          empty: 'None.',
        }),
        may &&
          h(
            'p',
            { class: 'buttons' },
            button('New token', () => create(context), { id: 'new-token' }),
          ),
      ),
    ];
  },
};

const TOKENS = [
  { name: 'Token', of: ({ name }) => name },
  { name: 'Role', of: ({ role }) => tag(role) },
  { name: 'Begins, ends', of: ({ prefix, last4 }) => code(`${prefix}…${last4}`) },
  { name: 'Made, UTC', of: ({ createdAtMs }) => time(createdAtMs) },
];

/** The report's own names, whichever it has. */
function healthOf({ status, reasons = [], ...rest }) {
  const said = (name) => name.replaceAll('_', ' ');
  const text = (value) => {
    if (typeof value === 'boolean') return value ? 'yes' : 'no';
    if (typeof value !== 'object' || value === null) return String(value);
    return Object.entries(value)
      .map(([name, own]) => `${said(name)}: ${text(own)}`)
      .join(', ');
  };
  return facts([
    ['Status', [tag(status, status === 'ok' ? 'good' : 'bad'), reasons.length === 0 ? '' : ` ${reasons.join(', ')}`]],
    ...Object.entries(rest).map(([name, value]) => [said(name).replace(/^./, (letter) => letter.toUpperCase()), text(value)]),
  ]);
}

function checked({ valid, notes = [], problems = [] }) {
  return [
    h('p', {}, valid ? tag('valid', 'good') : tag('not valid: the gateway goes on with the old one', 'bad')),
    problems.length > 0 &&
      table({
        caption: 'Problems',
        columns: [
          { name: 'Where', of: ({ path: where }) => code(where) },
          { name: 'What', of: ({ message }) => message },
        ],
        rows: problems,
        empty: '',
      }),
    notes.map((note) => h('p', { class: 'note' }, note)),
  ];
}

function reloadConfig({ reload }) {
  openForm({
    title: 'Reload the configuration',
    intro: 'The file is read again and used from now on, by every process, where it is valid. Open streams go on.',
    fields: [WHY],
    send: 'Reload',
    submit: (values, once) => change('POST', 'config/reload', values, once),
    done: () => void reload(),
  });
}

function rotateSecret() {
  openForm({
    title: 'Rotate the envelope secret',
    intro: 'New envelopes are sealed with a new secret; older ones still open. It cannot be undone.',
    fields: [WHY],
    send: 'Rotate',
    isDanger: true,
    submit: (values, once) => change('POST', 'secrets/rotate', values, once),
    done: ({ secret }) => speak(`Secret ${secret} is in use`),
  });
}

function backUp() {
  const folder = new Date().toISOString().slice(0, 16).replace('T', '-').replace(':', '');
  openForm({
    title: 'Back up the store',
    intro: 'Everyone goes on meanwhile. Restoring is done with the gateway stopped: mizu store restore.',
    fields: [{ name: 'folder', label: 'Folder', value: folder, required: true, hint: 'A new one, below store.backups.' }, WHY],
    send: 'Back up',
    submit: (values, once) => change('POST', 'store/backup', values, once),
    done: ({ folder: made, head, journalRows, openExchanges }) =>
      showSecret({
        title: 'The head of the copy',
        secret: head,
        intro:
          `${made} holds ${count(journalRows)} journal rows, which add up; ${count(openExchanges)} exchanges were open and are not in it.` +
          ' Keep the head elsewhere: mizu ledger verify --head compares a restored store with it.',
      }),
  });
}

function create({ reload }) {
  openForm({
    title: 'New admin token',
    fields: [
      { name: 'name', label: 'Name', required: true, hint: 'What the journal calls whoever uses it.' },
      {
        name: 'role',
        label: 'Role',
        type: 'select',
        value: 'read',
        options: [
          ['read', 'read'],
          ['write', 'write'],
        ],
      },
      WHY,
    ],
    send: 'Create',
    submit: (values, once) => change('POST', 'tokens', values, once),
    done: ({ token }) => showSecret({ title: 'The new admin token', secret: token, done: () => void reload() }),
  });
}

function remove({ name }, { reload }) {
  openForm({
    title: `Delete ${name}`,
    intro: 'It is refused from then on, on every machine, and its sessions end. It cannot be undone.',
    fields: [WHY],
    typed: name,
    send: 'Delete',
    isDanger: true,
    submit: (values, once) => change('DELETE', path('tokens', name), values, once),
    done: () => {
      speak(`${name} is deleted`);
      void reload();
    },
  });
}
