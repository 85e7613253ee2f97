/**
 * Rows of the price table, and slides of the carousel, from a price list. The server makes the same for the first paint (src/pages/price-table.ts), and a
 * browser test holds the two against each other. Text enters the page as text only.
 */
export const MAIN_COLUMNS = ['input', 'cached_input', 'output'];
const MOST_PLACES = 6;
const CONTOURS = ['0.25', '1', '4', '16', '64'];
const LABELS = new Map([
  ['input', 'input'],
  ['cached_input', 'cached input'],
  ['cache_write_5m', 'cache write, 5 min'],
  ['cache_write_30m', 'cache write, 30 min'],
  ['cache_write_1h', 'cache write, 1 h'],
  ['cache_write_12h', 'cache write, 12 h'],
  ['output', 'output'],
  ['reasoning', 'reasoning'],
  ['image_input', 'image input'],
  ['image_output', 'image output'],
  ['audio_input', 'audio input'],
  ['audio_output', 'audio output'],
  ['image', 'per image'],
  ['video', 'per video'],
]);

/** @param {readonly { id: string, kind: string, prices: Record<string, string> }[]} models */
export function priceRows(models) {
  const places = new Map(MAIN_COLUMNS.map((key) => [key, placesOf(models, key)]));
  return models.map((model) => row(model, places));
}

/** The models that examples may name: text models whose ids need no quoting anywhere; without one, a placeholder. */
export function exampleModels(models) {
  const ids = models.filter(({ id, kind }) => kind === 'text' && PLAIN_ID.test(id)).map(({ id }) => id);
  return ids.length === 0 ? ['your-model'] : ids;
}
const PLAIN_ID = /^[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}$/;

function placesOf(models, key) {
  let most = 2;
  for (const { prices } of models) {
    const set = setPrice(own(prices, key) ?? '');
    if (set) most = Math.max(most, set.fraction.length - 1);
  }
  return Math.min(most, MOST_PLACES);
}

function row(model, places) {
  const head = element('th', { scope: 'row', role: 'rowheader' }, [
    element('span', { class: 'id' }, [model.id]),
    ' ',
    element('span', { class: 'kind' }, [model.kind]),
  ]);
  const cells = MAIN_COLUMNS.map((key) => cell(own(model.prices, key), places.get(key)));
  return element('tr', { role: 'row' }, [head, ...cells, element('td', { role: 'cell', class: 'also' }, also(model))]);
}

function cell(price, places) {
  if (price === undefined) {
    return element('td', { role: 'cell', class: 'none' }, [
      element('span', { 'aria-hidden': 'true' }, ['–']),
      element('span', { class: 'sr' }, ['none']),
    ]);
  }
  return element('td', { role: 'cell', class: `price d${depthOf(price)}` }, sounding(price, places));
}

function sounding(price, places = 0) {
  const set = setPrice(price);
  if (!set) return [element('span', { class: 'w' }, [price])];
  const missing = places - (set.fraction.length - 1);
  return [
    element('span', { class: 'w' }, [set.whole]),
    element('span', { class: missing > 0 ? `f g${missing}` : 'f' }, [set.fraction]),
  ];
}

function also({ prices, long_context: long, service_tiers: tiers, service_tier_long_context: tierLong, speeds, geos }) {
  const others = Object.entries(prices).filter(([key]) => !MAIN_COLUMNS.includes(key));
  const groups = others.length > 0 ? [list(others)] : [];
  if (long) groups.push(element('p', {}, [`above ${count(long.above)} tokens`]), list(Object.entries(long.prices)));
  for (const [name, tier] of Object.entries(tiers ?? {}))
    groups.push(element('p', {}, [`${name} tier`]), list(Object.entries(tier)));
  for (const [name, { above, prices: beyond }] of Object.entries(tierLong ?? {}))
    groups.push(element('p', {}, [`${name} tier, above ${count(above)} tokens`]), list(Object.entries(beyond)));
  for (const [name, modifier] of Object.entries(speeds ?? {})) groups.push(...modified(`${name} speed`, modifier));
  for (const [name, modifier] of Object.entries(geos ?? {})) groups.push(...modified(`region ${name}`, modifier));
  return groups;
}

function modified(what, { multiplier, prices, long_context: long }) {
  if (multiplier !== undefined) return [element('p', {}, [`${what}: token prices × ${multiplier}`])];
  const own = [element('p', {}, [what]), list(Object.entries(prices))];
  if (!long) return own;
  return [...own, element('p', {}, [`${what}, above ${count(long.above)} tokens`]), list(Object.entries(long.prices))];
}

function list(prices) {
  const items = prices.map(([key, price]) => element('li', {}, [`${labelOf(key)} `, element('b', {}, sounding(price))]));
  return element('ul', {}, items);
}

const SLIDES = 8;
const UNIT_WORDS = new Map([
  ['image', 'USD / image'],
  ['video', 'USD / video'],
]);

export function priceSlides(models) {
  const shown = models.filter(({ prices }) => Object.keys(prices).length > 0).slice(0, SLIDES);
  return shown.map((model, index) =>
    element(
      'div',
      {
        class: 'slide',
        role: 'group',
        'aria-roledescription': 'slide',
        'aria-label': `${index + 1} of ${shown.length}`,
      },
      slide(model),
    ),
  );
}

function slide({ id, kind, prices }) {
  const figures = Object.entries(prices)
    .slice(0, 3)
    .map(([key, price]) =>
      element('div', { class: `d${depthOf(price)}` }, [
        element('dt', {}, [labelOf(key)]),
        element('dd', {}, sounding(price)),
        element('dd', { class: 'unit' }, [UNIT_WORDS.get(key) ?? (LABELS.has(key) ? 'USD / 1M tokens' : 'USD / 1k calls')]),
      ]),
    );
  return [element('p', { class: 'id' }, [id]), element('p', { class: 'kind' }, [kind]), element('dl', {}, figures)];
}

const labelOf = (key) => LABELS.get(key) ?? `${key.replaceAll('_', ' ')}, 1k calls`;
const count = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, ',');
const own = (record, key) => (Object.hasOwn(record, key) ? record[key] : undefined);

function setPrice(decimal) {
  const parts = /^(\d+)(?:\.(\d+))?$/.exec(decimal);
  if (!parts) return undefined;
  const places = (parts[2] ?? '').replace(/0+$/, '');
  return { whole: parts[1].replace(/^0+(?=\d)/, ''), fraction: `.${places.padEnd(2, '0')}` };
}

const depthOf = (price) => CONTOURS.filter((contour) => compareDecimals(price, contour) >= 0).length;

/** Exact at any length, unlike floats. Negative, zero or positive as `a` is below, equal to or above `b`. */
export function compareDecimals(a, b) {
  const left = setPrice(a);
  const right = setPrice(b);
  if (!left || !right) return 0;
  if (left.whole.length !== right.whole.length) return left.whole.length - right.whole.length;
  const [x, y] = [left.whole + left.fraction, right.whole + right.fraction];
  return x < y ? -1 : x > y ? 1 : 0;
}

function element(name, attributes, children) {
  const made = document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children);
  return made;
}
