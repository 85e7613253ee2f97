/**
 * The rows of the price table and the slides of the carousel. `static/price-rows.js` makes the same in the browser after a
 * refresh; a browser test holds the two against each other.
 */
import { type Fragment, html, type Markup } from './html.ts';
import type { PricedModel, PriceModifier, PricesByKey } from './price-list.ts';
import { depthOf, labelOf, typesetPrice, unitOf } from './price-display.ts';

const MAIN_COLUMNS = ['input', 'cached_input', 'output'] as const;
const HEADINGS = { input: 'Input', cached_input: 'Cached input', output: 'Output' } as const;

/** More than this belong into the table below. */
const SLIDES = 8;
/** The most decimal places that a column is aligned for: one odd price must not widen it further. */
const MOST_PLACES = 6;

/** Decimal places that each main column is aligned for. */
type Places = ReadonlyMap<string, number>;

/** The roles are explicit because some browsers drop them where the style for narrow screens turns rows into grids. */
export function priceTable(models: readonly PricedModel[]): Markup {
  return html`<table role="table" aria-labelledby="prices-title"><thead role="rowgroup"><tr role="row"><th scope="col" role="columnheader" aria-sort="none"><button type="button" data-sort="id">Model</button></th>${MAIN_COLUMNS.map(
    (key) =>
      html`<th scope="col" role="columnheader" aria-sort="none" class="num"><button type="button" data-sort="${key}">${HEADINGS[key]}</button></th>`,
  )}<th scope="col" role="columnheader" class="also">Also</th></tr></thead>
<tbody role="rowgroup" id="rows">${priceRows(models)}</tbody></table>
`;
}

function priceRows(models: readonly PricedModel[]): Markup {
  const places: Places = new Map(MAIN_COLUMNS.map((key) => [key, placesOf(models, key)]));
  return html`${models.map((model) => row(model, places))}`;
}

function placesOf(models: readonly PricedModel[], key: string): number {
  let most = 2;
  for (const { prices } of models) {
    const set = typesetPrice(own(prices, key) ?? '');
    if (set !== undefined) most = Math.max(most, set.fraction.length - 1);
  }
  return Math.min(most, MOST_PLACES);
}

function row(model: PricedModel, places: Places): Markup {
  const { id, kind } = model;
  return html`<tr role="row"><th scope="row" role="rowheader"><span class="id">${id}</span> <span class="kind">${kind}</span></th>${MAIN_COLUMNS.map((key) => cell(own(model.prices, key), places.get(key) ?? 2))}<td role="cell" class="also">${also(model)}</td></tr>
`;
}

function cell(price: string | undefined, places: number): Markup {
  if (price === undefined)
    return html`<td role="cell" class="none"><span aria-hidden="true">–</span><span class="sr">none</span></td>`;
  return html`<td role="cell" class="price d${depthOf(price)}">${figure(price, places)}</td>`;
}

/** The price: whole dollars, and the fraction set lower. `places` > 0 pads it so that the decimal points of a column line up. */
function figure(price: string, places = 0): Markup {
  const set = typesetPrice(price);
  if (set === undefined) return html`<span class="w">${price}</span>`;
  const missing = places - (set.fraction.length - 1);
  const pad = missing > 0 ? ` g${missing}` : '';
  return html`<span class="w">${set.whole}</span><span class="f${pad}">${set.fraction}</span>`;
}

/** Whatever else a model has: other keys, long context, service tiers. */
function also(model: PricedModel): Markup {
  const groups: Fragment[] = [];
  const others = Object.entries(model.prices).filter(([key]) => !isMain(key));
  if (others.length > 0) groups.push(list(others));
  if (model.longContext !== undefined) {
    groups.push(html`<p>above ${count(model.longContext.above)} tokens</p>${list(Object.entries(model.longContext.prices))}`);
  }
  for (const [name, prices] of Object.entries(model.serviceTiers ?? {})) {
    groups.push(html`<p>${name} tier</p>${list(Object.entries(prices))}`);
  }
  for (const [name, { above, prices }] of Object.entries(model.serviceTierLongContext ?? {})) {
    groups.push(html`<p>${name} tier, above ${count(above)} tokens</p>${list(Object.entries(prices))}`);
  }
  for (const [name, modifier] of Object.entries(model.speeds ?? {})) groups.push(modified(`${name} speed`, modifier));
  for (const [name, modifier] of Object.entries(model.geos ?? {})) groups.push(modified(`region ${name}`, modifier));
  return html`${groups}`;
}

function modified(what: string, modifier: PriceModifier): Fragment {
  if ('multiplier' in modifier) return html`<p>${what}: token prices × ${modifier.multiplier}</p>`;
  const { prices, longContext: long } = modifier;
  const beyond =
    long === undefined ? [] : [html`<p>${what}, above ${count(long.above)} tokens</p>${list(Object.entries(long.prices))}`];
  return html`<p>${what}</p>${list(Object.entries(prices))}${beyond}`;
}

function list(prices: readonly (readonly [string, string])[]): Markup {
  return html`<ul>${prices.map(([key, price]) => html`<li>${labelOf(key)} <b>${figure(price)}</b></li>`)}</ul>`;
}

function isMain(key: string): boolean {
  return (MAIN_COLUMNS as readonly string[]).includes(key);
}

/** Never a member of Object.prototype: keys come from a file. */
function own(prices: PricesByKey, key: string): string | undefined {
  return Object.hasOwn(prices, key) ? prices[key] : undefined;
}

function count(number: number): string {
  return String(number).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** The first models with something to show; the first slide is the one that is seen. */
export function slides(models: readonly PricedModel[]): Markup {
  const shown = models.filter(({ prices }) => Object.keys(prices).length > 0).slice(0, SLIDES);
  return html`${shown.map(
    (
      model,
      index,
    ) => html`<div class="slide${index === 0 ? ' current' : ''}" role="group" aria-roledescription="slide" aria-label="${index + 1} of ${shown.length}">${slide(model)}</div>
`,
  )}`;
}

function slide({ id, kind, prices }: PricedModel): Markup {
  const figures = Object.entries(prices).slice(0, 3);
  return html`<p class="id">${id}</p><p class="kind">${kind}</p><dl>${figures.map(
    ([key, price]) =>
      html`<div class="d${depthOf(price)}"><dt>${labelOf(key)}</dt><dd>${figure(price)}</dd><dd class="unit">${UNIT_WORDS[unitOf(key)]}</dd></div>`,
  )}</dl>`;
}

const UNIT_WORDS = {
  per_million_tokens: 'USD / 1M tokens',
  per_image: 'USD / image',
  per_video: 'USD / video',
  per_thousand_calls: 'USD / 1k calls',
} as const;
