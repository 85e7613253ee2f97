/** Channels: which get new work, what their circuits say, how they did in a day, and each asked whether it answers. */
import { change, path } from './api.js';
import { address, button, count, duration, h, link, money, share, table, tag, time } from './dom.js';
import { openForm, WHY } from './dialog.js';

const STATES = {
  in_service: ['in service', 'good'],
  out_of_service: ['out of service', 'bad'],
  disabled: ['disabled in the file', ''],
};

/** What the last tests said; a new look at the Channels keeps it. */
const probes = new Map();

export const view = {
  everyMs: 5_000,

  async load({ get }) {
    const [channels, usage] = await Promise.all([get('channels'), get('overview', { from: '24h', by: 'channel' })]);
    return { channels: channels.data, usage: new Map(usage.data.map((row) => [row.channel, row])) };
  },

  draw({ channels, usage }, context) {
    const columns = [
      { name: 'Channel', of: nameOf },
      { name: 'State', of: stateOf },
      ...(context.may ? [{ name: 'Do', of: (channel) => actions(channel, context) }] : []),
      { name: 'Circuits', of: ({ circuits }) => (circuits.length === 0 ? tag('closed', 'good') : circuits.map(circuitOf)) },
      { name: 'Running', number: true, of: ({ running }) => count(running) },
      {
        name: 'Requests, 24 h',
        number: true,
        of: ({ id }) => link(address('exchanges', { channel: id }), count(usage.get(id)?.requests)),
      },
      { name: 'Errors', number: true, of: ({ id }) => of(usage.get(id), ({ errors, requests }) => share(errors, requests)) },
      {
        name: 'First token p50, p95',
        number: true,
        of: ({ id }) => of(usage.get(id), (row) => `${duration(row.firstTokenP50Ms)}, ${duration(row.firstTokenP95Ms)}`),
      },
      {
        name: 'From caches',
        number: true,
        of: ({ id }) =>
          of(usage.get(id), (row) =>
            share(row.cachedInputTokens, row.inputTokens + row.cachedInputTokens + row.cacheWriteTokens),
          ),
      },
      { name: 'Charged', number: true, of: ({ id }) => of(usage.get(id), (row) => money(row.charge)) },
    ];
    return [
      h(
        'div',
        { class: 'head' },
        h('h1', {}, 'Channels'),
        context.may && channels.length > 0 && button('Test all', (event) => testAll(event.target, context), { id: 'test-all' }),
      ),
      table({
        caption: 'Channels',
        columns,
        rows: channels,
        empty: 'The configuration has no Channel: nothing can be answered.',
      }),
    ];
  },
};

function nameOf({ id, type, origin, priority, weight, models }) {
  const details = [`${type}, ${origin}`, `priority ${priority}, weight ${weight}`, models.join(', ')];
  return [h('strong', {}, id), details.map((text) => h('small', { class: 'block' }, text))];
}

const of = (row, what) => (row === undefined || row.requests === 0 ? '–' : what(row));

function stateOf({ id, state, outOfService }) {
  const [text, kind] = STATES[state] ?? [state, ''];
  const probe = probes.get(id);
  return [
    tag(text, kind),
    outOfService &&
      h(
        'small',
        { class: 'block' },
        `by ${outOfService.by} since `,
        time(outOfService.sinceMs),
        outOfService.reason === undefined ? '' : `: ${outOfService.reason}`,
      ),
    probe &&
      h(
        'small',
        { class: probe.ok ? 'block' : 'block warn' },
        `Test: ${probe.ok ? 'answers' : 'fails'}${probe.status === undefined ? '' : `, HTTP ${probe.status}`}, ${duration(probe.ms)}${probe.note === '' ? '' : `; ${probe.note}`}`,
      ),
  ];
}

function circuitOf({ state, model, openForMs, recentFailures, worker }) {
  const where = [model, worker === undefined ? undefined : `worker ${worker}`].filter((text) => text !== undefined).join(', ');
  return h(
    'span',
    { class: 'block' },
    tag(state, state === 'closed' ? 'good' : 'bad'),
    h(
      'small',
      {},
      ` ${where === '' ? '' : `${where}: `}${count(recentFailures)} ${recentFailures === 1 ? 'failure' : 'failures'}${openForMs > 0 ? `, for another ${duration(openForMs)}` : ''}`,
    ),
  );
}

function actions({ id, state }, context) {
  return h(
    'span',
    { class: 'buttons stacked' },
    button('Test', (event) => test(id, event.target, context), { id: `test-${id}`, 'aria-label': `Test ${id}` }),
    button('Ask', (event) => test(id, event.target, context, { inference: true }), {
      id: `ask-${id}`,
      'aria-label': `Ask ${id} a question, for some tokens`,
      title: 'Sends a short question to its first model: costs some tokens at the vendor',
    }),
    state === 'in_service' && button('Take out', () => takeOut(id, context), { id: `out-${id}`, 'aria-label': `Take out ${id}` }),
    state === 'out_of_service' &&
      button('Put back', () => putBack(id, context), { id: `in-${id}`, 'aria-label': `Put back ${id}` }),
  );
}

async function test(id, pressed, context, how) {
  await probing(pressed, context, async () => [await change('POST', path('channels', id, 'test'), how)]);
}
async function testAll(pressed, context) {
  await probing(pressed, context, async () => (await change('POST', 'channels/test')).data);
}

async function probing(pressed, { reload, signal }, ask) {
  pressed.disabled = true;
  pressed.textContent = 'Testing…';
  try {
    for (const probe of await ask()) probes.set(probe.id, probe);
  } catch (error) {
    if (error.kind !== 'refused') throw error;
    pressed.insertAdjacentElement('afterend', h('small', { class: 'warn', role: 'alert' }, error.message));
    return;
  } finally {
    if (!signal.aborted) await reload();
  }
}

function takeOut(id, { reload }) {
  openForm({
    title: `Take ${id} out of service`,
    intro:
      'It gets no new work from any process or machine, also after a restart, until it is put back. What runs on it goes on.',
    fields: [WHY],
    send: 'Take out',
    isDanger: true,
    submit: (values, once) => change('POST', path('channels', id, 'out-of-service'), values, once),
    done: () => void reload(),
  });
}

function putBack(id, { reload }) {
  openForm({
    title: `Put ${id} back in service`,
    fields: [WHY],
    send: 'Put back',
    submit: (values, once) => change('POST', path('channels', id, 'in-service'), values, once),
    done: () => void reload(),
  });
}
