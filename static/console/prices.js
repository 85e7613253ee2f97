/** Models with their prices and Channels as the running configuration has them. */
import { h, link, table, tag } from './dom.js';

const STATES = { in_service: 'good', out_of_service: 'bad', disabled: '' };

export const view = {
  load: async ({ get }) => (await get('models')).data,

  draw(models) {
    const columns = [
      { name: 'Model', of: ({ id, kind }) => [h('code', { class: 'code' }, id), h('small', {}, ` ${kind}`)] },
      { name: 'Price, $', of: ({ price }) => (price === undefined ? tag('not offered: no price', 'bad') : priceOf(price)) },
      {
        name: 'Channels',
        of: ({ channels }) =>
          channels.length === 0
            ? tag('none', 'bad')
            : channels.map(({ id, upstreamModel, state }) =>
                h('span', { class: 'block' }, tag(id, STATES[state]), h('small', {}, ` as ${upstreamModel}`)),
              ),
      },
    ];
    return [
      h('h1', {}, 'Prices'),
      h(
        'p',
        { class: 'note' },
        'Per million tokens unless the key says otherwise, as they are in force. They stand in the configuration; ',
        link('#/gateway', 'reload it'),
        ' after a change.',
      ),
      table({ caption: 'Models and prices', columns, rows: models, empty: 'The configuration has no model.' }),
    ];
  },
};

/** Prices by key; what changes them is folded away. */
function priceOf({ prices, longContext, serviceTiers, serviceTierLongContext, speeds, geos }) {
  const more = [
    longContext && [`above ${longContext.above.toLocaleString('en-US')} input tokens`, longContext.prices],
    ...named('tier', serviceTiers),
    ...Object.entries(serviceTierLongContext ?? {}).map(([name, { above, prices: own }]) => [
      `tier ${name} above ${above.toLocaleString('en-US')}`,
      own,
    ]),
    ...named('speed', speeds),
    ...named('region', geos),
  ].filter((entry) => entry !== undefined);
  return [
    keys(prices),
    more.length > 0 &&
      h(
        'details',
        {},
        h('summary', {}, `${more.length} more`),
        more.map(([name, own]) =>
          h(
            'div',
            {},
            h('strong', {}, name),
            ' ',
            own.multiplier === undefined ? keys(own.prices ?? own) : `× ${own.multiplier}`,
          ),
        ),
      ),
  ];
}

const named = (kind, group = {}) => Object.entries(group).map(([name, own]) => [`${kind} ${name}`, own]);
const keys = (prices) =>
  h(
    'dl',
    { class: 'prices' },
    Object.entries(prices).map(([name, price]) => h('div', {}, h('dt', {}, name.replaceAll('_', ' ')), h('dd', {}, price))),
  );
