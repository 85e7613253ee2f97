/** Video tasks, and the decision about those whose outcome nobody knows. */
import { change, path } from './api.js';
import { address, button, facts, h, id as code, link, money, table, tag, time } from './dom.js';
import { openForm, WHY } from './dialog.js';
import { accountLink, keyLink, readNames } from './names.js';

const STATES = ['queued', 'submitting', 'running', 'succeeded', 'failed', 'cancelled', 'unknown'];
const KINDS = { succeeded: 'good', failed: 'bad', unknown: 'bad' };
const MOST = 200;

export const view = {
  async load({ get, params }) {
    const state = STATES.includes(params.state) ? params.state : undefined;
    const [{ data }] = await Promise.all([get('videos', { state, limit: MOST }), readNames(get)]);
    return data;
  },

  draw(tasks, context) {
    const { params, go, may } = context;
    const columns = [
      { name: 'Created, UTC', of: ({ createdAtMs }) => time(createdAtMs) },
      { name: 'State', of: ({ state, reason }) => [tag(state, KINDS[state]), reason && h('small', { class: 'block' }, reason)] },
      { name: 'Model', of: ({ model }) => code(model) },
      { name: 'Account', of: ({ accountId }) => accountLink(accountId) },
      { name: 'Key', of: ({ keyId }) => keyLink(keyId) },
      { name: 'Price', number: true, of: ({ price }) => money(price) },
      { name: 'Task', of: ({ id }) => code(id) },
      {
        name: 'Upstream',
        of: ({ submission, upstreamId }) => [
          submission?.channelId ?? '–',
          upstreamId && h('small', { class: 'block' }, upstreamId),
        ],
      },
      ...(may
        ? [
            {
              name: 'Do',
              of: (task) =>
                task.state === 'unknown' &&
                button('Resolve', () => resolve(task, context), { 'aria-label': `Resolve ${task.id}` }),
            },
          ]
        : []),
    ];
    return [
      h(
        'div',
        { class: 'head' },
        h('h1', {}, 'Videos'),
        h(
          'label',
          { class: 'field' },
          h('span', {}, 'State'),
          h(
            'select',
            { id: 'state', onchange: (event) => go({ state: event.target.value || undefined }) },
            ['', ...STATES].map((state) =>
              h('option', { value: state, selected: state === (params.state ?? '') }, state || 'any'),
            ),
          ),
        ),
      ),
      table({
        caption: 'Video tasks, newest first',
        columns,
        rows: tasks,
        empty: params.state === undefined ? 'No video was asked for yet.' : 'No task is in this state.',
      }),
      tasks.length === MOST &&
        h(
          'p',
          { class: 'note' },
          `The newest ${MOST}. `,
          link(address('videos', { state: 'unknown' }), 'Those of unknown outcome'),
        ),
    ];
  },
};

function resolve({ id, model, price, reason }, { reload }) {
  openForm({
    title: 'Resolve a task',
    intro: [
      'Nobody knows whether the upstream made it. Succeeded: it is charged, and the URL is given out. Failed: the money goes back. It cannot be undone.',
      facts([
        ['Task', code(id)],
        ['Model', model],
        ['Price', money(price)],
        ['Why it is unknown', reason],
      ]),
    ],
    fields: [
      {
        name: 'outcome',
        label: 'Outcome',
        type: 'select',
        options: [
          ['succeeded', 'succeeded'],
          ['failed', 'failed'],
        ],
      },
      { name: 'text', label: 'URL of the result, or message of the failure', required: true },
      WHY,
    ],
    send: 'Resolve',
    isDanger: true,
    submit: ({ outcome, text, reason: why }, once) =>
      change('POST', path('videos', id, 'resolve'), { [outcome]: text, reason: why }, once),
    done: () => void reload(),
  });
}
