/** The home page: connects the refresh of prices, the table, the carousel and the examples with what is on the page. */
import { startCarousel } from './carousel.js';
import { startCopying } from './copy.js';
import { exampleModels, priceSlides } from './price-rows.js';
import { createPriceTable } from './price-table.js';
import { startRefresh } from './refresh.js';

const part = (id) => document.getElementById(id);

const table = createPriceTable({
  table: document.querySelector('table'),
  body: part('rows'),
  filter: part('filter'),
  shown: part('shown'),
  empty: part('empty'),
});
const carousel = startCarousel({
  root: document.querySelector('.carousel'),
  rotation: part('rotation'),
  previous: part('previous'),
  next: part('next'),
  view: part('slides'),
});
startCopying();

const model = part('model');
function nameModel() {
  for (const place of document.querySelectorAll('.model')) place.textContent = model.value;
}
model.addEventListener('change', nameModel);

/** The reader's choice stays where the model does. @param {readonly { id: string, kind: string }[]} models */
function offerModels(models) {
  const chosen = model.value;
  const ids = exampleModels(models);
  model.replaceChildren(...ids.map((id) => new Option(id)));
  model.value = ids.includes(chosen) ? chosen : ids[0];
  nameModel();
}

const updated = part('updated');
/** When the prices on the screen were last known to be current. The page itself brought them. */
let confirmed = new Date();
let paused = false;

const refresh = startRefresh({
  url: 'prices.json',
  updatedAt: updated.dateTime,
  version: updated.dataset.version,
  onList(list, changed) {
    confirmed = new Date();
    if (Date.parse(list.updated_at) > Date.parse(updated.dateTime)) {
      updated.dateTime = list.updated_at;
      updated.textContent = utc(new Date(list.updated_at));
    }
    if (changed) {
      table.show(list.models);
      carousel.replace(priceSlides(list.models));
      offerModels(list.models);
    }
    warn('');
  },
  onFailure(reason) {
    warn(`Prices may be out of date since ${clock(confirmed)}: ${reason}. Trying again every 30 seconds.`);
  },
  onIdle: warnOffline,
});

function warnOffline() {
  if (!navigator.onLine) warn(`Prices may be out of date since ${clock(confirmed)}: this browser is offline.`);
}

const stale = part('stale');
const retry = part('retry');
function warn(text) {
  if (stale.textContent !== text) stale.textContent = text;
  part('state').classList.toggle('stale', text !== '');
  retry.hidden = text === '' || !navigator.onLine || paused;
  part('checked').textContent = text === '' ? `, checked at ${clock(confirmed)}${paused ? '; updates are paused' : ''}` : '';
}
warn('');
warnOffline();
retry.addEventListener('click', () => refresh.now());

const pause = part('pause');
pause.addEventListener('click', () => {
  paused = !paused;
  pause.textContent = paused ? 'Resume updates' : 'Pause updates';
  refresh.setPaused(paused);
  warn(stale.textContent);
});

function clock(date) {
  return `${date.toISOString().slice(11, 19)} UTC`;
}

function utc(date) {
  return `${date.toISOString().slice(0, 19).replace('T', ' ')} UTC`;
}
