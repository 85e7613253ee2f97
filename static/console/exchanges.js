/** The request log: filtered, a hundred rows at a time, and one exchange found by any of its ids. */
import { address, h, link, one, table } from './dom.js';
import { COLUMNS, mark } from './exchange-rows.js';
import { FILTERS, filterForm } from './filter.js';
import { readNames } from './names.js';

const LIMIT = 100;

export const view = {
  async load({ get, params }) {
    const asked = {
      limit: LIMIT,
      before: params.before,
      since: params.since,
      ...Object.fromEntries(FILTERS.map((name) => [name, params[name]])),
    };
    const [models, channels] = await Promise.all([get('models'), get('channels'), readNames(get)]);
    try {
      return { page: await get('exchanges', asked), models: models.data, channels: channels.data };
    } catch (error) {
      // A filter that names nothing is said beside the filters, which stay.
      if (error.kind !== 'refused') throw error;
      return { page: { data: [] }, refused: error.message, models: models.data, channels: channels.data };
    }
  },

  draw({ page, refused, models, channels }, context) {
    const { params, view } = context;
    const isFiltered = [...FILTERS, 'since'].some((name) => params[name] !== undefined);
    const empty = isFiltered
      ? 'No exchange fits these filters.'
      : 'Nothing was asked yet. The first exchange stands here as soon as it ended.';
    return [
      h('div', { class: 'head' }, h('h1', {}, 'Exchanges'), finder()),
      filterForm(context, { models, channels, withTime: true }),
      refused === undefined ? undefined : h('p', { class: 'reason', role: 'alert' }, refused),
      refused === undefined &&
        table({
          caption: 'Exchanges, newest first',
          columns: COLUMNS,
          rows: page.data,
          mark,
          empty: page.nextCursor === undefined ? empty : 'None among the newest that were looked through.',
        }),
      h(
        'p',
        { class: 'buttons' },
        params.before !== undefined && link(address(view, { ...params, before: undefined }), 'Newest'),
        page.nextCursor !== undefined && link(address(view, { ...params, before: page.nextCursor }), 'Older'),
      ),
    ];
  },
};

/** By the id of the exchange, that of the answer, or the client's own. */
function finder() {
  return h(
    'form',
    {
      role: 'search',
      class: 'finder',
      onsubmit: (event) => {
        event.preventDefault();
        const id = event.target.elements.request.value.trim();
        if (id !== '') location.hash = one('exchange', id);
      },
    },
    h('label', { for: 'request', class: 'sr' }, 'A request by its id'),
    h('input', {
      id: 'request',
      name: 'request',
      type: 'search',
      placeholder: 'id of a request',
      autocomplete: 'off',
      spellcheck: 'false',
    }),
    h('button', { type: 'submit' }, 'Find'),
  );
}
